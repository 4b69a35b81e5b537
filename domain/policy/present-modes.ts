import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { OddListError, scanEvery } from '../inventory/fetch-every.js'
import { readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import { parseHref } from '../inventory/parse-href.js'
import { isSilent } from '../inventory/silent-vens.js'
import { modeOf } from '../inventory/workloads.js'
import { countOf } from '../text/describe-numbers.js'
import { mapBounded, workInTurns, type Steps } from '../text/pace-work.js'
import type { FlowEnd } from '../traffic/flow-ends.js'

/** Maximum number of workloads whose modes are read as a list. */
const MOST_WORKLOADS = 50_000
/**
 * Maximum number of workloads of one type that are looked up one by one. If more are needed, the list of all such
 * workloads is read.
 */
const MOST_LOOKED_UP = 20
const IN_FLIGHT = 5

/** The present enforcement modes of the ends of traffic. They may differ from the modes in traffic rows. */
export interface PresentModes {
  /**
   * Reads the modes of the given ends, or of all workloads if `ends` is absent. Further calls may add other ends. If
   * some modes cannot be read, `notes` says so, and no error is thrown. Rejects if the call is cancelled.
   */
  look: (ends?: Iterable<FlowEnd>) => Promise<void>
  /**
   * Returns the mode of an end according to the PCE's inventory. If the workload was not found or could not be read,
   * the mode is `unknown` if traffic rows report the workload as managed, and `none` if they report it as unmanaged.
   * The mode in a row is never used, because it may be outdated.
   */
  modeOf: (end: FlowEnd) => EndMode
  /**
   * Returns true if the VEN of an end was read and is not known to answer the PCE (`isSilent`). It is then uncertain
   * what the end does, whatever its mode. Returns false for ends without a VEN, and for ends whose mode came from the
   * caller.
   */
  isSilent: (end: FlowEnd) => boolean
  /** Returns notes about the workloads whose mode was requested but is not known. */
  notes: () => string[]
}

interface Source {
  pce: PceClient
  signal: AbortSignal
  /**
   * The clock that decides whether a heartbeat is too old. If absent, a VEN that the PCE calls online counts as
   * answering.
   */
  now?: () => number
}

/** The modes that the caller has already read. */
interface Read {
  /** Enforcement modes by the href of the workload. */
  known?: ReadonlyMap<string, EndMode>
  /** True if `known` has all workloads, so that nothing else needs to be read. */
  isWhole?: boolean
  /** The stores of modes that several `PresentModes` share, so that each workload is read only once. */
  shared?: Inventories
}

/** The stores of modes by type of workload, spelled as in hrefs. They contain what was read so far. */
export type Inventories = Readonly<Record<string, Inventory>>

/** Creates the stores of modes. A store reads each workload, or the list of all workloads of its type, at most once. */
export const createInventories = (source: Source, isWhole = false): Inventories => ({
  workloads: createInventory(source, HOSTS, isWhole),
  kubernetes_workloads: createInventory(source, PODS, isWhole),
})

/** Creates a `PresentModes` that knows only the given modes. Calling its `look` reads further modes. */
export function createPresentModes(source: Source, { known = new Map(), isWhole, shared }: Read = {}): PresentModes {
  const kinds = shared ?? createInventories(source, isWhole)
  const inventoryOf = (href: string): Inventory | undefined => kinds[parseHref(href)?.kind ?? '']
  const gone = new Set<string>()
  /** The reasons why modes could not be read, by the hrefs of the workloads. */
  const unread = new Map<string, string>()
  const unmanaged = new Set<string>()

  function* collect(ends: Iterable<FlowEnd>): Steps<Map<Inventory, Set<string>>> {
    const wanted = new Map(Object.values(kinds).map((inventory) => [inventory, new Set<string>()]))
    for (const { workload } of ends) {
      yield
      if (workload === null || known.has(workload)) continue
      const inventory = inventoryOf(workload)
      const own = inventory && wanted.get(inventory)
      if (own !== undefined && own.size <= MOST_LOOKED_UP) own.add(workload)
    }
    return wanted
  }

  return {
    async look(ends) {
      const wanted = ends && (await workInTurns(collect(ends), source.signal))
      await Promise.all(Object.values(kinds).map((inventory) => inventory.look(wanted?.get(inventory) ?? null)))
    },
    modeOf(end) {
      const { workload, managed } = end
      if (workload === null) return 'none'
      const inventory = inventoryOf(workload)
      const present = known.get(workload) ?? inventory?.find(workload)
      if (present === 'absent') {
        if (managed) gone.add(workload)
        return managed ? 'unknown' : 'none'
      }
      if (present !== undefined) return present
      // A workload that a row reports as unmanaged may have become managed since. If its present mode could not be
      // read, the notes therefore mention it, too.
      if (!managed && inventory !== undefined) unmanaged.add(workload)
      if (managed || inventory !== undefined) unread.set(workload, inventory?.whyUnread() ?? 'they are of another kind')
      return managed ? 'unknown' : 'none'
    },
    isSilent: ({ workload }) => workload !== null && inventoryOf(workload)?.isSilent(workload) === true,
    notes: () => [
      ...(gone.size > 0
        ? [
            `${countOf(gone.size, 'workload')} of the rows ${gone.size === 1 ? 'is' : 'are'} not in the inventory (removed, or not visible to this account): the mode is not known.`,
          ]
        : []),
      ...(unread.size > 0
        ? [
            `The mode of ${countOf(unread.size, 'workload')} is not known${unmanaged.size > 0 ? ` (${unmanaged.size} unmanaged in the rows, which is taken as so)` : ''}: ${[...new Set(unread.values())].join('; ')}.`,
          ]
        : []),
    ],
  }
}

const isAway = (error: PceError): boolean =>
  error instanceof PceApiError
    ? error.status === 429 || error.status >= 500
    : error.code === 'unreachable' || error.code === 'deadline'

/** A store of the modes of workloads of one type, as far as they were read. */
interface Inventory {
  /**
   * Reads the workloads with these hrefs one by one. If there are too many, or if the argument is null, the complete
   * list is read.
   */
  look(hrefs: ReadonlySet<string> | null): Promise<void>
  /** Returns the mode of a workload; `absent` if there is no such workload; undefined if it could not be read. */
  find(href: string): EndMode | 'absent' | undefined
  /** Returns true if the workload was read and its VEN is not known to answer. */
  isSilent(href: string): boolean
  /** Returns the reason why the modes of some workloads could not be read. */
  whyUnread(): string
}

/** The functions by which workloads of one type are read. */
interface Reading {
  /** Reads a single workload. It is absent if workloads of this type can be read only as a list. */
  readOne?: (source: Source, href: string) => Promise<Workload>
  /**
   * Reads the list of workloads. `silent` are those whose VEN is not known to answer. `unread` is the reason why some
   * are missing; null if all were read.
   */
  readAll: (source: Source) => Promise<{
    modes: ReadonlyMap<string, EndMode>
    silent: ReadonlySet<string>
    unread: string | null
  }>
}

function createInventory(source: Source, { readOne, readAll }: Reading, isKnown: boolean): Inventory {
  const modes = new Map<string, EndMode | 'absent'>()
  const silent = new Set<string>()
  let isListed = isKnown
  let isWhole = isKnown
  let unread = 'they were not looked up'
  const give = (error: unknown): void => {
    if (source.signal.aborted || !(error instanceof PceError || error instanceof ToolError)) throw error
    unread = error.message.replace(/\.$/u, '')
  }
  // A PCE that refuses to show one workload may still show others. A PCE that is overloaded or does not answer is not
  // asked again.
  const lookUp = async (read: NonNullable<typeof readOne>, href: string): Promise<void> => {
    try {
      const one = await read(source, href)
      if (one.href !== href) throw new OddListError('the workload that was asked for')
      if (isSilent(one, timeOf(source))) silent.add(href)
      modes.set(href, one.deleted === true ? 'absent' : modeOf(one))
    } catch (error) {
      if (error instanceof PceApiError && error.status === 404) modes.set(href, 'absent')
      else if (error instanceof PceError && isAway(error)) throw error
      else give(error)
    }
  }
  return {
    async look(hrefs) {
      if (isListed) return
      const wanted = hrefs && [...hrefs].filter((href) => !modes.has(href))
      if (wanted?.length === 0) return
      try {
        if (readOne !== undefined && wanted !== null && modes.size + wanted.length <= MOST_LOOKED_UP) {
          await mapBounded(wanted, IN_FLIGHT, (href) => lookUp(readOne, href))
          return
        }
        isListed = true
        const list = await readAll(source)
        for (const [href, mode] of list.modes) modes.set(href, mode)
        for (const href of list.silent) silent.add(href)
        isWhole = list.unread === null
        unread = list.unread ?? unread
      } catch (error) {
        give(error)
      }
    },
    find: (href) => modes.get(href) ?? (isWhole ? 'absent' : undefined),
    isSilent: (href) => silent.has(href),
    whyUnread: () => unread,
  }
}

const timeOf = ({ now }: Source): number | null => now?.() ?? null

const HOSTS: Reading = {
  readOne: ({ pce, signal }, href) => pce.workloads.getByReference(href, { signal }),
  async readAll(source) {
    const { pce, signal } = source
    const modes = new Map<string, EndMode>()
    const silent = new Set<string>()
    const now = timeOf(source)
    const { isWhole } = await scanEvery(
      { api: pce.workloads, params: { managed: true }, signal },
      {
        most: MOST_WORKLOADS,
        onBegin() {
          modes.clear()
          silent.clear()
        },
        onItems(items: Workload[]) {
          for (const workload of items) {
            if (parseHref(workload.href)?.kind !== 'workloads') throw new OddListError('workloads')
            if (workload.deleted === true) continue
            modes.set(workload.href, modeOf(workload))
            if (isSilent(workload, now)) silent.add(workload.href)
          }
        },
      },
    )
    return { modes, silent, unread: isWhole ? null : `only ${modes.size} workloads were read` }
  },
}

/**
 * The functions by which Kubernetes workloads are read. How the PCE returns a single one is not documented, so only the
 * list is read (P106).
 */
const PODS: Reading = {
  async readAll(source) {
    const { items, unread } = await readKubernetesWorkloads(source, {}, (one) => [one.href, modeOf(one)] as const)
    return { modes: new Map(items), silent: new Set(), unread }
  },
}
