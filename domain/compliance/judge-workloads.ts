import { isEnforcing, isMode } from '../../schemas/pce/enforcement-modes.js'
import { countOf, percentOf } from '../text/describe-numbers.js'
import { isProduction } from './exposure.js'
import type { AssessedWorkload } from './facts.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, unprovenBy, type Evaluator, type Evidence } from './verdict.js'

const LOOKED_AT = 'enforcement modes of managed workloads'

/**
 * Rates enforcement as a stage of a rollout. An idle workload is a FAIL, because it has no policy at all. A workload in
 * production that only reports traffic is a WARNING. Outside production this stage is acceptable, so such a workload is
 * only listed in the evidence.
 */
export const enforcementStage: Evaluator = evaluator(
  { name: 'enforcement stage', lookedAt: LOOKED_AT, needs: ['workloads'] },
  ({ workloads }) => {
    const { idle, reporting, untold, all, evidence } = countEnforcement(workloads)
    if (all === 0) return notAssessed('No managed workloads.')
    const productive = reporting.filter(({ labels }) => isProduction(labels.env))
    const text = `${found(idle.length, 'workload', 'idle, so without any policy')}${found(productive.length, 'production workload', 'not enforcing, only reporting')}${found(reporting.length - productive.length, 'other workload', 'not enforcing, only reporting')}${tellUntold(untold)}`
    const status = idle.length > 0 ? 'FAIL' : productive.length > 0 ? 'WARNING' : unprovenBy(untold.length, all)
    return { status, detail: text.trim() || `All ${countOf(all, 'managed workload')} enforce policy.`, evidence }
  },
)

/**
 * Rates enforcement regardless of the environment, because a workload that only reports traffic controls no flow. It is
 * a FAIL if any workload is idle or if none enforces policy, and a WARNING if some do not enforce it.
 */
export const flowEnforcement: Evaluator = evaluator(
  { name: 'flow enforcement', lookedAt: LOOKED_AT, needs: ['workloads'] },
  ({ workloads }) => {
    const { idle, reporting, untold, all, evidence } = countEnforcement(workloads)
    if (all === 0) return notAssessed('No managed workloads.')
    const selective = workloads.filter(({ mode }) => mode === 'selective').length
    const text = `${found(idle.length, 'workload', 'idle')}${found(reporting.length, 'workload', 'not enforcing, only reporting')}${found(selective, 'workload', 'selective, where only traffic that a deny rule names is blocked')}${tellUntold(untold)}`
    const isUncontrolled = idle.length > 0 || reporting.length === all
    const status = isUncontrolled ? 'FAIL' : reporting.length > 0 ? 'WARNING' : unprovenBy(untold.length, all)
    return {
      status,
      detail: text.trim() || `All ${countOf(all, 'managed workload')} are in full enforcement.`,
      evidence,
    }
  },
)

function countEnforcement(workloads: readonly AssessedWorkload[]) {
  const managed = workloads.filter((workload) => workload.managed)
  const idle = managed.filter(({ mode }) => mode === 'idle')
  const enforcing = managed.filter(({ mode }) => isEnforcing(mode))
  const reporting = managed.filter(({ mode }) => isMode(mode) && mode !== 'idle' && !isEnforcing(mode))
  const untold = managed.filter(({ mode }) => !isMode(mode))
  const offending = [...idle, ...reporting, ...untold].map(({ name }) => name)
  const evidence: Evidence = {
    counts: {
      managed: managed.length,
      unmanaged: workloads.length - managed.length,
      enforcing: enforcing.length,
      idle: idle.length,
      reporting_only: reporting.length,
      ...(untold.length > 0 && { mode_not_known: untold.length }),
    },
    ...(offending.length > 0 && { workloads: offending.slice(0, MOST_EVIDENCE) }),
  }
  return { idle, reporting, untold, all: managed.length, evidence }
}

const tellUntold = (untold: readonly AssessedWorkload[]): string =>
  found(untold.length, 'workload', 'in a mode that the PCE does not tell')

/**
 * Checks that managed workloads are online and report their flows. WARNING: some do not. FAIL: none does. Kubernetes
 * workloads are left out, because they have no VEN that could be online; the evidence contains their number.
 */
export const watchedWorkloads: Evaluator = evaluator(
  {
    name: 'watched workloads',
    lookedAt: 'whether managed workloads are online and report their flows',
    needs: ['workloads'],
  },
  ({ workloads }) => {
    const pods = workloads.filter((workload) => workload.isKubernetes).length
    const managed = workloads.filter((workload) => workload.managed && !workload.isKubernetes)
    const blind = managed.filter(({ online, reportsFlows }) => online === false || reportsFlows === false)
    const untold = managed.filter((one) => !blind.includes(one) && (one.online === null || one.reportsFlows === null))
    const named = [...blind, ...untold].map(({ name }) => name)
    const evidence = {
      counts: {
        managed: managed.length,
        unmanaged: workloads.length - managed.length - pods,
        ...(pods > 0 && { kubernetes_left_out: pods }),
        offline: managed.filter(({ online }) => online === false).length,
        not_reporting_flows: managed.filter(({ reportsFlows }) => reportsFlows === false).length,
        ...(untold.length > 0 && { not_known: untold.length }),
      },
      ...(named.length > 0 && { workloads: named.slice(0, MOST_EVIDENCE) }),
    }
    if (managed.length === 0) return notAssessed('No managed workloads.', evidence)
    const text = `${found(blind.length, 'workload', `of ${managed.length} offline or not reporting flows`)}${found(untold.length, 'workload', `of ${managed.length} of which the PCE does not tell both`)}`
    const status =
      blind.length === managed.length
        ? 'FAIL'
        : blind.length > 0
          ? 'WARNING'
          : unprovenBy(untold.length, managed.length)
    return {
      status,
      detail: text.trim() || `All ${countOf(managed.length, 'managed workload')} are online and report flows.`,
      evidence,
    }
  },
)

/** The keys of the labels that identify a workload. */
const IDENTITY = ['app', 'env', 'role', 'loc'] as const
/** Maximum percentage of workloads with missing labels that is still a WARNING. A higher percentage is a FAIL. */
const TOLERATED = 10

/** Checks that every workload, managed or not, has all four identifying labels. */
export const inventory: Evaluator = evaluator(
  { name: 'label completeness', lookedAt: `${IDENTITY.join(', ')} labels of all workloads`, needs: ['workloads'] },
  ({ workloads }) => {
    if (workloads.length === 0) return notAssessed('No workloads.')
    const lacking = (key: string) => workloads.filter(({ labels }) => labels[key] === undefined)
    const incomplete = workloads.filter(({ labels }) => IDENTITY.some((key) => labels[key] === undefined))
    const share = percentOf(incomplete.length, workloads.length)
    return {
      status: incomplete.length === 0 ? 'PASS' : share <= TOLERATED ? 'WARNING' : 'FAIL',
      detail:
        incomplete.length === 0
          ? `${countOf(workloads.length, 'workload')}, all with all four labels.`
          : `${incomplete.length} of ${countOf(workloads.length, 'workload')} (${share} %) lack a label (WARNING up to ${TOLERATED} %).`,
      evidence: {
        counts: {
          workloads: workloads.length,
          incomplete: incomplete.length,
          ...Object.fromEntries(IDENTITY.map((key) => [`without_${key}`, lacking(key).length])),
        },
        ...(incomplete.length > 0 && { workloads: incomplete.slice(0, MOST_EVIDENCE).map(({ name }) => name) }),
      },
    }
  },
)
