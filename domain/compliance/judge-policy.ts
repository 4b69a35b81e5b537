import { isEnforcing, isMode } from '../../schemas/pce/enforcement-modes.js'
import type { Label } from '../../schemas/pce/label.js'
import type { IngressService, RuleSet } from '../../schemas/pce/rule-set.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { protocolName, TCP, UDP } from '../inventory/protocols.js'
import { assumedOfIpTables, countIpTables, tellIpTables } from '../policy/ip-tables.js'
import { rulesInForce, rulesOf, type PolicySnapshot } from '../policy/load-snapshot.js'
import { isWrittenTo, someWorkloadWith, type PlacedRule } from '../policy/match-rules.js'
import { isLimited } from '../policy/rule-conditions.js'
import { coversEveryService, coversServices } from '../policy/match-services.js'
import {
  anyOf,
  assumedBy,
  isUnknown,
  undecidedBecause,
  unknown,
  type Answer,
  type Reason,
} from '../policy/three-valued.js'
import { hasExactScope, ringfenceName } from '../ringfence/find-existing.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { isBroad } from './exposure.js'
import type { Assessment, AssessedWorkload } from './facts.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, unprovenBy, type Evaluator } from './verdict.js'

/**
 * Checks that the application's ringfence is in force: an active, enabled rule set that is named exactly
 * RF-<app>-<env>, has exactly these two labels as its scope, and has at least one enabled rule. If only an app is
 * given, each of its environments needs a ringfence. Without an app there is no single ringfence to look for, so the
 * check only counts ringfences.
 */
export const ringfence: Evaluator = evaluator(
  {
    name: 'ringfence',
    lookedAt: 'active rule sets RF-<app>-<env> with exactly the scope of the application',
    needs: ['workloads', 'policy', 'drafts'],
  },
  ({ workloads, policy, drafts }, { assessment }) => {
    const applications = applicationsOf(workloads)
    const states = applications.map((labels) => ({
      name: ringfenceName(labels),
      state: stateOf(labels, policy, drafts),
    }))
    const ringfenced = states.filter(({ state }) => state === 'in force')
    const named = policy.ruleSets.filter(({ name }) => name.startsWith('RF-'))
    const counts = {
      applications: applications.length,
      ringfenced: ringfenced.length,
      rf_rule_sets: named.length,
      workloads_without_application: workloads.filter(({ application }) => application === null).length,
    }
    if (assessment.app === null) {
      const text = `${ringfenced.length} of ${countOf(applications.length, 'application')} have a ringfence in force; ${countOf(named.length, 'active rule set')} named RF-*. Give app_name to judge an application.`
      return { status: 'INFO', detail: text, evidence: { counts } }
    }
    if (applications.length === 0) return notAssessed('No workload here has both an app and an env label.', { counts })
    const lacking = states
      .filter(({ state }) => state !== 'in force')
      .map(({ name, state }) => `${quote(name)}: ${state}`)
    const evidence = {
      counts,
      rule_sets: [...lacking, ...ringfenced.map(({ name }) => `${quote(name)}: in force`)].slice(0, MOST_EVIDENCE),
    }
    if (lacking.length === 0) return { status: 'PASS', detail: 'The ringfence is in force.', evidence }
    if (states.every(({ state }) => state === 'in force' || state === UNREAD))
      return notAssessed(`${lacking.slice(0, MOST_EVIDENCE).join('; ')}.`, evidence)
    return {
      status: ringfenced.length > 0 ? 'WARNING' : 'FAIL',
      detail: `${lacking.slice(0, MOST_EVIDENCE).join('; ')}.`,
      evidence,
    }
  },
)

/** Returns the distinct applications of the workloads, sorted by name. */
function applicationsOf(workloads: readonly AssessedWorkload[]): (readonly [Label, Label])[] {
  const found = new Map<string, readonly [Label, Label]>()
  for (const { application } of workloads) {
    if (application !== null) found.set(application.map(({ href }) => href).join(' '), application)
  }
  return [...found.values()].sort((a, b) => (ringfenceName(a) < ringfenceName(b) ? -1 : 1))
}

/** The state of a ringfence without allow rules whose deny rules could not be read, so that it may be empty. */
const UNREAD = 'undecided, because its deny rules could not be read'

/** Returns "in force", or a short phrase that says what is wrong with the ringfence. */
function stateOf(labels: readonly Label[], active: PolicySnapshot, drafts: readonly RuleSet[]): string {
  const wanted = ringfenceName(labels)
  const named = active.ruleSets.filter(({ name }) => name === wanted)
  const scoped = named.filter((ruleSet) => hasExactScope(ruleSet, labels))
  const enabled = scoped.filter((ruleSet) => ruleSet.enabled !== false)
  if (enabled.some(isFilled)) return 'in force'
  if (enabled.some(({ href }) => active.unread.has(toDraftHref(href)))) return UNREAD
  if (enabled.length > 0) return 'without an enabled rule'
  if (scoped.length > 0) return 'disabled'
  if (named.length > 0) return 'has a different scope'
  return drafts.some((ruleSet) => ruleSet.name === wanted && hasExactScope(ruleSet, labels))
    ? 'only in the draft, not provisioned'
    : 'missing'
}

const isFilled = (ruleSet: RuleSet) => RULE_TYPES.some((type) => rulesOf(ruleSet, type).length > 0)

/** The beginning of the names of rule sets that isolate an application. The values of app and env follow. */
const EMERGENCY = 'EMERGENCY-ISOLATE'

/**
 * Checks that the assessed part can be isolated at once. PASS: every managed workload enforces policy, so that any
 * provisioned rule takes effect; or the isolation of an application is prepared (by an emergency rule set, provisioned
 * or not, or an active override deny rule) and at least one of its workloads enforces policy. WARNING: only preparation
 * or only enforcement. FAIL: neither.
 */
export const isolation: Evaluator = evaluator(
  {
    name: 'immediate isolation',
    lookedAt: `enforcement modes, override deny rules in force, and rule sets named ${EMERGENCY}-<app>-<env>`,
    needs: ['workloads', 'policy', 'drafts'],
  },
  ({ workloads, policy, drafts }, { assessment }) => {
    const managed = workloads.filter((workload) => workload.managed)
    const lagging = managed.filter(({ mode }) => isMode(mode) && !isEnforcing(mode))
    const untold = managed.filter(({ mode }) => !isMode(mode))
    const enforcing = managed.length - lagging.length - untold.length
    const overrides = rulesAbout(rulesInForce(policy, 'override_deny'), ['providers', 'consumers'], assessment, policy)
    const emergency = [
      ...new Set([...policy.ruleSets, ...drafts].filter((one) => isEmergency(one, assessment)).map(({ name }) => name)),
    ]
    const evidence = {
      counts: {
        managed: managed.length,
        enforcing,
        ...(untold.length > 0 && { mode_not_known: untold.length }),
        override_deny_rules: overrides.length,
        emergency_rule_sets: emergency.length,
        rule_sets_without_readable_deny_rules: policy.unread.size,
      },
      ...(emergency.length > 0 && { rule_sets: emergency.slice(0, MOST_EVIDENCE) }),
      ...(overrides.length > 0 && { rules: overrides.slice(0, MOST_EVIDENCE).map(({ href }) => href) }),
      ...(lagging.length + untold.length > 0 && {
        workloads: [...lagging, ...untold].slice(0, MOST_EVIDENCE).map(({ name }) => name),
      }),
    }
    if (managed.length === 0) return notAssessed('No managed workload.', evidence)
    const prepared = overrides.length + emergency.length > 0
    const text = [
      `${enforcing} of ${countOf(managed.length, 'managed workload')} enforce${lagging.length === 0 ? '' : `; on ${untold.length === 0 ? 'the others' : lagging.length} a deny rule blocks nothing`}.`,
      found(untold.length, 'workload', 'in a mode that the PCE does not tell').trim(),
      found(overrides.length, 'override deny rule', 'in force').trim(),
      found(emergency.length, 'emergency rule set', 'prepared').trim(),
      describeUndecided(overrides).trim(),
      found(policy.unread.size, 'rule set', 'with deny rules that could not be read').trim(),
    ]
    // A prepared isolation covers one application only, so it proves nothing about the whole organisation.
    const isReady = prepared && enforcing > 0 && assessment.app !== null
    const isPartly = prepared || enforcing > 0 || untold.length > 0
    const status = isReady
      ? 'PASS'
      : lagging.length === 0
        ? unprovenBy(untold.length, managed.length)
        : isPartly
          ? 'WARNING'
          : 'FAIL'
    return { status, detail: text.filter(Boolean).join(' '), evidence, assumes: listAssumed(overrides) }
  },
)

/**
 * Returns true if a rule set has the name of an emergency rule set for the assessed labels. A label that is not given
 * matches any value.
 */
function isEmergency({ name }: RuleSet, { app, env }: Assessment): boolean {
  if (app !== null && env !== null) return name === `${EMERGENCY}-${app.value}-${env.value}`
  return (
    name.startsWith(app === null ? `${EMERGENCY}-` : `${EMERGENCY}-${app.value}-`) &&
    name.endsWith(env === null ? '' : `-${env.value}`)
  )
}

/**
 * Checks that allow rules permit no more than needed. FAIL: a rule opens every service to any address. WARNING: a rule
 * opens some services to any address, or every service to all workloads, or it is open to this extent only for certain
 * users, machines or networks. A rule for all services inside the application does not count, because a ringfence
 * consists of exactly such a rule.
 */
export const leastPrivilege: Evaluator = evaluator(
  {
    name: 'least privilege',
    lookedAt: 'consumers and services of the allow rules in force whose providers may be part of what is assessed',
    needs: ['policy', 'ipLists'],
  },
  ({ policy, ipLists }, { assessment }) => {
    const broadLists = new Set(ipLists.filter(isBroad).map(({ href }) => toDraftHref(href)))
    const isBroadList = (href: string) => policy.isAnyList(href) || broadLists.has(toDraftHref(href))
    const judged = rulesAbout(rulesInForce(policy, 'allow'), ['providers'], assessment, policy).map((one) => {
      const everything = coversEveryService(one.rule.ingress_services, policy)
      return {
        ...one,
        from: breadthOf(one, isBroadList),
        limited: isLimited(one.rule),
        everything: everything === 'yes',
        ports: everything === 'yes' ? [] : protocolsCovered(one.rule.ingress_services, policy),
        answers: [...one.answers, everything],
      }
    })
    // A rule for every port of a protocol does not literally open every service, but it is just as open.
    const isWhole = ({ everything, ports }: (typeof judged)[number]) => everything || ports.length > 0
    const isOpen = (one: (typeof judged)[number]) =>
      one.from === 'anybody' || (one.from === 'all workloads' && isWhole(one))
    const broad = judged.filter((one) => !one.limited && isOpen(one))
    const limited = judged.filter((one) => one.limited && isOpen(one))
    const open = broad.filter((one) => one.from === 'anybody' && isWhole(one))
    const wide = broad.filter((one) => !open.includes(one))
    const portWise = (from: string) => broad.filter((one) => one.from === from && !one.everything && isWhole(one))
    const [openPorts, widePorts] = [portWise('anybody'), portWise('all workloads')]
    const tables = countIpTables(policy, someWorkloadWith(labelsOf(assessment)))
    const counts = {
      allow_rules: judged.length,
      everything_from_anybody: open.length - openPorts.length,
      ...(openPorts.length > 0 && { every_port_from_anybody: openPorts.length }),
      some_services_from_anybody: wide.filter(({ from }) => from === 'anybody').length,
      everything_from_all_workloads: wide.filter(({ from }) => from === 'all workloads').length - widePorts.length,
      ...(widePorts.length > 0 && { every_port_from_all_workloads: widePorts.length }),
      ...(limited.length > 0 && { as_open_but_limited: limited.length }),
      ...(tables > 0 && { iptables_rules: tables }),
    }
    const notJudged = tellIpTables(tables)
    if (judged.length === 0)
      return notAssessed(['No allow rule in force has it as a provider.', ...notJudged].join(' '), { counts })
    const text = `${found(counts.everything_from_anybody, 'rule', 'opening every service to any address')}${found(openPorts.length, 'rule', `opening every port of ${namesOf(openPorts)} to any address`)}${found(counts.some_services_from_anybody, 'rule', 'opening some services to any address')}${found(counts.everything_from_all_workloads, 'rule', 'opening every service to all workloads')}${found(widePorts.length, 'rule', `opening every port of ${namesOf(widePorts)} to all workloads`)}${found(limited.length, 'rule', 'as open, but for certain users, machines or networks only')}${describeUndecided(judged)}`
    const detail =
      text.trim() ||
      `None of ${countOf(judged.length, 'allow rule')} is open to any address, or opens every service to all workloads.`
    return {
      status: open.length > 0 ? 'FAIL' : wide.length + limited.length > 0 ? 'WARNING' : tables > 0 ? 'INFO' : 'PASS',
      detail: [detail, ...notJudged].join(' '),
      evidence: {
        counts,
        ...(open.length + wide.length + limited.length > 0 && {
          rules: [...open, ...wide, ...limited].slice(0, MOST_EVIDENCE).map(({ href }) => href),
        }),
      },
      assumes: [...listAssumed(judged), ...assumedOfIpTables(tables)],
    }
  },
)

/** A rule that applies, or may apply, to the assessed part of the organisation. */
interface RuleAbout extends PlacedRule {
  href: string
  /** The answers on which the verdict about the rule depends. The first says whether the rule applies. */
  answers: readonly Answer[]
}

/**
 * Returns the rules that may apply to assessed workloads on one of the given sides. These are the workloads with the
 * given labels or, if everything is assessed, all workloads.
 */
function rulesAbout(
  rules: readonly PlacedRule[],
  sides: readonly ('providers' | 'consumers')[],
  assessment: Assessment,
  policy: PolicySnapshot,
): RuleAbout[] {
  const some = someWorkloadWith(labelsOf(assessment))
  return rules.flatMap((placed) => {
    const answer = anyOf(sides.map((side) => isWrittenTo(placed, side, some, policy)))
    return answer === 'no' ? [] : [{ ...placed, href: placed.rule.href ?? '', answers: [answer] }]
  })
}

const labelsOf = ({ app, env }: Assessment): Label[] => [app, env].filter((label) => label !== null)

/**
 * Reasons for doubt that are not reported. They mean only that a rule applies to some of the assessed workloads but not
 * to all, and such a rule counts as applying.
 */
const OF_SOME: ReadonlySet<Reason> = new Set(['label', 'workload'])

function describeUndecided(rules: readonly RuleAbout[]): string {
  const doubts = rules.map(({ answers }) =>
    answers.flatMap((answer) => (isUnknown(answer) ? answer.unknown.filter((reason) => !OF_SOME.has(reason)) : [])),
  )
  const undecided = doubts.filter((reasons) => reasons.length > 0)
  return found(undecided.length, 'rule', undecidedBecause(undecided.map((reasons) => unknown(...reasons))))
}

const listAssumed = (rules: readonly RuleAbout[]): string[] => assumedBy(rules.flatMap(({ answers }) => answers))

const LAST_PORT = 65_535

/** Returns the protocol numbers of TCP and UDP, each only if the services cover all its ports. */
const protocolsCovered = (services: readonly IngressService[], policy: PolicySnapshot): number[] =>
  [TCP, UDP].filter((proto) => coversServices(services, [{ port: 1, to_port: LAST_PORT, proto }], policy) === 'yes')

/** Names the protocols all of whose ports the given rules open: `TCP`, `UDP`, or both. */
const namesOf = (rules: readonly { ports: readonly number[] }[]): string =>
  [TCP, UDP]
    .filter((proto) => rules.some(({ ports }) => ports.includes(proto)))
    .map((proto) => protocolName(proto).toUpperCase())
    .join(rules.every(({ ports }) => ports.length > 1) ? ' and ' : ' or ')

/**
 * Returns how broad the consumers of a rule are: `anybody` (any address), `all workloads`, or `named` (narrower than
 * both).
 */
function breadthOf({ rule, scopes }: PlacedRule, isBroadList: (href: string) => boolean) {
  const { consumers } = rule
  if (
    rule.all_ips_except_for_in_consumers === true ||
    consumers.some(({ ip_list: list }) => list !== undefined && isBroadList(list.href))
  )
    return 'anybody'
  // Inside a scope, "all workloads" means only the workloads in that scope.
  const isScoped = rule.unscoped_consumers !== true && scopes.length > 0 && scopes.every((scope) => scope.length > 0)
  return !isScoped && consumers.some(({ actors }) => actors === 'ams') ? 'all workloads' : 'named'
}
