import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { loadLabels, type LabelIndex, type ReadContext } from '../inventory/load-labels.js'
import { planSide } from './plan-traffic-side.js'
import { createPolicyLookups, type PolicyLookups } from '../inventory/policy-lookups.js'
import { unresolvedFilter, type LabelReference, type UnresolvedLabel } from '../inventory/resolve-labels.js'
import { resolveTrafficTerm, type TermPlace, type TrafficTerm } from './resolve-traffic-term.js'

/** A flat list is one condition set; a list of lists is blocks, taken as they are (tools contract, A7). */
export type IncludeReferences = readonly (LabelReference | readonly LabelReference[])[]

export interface TrafficFilterArguments {
  include_sources?: IncludeReferences
  exclude_sources?: readonly LabelReference[]
  include_destinations?: IncludeReferences
  exclude_destinations?: readonly LabelReference[]
}

export interface TrafficFilters {
  sources: TrafficQuery['sources']
  destinations: TrafficQuery['destinations']
  /** Applies to rows what the PCE could not: networks in CIDR form. Undefined when there is nothing to apply. */
  keeps?: (sourceIp: string, destinationIp: string) => boolean
  /** The filters `keeps` stands for, as `include_sources 10.0.0.0/8`. */
  appliedToRows: string[]
}

/** More alternatives than this make a query no PCE should be asked. */
const MAX_BLOCKS = 1_000
/** Conditions of one block. */
const MAX_CONDITIONS = 50
/** Values listed per unresolved reference. */
const MAX_VALID_VALUES = 25

/**
 * The caller's filters as the PCE takes them. Every reference resolves or nothing is sent: unresolved_label_filter names all
 * that do not, invalid_argument a list that mixes blocks with single references or multiplies out too far.
 */
export async function resolveTrafficFilters(
  pce: PceClient,
  args: TrafficFilterArguments,
  context: ReadContext,
): Promise<TrafficFilters> {
  const attempt = (index: LabelIndex) => build(createPolicyLookups(pce, index, 'active', context.signal), args)
  const first = await attempt(await loadLabels(pce, context))
  const built = 'unresolved' in first ? await attempt(await loadLabels(pce, context, 'fresh')) : first
  if (!('unresolved' in built)) return built
  throw unresolvedFilter(
    built.unresolved.map(({ ref, valid }) => ({
      ref,
      valid: Array.isArray(valid) ? valid.slice(0, MAX_VALID_VALUES) : valid,
    })),
  )
}

async function build(
  lookups: PolicyLookups,
  args: TrafficFilterArguments,
): Promise<TrafficFilters | { unresolved: UnresolvedLabel[] }> {
  const unresolved: UnresolvedLabel[] = []
  const terms = async (references: readonly LabelReference[], place: TermPlace): Promise<TrafficTerm[]> => {
    const found: TrafficTerm[] = []
    for (const reference of references) {
      const term = await resolveTrafficTerm(lookups, reference, place)
      if ('valid' in term) unresolved.push(term)
      else found.push(term)
    }
    return found
  }
  const side = async (name: 'sources' | 'destinations') => {
    const include = args[`include_${name}`] ?? []
    const blocks = toBlocks(include, `include_${name}`)
    const found: TrafficTerm[][] = []
    for (const list of blocks.lists) found.push(await terms(list, { side: name, mode: 'include' }))
    const included = blocks.nested ? found : multiplyOut(found.flat(), `include_${name}`)
    const excluded = await terms(args[`exclude_${name}`] ?? [], { side: name, mode: 'exclude' })
    return planSide(name, included, excluded, blocks.nested)
  }
  const sources = await side('sources')
  const destinations = await side('destinations')
  if (unresolved.length > 0) return { unresolved }
  const applies = sources.keeps !== undefined || destinations.keeps !== undefined
  return {
    sources: sources.query,
    destinations: destinations.query,
    ...(applies ? { keeps: (from, to) => (sources.keeps?.(from) ?? true) && (destinations.keeps?.(to) ?? true) } : {}),
    appliedToRows: [...sources.appliedToRows, ...destinations.appliedToRows],
  }
}

function toBlocks(include: IncludeReferences, argument: string): { nested: boolean; lists: LabelReference[][] } {
  const lists = include.filter((entry): entry is LabelReference[] => Array.isArray(entry))
  if (lists.some((list) => list.length > MAX_CONDITIONS)) {
    throw new ToolError('invalid_argument', `A list in ${argument} has more than ${MAX_CONDITIONS} conditions.`, {
      argument,
    })
  }
  if (lists.length === 0) return { nested: false, lists: [include as LabelReference[]] }
  if (lists.length === include.length) return { nested: true, lists }
  throw new ToolError(
    'invalid_argument',
    `${argument} mixes single references with lists. Give one flat list, or lists only.`,
    {
      argument,
    },
  )
}

/** Values of one group become alternatives, groups stay together: [app=a, app=b, env=p] is (a and p) or (b and p). */
function multiplyOut(terms: readonly TrafficTerm[], argument: string): TrafficTerm[][] {
  const groups = new Map<string, TrafficTerm[]>()
  for (const term of terms) groups.set(term.group, [...(groups.get(term.group) ?? []), term])
  const count = [...groups.values()].reduce((product, group) => product * group.length, 1)
  if (count > MAX_BLOCKS) {
    throw new ToolError(
      'invalid_argument',
      `${argument} multiplies out to ${count} combinations, more than ${MAX_BLOCKS}.`,
      { argument },
    )
  }
  return [...groups.values()].reduce<TrafficTerm[][]>(
    (blocks, group) => blocks.flatMap((block) => group.map((term) => [...block, term])),
    [[]],
  )
}
