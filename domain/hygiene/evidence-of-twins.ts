import { PceApiError, PceError } from '../../pce-client/index.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { IncompleteListError, pickEvery } from '../inventory/fetch-every.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import type { LabelIndex } from '../inventory/labels.js'
import { readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { machineAddress } from '../policy/addresses.js'
import { loadSnapshot, rulesInForce, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { isWrittenTo, namesAt, type End, type PlacedRule } from '../policy/match-rules.js'
import { namesOf } from '../policy/name-references.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, isUnknown, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { createFlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import { createConversationReader } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import { addTo, type Machine } from './known-machines.js'

/**
 * Numbers of connections since a workload was last heard from. `last` is the time of the last one in milliseconds; null
 * if there were none.
 */
export interface LaterTraffic {
  /**
   * Connections from an address of the workload, whoever reported them. A VEN may still report traffic without sending
   * heartbeats.
   */
  from: number
  /** Connections to an address of the workload. `answered` counts those in which the workload sent data back. */
  to: number
  answered: number
  /**
   * Connections from or to an address that other workloads have too, so that it is not known which of them took part.
   */
  undecided: number
  last: number | null
}

/** A rule in force that selects a workload, or may select it. */
export interface AppliedRule {
  type: RuleType
  rule: AnyRule
  /** The name of its rule set; null for an enforcement boundary. */
  ruleSet: string | null
  /** Whether the rule selects the workload; never 'no'. */
  applies: Answer
  /**
   * True if the rule reaches the workload through an IP list that has its address, and is not known to select it
   * otherwise.
   */
  isByAddress: boolean
}

/** What depends on a workload. A part that could not be read is null. */
export interface TwinEvidence {
  /**
   * The number of rules in force that select the workload in any way, and the number of those for which this is not
   * certain.
   */
  rules: { applying: number; undecided: number } | null
  /** The rules that `rules` counts. */
  applied: readonly AppliedRule[] | null
  /**
   * Number of rules and enforcement boundaries, in the draft or the active policy, that name the workload individually,
   * whether they are in force or not.
   */
  named: number | null
  /** The sorted names of the rule sets and boundaries whose rules `named` counts. */
  namedIn: readonly string[] | null
  /** Number of virtual services to which the workload is bound. */
  bindings: number | null
  traffic: { connections: number; last: number | null } | null
  /**
   * Rules in force with a side that selects this workload and no other. It is also null if the caller did not ask for
   * it.
   */
  alone: Lonely | null
  /**
   * The traffic since the workload was last heard from. It is also null if the caller did not ask for it, or if not all
   * traffic was read.
   */
  later: LaterTraffic | null
}

/**
 * The hrefs of the rules in force with a side that selects one workload and no other, and the number of rules for which
 * this is uncertain.
 */
export interface Lonely {
  rules: ReadonlySet<string>
  undecided: number
}

/** What is needed to read additional evidence about workloads that may no longer exist. */
export interface GoneQuestion {
  /** All workloads, needed to know which others a rule selects and which of them have an address. */
  everyone: readonly Machine[]
  /** Returns the time, in milliseconds since the epoch, at which a workload was last heard from. */
  silentSince: (href: string) => number
}

export interface EvidenceRead {
  of: (href: string) => TwinEvidence
  /** The names of the objects to which the rules in force refer, without user groups. */
  names: ReferenceNames
  /** Sentences that say what could not be read, or only in part. */
  warnings: string[]
}

type Ctx = ToolContext<true>

/**
 * Reads which rules, virtual services and traffic depend on the given workloads.
 * @param name the name under which the PCE lists the traffic queries.
 */
export async function readEvidence(
  ctx: Ctx,
  machines: readonly Machine[],
  index: LabelIndex,
  { window, name }: { window: TrafficWindow; name: string },
  gone?: GoneQuestion,
): Promise<EvidenceRead> {
  const warnings: string[] = []
  /** Runs a read. If the PCE does not answer, adds a sentence to the warnings that says what is therefore not known. */
  const attempt = async <T>(what: string, read: () => Promise<T>): Promise<T | null> => {
    try {
      return await read()
    } catch (error) {
      if (ctx.signal.aborted || !(error instanceof PceError || error instanceof IncompleteListError)) throw error
      warnings.push(`${what} is not known: ${error.message}`)
      return null
    }
  }
  const hrefs = new Set(machines.map(({ href }) => href))
  const policy = await attempt('Which rules hang on them', () => readRules(ctx, machines, index, warnings, gone))
  const bindings = await attempt('Which virtual services are bound to them', () => countBindings(ctx, hrefs))
  const traffic = await attempt('What traffic they have', () =>
    readTraffic(ctx, machines, index, { name, window }, warnings, gone),
  )
  return {
    warnings,
    names: policy?.names ?? (() => ({})),
    of: (href) => ({
      rules: countApplied(policy?.applied.get(href)),
      applied: policy?.applied.get(href) ?? null,
      named: policy === null ? null : (policy.named.get(href)?.rules ?? 0),
      namedIn: policy === null ? null : [...(policy.named.get(href)?.places ?? [])].sort(compareTexts),
      bindings: bindings === null ? null : (bindings.get(href) ?? 0),
      traffic: traffic === null ? null : (traffic.found.get(href) ?? { connections: 0, last: null }),
      alone: policy?.alone?.get(href) ?? null,
      later: traffic?.later === undefined || traffic.isCut ? null : (traffic.later.get(href) ?? noTraffic()),
    }),
  }
}

function countApplied(applied: readonly AppliedRule[] | undefined): TwinEvidence['rules'] {
  if (applied === undefined) return null
  const undecided = applied.filter(({ applies }) => isUnknown(applies)).length
  return { applying: applied.length - undecided, undecided }
}

const noTraffic = (): LaterTraffic => ({ from: 0, to: 0, answered: 0, undecided: 0, last: null })

async function readRules(
  ctx: Ctx,
  machines: readonly Machine[],
  index: LabelIndex,
  warnings: string[],
  gone: GoneQuestion | undefined,
) {
  const [draft, active] = [
    await withDenyRules(ctx, await loadSnapshot(ctx, 'draft', index)),
    await withDenyRules(ctx, await loadSnapshot(ctx, 'active', index)),
  ]
  const unread = new Set([...draft.unread.keys(), ...active.unread.keys()]).size
  if (unread > 0) warnings.push(`The deny rules of ${unread} rule sets could not be read, and are not counted.`)
  const nameOf = new Map((gone?.everyone ?? machines).map(({ href, name }) => [href, name]))
  const names = namesOf(active, (href) => nameOf.get(href))
  const judged = { ...(await workInTurns(judgeRules(machines, draft, active, gone !== undefined), ctx.signal)), names }
  if (gone === undefined) return { ...judged, alone: undefined }
  const pods = await readKubernetesWorkloads(ctx, {}, ({ href, labels }) => ({ href, labels: labels ?? [] }))
  if (pods.unread !== null) warnings.push(`Whether rules reach Kubernetes workloads is not known: ${pods.unread}`)
  const others = { bearers: [...gone.everyone, ...pods.items], isWhole: pods.unread === null }
  return { ...judged, alone: await workInTurns(findLonely(machines, others, active), ctx.signal) }
}

const SIDES = ['providers', 'consumers'] as const

/**
 * Returns those sides of a rule that have IP lists, each reduced to them. The lists of all addresses are left out: by
 * them, a rule would reach every workload.
 */
function listSidesOf({ scopes, rule }: PlacedRule, { isAnyList }: PolicySnapshot) {
  return SIDES.flatMap((side) => {
    const lists = rule[side].filter(({ ip_list: list }) => list !== undefined && !isAnyList(list.href))
    return lists.length === 0 ? [] : [{ side, only: { scopes, rule: { ...rule, [side]: lists } } }]
  })
}

interface RulesJudged {
  applied: Map<string, AppliedRule[]>
  named: Map<string, { rules: number; places: ReadonlySet<string> }>
}

/**
 * @param withAddresses true to find rules that reach the workloads by address, too. They say nothing about duplicates,
 * which have one address.
 */
function* judgeRules(
  machines: readonly Machine[],
  draft: PolicySnapshot,
  active: PolicySnapshot,
  withAddresses: boolean,
): Steps<RulesJudged> {
  const wanted = new Set(machines.map(({ href }) => href))
  const naming = new Map<string, { rules: Set<string>; places: Set<string> }>()
  for (const { ruleSets, boundaries } of [draft, active]) {
    const rules = ruleSets.flatMap((set) =>
      [...(set.rules ?? []), ...(set.deny_rules ?? [])].map((rule) => ({ rule, place: set.name })),
    )
    for (const { rule, place } of [...rules, ...boundaries.map((one) => ({ rule: one, place: one.name }))]) {
      yield
      for (const { workload } of [...(rule.providers ?? []), ...(rule.consumers ?? [])]) {
        if (workload === undefined || !wanted.has(workload.href)) continue
        const known = naming.get(workload.href) ?? { rules: new Set(), places: new Set() }
        naming.set(workload.href, known)
        known.rules.add(toDraftHref(rule.href))
        known.places.add(place)
      }
    }
  }
  const setOf = new Map<object, string>()
  for (const { name, rules, deny_rules: denies } of active.ruleSets)
    for (const rule of [...(rules ?? []), ...(denies ?? [])]) setOf.set(rule, name)
  const placed = RULE_TYPES.flatMap((type) =>
    rulesInForce(active, type).map((one) => ({ ...one, type, lists: withAddresses ? listSidesOf(one, active) : [] })),
  )
  const applied = new Map<string, AppliedRule[]>()
  for (const machine of machines) {
    const end = endOf(machine)
    const own: AppliedRule[] = []
    for (const one of placed) {
      yield
      const selected = anyOf(SIDES.map((side) => isWrittenTo(one, side, end, active)))
      const reached =
        selected === 'yes'
          ? 'no'
          : anyOf(
              one.lists.flatMap(({ side, only }) =>
                machine.addresses.map((ip) => namesAt(only, side, { ...end, ip }, active).byAddress),
              ),
            )
      const applies = anyOf([selected, reached])
      if (applies === 'no') continue
      const ruleSet = setOf.get(one.rule) ?? null
      own.push({ type: one.type, rule: one.rule as AnyRule, ruleSet, applies, isByAddress: reached !== 'no' })
    }
    applied.set(machine.href, own)
  }
  const named = new Map([...naming].map(([href, { rules, places }]) => [href, { rules: rules.size, places }]))
  return { applied, named }
}

/** A workload or other object with labels, by which rules select it. */
type Bearer = Pick<Machine, 'href' | 'labels'>

/** Number of label combinations that are tested in one step. */
const TESTED_PER_STEP = 100

/**
 * Finds for each workload the rules in force with a side that selects it and nothing else. Objects with the same labels
 * are tested once.
 */
function* findLonely(
  machines: readonly Machine[],
  { bearers, isWhole }: { bearers: readonly Bearer[]; isWhole: boolean },
  active: PolicySnapshot,
): Steps<Map<string, Lonely>> {
  const groups = new Map<string, { first: Bearer; second: Bearer | null }>()
  const exists = new Set<string>()
  for (const [at, one] of bearers.entries()) {
    if (at % TESTED_PER_STEP === 0) yield
    exists.add(one.href)
    const key = one.labels
      .map(({ href }) => href)
      .sort()
      .join(' ')
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { first: one, second: null })
    else group.second ??= one
  }
  const found = new Map(machines.map(({ href }) => [href, { rules: new Set<string>(), undecided: 0 }]))
  for (const rule of RULE_TYPES.flatMap((type) => rulesInForce(active, type)))
    for (const side of ['providers', 'consumers'] as const) {
      yield
      const own = machines.filter((machine) => isWrittenTo(rule, side, endOf(machine), active) === 'yes')
      // A side that selects two of these workloads does not depend on either of them alone.
      const [only] = own
      if (only === undefined || own.length > 1) continue
      const lonely = found.get(only.href)!
      const named = rule.rule[side].flatMap(({ workload }) => workload?.href ?? [])
      if (named.some((href) => href !== only.href && exists.has(href))) continue
      let other: 'yes' | 'no' | 'unknown' = isWhole ? 'no' : 'unknown'
      let tested = 0
      for (const { first, second } of groups.values()) {
        tested += 1
        if (tested % TESTED_PER_STEP === 0) yield
        const someone = first.href === only.href ? second : first
        if (someone === null) continue
        const answer = isWrittenTo(rule, side, endOf(someone), active)
        if (answer === 'yes') {
          other = 'yes'
          break
        }
        if (isUnknown(answer)) other = 'unknown'
      }
      if (other === 'no') lonely.rules.add((rule.rule as AnyRule).href)
      else if (other === 'unknown') lonely.undecided += 1
    }
  return found
}

const endOf = ({ href, labels }: { href: string; labels: readonly LabelRef[] }): End => ({
  workload: href,
  labels: Object.fromEntries(
    labels.flatMap(({ key, value }) => (key === undefined || value === undefined ? [] : [[key, value]])),
  ),
  ip: null,
  fqdn: null,
})

async function countBindings({ pce, signal }: Ctx, hrefs: ReadonlySet<string>): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  try {
    const bound = await pickEvery({ api: pce.serviceBindings, params: {}, signal }, (binding: object) => {
      const { workload } = binding as { workload?: { href?: string } | null }
      return workload?.href !== undefined && hrefs.has(workload.href) ? workload.href : undefined
    })
    for (const href of bound) counts.set(href, (counts.get(href) ?? 0) + 1)
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
  }
  return counts
}

/** Maximum number of addresses per workload in the traffic query. */
const MOST_ADDRESSES = 8
/** For this long after a workload was last heard from, traffic may be what its own VEN reported before. */
const REPORTING_MS = 3_600_000

async function readTraffic(
  ctx: Ctx,
  machines: readonly Machine[],
  index: LabelIndex,
  { name, window }: { name: string; window: TrafficWindow },
  warnings: string[],
  gone: GoneQuestion | undefined,
) {
  const hrefs = new Set(machines.map(({ href }) => href))
  const found = new Map<string, { connections: number; last: number | null }>()
  const later = gone === undefined ? undefined : new Map<string, LaterTraffic>()
  const addresses = gone === undefined ? [] : machines.flatMap((one) => one.addresses.slice(0, MOST_ADDRESSES))
  const own = {
    include: [
      ...[...hrefs].map((href) => [{ workload: { href } }]),
      ...[...new Set(addresses)].map((value) => [{ ip_address: value }]),
    ],
    exclude: [],
  }
  const bearers = new Map<string, string[]>()
  for (const { href, addresses: theirs } of gone?.everyone ?? [])
    for (const address of theirs) addTo(bearers, address, href)
  const encoder = createFlowEncoder(index)
  const read = createConversationReader(ctx, encoder)
  const add = (end: number, { connections, last }: FlowRow) => {
    const { workload } = encoder.ends.end(end)
    if (workload === null || !hrefs.has(workload)) return
    const known = found.get(workload) ?? { connections: 0, last: null }
    known.connections += connections
    known.last = Math.max(known.last ?? 0, last)
    found.set(workload, known)
  }
  const addLater = (end: number, { connections, last, bytesOut }: FlowRow, isSource: boolean) => {
    if (gone === undefined || later === undefined) return
    const { workload, ip, bearer } = encoder.ends.end(end)
    // An address that was seen from outside of the corporate network may be that of another machine (P107).
    if (bearer != null) return
    const address = ip === null ? null : machineAddress(ip)
    const theirs = address === null ? [] : (bearers.get(address) ?? [])
    const meant = workload === null ? theirs : [workload]
    for (const href of meant) {
      if (!hrefs.has(href) || !(last > gone.silentSince(href) + REPORTING_MS)) continue
      const known = later.get(href) ?? noTraffic()
      later.set(href, known)
      known.last = Math.max(known.last ?? 0, last)
      if (theirs.some((other) => other !== href)) known.undecided += connections
      else if (isSource) known.from += connections
      else {
        known.to += connections
        if (bytesOut > 0) known.answered += connections
      }
    }
  }
  const request = { name, window }
  const take = (end: number, row: FlowRow, isSource: boolean) => {
    add(end, row)
    addLater(end, row, isSource)
  }
  const reads = [
    await read({ ...request, filters: { sources: anything(), destinations: own } }, (row) => take(row.dst, row, false)),
    await read({ ...request, filters: { sources: own, destinations: anything() } }, (row) => take(row.src, row, true)),
  ]
  const isCut = reads.some(({ truncated }) => truncated)
  if (isCut) warnings.push('Not all of their traffic could be read: connections are at least these.')
  return { found, later, isCut }
}
