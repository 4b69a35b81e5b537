import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { RuleSet, IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { ToolContext } from '../call.js'
import { closingRule } from '../drafts/close-services.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { portName } from '../inventory/protocols.js'
import { applyChange } from '../policy/apply-change.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { noDisagreement, compareRecord } from '../policy/compare-record.js'
import { decideEnds } from '../policy/decide-rows.js'
import { createConnectionJudge, dropsBy, type EndJudge } from '../policy/judge-connection.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { portsOf, sharePorts, type PortRange } from '../policy/match-services.js'
import { createPresentModes, type PresentModes } from '../policy/present-modes.js'
import { nameRule } from '../policy/name-rule.js'
import { namesOf } from '../policy/name-references.js'
import { findRulesOn } from '../policy/rules-on-ports.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import { readWholePolicy } from '../policy/read-whole-policy.js'
import { createSilentEnds } from '../policy/silent-ends.js'
import { anyOf, undecidedBecause, unknown, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything, nameEnds } from '../traffic/applications.js'
import { portColumn, protocolColumn, textColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { endsOf, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows, type Group } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'

/**
 * What policy does with observed traffic to a risky service. `by_rule`: an allow rule permits it. `by_mode`: no rule
 * allows it, but it passes in the present enforcement modes. `not_enforced`: neither end applies rules. `stopped`:
 * policy drops it, at an end whose VEN answers. `undecided`: what happens is not certain.
 */
export const REACHED = ['by_rule', 'by_mode', 'not_enforced', 'undecided', 'stopped'] as const
export type Reached = (typeof REACHED)[number]

/**
 * The least change that would stop traffic that now passes, from small to large. `deny_rule`: a deny rule is enough in
 * the present modes. `enforce_destination`, `enforce_source`: this end must go to full enforcement, with the present
 * rules or a deny rule. `change_rules`: the allow rules that permit the traffic must change, or an override deny rule
 * is needed. `change_rules_and_enforce`: the same, and an end must go to full enforcement too, because neither drops
 * anything in its present mode. `once_online`: policy drops it already, or could, but only at an end whose VEN is not
 * known to answer. `not_by_policy`: no change helps, because neither end has a VEN. `not_known`: it is not certain what
 * would help.
 */
export const REMEDIES = [
  'deny_rule',
  'enforce_destination',
  'enforce_source',
  'change_rules',
  'change_rules_and_enforce',
  'once_online',
  'not_by_policy',
  'not_known',
] as const
export type Remedy = (typeof REMEDIES)[number]

/** A risky service with the observed traffic to its ports. */
export interface ExposedService {
  service: Service
  ports: readonly PortRange[]
  connections: Record<Reached, number>
  remedies: Partial<Record<Remedy, number>>
  /**
   * Number of allow rules in force that allow at least one of the service's ports to workloads; null if the policy
   * could not be read.
   */
  allowRules: number | null
}

/** An allow rule in force that lets risky services in at workloads. */
export interface OpenRule {
  href: string
  ruleSet: string
  /** The rule in one line, as `nameRule` names it. */
  line: string
  /** The names of the services of which it allows at least one port. */
  services: readonly string[]
}

/** Observed traffic from one source to one destination that uses risky services and passes, or may pass. */
export interface ExposedPair {
  source: string
  destination: string
  reached: Exclude<Reached, 'stopped'>
  remedy: Remedy
  connections: number
  ports: string[]
}

/** How risky services are reached in observed traffic. */
export interface JudgedExposure {
  read: FlowsRead
  services: ExposedService[]
  /** The allow rules that `allowRules` of the services counts; null if the policy could not be read. */
  openRules: readonly OpenRule[] | null
  /**
   * The number of connections by what policy does with them. A connection counts once, even if several services include
   * its port.
   */
  connections: Record<Reached, number>
  remedies: Partial<Record<Remedy, number>>
  pairs: ExposedPair[]
  undecided: string
  /**
   * The workloads with a VEN that is not known to answer, as far as findings depend on them, and the number of
   * connections that count as undecided because policy drops them only at such workloads.
   */
  silent: { workloads: readonly string[]; connections: number }
  recorded: RecordedOtherwise
  assumes: readonly string[]
  modes: readonly string[]
  isPolicyRead: boolean
}

interface Keys {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  decision: string | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/**
 * Returns the ports of a service; null if an entry has no port and no protocol, so that a traffic query cannot ask for
 * it.
 */
export function askablePorts(service: Service): PortRange[] | null {
  const objects = { serviceOf: () => service, isAllServices: () => false }
  const ports = portsOf([{ href: service.href }], objects)
  return ports.some(({ proto, port }) => proto === null && port === null) ? null : ports
}

/**
 * Reads the traffic of a time window to the ports of the given services, and judges it by the active policy in the
 * present enforcement modes, whatever the PCE recorded. For traffic that passes, it also determines the least change
 * that would stop it, by judging it again with a deny rule for these ports. Throws the errors of the traffic reader.
 */
export async function judgeExposure(
  ctx: Context,
  labels: LabelIndex,
  risky: readonly { service: Service; ports: readonly PortRange[] }[],
  { window, complete }: { window: TrafficWindow; complete: boolean | undefined },
): Promise<JudgedExposure> {
  const { pce, signal } = ctx
  const encoder = createFlowEncoder(labels)
  const groups = groupRows<Keys>({
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    port: portColumn,
    proto: protocolColumn,
    decision: textColumn(encoder, 'decision'),
  })
  const include = risky.flatMap(({ ports }) => ports.map(toFilter))
  const read = await createConversationReader(
    ctx,
    encoder,
    complete,
  )(
    {
      name: 'mcp-exposure-report',
      window,
      filters: { sources: anything(), destinations: anything() },
      services: { include: [...new Map(include.map((one) => [JSON.stringify(one), one])).values()], exclude: [] },
    },
    (row) => void groups.add(row),
  )
  const policy = await readWholePolicy({ pce, signal }, 'active', labels)
  const present = createPresentModes({ pce, signal, now: () => ctx.now() })
  await present.look(endsOf(groups))
  const open = policy && (await workInTurns(findOpenRules(policy, risky), signal))
  const services = risky.map((one, at): ExposedService => ({
    ...one,
    connections: none(),
    remedies: {},
    allowRules: open && open.filter(({ covers }) => covers.has(at)).length,
  }))
  const judged = await workInTurns(judgeGroups(groups, services, policy, present), signal)
  const openRules =
    open && open.map(({ covers, ...rule }) => ({ ...rule, services: [...covers].map((at) => risky[at]!.service.name) }))
  return { read, services, openRules, ...judged, modes: present.notes(), isPolicyRead: policy !== null }
}

const none = (): Record<Reached, number> => ({ by_rule: 0, by_mode: 0, not_enforced: 0, undecided: 0, stopped: 0 })

const toFilter = ({ proto, port, to_port: toPort }: PortRange) => ({
  ...(proto !== null && { proto }),
  ...(port !== null && { port }),
  ...(toPort !== null && { to_port: toPort }),
})

/** Finds the allow rules on these services, each with the positions of the services of which it allows a port. */
function* findOpenRules(
  policy: PolicySnapshot,
  risky: readonly { ports: readonly PortRange[] }[],
): Steps<(Omit<OpenRule, 'services'> & { covers: ReadonlySet<number> })[]> {
  const names = namesOf(policy, () => undefined)
  const all = risky.flatMap(({ ports }) => ports)
  const found = []
  for (const { placed, ruleSet } of findRulesOn([policy], all, 'allow')) {
    yield
    const rule = placed.rule as AnyRule
    const own = portsOf(rule.ingress_services, policy)
    const covers = new Set(risky.flatMap(({ ports }, at) => (sharePorts(own, ports) ? [at] : [])))
    found.push({ href: toDraftHref(rule.href), ruleSet, line: nameRule(rule, names), covers })
  }
  return found
}

/**
 * Returns the policy with an added deny rule for the ports of all given services; null if the policy could not be read.
 */
function withClosed(policy: PolicySnapshot | null, services: readonly ExposedService[]): PolicySnapshot | null {
  if (policy === null) return null
  const closed = services.flatMap(({ ports }) => ports.map(toFilter)) as IngressService[]
  const rule = {
    href: '/deny_rules/closing',
    enabled: true,
    override: false,
    ...closingRule(closed, policy.anyLists[0]),
  }
  const ruleSet = { href: '/rule_sets/closing', name: '', enabled: true, scopes: [[]], rules: [], deny_rules: [rule] }
  return applyChange(policy, { is: 'new_rule_set', ruleSet: ruleSet as unknown as RuleSet })?.policy ?? null
}

/** Returns the policy without its allow rules, as if every rule that allows the risky services had been changed. */
const withoutAllows = (policy: PolicySnapshot | null): PolicySnapshot | null =>
  policy && { ...policy, ruleSets: policy.ruleSets.map((ruleSet) => ({ ...ruleSet, rules: [] })) }

function* judgeGroups(
  groups: Iterable<Group<Keys>>,
  services: readonly ExposedService[],
  policy: PolicySnapshot | null,
  present: PresentModes,
): Steps<Pick<JudgedExposure, 'connections' | 'remedies' | 'pairs' | 'undecided' | 'silent' | 'recorded' | 'assumes'>> {
  const closed = withClosed(policy, services)
  const judgeNow = createConnectionJudge(policy)
  const [judgeClosed, judgeChanged] = [createConnectionJudge(closed), createConnectionJudge(withoutAllows(closed))]
  const [connections, recorded, assumed] = [none(), noDisagreement(), collectAssumedFacts()]
  const remedies: Partial<Record<Remedy, number>> = {}
  const answers = new Set<Answer>()
  const silent = createSilentEnds(present)
  let stoppedBySilent = 0
  const pairs = new Map<string, ExposedPair & { byPort: Map<string, number> }>()
  for (const { keys, measures } of groups) {
    yield
    const seen = measures.connections
    const { source: from, destination: to } = keys
    const modes = [present.modeOf(from), present.modeOf(to)] as const
    const sureModes = [silent.sureModeOf(from), silent.sureModeOf(to)] as const
    const judge = judgeNow(keys)
    const decided = decideEnds(judge, modes)
    const disagreement = compareRecord(keys.decision, decided.verdicts)
    if (disagreement !== null) recorded[disagreement] += seen
    const byPolicy = reachedBy(decided)
    const isSure = byPolicy !== 'stopped' || reachedBy(decideEnds(judge, sureModes)) === 'stopped'
    const reached = isSure ? byPolicy : 'undecided'
    const remedyIn = (given: typeof modes) => findRemedy(reached, judgeClosed(keys), judgeChanged(keys), given)
    const remedy = reached === 'stopped' ? null : isSure ? settleRemedy(remedyIn, modes, sureModes) : 'once_online'
    if (remedy === 'once_online') silent.add(from, to)
    if (!isSure) stoppedBySilent += seen
    if (decided.word !== 'unknown') assumed.add(decided.undecided, from, to)
    if (reached === 'undecided') answers.add(isSure ? decided.undecided : unknown('silent'))
    const own = services.filter(({ ports }) => sharePorts(ports, [{ ...keys, to_port: null }]))
    for (const counts of [{ connections, remedies }, ...own]) {
      counts.connections[reached] += seen
      if (remedy !== null) counts.remedies[remedy] = (counts.remedies[remedy] ?? 0) + seen
    }
    if (reached === 'stopped' || remedy === null) continue
    const [source, destination] = nameEnds(keys)
    const id = JSON.stringify([source, destination, reached, remedy])
    const pair = pairs.get(id) ?? {
      source,
      destination,
      reached,
      remedy,
      connections: 0,
      ports: [],
      byPort: new Map<string, number>(),
    }
    pairs.set(id, pair)
    pair.connections += seen
    const port = portName(keys)
    pair.byPort.set(port, (pair.byPort.get(port) ?? 0) + seen)
  }
  const shown = [...pairs.values()].map(({ byPort, ...pair }) => ({
    ...pair,
    ports: [...byPort].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)).map(([port]) => port),
  }))
  return {
    connections,
    remedies,
    pairs: shown.sort(
      (a, b) =>
        b.connections - a.connections ||
        compareTexts(a.source, b.source) ||
        compareTexts(a.destination, b.destination) ||
        REACHED.indexOf(a.reached) - REACHED.indexOf(b.reached),
    ),
    undecided: undecidedBecause(answers),
    silent: { workloads: silent.names(), connections: stoppedBySilent },
    recorded,
    assumes: assumed.list(),
  }
}

function reachedBy({ word, mayBeBlocked }: ReturnType<typeof decideEnds>): Reached {
  if (word === 'blocked') return 'stopped'
  if (word === 'undecided' || mayBeBlocked) return 'undecided'
  if (word === 'allowed') return 'by_rule'
  return word === 'potentially_blocked' ? 'by_mode' : 'not_enforced'
}

/** The remedies that consist of changes to rules or modes, which take effect once the VENs at both ends apply them. */
const CHANGES: ReadonlySet<Remedy> = new Set([
  'deny_rule',
  'enforce_destination',
  'enforce_source',
  'change_rules',
  'change_rules_and_enforce',
])

type Modes = readonly [source: EndMode, destination: EndMode]

/** The remedies that include a change of allow rules. */
const RULE_CHANGES: ReadonlySet<Remedy> = new Set(['change_rules', 'change_rules_and_enforce'])

/**
 * Returns the least change that stops a connection even if ends whose VEN is not known to answer enforce nothing.
 * Returns `once_online` if there is none, or if allow rules would have to change only because of such an end.
 */
function settleRemedy(remedyIn: (modes: Modes) => Remedy, modes: Modes, sureModes: Modes): Remedy {
  const least = remedyIn(modes)
  if (!CHANGES.has(least) || modes.every((mode, at) => mode === sureModes[at])) return least
  const sure = remedyIn(sureModes)
  return CHANGES.has(sure) && (RULE_CHANGES.has(least) || !RULE_CHANGES.has(sure)) ? sure : 'once_online'
}

/**
 * Returns the least change that would stop a connection. `closed` says what each end would do if there were a deny rule
 * for the port, and `changed` what it would do if, besides, no allow rule permitted the connection.
 */
function findRemedy(reached: Reached, closed: EndJudge, changed: EndJudge, modes: Modes): Remedy {
  if (reached === 'undecided') return 'not_known'
  const [source, destination] = modes
  if (source === 'none' && destination === 'none') return 'not_by_policy'
  const dropsNow = (judge: EndJudge) => anyOf([dropsBy(judge('src', source)), dropsBy(judge('dst', destination))])
  const inFull = (judge: EndJudge): [Answer, Answer] => [
    source === 'none' ? 'no' : dropsBy(judge('src', 'full')),
    destination === 'none' ? 'no' : dropsBy(judge('dst', 'full')),
  ]
  const drops = dropsNow(closed)
  if (drops === 'yes') return 'deny_rule'
  const [atSource, atDestination] = inFull(closed)
  if (atDestination === 'yes') return 'enforce_destination'
  if (atSource === 'yes') return 'enforce_source'
  if (anyOf([drops, atSource, atDestination]) !== 'no') return 'not_known'
  const dropsChanged = dropsNow(changed)
  if (dropsChanged === 'yes') return 'change_rules'
  return dropsChanged === 'no' && inFull(changed).includes('yes') ? 'change_rules_and_enforce' : 'not_known'
}
