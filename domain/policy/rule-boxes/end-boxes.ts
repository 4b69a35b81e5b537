import type { Actor, Rule, ScopeEntry } from '../../../schemas/pce/rule-set.js'
import { toDraftHref } from '../../inventory/parse-href.js'
import { type Box, intersectBoxes } from '../boxes.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import type { Addresses } from './address-boxes.js'
import type { Bit } from './bits.js'
import { textOf } from './comparable-text.js'
import type { createLabels } from './label-boxes.js'
import { isOpaque } from './opaque-parts.js'
import type { Ambiguity, Reading } from './readings.js'

/**
 * The values of the dimension `kind`, which is the type of an end. Two ends of type `opaque` are equal only if the
 * rules name them in exactly the same way.
 */
export const KINDS = { workload: 2n, virtual: 4n, opaque: 8n }

/** The ends that one entry, or one combination of labels, on a side of a rule selects. */
export interface NamedEnd {
  box: Box
  /** True if the PCE sends the rule to these ends. False for addresses, because an address cannot enforce rules. */
  isWritten: boolean
  /** True for virtual services and virtual servers, whose own ports apply instead of the ports of the rule. */
  isVirtual: boolean
  /** The href of the workload, if the entry selects a single workload. */
  self?: string
}

/** Creates the dimensions of one end of a connection: `kind`, `id`, labels and addresses. */
export function createEnds(
  addresses: Addresses,
  labels: ReturnType<typeof createLabels>,
  bit: Bit,
  ambiguities: Set<Ambiguity>,
) {
  const single = (kind: bigint, id: string): [dimension: string, mask: bigint][] => [
    ['kind', kind],
    ['id', bit('id', id)],
  ]

  /**
   * Returns label boxes that together contain the workloads that one side of a rule selects, by labels or as "all
   * workloads".
   */
  const selectedLabels = (actors: readonly Actor[], contents: PolicyContents, reading: Reading): Box[] => {
    const entries = actors.filter((actor) => actor.label !== undefined || actor.label_group !== undefined)
    const labelled = entries.length === 0 ? null : labels.boxOf(entries, contents, reading)
    if (!actors.some((actor) => actor.actors === 'ams')) return labelled === null ? [] : [labelled]
    const exclusions = entries.filter(({ exclusion }) => exclusion === true)
    // "All workloads" includes every workload that labels could select.
    if (exclusions.length === 0) return [new Map()]
    ambiguities.add('all_but')
    const all = labels.boxOf(reading.has('all_but') ? exclusions : [], contents, reading)
    return [all, labelled].filter((box) => box !== null)
  }

  /** Returns the groups of ends that one side of a rule selects within one scope. */
  const endsOf = (
    { rule, contents }: RuleInForce,
    side: 'providers' | 'consumers',
    scope: readonly ScopeEntry[],
    reading: Reading,
  ): NamedEnd[] => {
    const within = labels.boxOf(scope, contents, reading)
    const inScope = (box: Box, more: Partial<NamedEnd> = {}): NamedEnd[] => {
      const both = within === null ? null : intersectBoxes(box, within)
      return both === null ? [] : [{ isWritten: true, isVirtual: false, ...more, box: both }]
    }
    const actors = rule[side]
    if (isOpaque(rule, side, contents)) {
      const id = textOf([side, actors, rule[`all_ips_except_for_in_${side}`]], contents)
      return inScope(new Map(single(KINDS.opaque, id)))
    }
    const selected = selectedLabels(actors, contents, reading)
    const resolved = (rule as Partial<Rule>).resolve_labels_as?.[side] ?? ['workloads']
    const listed = actors.flatMap(({ ip_list: list }) => list ?? [])
    return [
      // Scopes select by labels, which addresses do not have, so a scope does not limit them.
      ...addresses.boxesOf(listed, contents).map((box) => ({ box, isWritten: false, isVirtual: false })),
      ...(resolved.includes('workloads')
        ? selected.flatMap((box) => inScope(new Map(box).set('kind', KINDS.workload)))
        : []),
      ...(resolved.includes('virtual_services')
        ? selected.flatMap((box) => inScope(new Map(box).set('kind', KINDS.virtual), { isVirtual: true }))
        : []),
      ...actors.flatMap((actor): NamedEnd[] => {
        const { workload, virtual_service: service, virtual_server: server } = actor
        if (workload !== undefined) {
          const own = labels.boxOfWorkload(workload.href, contents)
          return inScope(new Map([...single(KINDS.workload, workload.href), ...own]), { self: workload.href })
        }
        const virtual = service ?? server
        if (virtual !== undefined)
          return inScope(new Map(single(KINDS.virtual, toDraftHref(virtual.href))), { isVirtual: true })
        if (actor.actors === 'container_host') return inScope(new Map(single(KINDS.opaque, 'container_host')))
        return []
      }),
    ]
  }

  return { endsOf }
}
