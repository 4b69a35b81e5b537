import { PceError, type PceClient } from '../../pce-client/index.js'
import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { OddListError, scanEvery } from '../inventory/fetch-every.js'
import { readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import { parseHref } from '../inventory/parse-href.js'
import { modeOf } from '../inventory/workloads.js'
import { countOf } from '../text/describe-numbers.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { endModeOf } from './judge-connection.js'

/** Maximum number of workloads whose modes are read. */
const MOST_WORKLOADS = 50_000

/** The modes in which the ends of traffic enforce policy now, whatever their rows report. */
export interface PresentModes {
  /**
   * Returns the mode of an end in the inventory. A workload that the rows call managed and that is not so any more has an
   * `unknown` mode; only where the inventory could not be read, it is the mode that the row reports, or `none` if the row
   * calls the workload unmanaged.
   */
  modeOf: (end: FlowEnd) => EndMode
  /** Says in sentences which ends were asked for without being found in the inventory. */
  notes(): string[]
}

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/** What was read of one kind of workloads. `unread` is the reason why some are missing; null if all were read. */
interface Inventory {
  modes: ReadonlyMap<string, EndMode>
  unread: string | null
}

/**
 * Reads the modes of the managed workloads and of the Kubernetes workloads. What cannot be read fails nothing. Rejects
 * when cancelled.
 */
export async function readPresentModes(source: Source): Promise<PresentModes> {
  const [workloads, kubernetes] = await Promise.all([attempt(source, readManaged), attempt(source, readKubernetes)])
  const inventories: Record<string, Inventory> = { workloads, kubernetes_workloads: kubernetes }
  const gone = new Set<string>()
  const byRow = new Map<string, string>()
  const unmanaged = new Set<string>()
  return {
    modeOf(end) {
      const { workload, managed } = end
      if (workload === null) return endModeOf(end)
      const inventory = inventories[parseHref(workload)?.kind ?? '']
      const known = inventory?.modes.get(workload)
      if (known !== undefined) return known
      if (inventory?.unread === null) {
        if (managed) gone.add(workload)
        return managed ? 'unknown' : 'none'
      }
      // What a row calls unmanaged may be managed by now, so it is noted as well where the inventory does not say.
      if (!managed && inventory !== undefined) unmanaged.add(workload)
      if (managed || inventory !== undefined) byRow.set(workload, inventory?.unread ?? 'they are of another kind')
      return endModeOf(end)
    },
    notes: () => [
      ...(gone.size > 0
        ? [
            `${countOf(gone.size, 'workload')} of the rows ${areNot(gone.size)} managed any more: the mode is not known.`,
          ]
        : []),
      ...(byRow.size > 0
        ? [
            `For ${countOf(byRow.size, 'workload')} the mode is that of the rows${unmanaged.size > 0 ? ` (${unmanaged.size} unmanaged there)` : ''}: ${[...new Set(byRow.values())].join('; ')}.`,
          ]
        : []),
    ],
  }
}

const areNot = (count: number) => (count === 1 ? 'is not' : 'are not')

async function readManaged({ pce, signal }: Source): Promise<Inventory> {
  const modes = new Map<string, EndMode>()
  const { isWhole } = await scanEvery(
    { api: pce.workloads, params: { managed: true }, signal },
    {
      most: MOST_WORKLOADS,
      onBegin: () => modes.clear(),
      onItems(items: Workload[]) {
        for (const workload of items) {
          if (parseHref(workload.href)?.kind !== 'workloads') throw new OddListError('workloads')
          if (workload.deleted !== true) modes.set(workload.href, modeOf(workload))
        }
      },
    },
  )
  return { modes, unread: isWhole ? null : `only ${modes.size} workloads were read` }
}

async function readKubernetes(source: Source): Promise<Inventory> {
  const { items, unread } = await readKubernetesWorkloads(source, {}, (one) => [one.href, modeOf(one)] as const)
  return { modes: new Map(items), unread }
}

async function attempt(source: Source, read: (source: Source) => Promise<Inventory>): Promise<Inventory> {
  try {
    return await read(source)
  } catch (error) {
    if (source.signal.aborted || !(error instanceof PceError || error instanceof ToolError)) throw error
    return { modes: new Map(), unread: error.message.replace(/\.$/u, '') }
  }
}
