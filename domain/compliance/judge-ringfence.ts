import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { countOf } from '../text/count-of.js'
import { hasScope, ringfenceName } from '../ringfence/find-ringfence.js'
import type { AssessedWorkload } from './facts.js'
import { enabled } from './rule-reach.js'
import { evaluator, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

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
