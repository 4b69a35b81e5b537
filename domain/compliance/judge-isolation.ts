import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { countOf } from '../text/count-of.js'
import { ENFORCING } from './judge-enforcement.js'
import type { ActivePolicy, AssessedScope } from './facts.js'
import { concerns, enabled, selects } from './rule-reach.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

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
