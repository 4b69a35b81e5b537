import type { AssessedWorkload } from './facts.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator, type Evidence } from './verdict.js'

/** Values of the env label that are production, in lower case. */
const PRODUCTION = new Set(['prod', 'production'])
export const isProduction = (env: string | null | undefined): boolean => PRODUCTION.has((env ?? '').toLowerCase())

/** Modes in which rules stop traffic. */
export const ENFORCING: readonly (string | null)[] = ['selective', 'full']

const LOOKED_AT = 'enforcement modes of managed workloads'

/**
 * Enforcement as a stage of a rollout: an idle workload fails it, for it has no policy at all. One that only reports is a warning
 * in production; elsewhere it is where a rollout may stand, and it is named.
 */
export const enforcementStage: Evaluator = evaluator(
  { name: 'enforcement stage', lookedAt: LOOKED_AT, needs: ['workloads'] },
  ({ workloads }) => {
    const { idle, reporting, all, evidence } = countEnforcement(workloads)
    if (all === 0) return notAssessed('No managed workload.')
    const productive = reporting.filter(({ labels }) => isProduction(labels.env))
    const text = `${found(idle.length, 'workload', 'idle, without any policy')}${found(productive.length, 'production workload', 'only reporting')}${found(reporting.length - productive.length, 'other workload', 'only reporting')}`
    const status = idle.length > 0 ? 'FAIL' : productive.length > 0 ? 'WARNING' : 'PASS'
    return { status, detail: text.trim() || `All ${all} enforce policy.`, evidence }
  },
)

/**
 * Enforcement of flow control as such: whatever the environment, a workload that only reports controls no flow. None that
 * enforces, or one that is idle, fails it.
 */
export const flowEnforcement: Evaluator = evaluator(
  { name: 'flow enforcement', lookedAt: LOOKED_AT, needs: ['workloads'] },
  ({ workloads }) => {
    const { idle, reporting, all, enforcing, evidence } = countEnforcement(workloads)
    if (all === 0) return notAssessed('No managed workload.')
    const selective = workloads.filter(({ mode }) => mode === 'selective').length
    const text = `${found(idle.length, 'workload', 'idle')}${found(reporting.length, 'workload', 'only reporting')}${found(selective, 'workload', 'selective, where only what a deny rule names is stopped')}`
    const status = idle.length > 0 || enforcing === 0 ? 'FAIL' : enforcing < all ? 'WARNING' : 'PASS'
    return { status, detail: text.trim() || `All ${all} in full enforcement.`, evidence }
  },
)

function countEnforcement(workloads: readonly AssessedWorkload[]) {
  const managed = workloads.filter((workload) => workload.managed)
  const idle = managed.filter(({ mode }) => mode === 'idle')
  const enforcing = managed.filter(({ mode }) => ENFORCING.includes(mode))
  const reporting = managed.filter(({ mode }) => mode !== 'idle' && !ENFORCING.includes(mode))
  const offending = [...idle, ...reporting].map(({ name }) => name)
  const evidence: Evidence = {
    counts: {
      managed: managed.length,
      unmanaged: workloads.length - managed.length,
      enforcing: enforcing.length,
      idle: idle.length,
      reporting_only: reporting.length,
    },
    ...(offending.length > 0 && { workloads: offending.slice(0, MOST_EVIDENCE) }),
  }
  return { idle, reporting, all: managed.length, enforcing: enforcing.length, evidence }
}
