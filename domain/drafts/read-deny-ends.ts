import type { Page, PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchUpTo } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { modeOf } from '../inventory/workloads.js'
import type { Direction } from '../policy/mode-effects.js'
import { mapBounded } from '../text/pace-work.js'
import { selectWorkloads } from './select-workloads.js'

/** The two sides of a rule, as they will be after the write. */
export interface EndsOfRule {
  providers: readonly Actor[]
  consumers: readonly Actor[]
  unscoped: boolean
}

/** The workloads on one side of a deny rule, or on both sides if these have the same workloads. */
export interface DenyEnd {
  noun: 'destination' | 'source' | 'workload'
  directions: readonly Direction[]
  /** The workloads with a VEN, except for Kubernetes workloads. */
  managed: readonly Workload[]
  /**
   * True if this side selects workloads by labels or as "all workloads", so that Kubernetes workloads may be among
   * them.
   */
  isSelected: boolean
  /** The reason why the selected workloads were not read; null if they were read. */
  unread: string | null
  /** True if more workloads are selected than were read. */
  isCut: boolean
  /** Number of workloads that the rule names individually and that were not read because of the limit. */
  unnamed: number
  /** For each individually named workload that could not be looked up, the reason. */
  missing: readonly string[]
  /**
   * True if this side also names an actor whose workloads are not read, such as a virtual server. IP lists do not
   * count.
   */
  hasOthers: boolean
}

/**
 * Maximum numbers of workloads that are read for one side of a rule: `MOST_READ` selected by labels, and `MOST_SINGLE`
 * named individually.
 */
const MOST_READ = 1_000
const MOST_SINGLE = 50
/** Maximum number of concurrent requests for single workloads. */
const IN_FLIGHT = 4

/**
 * Creates a function that reads the workloads on both sides of a rule. The rules must belong to a rule set with the
 * given scopes. No workload or selection of workloads is read twice.
 */
export function createEndReader(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
): (rule: EndsOfRule) => Promise<DenyEnd[]> {
  const selections = new Map<string, Promise<Page<Workload>>>()
  const readSelection = (labelGroups: readonly string[][]) => {
    const labels = labelGroups.some((group) => group.length === 0) ? undefined : labelGroups
    const id = JSON.stringify(labels ?? null)
    const known =
      selections.get(id) ?? fetchUpTo({ api: pce.workloads, params: { managed: true, labels }, signal }, MOST_READ)
    selections.set(id, known)
    return known
  }
  const readEnd = async (actors: readonly Actor[], isBound: boolean) => {
    const { labelGroups, workloads, excluded, unread } = await selectWorkloads(lookups, scopes, { actors, isBound })
    const found = new Map<string, Workload>()
    const selected = labelGroups.length > 0 ? await readSelection(labelGroups) : { items: [], totalCount: 0 }
    for (const one of selected.items)
      if (!(one.labels ?? []).some(({ href }) => excluded.has(href))) found.set(one.href, one)
    const reasons = await mapBounded(workloads.slice(0, MOST_SINGLE), IN_FLIGHT, async (href) => {
      try {
        const one = (await lookups.byHref('workloads', href)) as Workload
        found.set(one.href, one)
        return []
      } catch (error) {
        if (!(error instanceof ToolError)) throw error
        return [error.message]
      }
    })
    return {
      managed: [...found.values()].filter((one) => modeOf(one) !== 'none'),
      isSelected: labelGroups.length > 0 || unread !== null,
      unread,
      isCut: selected.items.length >= MOST_READ && selected.totalCount !== selected.items.length,
      unnamed: Math.max(0, workloads.length - MOST_SINGLE),
      missing: reasons.flat(),
      hasOthers: !actors.every(isLookedAt),
    }
  }
  return async ({ providers, consumers, unscoped }) => {
    const [to, from] = [await readEnd(providers, true), await readEnd(consumers, !unscoped)]
    const idOf = ({ managed, ...rest }: typeof to) => JSON.stringify([managed.map(({ href }) => href).sort(), rest])
    if (idOf(to) === idOf(from)) return [{ ...to, noun: 'workload', directions: ['inbound', 'outbound'] }]
    return [
      { ...to, noun: 'destination', directions: ['inbound'] },
      { ...from, noun: 'source', directions: ['outbound'] },
    ]
  }
}

/**
 * Returns true for an actor whose workloads are read. IP lists count too: their addresses have no VEN and need no
 * check.
 */
const isLookedAt = ({ actors, label, label_group: group, workload, ip_list: list }: Actor): boolean =>
  actors === 'ams' || [label, group, workload, list].some((target) => target !== undefined)
