import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { hasScope, ringfenceName } from '../ringfence/find-ringfence.js'
import { countOf } from '../text/count-of.js'
import { isBroad } from './exposure.js'
import type { ActivePolicy, Assessment, AssessedWorkload } from './facts.js'
import { ENFORCING } from './judge-workloads.js'
import { breadthOf, concerns, enabled, isEveryService, selects } from './rule-reach.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/**
 * The application has its ringfence in force: an active, enabled rule set named exactly RF-<app>-<env>, scoped to exactly these two
 * labels, with an enabled rule. Given an app alone, each of its environments needs one. Without an app there is no one ringfence to
 * look for, so the check counts them and judges nothing.
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
      state: stateOf(labels, policy.ruleSets, drafts),
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
      const text = `${ringfenced.length} of ${countOf(applications.length, 'application')} have a ringfence in force; ${countOf(named.length, 'active rule set')} named RF-*. Give app_name to have an application judged.`
      return { status: 'INFO', detail: text, evidence: { counts } }
    }
    if (applications.length === 0) return notAssessed('No workload here has both an app and an env label.', { counts })
    const lacking = states.filter(({ state }) => state !== 'in force').map(({ name, state }) => `${name}: ${state}`)
    const evidence = {
      counts,
      rule_sets: [...lacking, ...ringfenced.map(({ name }) => `${name}: in force`)].slice(0, MOST_EVIDENCE),
    }
    if (lacking.length === 0) return { status: 'PASS', detail: 'The ringfence is in force.', evidence }
    return {
      status: ringfenced.length > 0 ? 'WARNING' : 'FAIL',
      detail: `${lacking.slice(0, MOST_EVIDENCE).join('; ')}.`,
      evidence,
    }
  },
)

/** The applications of the workloads, each once. */
function applicationsOf(workloads: readonly AssessedWorkload[]): (readonly [Label, Label])[] {
  const found = new Map<string, readonly [Label, Label]>()
  for (const { application } of workloads) {
    if (application !== null) found.set(application.map(({ href }) => href).join(' '), application)
  }
  return [...found.values()].sort((a, b) => (ringfenceName(a) < ringfenceName(b) ? -1 : 1))
}

/** Whether a ringfence is in force, or what there is instead, in a few words. */
function stateOf(labels: readonly Label[], active: readonly RuleSet[], drafts: readonly RuleSet[]): string {
  const wanted = ringfenceName(labels)
  const named = active.filter(({ name }) => name === wanted)
  const scoped = named.filter((ruleSet) => hasScope(ruleSet, labels))
  if (scoped.some((ruleSet) => ruleSet.enabled && isFilled(ruleSet))) return 'in force'
  if (scoped.some((ruleSet) => ruleSet.enabled)) return 'without an enabled rule'
  if (scoped.length > 0) return 'disabled'
  if (named.length > 0) return 'has another scope'
  return drafts.some((ruleSet) => ruleSet.name === wanted && hasScope(ruleSet, labels))
    ? 'only in the draft, not provisioned'
    : 'missing'
}

const isFilled = (ruleSet: RuleSet) => enabled(ruleSet.rules).length + enabled(ruleSet.deny_rules).length > 0

/** Rule sets that isolate an application are named with this, its app and its env. */
const EMERGENCY = 'EMERGENCY-ISOLATE'

/**
 * What is assessed can be isolated at once: every managed workload enforces, so any provisioned rule takes effect, or an
 * application's isolation is prepared (an emergency rule set, provisioned or not, or an override deny rule in force) and some
 * workload would enforce it. Prepared where nothing enforces, or partly enforcing and unprepared, is a warning; neither is a
 * FAIL.
 */
export const isolation: Evaluator = evaluator(
  {
    name: 'immediate isolation',
    lookedAt: `enforcement modes, override deny rules in force, and rule sets named ${EMERGENCY}-<app>-<env>`,
    needs: ['workloads', 'policy', 'drafts'],
  },
  ({ workloads, policy, drafts }, { assessment }) => {
    const managed = workloads.filter((workload) => workload.managed)
    const lagging = managed.filter(({ mode }) => !ENFORCING.includes(mode))
    const enforcing = managed.length - lagging.length
    const overrides = overrideDenies(policy, assessment)
    const emergency = [
      ...new Set([...policy.ruleSets, ...drafts].filter((one) => isEmergency(one, assessment)).map(({ name }) => name)),
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
      `${enforcing} of ${countOf(managed.length, 'managed workload')} enforce${lagging.length > 0 ? '; on the others a deny rule blocks nothing' : ''}.`,
      found(overrides.length, 'override deny rule', 'in force').trim(),
      found(emergency.length, 'emergency rule set', 'prepared').trim(),
    ]
    // What is prepared isolates only what it names, so it speaks for an application, never for an estate.
    const isReady = lagging.length === 0 || (prepared && enforcing > 0 && assessment.app !== null)
    const status = isReady ? 'PASS' : prepared || enforcing > 0 ? 'WARNING' : 'FAIL'
    return { status, detail: text.filter(Boolean).join(' '), evidence }
  },
)

function overrideDenies(policy: ActivePolicy, assessment: Assessment): string[] {
  const { keyOf } = policy.facts
  return policy.ruleSets
    .filter((ruleSet) => ruleSet.enabled && concerns(ruleSet, assessment, keyOf))
    .flatMap((ruleSet) => enabled(ruleSet.deny_rules))
    .filter(({ override, providers, consumers }) => {
      return override === true && (selects(providers, assessment, keyOf) || selects(consumers, assessment, keyOf))
    })
    .map(({ href }) => href)
}

/** The exact name where both labels are given; otherwise any name that fits what is given. */
function isEmergency({ name }: RuleSet, { app, env }: Assessment): boolean {
  if (app !== null && env !== null) return name === `${EMERGENCY}-${app.value}-${env.value}`
  return (
    name.startsWith(app === null ? `${EMERGENCY}-` : `${EMERGENCY}-${app.value}-`) &&
    name.endsWith(env === null ? '' : `-${env.value}`)
  )
}

/**
 * Allow rules permit no more than is needed. One that opens every service to any address fails; one that opens some services to any
 * address, or every service to all workloads, is a warning. All services inside the application are what a ringfence allows.
 */
export const leastPrivilege: Evaluator = evaluator(
  {
    name: 'least privilege',
    lookedAt: 'consumers and services of the allow rules in force whose providers may be what is assessed',
    needs: ['policy', 'ipLists'],
  },
  ({ policy, ipLists }, { assessment }) => {
    const { keyOf, anyIpLists } = policy.facts
    const broad = new Set([...anyIpLists, ...ipLists.filter(isBroad).map(({ href }) => toDraftHref(href))])
    const judged = policy.ruleSets
      .filter((ruleSet) => ruleSet.enabled && concerns(ruleSet, assessment, keyOf))
      .flatMap((ruleSet) =>
        enabled(ruleSet.rules)
          .filter(({ providers }) => selects(providers, assessment, keyOf))
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
    if (judged.length === 0) return notAssessed('No allow rule in force has it as a provider.', { counts })
    const text = `${found(counts.everything_from_anybody, 'rule', 'opening every service to any address')}${found(counts.some_services_from_anybody, 'rule', 'opening some services to any address')}${found(counts.everything_from_all_workloads, 'rule', 'opening every service to all workloads')}`
    return {
      status: open.length > 0 ? 'FAIL' : wide.length > 0 ? 'WARNING' : 'PASS',
      detail:
        text.trim() ||
        `None of ${countOf(judged.length, 'allow rule')} is open to any address, or opens every service to all workloads.`,
      evidence: {
        counts,
        ...(open.length + wide.length > 0 && {
          rules: [...open, ...wide].slice(0, MOST_EVIDENCE).map(({ href }) => href),
        }),
      },
    }
  },
)
