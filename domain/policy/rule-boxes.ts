import type { Actor, Rule, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { type Box, type Dimensions, intersectBoxes } from './boxes.js'
import type { PolicyContents } from './load-contents.js'
import { createAddresses } from './rule-boxes/address-boxes.js'
import { textOf } from './rule-boxes/comparable-text.js'
import { isOpaque, isSaid, opaqueOf, specialOf } from './rule-boxes/opaque-parts.js'
import { keysOf, resolve } from './rule-boxes/read-labels.js'
import type { Ambiguity, Reading, WrittenEnd } from './rule-boxes/readings.js'
import { createPorts } from './rule-boxes/service-boxes.js'
import type { RuleInForce } from './rule-in-force.js'
import type { Reason } from './three-valued.js'

/** The connections of rules, in boxes of one space. */
export interface RuleSpace {
  dimensions: Dimensions
  /** The connections that a rule decides about at one of their ends. */
  boxesOf(rule: RuleInForce, end: WrittenEnd, reading: Reading): Box[]
  /** How much of everything a rule lets reach how much of everything else. */
  breadthOf(rule: RuleInForce): Breadth
  /** What no reading settles about a rule, each with why: values that only equal themselves. */
  opaqueOf(rule: RuleInForce): ReadonlyMap<string, Reason>
  /** Met in the rules that boxes were asked of. */
  ambiguities: ReadonlySet<Ambiguity>
}

export interface Breadth {
  /** One end is any address: so many that it is no selection. */
  anyAddress: boolean
  /** Both ends are any address or all workloads, and every service is in it. */
  anyToAny: boolean
}

/** In every dimension of labels: none of that key. */
const NONE = 1n
const KINDS = { workload: 2n, virtual: 4n, opaque: 8n }
const NETWORKS: Record<string, bigint | undefined> = { brn: 1n, non_brn: 2n }

/** Makes the space in which the rules of two versions of a policy can be compared. */
export function createRuleSpace(rules: readonly RuleInForce[]): RuleSpace {
  const ambiguities = new Set<Ambiguity>()
  const addresses = createAddresses(rules)
  const ports = createPorts(rules)
  const keys = new Set(rules.flatMap(keysOf))
  const bits = new Map<string, Map<string, bigint>>()
  /** The bit of a value of a dimension whose values have no order; the first bit is for what has none. */
  const bit = (dimension: string, value: string): bigint => {
    const known = bits.get(dimension) ?? new Map<string, bigint>()
    bits.set(dimension, known)
    const found = known.get(value) ?? 2n ** BigInt(known.size + 1)
    known.set(value, found)
    return found
  }
  const labelBit = (href: string, key: string) => bit(`label ${key}`, href)
  const dimensions = new Map([
    ['network', 3n],
    ['src.ip', addresses.all],
    ['dst.ip', addresses.all],
  ])

  /** Labels of one key are alternatives, keys are ANDed, exclusions exclude. Null: nobody has such labels. */
  const labelled = (entries: readonly ScopeEntry[], contents: PolicyContents, reading: Reading): Box | null => {
    const wanted = new Map<string, bigint>()
    const unwanted = new Map<string, bigint>()
    const box = new Map<string, bigint>()
    for (const entry of entries) {
      const members = resolve(entry, contents)
      if (members === undefined) {
        box.set(`condition ${textOf(entry, contents)}`, 2n)
        continue
      }
      const mask = members.labels.reduce((all, href) => all | labelBit(href, members.key), 0n)
      if (entry.exclusion === true) {
        ambiguities.add('unlabelled')
        unwanted.set(members.key, (unwanted.get(members.key) ?? (reading.has('unlabelled') ? NONE : 0n)) | mask)
      } else {
        if (members.labels.length === 0) ambiguities.add('empty_group')
        if (members.labels.length > 0 || !reading.has('empty_group'))
          wanted.set(members.key, (wanted.get(members.key) ?? 0n) | mask)
      }
    }
    for (const key of new Set([...wanted.keys(), ...unwanted.keys()])) {
      const mask = (wanted.get(key) ?? -1n) & ~(unwanted.get(key) ?? 0n)
      if (mask === 0n) return null
      box.set(`label ${key}`, mask)
    }
    return box
  }

  const named = (href: string, contents: PolicyContents): Box => {
    const own = contents.labelsOf(href)
    const box = new Map([
      ['kind', KINDS.workload],
      ['id', bit('id', href)],
    ])
    if (own === undefined) return box
    for (const key of keys) {
      const label = own.find((one) => (one.key ?? contents.keyOf(one.href)) === key)
      box.set(`label ${key}`, label === undefined ? NONE : labelBit(label.href, key))
    }
    return box
  }

  /** The ends that one side of a rule names, and whether it is written to them or only names their addresses. */
  const endsOf = (
    { rule, contents }: RuleInForce,
    side: 'providers' | 'consumers',
    scope: readonly ScopeEntry[],
    reading: Reading,
  ): NamedEnd[] => {
    const within = labelled(scope, contents, reading)
    const inScope = (box: Box): Box[] => {
      const both = within === null ? null : intersectBoxes(box, within)
      return both === null ? [] : [both]
    }
    const actors = rule[side]
    if (isOpaque(rule, side, contents)) {
      const box = new Map([
        ['kind', KINDS.opaque],
        ['id', bit('id', textOf([side, actors, rule[`all_ips_except_for_in_${side}`]], contents))],
      ])
      return inScope(box).map((one) => ({ box: one, isWritten: true, isVirtual: false }))
    }
    const lists = actors.flatMap(({ ip_list: list }) => list ?? [])
    const entries = actors.filter((actor) => actor.label !== undefined || actor.label_group !== undefined)
    const labels = entries.length === 0 ? null : labelled(entries, contents, reading)
    const isAll = actors.some((actor) => actor.actors === 'ams')
    const excludes = isAll && entries.some(({ exclusion }) => exclusion === true)
    if (excludes) ambiguities.add('all_but')
    const rest = excludes && reading.has('all_but') ? entries.filter(({ exclusion }) => exclusion === true) : []
    const all = isAll ? labelled(rest, contents, reading) : null
    // Everything that labels select is among all workloads.
    const selected = [...(all === null ? [] : [all]), ...(labels === null || (isAll && !excludes) ? [] : [labels])]
    const resolved = (rule as Partial<Rule>).resolve_labels_as?.[side] ?? ['workloads']
    const kinds = [
      ...(resolved.includes('workloads') ? [KINDS.workload] : []),
      ...(resolved.includes('virtual_services') ? [KINDS.virtual] : []),
    ]
    return [
      ...addresses.boxesOf(lists, contents, bit).map((box) => ({ box, isWritten: false, isVirtual: false })),
      ...kinds.flatMap((kind) =>
        selected
          .flatMap((box) => inScope(new Map(box).set('kind', kind)))
          .map((box) => ({ box, isWritten: true, isVirtual: kind === KINDS.virtual })),
      ),
      ...actors.flatMap((actor): NamedEnd[] => {
        const { workload, virtual_service: service, virtual_server: server } = actor
        if (workload !== undefined)
          return inScope(named(workload.href, contents)).map((box) => ({
            box,
            isWritten: true,
            isVirtual: false,
            self: workload.href,
          }))
        const virtual = service ?? server
        const [kind, id] =
          virtual !== undefined
            ? [KINDS.virtual, toDraftHref(virtual.href)]
            : actor.actors === 'container_host'
              ? [KINDS.opaque, 'container_host']
              : [0n, '']
        if (kind === 0n) return []
        const box = new Map([
          ['kind', kind],
          ['id', bit('id', id)],
        ])
        return inScope(box).map((one) => ({ box: one, isWritten: true, isVirtual: virtual !== undefined }))
      }),
    ]
  }

  /** What a rule asks of a connection besides its ends, in alternatives; its services twice, for they are not those of a virtual one. */
  const conditionsOf = ({ rule, contents }: RuleInForce) => {
    const network = NETWORKS[rule.network_type ?? 'brn']
    const special = specialOf(rule)
    const always = new Map<string, bigint>([
      ...(network === undefined ? [] : [['network', network] as const]),
      ['special', special === '' ? 1n : bit('special', special)],
    ])
    const groups = ((rule as Partial<Rule>).consuming_security_principals ?? []).map(
      ({ href }) => new Map([[`user ${href}`, 2n]]),
    )
    const users: Box[] = groups.length === 0 ? [new Map()] : groups
    const clients = users.flatMap((user) =>
      ports
        .clientsOf(rule.egress_services ?? [], contents, bit)
        .map((client) => new Map([...always, ...user, ...client])),
    )
    const served = ports.boxesOf(rule.ingress_services, contents, bit)
    return { virtual: clients, plain: clients.flatMap((one) => served.map((box) => new Map([...one, ...box]))) }
  }

  const placesOf = (placed: RuleInForce, reading: Reading) => {
    const { rule, scopes } = placed
    const { virtual, plain } = conditionsOf(placed)
    if (scopes.length === 0) ambiguities.add('no_scope')
    const within = scopes.length === 0 && reading.has('no_scope') ? [[]] : scopes
    return within.flatMap((scope) => {
      const sources = endsOf(placed, 'consumers', rule.unscoped_consumers === true ? [] : scope, reading)
      return endsOf(placed, 'providers', scope, reading).flatMap((dst) =>
        sources
          // No rule decides about what a workload sends to itself.
          .filter((src) => src.self === undefined || src.self !== dst.self)
          .map((src) => ({ src, dst, conditions: dst.isVirtual ? virtual : plain })),
      )
    })
  }
  const toBoxes = ({ src, dst, conditions }: ReturnType<typeof placesOf>[number]): Box[] =>
    conditions.map((one) => new Map([...atEnd('src', src.box), ...atEnd('dst', dst.box), ...one]))

  const boxesOf: RuleSpace['boxesOf'] = (placed, end, reading) =>
    placesOf(placed, reading)
      .filter((place) => place[end].isWritten)
      .flatMap(toBoxes)

  const breadthOf: RuleSpace['breadthOf'] = (placed) => {
    const { providers, consumers } = placed.rule
    const named = (side: readonly Actor[]) => side.some((actor) => isSaid(actor.ip_list))
    const isOpen = (side: readonly Actor[]) => named(side) || side.some((actor) => actor.actors === 'ams')
    if (!named(providers) && !named(consumers) && !(isOpen(providers) && isOpen(consumers)))
      return { anyAddress: false, anyToAny: false }
    // Also between addresses alone, where nothing is written: who provisions it thinks otherwise.
    const boxes = placesOf(placed, new Set()).flatMap(toBoxes)
    const isAddress = (box: Box, end: WrittenEnd) =>
      [...box].every(([name, mask]) => !name.startsWith(end) || (name === `${end}.ip` && addresses.isMost(mask)))
    const isWorkload = (box: Box, end: WrittenEnd) =>
      [...box].every(([name, mask]) => !name.startsWith(end) || (name === `${end}.kind` && mask === KINDS.workload))
    const isAny = (box: Box) =>
      [...box].every(
        ([name, mask]) => /^(?:src|dst)\./u.test(name) || name === 'network' || (name === 'special' && mask === 1n),
      )
    const anyEnd = (box: Box, end: WrittenEnd) => isAddress(box, end) || isWorkload(box, end)
    return {
      anyAddress: boxes.some((box) => isAddress(box, 'src') || isAddress(box, 'dst')),
      anyToAny: boxes.some((box) => isAny(box) && anyEnd(box, 'src') && anyEnd(box, 'dst')),
    }
  }

  return { dimensions, ambiguities, boxesOf, breadthOf, opaqueOf }
}

interface NamedEnd {
  box: Box
  /** False: the rule names its address only. */
  isWritten: boolean
  isVirtual: boolean
  /** A single workload. */
  self?: string
}

const atEnd = (end: WrittenEnd, box: Box) => [...box].map(([dimension, mask]) => [`${end}.${dimension}`, mask] as const)
