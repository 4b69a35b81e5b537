import { PceApiError } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { pickEvery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isManaged } from '../inventory/workloads.js'
import { mapBounded } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { ResolvedSelection } from './select-workloads.js'

/** A port on which a process of a workload listens, and which other hosts can reach (P129). */
export interface Listener {
  port: number
  proto: number
  process: string | null
  windowsService: string | null
  user: string | null
}

/**
 * Reasons why a workload without observed traffic may still be in use, or why the reported list of its listeners may be
 * out of date.
 */
export const DOUBTS = ['offline', 'idle', 'visibility_off', 'paired_later', 'old_report'] as const
export type Doubt = (typeof DOUBTS)[number]

export interface ListeningWorkload {
  href: string
  name: string
  listeners: Listener[]
  /** Number of listening ports that can be reached only from the workload itself. */
  local: number
  doubts: Doubt[]
}

export interface ListenersFound {
  workloads: ListeningWorkload[]
  /**
   * Numbers of workloads: those that match, those without a VEN, those beyond the limit, those that reported no list of
   * ports, and those that could not be read.
   */
  counts: { matched: number; unmanaged: number; left: number; unreported: number; unread: number }
}

/**
 * The number of connections to one port of a workload, and when the last of them was seen, in milliseconds since the
 * epoch.
 */
export interface Talk {
  connections: number
  last: number
}

const IN_FLIGHT = 5
const DAY_MS = 86_400_000
/** The age from which a workload's report of its ports counts as old. */
const OLD_MS = 7 * DAY_MS
/** Maximum number of ports in the filter of the traffic query. With more ports, the query has no port filter. */
const MOST_PORTS = 200

type Ctx = ToolContext<true>

/**
 * Reads on which ports the selected workloads listen, for at most `most` workloads with a VEN. A PCE leaves the ports
 * out of its list of workloads (P128), so each workload that comes without ports is read individually.
 *
 * @throws {IncompleteListError} if the PCE sent only a part of the list, and the errors of the PCE client.
 */
export async function readListeners(
  ctx: Ctx,
  { params, ownFilter }: ResolvedSelection,
  window: TrafficWindow,
  most: number,
): Promise<ListenersFound> {
  const { pce, signal } = ctx
  const counts = { matched: 0, unmanaged: 0, left: 0, unreported: 0, unread: 0 }
  let held: Workload[] = []
  await pickEvery({ api: pce.workloads, params, signal }, (workload: Workload) => {
    if (workload.deleted === true || ownFilter?.(workload) === false) return undefined
    return isManaged(workload) ? workload : workload.href
  }).then((found) => {
    held = found.filter((one) => typeof one !== 'string')
    counts.matched = found.length
    counts.unmanaged = found.length - held.length
  })
  counts.left = Math.max(0, held.length - most)
  const whole = await mapBounded(held.slice(0, most), IN_FLIGHT, async (workload) => {
    if (workload.services?.open_service_ports != null) return workload
    try {
      return await pce.workloads.getByReference(workload.href, { signal })
    } catch (error) {
      if (!(error instanceof PceApiError) || error.status === 401 || signal.aborted) throw error
      counts.unread += 1
      return null
    }
  })
  const workloads = whole.flatMap((workload): ListeningWorkload[] => {
    if (workload === null) return []
    const ports = workload.services?.open_service_ports
    if (ports == null) {
      counts.unreported += 1
      return []
    }
    const reachable = ports.filter(({ address }) => !isLocal(address))
    return [
      {
        href: workload.href,
        name: workload.name || workload.hostname || workload.href,
        listeners: reachable.map(({ port, protocol, process_name: process, win_service_name: service, user }) => ({
          port,
          proto: protocol,
          process: process || null,
          windowsService: service || null,
          user: user || null,
        })),
        local: ports.length - reachable.length,
        doubts: doubtsOf(workload, window, ctx.now()),
      },
    ]
  })
  return { workloads, counts }
}

const isLocal = (address: string | null | undefined): boolean =>
  address != null && (address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.'))

function doubtsOf(workload: Workload, window: TrafficWindow, now: number): Doubt[] {
  const { status, managed_since: since } = (workload.agent?.status ?? {}) as Record<string, unknown>
  const stopped = [workload.ven?.status, status].some((one) => typeof one === 'string' && one !== 'active')
  const pairedAt = Date.parse(typeof since === 'string' ? since : (workload.created_at ?? ''))
  const reportedAt = Date.parse(workload.services?.created_at ?? '')
  return [
    ...(workload.online === false || stopped ? ['offline' as const] : []),
    ...(workload.enforcement_mode === 'idle' ? ['idle' as const] : []),
    ...(['flow_off', 'flow_drops'].includes(workload.visibility_level ?? '') ? ['visibility_off' as const] : []),
    ...(pairedAt > Date.parse(window.start) ? ['paired_later' as const] : []),
    // A report without a time counts as old, because it is not known to be new.
    ...(now - reportedAt <= OLD_MS ? [] : ['old_report' as const]),
  ]
}

/** Returns a key that identifies a port of a workload. */
export const portKey = (workload: string, { port, proto }: Pick<Listener, 'port' | 'proto'>): string =>
  `${workload} ${proto} ${port}`

/** Reads who connected to the listening ports, whatever decision the PCE recorded. */
export async function readTalk(
  ctx: Ctx,
  workloads: readonly ListeningWorkload[],
  labels: LabelIndex,
  window: TrafficWindow,
): Promise<{ read: FlowsRead; talk: ReadonlyMap<string, Talk> }> {
  const encoder = createFlowEncoder(labels)
  const own = new Set(workloads.map(({ href }) => href))
  const ports = new Map(
    workloads.flatMap(({ listeners }) => listeners).map(({ port, proto }) => [`${proto} ${port}`, { port, proto }]),
  )
  const talk = new Map<string, Talk>()
  const read = await createConversationReader(ctx, encoder)(
    {
      name: 'mcp-listeners',
      window,
      filters: {
        sources: anything(),
        destinations: { include: [...own].map((href) => [{ workload: { href } }]), exclude: [] },
      },
      services: { include: ports.size > MOST_PORTS ? [] : [...ports.values()], exclude: [] },
    },
    (row) => {
      const { workload } = encoder.ends.end(row.dst)
      if (workload === null || !own.has(workload)) return
      const key = portKey(workload, row)
      const known = talk.get(key) ?? { connections: 0, last: 0 }
      known.connections += row.connections
      known.last = Math.max(known.last, row.last || 0)
      talk.set(key, known)
    },
  )
  return { read, talk }
}
