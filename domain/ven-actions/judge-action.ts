import { isEnforcing } from '../../schemas/pce/enforcement-modes.js'
import { judgeEnds, type EnforcementTraffic } from '../enforcement/judge-enforcement.js'
import type { JudgingContext } from '../readiness/judge-changed-flows.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { VenAction } from './act-on-vens.js'
import type { ChosenVen } from './choose-vens.js'

/** Returns true for actions that change which policy is enforced. */
export const changesEnforcement = ({ kind }: VenAction): boolean => ['suspend', 'resume', 'unpair'].includes(kind)

/**
 * Returns whether a VEN's workload enforces policy while the VEN runs: true in selective and full mode; null if its
 * mode is not known.
 */
export const enforces = ({ mode }: ChosenVen): boolean | null => (mode === null ? null : isEnforcing(mode))

/**
 * Determines what happens to the observed traffic of the workloads whose VENs are suspended, resumed or unpaired. The
 * workloads themselves drop nothing without a running VEN. After unpairing, their peers are affected too, because rules
 * then see the workloads as mere addresses (P104, P124, P125). What a host's own firewall does afterwards is not
 * considered. If the traffic could not be read, returns a sentence with the reason.
 */
export function judgeVenAction(
  ctx: JudgingContext,
  { kind }: VenAction,
  vens: readonly ChosenVen[],
  { window }: { window: TrafficWindow },
): Promise<EnforcementTraffic | string> {
  const byWorkload = new Map(vens.map((ven) => [ven.workload, ven]))
  const venAt = ({ workload }: FlowEnd) => (workload === null ? undefined : byWorkload.get(workload))
  return judgeEnds(
    ctx,
    {
      filter: { include: vens.map(({ workload: href }) => [{ workload: { href } }]), exclude: [] },
      isOwn: (end) => venAt(end) !== undefined,
      changeOf(end) {
        const ven = venAt(end)
        if (ven === undefined) return null
        // A workload in idle mode drops nothing, just like one without a running VEN.
        if (kind === 'resume') return ven.mode === null || ven.isUntold ? null : { from: 'idle', to: ven.mode }
        // A VEN that is suspended already drops nothing.
        const from = ven.status === 'suspended' ? 'idle' : ven.mode
        return { from, to: 'idle', ...(from !== 'idle' && ven.isUntold && { isUntold: true as const }) }
      },
      ...(kind === 'unpair' && { seenAfter: (end) => (venAt(end) === undefined ? null : asAddress(end)) }),
    },
    { name: 'mcp-ven-action', window, complete: undefined },
  )
}

const asAddress = (end: FlowEnd): FlowEnd => ({
  ...end,
  workload: null,
  managed: false,
  mode: null,
  name: null,
  hostname: null,
  labels: {},
  labelHrefOf: {},
})
