import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { hasScope, ringfenceName } from '../ringfence/find-ringfence.js'
import { countOf } from '../text/count-of.js'
import { isBroad } from './exposure.js'
import type { ActivePolicy, AssessedScope, AssessedWorkload } from './facts.js'
import { ENFORCING } from './judge-workloads.js'
import { breadthOf, concerns, enabled, isEveryService, selects } from './rule-reach.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/**
 * The application has its ringfence in force: an active, enabled rule set named exactly RF-<app>-<env>, scoped to exactly these two
 * labels, with a rule that is on. With an app alone each of its environments needs one. Without an app there is no one ringfence
 * to look for, so the check counts them and weighs nothing.
 */
export const ringfence: Evaluator = evaluator(
  {
    name: 'ringfence',
    lookedAt: 'active rule sets RF-<app>-<env> with exactly the scope of the application',
    needs: ['workloads', 'policy', 'drafts'],
  },
  ({ workloads, policy, drafts }, { scope }) => {
    const applications = applicationsOf(workloads)
    const states = applications.map((labels) => ({
      name: ringfenceName(labels),
      state: stateOf(labels, policy.ruleSets, drafts),
    }))
    const standing = states.filter(({ state }) => state === 'in force')
    const named = policy.ruleSets.filter(({ name }) => name.startsWith('RF-'))
    const counts = {
      applications: applications.length,
      ringfenced: standing.length,
      rf_rule_sets: named.length,
      workloads_without_application: workloads.filter(({ application }) => application === null).length,
    }
    if (scope.app === null) {
      const text = `${standing.length} of ${countOf(applications.length, 'application')} have a ringfence; ${countOf(named.length, 'active rule set')} named RF-*. Name an application to have it judged.`
      return { status: 'INFO', detail: text, evidence: { counts } }
    }
    if (applications.length === 0) return notAssessed('No workload has both an app and an env label here.', { counts })
    const lacking = states.filter(({ state }) => state !== 'in force').map(({ name, state }) => `${name}: ${state}`)
    const evidence = {
      counts,
      rule_sets: [...lacking, ...standing.map(({ name }) => `${name}: in force`)].slice(0, MOST_EVIDENCE),
    }
    if (lacking.length === 0) return { status: 'PASS', detail: 'The ringfence is in force.', evidence }
    return {
      status: standing.length > 0 ? 'WARNING' : 'FAIL',
      detail: `${lacking.slice(0, MOST_EVIDENCE).join('; ')}.`,
      evidence,
    }
  },
)

/** The applications that workloads belong to, each once. */
function applicationsOf(workloads: readonly AssessedWorkload[]): (readonly [Label, Label])[] {
  const found = new Map<string, readonly [Label, Label]>()
  for (const { application } of workloads) {
    if (application !== null) found.set(application.map(({ href }) => href).join(' '), application)
  }
  return [...found.values()].sort((a, b) => (ringfenceName(a) < ringfenceName(b) ? -1 : 1))
}

/** What there is instead of a ringfence in force, in a few words. */
function stateOf(labels: readonly Label[], active: readonly RuleSet[], drafts: readonly RuleSet[]): string {
  const wanted = ringfenceName(labels)
  const named = active.filter(({ name }) => name === wanted)
  const scoped = named.filter((ruleSet) => hasScope(ruleSet, labels))
  if (scoped.some((ruleSet) => ruleSet.enabled && isFilled(ruleSet))) return 'in force'
  if (scoped.some((ruleSet) => ruleSet.enabled)) return 'without rules that are on'
  if (scoped.length > 0) return 'disabled'
  if (named.length > 0) return 'of another scope'
  return drafts.some((ruleSet) => ruleSet.name === wanted && hasScope(ruleSet, labels))
    ? 'a draft only, not provisioned'
    : 'missing'
}

const isFilled = (ruleSet: RuleSet) => enabled(ruleSet.rules).length + enabled(ruleSet.deny_rules).length > 0

/** How rule sets that cut an application off are named: with its app and env after it. */
const EMERGENCY = 'EMERGENCY-ISOLATE'

/**
 * What is assessed can be cut off at once: every managed workload enforces, so that any provisioned rule takes hold, or an
 * application's isolation is prepared (an emergency rule set, provisioned or not, or an override deny rule in force) and some
 * workload would carry it out. Prepared where nothing enforces, or half enforced and unprepared, is a warning; neither fails.
 */
export const isolation: Evaluator = evaluator(
  {
    name: 'immediate isolation',
    lookedAt: `enforcement modes, override deny rules in force, and rule sets named ${EMERGENCY}-<app>-<env>`,
    needs: ['workloads', 'policy', 'drafts'],
  },
  ({ workloads, policy, drafts }, { scope }) => {
    const managed = workloads.filter((workload) => workload.managed)
    const lagging = managed.filter(({ mode }) => !ENFORCING.includes(mode))
    const enforcing = managed.length - lagging.length
    const overrides = overrideDenies(policy, scope)
    const emergency = [
      ...new Set([...policy.ruleSets, ...drafts].filter((one) => isEmergency(one, scope)).map(({ name }) => name)),
    ]
    const evidence = {
      counts: {
        managed: managed.length,
        enforcing,
        override_deny_rules: overrides.length,
        emergency_rule_sets: emergency.length,
        rule_sets_without_readable_deny_rules: policy.withoutDenyRules,
      },
      ...(emergency.length > 0 && { rule_sets: emergency.slice(0, MOST_EVIDENCE) }),
      ...(overrides.length > 0 && { rules: overrides.slice(0, MOST_EVIDENCE) }),
      ...(lagging.length > 0 && { workloads: lagging.slice(0, MOST_EVIDENCE).map(({ name }) => name) }),
    }
    if (managed.length === 0) return notAssessed('No managed workload.', evidence)
    const prepared = overrides.length + emergency.length > 0
    const text = [
      `${enforcing} of ${countOf(managed.length, 'managed workload')} enforce${lagging.length > 0 ? '; on the others a deny rule stops nothing' : ''}.`,
      found(overrides.length, 'override deny rule', 'in force').trim(),
      found(emergency.length, 'emergency rule set', 'prepared').trim(),
    ]
    // What is prepared for somebody cuts off only whom it names, so it speaks for an application and not for an estate.
    const isReady = lagging.length === 0 || (prepared && enforcing > 0 && scope.app !== null)
    const status = isReady ? 'PASS' : prepared || enforcing > 0 ? 'WARNING' : 'FAIL'
    return { status, detail: text.filter(Boolean).join(' '), evidence }
  },
)

function overrideDenies(policy: ActivePolicy, scope: AssessedScope): string[] {
  const { keyOf } = policy.facts
  return policy.ruleSets
    .filter((ruleSet) => ruleSet.enabled && concerns(ruleSet, scope, keyOf))
    .flatMap((ruleSet) => enabled(ruleSet.deny_rules))
    .filter(({ override, providers, consumers }) => {
      return override === true && (selects(providers, scope, keyOf) || selects(consumers, scope, keyOf))
    })
    .map(({ href }) => href)
}

/** Exact names where the application is known in full; otherwise those that begin with what is known. */
function isEmergency({ name }: RuleSet, { app, env }: AssessedScope): boolean {
  if (app !== null && env !== null) return name === `${EMERGENCY}-${app.value}-${env.value}`
  return (
    name.startsWith(app === null ? `${EMERGENCY}-` : `${EMERGENCY}-${app.value}-`) &&
    name.endsWith(env === null ? '' : `-${env.value}`)
  )
}

/**
 * Allow rules permit no more than is needed. One that opens every service to everybody fails; one that opens some services to
 * everybody, or every service to all workloads, is a warning. All services inside the application are its ringfence's own.
 */
export const leastPrivilege: Evaluator = evaluator(
  {
    name: 'least privilege',
    lookedAt: 'consumers and services of the allow rules in force that concern it',
    needs: ['policy', 'ipLists'],
  },
  ({ policy, ipLists }, { scope }) => {
    const { keyOf, anyIpLists } = policy.facts
    const broad = new Set([...anyIpLists, ...ipLists.filter(isBroad).map(({ href }) => toDraftHref(href))])
    const judged = policy.ruleSets
      .filter((ruleSet) => ruleSet.enabled && concerns(ruleSet, scope, keyOf))
      .flatMap((ruleSet) =>
        enabled(ruleSet.rules)
          .filter(({ providers }) => selects(providers, scope, keyOf))
          .map((rule) => ({
            href: rule.href,
            from: breadthOf(rule, ruleSet, broad),
            everything: isEveryService(rule.ingress_services, policy),
          })),
      )
    const open = judged.filter(({ from, everything }) => from === 'anybody' && everything)
    const wide = judged.filter(({ from, everything }) => (from === 'anybody') !== everything && from !== 'named')
    const counts = {
      allow_rules: judged.length,
      everything_from_anybody: open.length,
      some_services_from_anybody: wide.filter(({ from }) => from === 'anybody').length,
      everything_from_all_workloads: wide.filter(({ from }) => from === 'all workloads').length,
    }
    if (judged.length === 0) return notAssessed('No allow rule in force concerns it.', { counts })
    const text = `${found(counts.everything_from_anybody, 'rule', 'opening every service to everybody')}${found(counts.some_services_from_anybody, 'rule', 'opening some services to everybody')}${found(counts.everything_from_all_workloads, 'rule', 'opening every service to all workloads')}`
    return {
      status: open.length > 0 ? 'FAIL' : wide.length > 0 ? 'WARNING' : 'PASS',
      detail: text.trim() || `None of ${judged.length} allow rules is that wide.`,
      evidence: {
        counts,
        ...(open.length + wide.length > 0 && {
          rules: [...open, ...wide].slice(0, MOST_EVIDENCE).map(({ href }) => href),
        }),
      },
    }
  },
)
