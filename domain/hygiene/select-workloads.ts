import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadSelection } from '../../schemas/workload-selection.js'
import {
  countKubernetesWorkloads,
  NONE_LEFT_OUT,
  readKubernetesWorkloads,
  type LeftOut,
} from '../inventory/kubernetes-workloads.js'
import { resolveLabelConditions } from '../inventory/label-conditions.js'
import { parseLabelList, type LabelIndex, type ReadContext } from '../inventory/labels.js'
import { addressFilter, allOf, matchExactly } from '../inventory/match-exactly.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'

/** A selection of workloads: parameters for the PCE, and a filter for the conditions that this server tests itself. */
export interface ResolvedSelection {
  params: Record<string, string | boolean | string[][] | undefined>
  ownFilter: ((workload: Workload) => boolean) | undefined
  /**
   * Returns true if the selection includes the given Kubernetes workload. This server must test it, because the PCE
   * lists Kubernetes workloads separately.
   */
  selectsPod: (workload: Workload) => boolean
}

/** Looks up the filters for workloads. Throws the errors of `resolveLabelConditions`. */
export async function resolveSelection(
  pce: PceClient,
  { labels: asked, exact, ...filters }: WorkloadSelection,
  context: ReadContext,
): Promise<ResolvedSelection> {
  const labels = await resolveLabelConditions(pce, parseLabelList(asked), context)
  const isExact = matchExactly<Workload>(exact, filters, {
    name: ({ name }) => [name],
    hostname: ({ hostname }) => [hostname],
    ip_address: ({ interfaces, public_ip: ip }) => [ip, ...(interfaces ?? []).map(({ address }) => address)],
    description: ({ description }) => [description],
  })
  const ownFilter = allOf(labels.ownFilter, isExact)
  return {
    selectsPod: (workload) =>
      meetsFilters(workload, filters) && meetsLabels(workload, labels.param) && ownFilter?.(workload) !== false,
    params: {
      ...filters,
      ip_address: addressFilter(exact, filters.ip_address),
      labels: labels.param,
      include: 'labels',
    },
    ownFilter,
  }
}

type Filters = Omit<WorkloadSelection, 'labels' | 'exact'>

/**
 * Returns true if no Kubernetes workload can meet these filters, because they require a VEN, a host name or a
 * description.
 */
const isForHosts = ({ hostname, description, online, managed }: Filters): boolean =>
  hostname !== undefined || description !== undefined || online !== undefined || managed === false

/** Returns true if a Kubernetes workload meets the filters. As on the PCE, a filter matches any part of a string. */
function meetsFilters({ name, interfaces, enforcement_mode: own }: Workload, filters: Filters): boolean {
  if (isForHosts(filters)) return false
  const { name: part, ip_address: ip, enforcement_mode: mode } = filters
  const has = (text: string, wanted: string) => text.toLowerCase().includes(wanted.toLowerCase())
  return (
    (part === undefined || has(name ?? '', part)) &&
    (ip === undefined || (interfaces ?? []).some(({ address }) => has(address ?? '', ip))) &&
    (mode === undefined || own === mode)
  )
}

function meetsLabels({ labels }: Workload, alternatives: readonly string[][] | undefined): boolean {
  const own = new Set((labels ?? []).map(({ href }) => href))
  return alternatives === undefined || alternatives.some((all) => all.every((href) => own.has(href)))
}

/** Counts the Kubernetes workloads that match a selection but that a tool leaves out. */
export async function countLeftOut(
  pce: PceClient,
  { selectsPod, params }: Pick<ResolvedSelection, 'selectsPod'> & Partial<Pick<ResolvedSelection, 'params'>>,
  signal: AbortSignal,
): Promise<LeftOut> {
  const [labels = [], ...others] = (params?.labels as string[][] | undefined) ?? []
  const filters = {
    ...(typeof params?.name === 'string' && { name: params.name }),
    labels: others.length === 0 ? labels : [],
  }
  const { items, unread } = await readKubernetesWorkloads(
    { pce, signal },
    filters,
    (one) => selectsPod(one) || undefined,
  )
  return { left: items.length, unread }
}

/**
 * Works like `countLeftOut`, but lets the PCE do the counting if its filters for Kubernetes workloads can express the
 * selection. They can if the selection consists of only a part of the name and one label.
 */
export async function countLeftOutCheaply(
  pce: PceClient,
  asked: WorkloadSelection,
  selection: ResolvedSelection,
  signal: AbortSignal,
): Promise<LeftOut> {
  const { name, ip_address: ip, enforcement_mode: mode } = asked
  if (isForHosts(asked)) return NONE_LEFT_OUT
  const [label, ...more] = (selection.params.labels as string[][] | undefined)?.flat() ?? []
  const isCountable = ip === undefined && mode === undefined && more.length === 0 && selection.ownFilter === undefined
  return isCountable ? countKubernetesWorkloads({ pce, signal }, { name, label }) : countLeftOut(pce, selection, signal)
}

/** Label keys that every PCE has, even if it has no labels with them (P14). */
const BUILT_IN = ['role', 'app', 'env', 'loc']

/** Returns the label keys that every PCE has, and the keys of all labels. */
export const knownKeys = (index: LabelIndex): string[] => [...new Set([...BUILT_IN, ...index.keys()])]

/**
 * Throws not_found, with similar keys, if one of the given keys belongs to no label. `argument` is the name of the
 * caller's argument.
 */
export function requireKeys(index: LabelIndex, keys: readonly string[], argument: string): void {
  const known = knownKeys(index)
  const unknown = keys.find((key) => !known.includes(key))
  if (unknown === undefined) return
  const text = `${argument}: no label has the key ${quote(unknown)}. Keys: ${known.slice(0, 50).map(quote).join(', ')}.`
  throw new ToolError('not_found', text, { argument, key: unknown, near_names: nearNames(unknown, known) })
}
