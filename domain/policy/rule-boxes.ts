import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Service } from '../../schemas/pce/service.js'
import { ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { LAST, readRange, type Family, type Range } from './addresses.js'
import { type Box, type Dimensions, intersectBoxes } from './boxes.js'
import { NO_CONTENT } from './diff-fields.js'
import type { PolicyContents } from './load-contents.js'
import { type Interval, classifyNumbers } from './classify-numbers.js'
import type { RuleType } from './rule-type.js'
import type { Reason } from './three-valued.js'

export type AnyRule = Rule | DenyRule

/** A rule that is in force, with its rule set's scopes and what the objects it names stand for. */
export interface RuleInForce {
  type: RuleType
  rule: AnyRule
  scopes: RuleSet['scopes']
  contents: PolicyContents
}

/** What no source defines, each read in two ways: a judgement has to hold in both. */
export type Ambiguity =
  /** Whether a workload without any label of a key is among those without one label of it (P65). */
  | 'unlabelled'
  /** Whether an exclusion beside all workloads takes any of them away. */
  | 'all_but'
  /** Whether a label group without members names nobody or is no condition. */
  | 'empty_group'
  /** Whether a rule set without scopes applies nowhere or everywhere. */
  | 'no_scope'

/** What is read in the second of its two ways. */
export type Reading = ReadonlySet<Ambiguity>

/** The end of a connection that a rule is written to: there it decides. */
export type WrittenEnd = 'src' | 'dst'

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
/** In the dimension of processes: those on anything but Windows, of which rules see no name. */
const UNNAMED = 1n
const KINDS = { workload: 2n, virtual: 4n, opaque: 8n }
const NETWORKS: Record<string, bigint | undefined> = { brn: 1n, non_brn: 2n }
const TCP = 6
const UDP = 17
const ICMP = new Set([1, 58])
/** Ports, or for ICMP type and code as one number. */
const PORTS: Interval = { from: 0n, to: 65_535n }

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

// Labels.

/** The labels that an entry stands for; undefined where that is not known. */
function resolve({ label, label_group: group }: ScopeEntry, contents: PolicyContents) {
  if (label !== undefined) {
    const key = label.key ?? contents.keyOf(label.href)
    return key === undefined ? undefined : { key, labels: [label.href] }
  }
  if (group === undefined) return undefined
  const members = contents.membersOf(group.href)
  const key = members?.[0]?.key ?? group.key ?? contents.keyOf(group.href)
  return members === undefined || key === undefined ? undefined : { key, labels: members.map(({ href }) => href) }
}

/** The label keys that decide whether a rule applies. */
function keysOf({ rule, scopes, contents }: RuleInForce): string[] {
  return [...scopes.flat(), ...rule.providers, ...rule.consumers].flatMap(
    (entry) => resolve(entry, contents)?.key ?? [],
  )
}

// What cannot be compared with anything but itself.

const SELECTORS = ['actors', 'label', 'label_group', 'ip_list', 'workload', 'virtual_service', 'virtual_server']

/** A side that has something whose meaning is not known, or depends on all the rest of it. */
function isOpaque(rule: AnyRule, side: 'providers' | 'consumers', contents: PolicyContents): boolean {
  return rule[`all_ips_except_for_in_${side}`] === true || rule[side].some((actor) => isUnclear(actor, contents))
}

function isUnclear({ exclusion, ...actor }: Actor, contents: PolicyContents): boolean {
  const [selector = '', ...more] = Object.entries(actor).flatMap(([name, target]) => (isSaid(target) ? name : []))
  if (more.length > 0 || !SELECTORS.includes(selector)) return true
  if (actor.label !== undefined || actor.label_group !== undefined) return resolve(actor, contents) === undefined
  return exclusion === true
}

/** Fields that are compared, or touch no traffic. */
const COMPARED = new Set([
  ...NO_CONTENT,
  'enabled',
  'providers',
  'consumers',
  'ingress_services',
  'egress_services',
  'unscoped_consumers',
  'network_type',
  'resolve_labels_as',
  'consuming_security_principals',
  'override',
  'all_ips_except_for_in_providers',
  'all_ips_except_for_in_consumers',
  'name',
  'description',
  'external_data_set',
  'external_data_reference',
  'update_label',
  'log_flow',
])
const isSaid = (value: unknown) =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0)

/** Encryption, authentication and what a later release adds, as one text; empty where a rule has none of it. */
function specialOf(rule: AnyRule): string {
  const said = Object.entries(rule).filter(([field, value]) => !COMPARED.has(field) && isSaid(value))
  return said.length === 0 ? '' : JSON.stringify(said.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function opaqueOf({ rule, scopes, contents }: RuleInForce): Map<string, Reason> {
  const found = new Map<string, Reason>()
  const special = specialOf(rule)
  const fields = rule as Partial<Rule>
  if (special !== '')
    found.set(
      special,
      fields.sec_connect === true || fields.machine_auth === true
        ? 'encryption'
        : fields.stateless === true
          ? 'stateless'
          : fields.use_workload_subnets != null
            ? 'subnets'
            : 'field',
    )
  for (const side of ['providers', 'consumers'] as const) {
    if (!isOpaque(rule, side, contents)) continue
    const isInverted = rule[`all_ips_except_for_in_${side}`] === true
    const hasGroup = rule[side].some((actor) => actor.label_group !== undefined && isUnclear(actor, contents))
    found.set(textOf([side, rule[side]], contents), isInverted ? 'inverted' : hasGroup ? 'label_group' : 'selector')
  }
  for (const entry of scopes.flat())
    if (resolve(entry, contents) === undefined) found.set(textOf(entry, contents), 'label_group')
  for (const { ip_list: list } of [...rule.providers, ...rule.consumers]) {
    const object = list && contents.listOf(list.href)
    if (list !== undefined && (object === undefined || !isReadable(object)))
      found.set(textOf(list, contents), 'ip_list')
  }
  for (const service of [...rule.ingress_services, ...(rule.egress_services ?? [])]) {
    const object = 'href' in service ? contents.serviceOf(service.href) : undefined
    if ('href' in service && (object === undefined || entriesOf(object).length === 0))
      found.set(textOf(service, contents), object === undefined ? 'service' : 'empty_service')
  }
  return found
}

/** A value as text that is the same exactly where it means the same: with what the objects in it are made of. */
function textOf(value: unknown, contents: PolicyContents): string {
  return JSON.stringify(value, (_field, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || !('href' in inner) || typeof inner.href !== 'string')
      return inner
    const href = toDraftHref(inner.href)
    const list = contents.listOf(href)
    const service = contents.serviceOf(href)
    return [
      href,
      contents.membersOf(href)?.map((label) => label.href),
      list && [list.ip_ranges, list.fqdns],
      service && entriesOf(service),
    ]
  })
}

// Addresses.

const rangesOf = new WeakMap<IpList, readonly (Range | null)[]>()

/** The ranges of a list, read once; null for each that cannot be read. */
function readRanges(list: IpList): readonly (Range | null)[] {
  const known = rangesOf.get(list) ?? (list.ip_ranges ?? []).map(readRange)
  rangesOf.set(list, known)
  return known
}

const isReadable = (list: IpList) => !readRanges(list).includes(null)
const isEverything = ({ name }: IpList) => name === ANY_IP_LIST_NAMES[0]

type Bit = (dimension: string, value: string) => bigint

function createAddresses(rules: readonly RuleInForce[]) {
  const lists = new Set<IpList>()
  for (const { rule, contents } of rules) {
    for (const { ip_list: list } of [...rule.providers, ...rule.consumers]) {
      const object = list && contents.listOf(list.href)
      if (object !== undefined) lists.add(object)
    }
  }
  const readable = [...lists].filter(isReadable)
  const index = new Map(readable.map((list, at) => [list, at]))
  const classify = (family: Family) => {
    const of = (excluded: boolean) =>
      readable.map((list) =>
        readRanges(list).flatMap((range) =>
          range !== null && range.family === family && range.exclusion === excluded ? [range] : [],
        ),
      )
    return classifyNumbers({ from: 0n, to: LAST[family] }, [...of(false), ...of(true)])
  }
  const [four, six] = [classify('ipv4'), classify('ipv6')]
  const shift = BigInt(four.sizes.length)
  const all = (1n << BigInt(four.sizes.length + six.sizes.length)) - 1n
  /** A list is its included ranges without its excluded ones. */
  const maskOf = (list: IpList): bigint => {
    if (isEverything(list)) return all
    const at = index.get(list) as number
    const [own, other] = [four, six].map(({ masks }) => (masks[at] ?? 0n) & ~(masks[readable.length + at] ?? 0n))
    return (own ?? 0n) | ((other ?? 0n) << shift)
  }
  const sizeOf = ({ sizes }: typeof four, mask: bigint) =>
    sizes.reduce((sum, size, at) => (((mask >> BigInt(at)) & 1n) === 1n ? sum + size : sum), 0n)
  const patterns = [...new Set([...lists].flatMap(({ fqdns }) => (fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase())))]
  return {
    all,
    /** Whether a mask holds half of all IPv4 addresses, or as many IPv6 addresses as are routed on the internet. */
    isMost: (mask: bigint): boolean =>
      2n * sizeOf(four, mask) > LAST.ipv4 || 8n * sizeOf(six, mask >> shift) > LAST.ipv6,
    /** The ends whose address or name is on any of these lists. */
    boxesOf(named: readonly { href: string }[], contents: PolicyContents, bit: Bit): Box[] {
      let mask = 0n
      let names = 0n
      let unread = 0n
      for (const list of named) {
        const object = contents.listOf(list.href)
        if (object === undefined || !isReadable(object)) {
          unread |= bit('list', textOf(list, contents))
          continue
        }
        mask |= maskOf(object)
        for (const { fqdn } of object.fqdns ?? []) {
          const matches = compileName(fqdn)
          // A name that a pattern matches is one of those that the pattern stands for.
          for (const other of patterns) if (matches(other)) names |= bit('fqdn', other)
        }
      }
      if (mask === all) return [new Map()]
      return [
        ...(mask === 0n ? [] : [new Map([['ip', mask]])]),
        ...(names === 0n ? [] : [new Map([['fqdn', names]])]),
        ...(unread === 0n ? [] : [new Map([['list', unread]])]),
      ]
    },
  }
}

/** `*` stands for any run of characters, itself among them. */
function compileName(pattern: string): (name: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/gu, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, 'iu')
  return (name) => expression.test(name)
}

// Services.

/** Ports of a protocol; no protocol is every protocol, no interval is all of it. */
interface Entry {
  proto: number | null
  ports: Interval | null
  /** Of a Windows service: the process behind the port. Absent: whatever it is. */
  program?: { process: string | null; service: string | null }
}

/** What a service object consists of. Empty where it says nothing, or something that cannot be read. */
function entriesOf(service: Service): Entry[] {
  const listed = [
    ...(service.service_ports ?? []).map((span) => ({ span, program: undefined })),
    ...(service.windows_services ?? []).map((span) => ({
      span,
      program: { process: span.process_name ?? null, service: span.service_name ?? null },
    })),
    ...(service.windows_egress_services ?? []).map((program) => ({
      span: {},
      program: { process: program.process_name ?? null, service: program.service_name ?? null },
    })),
  ]
  const entries = listed.map(({ span, program }): Entry | null => {
    const read = readSpan(span)
    return read === null || program === undefined ? read : { ...read, program }
  })
  return entries.includes(null) ? [] : (entries as Entry[])
}

type Span = { [Field in 'proto' | 'port' | 'to_port' | 'icmp_type' | 'icmp_code']?: number | null }

const isAbsent = (value: number | null | undefined): value is null | undefined =>
  value === undefined || value === null || value < 0

/** Null for what no document describes: an ICMP code without a type, a port of ICMP. */
function readSpan({ proto: of, port, to_port: toPort, icmp_type: type, icmp_code: code }: Span): Entry | null {
  const proto = isAbsent(of) ? null : of
  if (proto !== null && ICMP.has(proto)) {
    if (!isAbsent(port) || (isAbsent(type) && !isAbsent(code))) return null
    if (isAbsent(type)) return { proto, ports: null }
    const from = BigInt(type) * 256n
    return {
      proto,
      ports: isAbsent(code) ? { from, to: from + 255n } : { from: from + BigInt(code), to: from + BigInt(code) },
    }
  }
  if (!isAbsent(type) || !isAbsent(code)) return null
  if (isAbsent(port)) return { proto, ports: null }
  return { proto, ports: { from: BigInt(port), to: BigInt(isAbsent(toPort) ? port : toPort) } }
}

function createPorts(rules: readonly RuleInForce[]) {
  const read = (service: IngressService, contents: PolicyContents): Entry[] | undefined => {
    if (!('href' in service)) {
      const entry = readSpan(service)
      return entry === null ? undefined : [entry]
    }
    const object = contents.serviceOf(service.href)
    const entries = object === undefined ? [] : entriesOf(object)
    return entries.length === 0 ? undefined : entries
  }
  const every = rules.flatMap(({ rule, contents }) =>
    rule.ingress_services.flatMap((service) => read(service, contents) ?? []),
  )
  // A port without a protocol is one of each that has ports.
  const protocols = new Set([TCP, UDP, ...every.flatMap(({ proto }) => proto ?? [])])
  const classes = new Map<number, { masks: ReadonlyMap<string, bigint>; shift: bigint }>()
  const idOf = ({ ports }: Entry) => (ports === null ? '' : `${ports.from}-${ports.to}`)
  let used = 0
  for (const proto of protocols) {
    const own = new Map<string, Interval>([['', PORTS]])
    for (const entry of every) {
      if (entry.proto === proto || entry.proto === null) own.set(idOf(entry), entry.ports ?? PORTS)
    }
    const { masks, sizes } = classifyNumbers(
      PORTS,
      [...own.values()].map((ports) => [ports]),
    )
    classes.set(proto, {
      masks: new Map([...own.keys()].map((id, at) => [id, masks[at] as bigint])),
      shift: BigInt(used),
    })
    used += sizes.length
  }
  const maskOf = (entry: Entry): bigint => {
    if (entry.proto === null && entry.ports === null) return -1n
    let mask = 0n
    for (const [proto, { masks, shift }] of classes) {
      if ((entry.proto === null && !ICMP.has(proto)) || entry.proto === proto)
        mask |= (masks.get(idOf(entry)) ?? 0n) << shift
    }
    return mask
  }
  const programOf = (end: WrittenEnd, { process, service }: NonNullable<Entry['program']>, bit: Bit): Box =>
    new Map([
      [`${end}.process`, process === null ? ~UNNAMED : bit('process', process.toLowerCase())],
      ...(service === null ? [] : [[`${end}.service`, bit('service', service.toLowerCase())] as const]),
    ])
  return {
    boxesOf(services: readonly IngressService[], contents: PolicyContents, bit: Bit): Box[] {
      let open = 0n
      let unread = 0n
      const programs: Box[] = []
      for (const service of services) {
        const entries = read(service, contents)
        if (entries === undefined) unread |= bit('unread', textOf(service, contents))
        for (const { program, ...entry } of entries ?? []) {
          const mask = maskOf(entry)
          if (program === undefined) open |= mask
          else programs.push(new Map([...programOf('dst', program, bit), ['port', mask]]))
        }
      }
      if (open === -1n) return [new Map()]
      return [
        ...(open === 0n ? [] : [new Map([['port', open]])]),
        ...(unread === 0n ? [] : [new Map([['unread', unread]])]),
        ...programs,
      ]
    },
    /** The processes that may connect: where a consumer is not Windows, nobody asks. */
    clientsOf(services: readonly { href: string }[], contents: PolicyContents, bit: Bit): Box[] {
      if (services.length === 0) return [new Map()]
      const unnamed: Box = new Map([['src.process', UNNAMED]])
      return [
        unnamed,
        ...services.flatMap((service): Box[] => {
          const entries = read(service, contents)
          if (entries === undefined) return [new Map([['client', bit('client', textOf(service, contents))]])]
          return entries.flatMap(({ program }) => (program === undefined ? [] : [programOf('src', program, bit)]))
        }),
      ]
    },
  }
}
