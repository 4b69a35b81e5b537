import type { Actor } from '../../schemas/pce/rule-set.js'
import { parseProtocol, protocolName } from '../inventory/protocols.js'
import { isDefault } from '../policy/default-fields.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import type { Found, NameBook, ReferredKind } from './name-book.js'

/** The position of a part of a document: names of fields and indices in lists. */
export type Path = readonly (string | number)[]

/** What is needed to convert an object to a document. */
export interface Writing {
  book: NameBook
  /** Records, as the path of a field, content that documents cannot express. */
  left: (field: string) => void
}

/** What is needed to convert a document to an object. */
export interface Reading {
  book: NameBook
  /** Records a mistake in the document. */
  fault: (path: Path, why: string) => void
}

/** How a field of an object is written in documents, in both directions. */
export interface Field {
  toFile: (value: unknown, writing: Writing, path: string) => unknown
  /**
   * Converts a value in a document to the form that the PCE takes. A wrong value is reported, and the result must then
   * not be used.
   */
  toWire: (value: unknown, reading: Reading, path: Path) => unknown
}

type Entry = Record<string, unknown>

const isEntry = (value: unknown): value is Entry => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Sorts the items of a list whose order has no meaning, so that documents always have them in the same order. */
const inOrder = (items: readonly unknown[]): unknown[] =>
  items
    .map((item) => [JSON.stringify(item), item] as const)
    .sort(([a], [b]) => compareTexts(a, b))
    .map(([, item]) => item)

/** A field that has the same form in documents and on the PCE. */
const plain = (type: 'string' | 'boolean', noun: string): Field => ({
  toFile: (value) => value,
  toWire(value, { fault }, path) {
    const hint =
      type === 'string' && ['number', 'boolean'].includes(typeof value) ? ' Put it into quotation marks.' : ''
    if (typeof value !== type) fault(path, `it must be ${noun}.${hint}`)
    return value
  },
})
export const text = plain('string', 'a text')
export const flag = plain('boolean', 'true or false')

/** A string that must be one of a few words. */
export const oneOf = (...words: readonly string[]): Field => ({
  toFile: (value) => value,
  toWire(value, { fault }, path) {
    if (!words.includes(value as string)) fault(path, `it must be ${words.join(' or ')}.`)
    return value
  },
})

/** A list whose order has no meaning and whose items are converted one by one. */
const list = (item: Field): Field => ({
  toFile: (value, writing, path) => inOrder(((value ?? []) as unknown[]).map((one) => item.toFile(one, writing, path))),
  toWire(value, reading, path) {
    if (Array.isArray(value)) return value.map((one, at) => item.toWire(one, reading, [...path, at]))
    reading.fault(path, 'it must be a list.')
    return []
  },
})

/** An object with fields of its own. In documents, fields without content are left out. */
const entry = (fields: Readonly<Record<string, Field>>): Field => ({
  toFile(value, writing, path) {
    const given = value as Entry
    for (const field of Object.keys(given))
      if (!Object.hasOwn(fields, field) && !isDefault(field, given[field])) writing.left(`${path}.${field}`)
    const said = Object.entries(fields).filter(([field]) => !isDefault(field, given[field]))
    return Object.fromEntries(
      said.map(([field, own]) => [field, own.toFile(given[field], writing, `${path}.${field}`)]),
    )
  },
  toWire(value, reading, path) {
    if (!isEntry(value)) {
      reading.fault(path, `it must have fields: ${Object.keys(fields).join(', ')}.`)
      return {}
    }
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]) => {
        const own = Object.hasOwn(fields, field) ? fields[field] : undefined
        if (own !== undefined) return [field, own.toWire(inner, reading, [...path, field])]
        reading.fault([...path, field], `there is no field ${quote(field)} here: ${Object.keys(fields).join(', ')}.`)
        return [field, inner]
      }),
    )
  },
})

/** An entry that a document writes as a plain string if no other field has content. */
const briefly = (field: string, whole: Field): Field => ({
  toFile(value, writing, path) {
    const said = whole.toFile(value, writing, path) as Entry
    return Object.keys(said).join() === field ? said[field] : said
  },
  toWire: (value, reading, path) => whole.toWire(typeof value === 'string' ? { [field]: value } : value, reading, path),
})

export const ranges = list(
  briefly('from_ip', entry({ from_ip: text, to_ip: text, exclusion: flag, description: text })),
)
export const fqdns = list(briefly('fqdn', entry({ fqdn: text, description: text })))

const number: Field = {
  toFile: (value) => value,
  toWire(value, { fault }, path) {
    if (!Number.isInteger(value)) fault(path, 'it must be a whole number.')
    return value
  },
}

const protocol: Field = {
  toFile(value) {
    const name = protocolName(value as number)
    return name === String(value) ? value : name
  },
  toWire(value, { fault }, path) {
    const found = typeof value === 'string' || typeof value === 'number' ? parseProtocol(value) : null
    if (found === null) fault(path, 'it must be tcp, udp, icmp, icmpv6, igmp, gre or the number of a protocol.')
    return found
  },
}

const PORTS = entry({
  process_name: text,
  service_name: text,
  port: number,
  to_port: number,
  proto: protocol,
  icmp_type: number,
  icmp_code: number,
})

/**
 * Removes what a PCE may add to a port without changing its meaning: the port -1, and a to_port equal to the port
 * (P18).
 */
function withoutFiller(value: unknown): Entry {
  const { port, to_port: toPort, ...rest } = value as Entry
  return {
    ...rest,
    ...(port !== -1 && { port }),
    ...(toPort !== -1 && toPort !== port && { to_port: toPort }),
  }
}

const port: Field = { ...PORTS, toFile: (value, writing, path) => PORTS.toFile(withoutFiller(value), writing, path) }
export const ports = list(port)

/** Converts the result of a name lookup to a reference, or reports why there is none. */
function refer(found: Found, { fault }: Reading, path: Path): { href: string } {
  if ('href' in found) return found
  fault(path, found.why)
  return { href: '' }
}

/** A reference to an object by name. */
const named = (kind: ReferredKind): Field => ({
  toFile: (value, { book }) => book.textOf(kind, (value as { href: string }).href),
  toWire(value, reading, path) {
    if (typeof value === 'string' && value !== '') return refer(reading.book.find(kind, value), reading, path)
    reading.fault(path, 'it must be a name.')
    return { href: '' }
  },
})
export const services = list(named('services'))
export const userGroups = list(named('security_principals'))
export const labelGroups = list(named('label_groups'))

/** The services of a rule, each of them a port or the name of a service object. */
export const ruleServices = list({
  toFile: (value, writing, path) =>
    (isEntry(value) && 'href' in value ? named('services') : port).toFile(value, writing, path),
  toWire: (value, reading, path) => (typeof value === 'string' ? named('services') : port).toWire(value, reading, path),
})

/** The prefixes before the name of an actor, each with the PCE's selector. */
const PREFIXES = {
  iplist: ['ip_list', 'ip_lists'],
  labelgroup: ['label_group', 'label_groups'],
  workload: ['workload', 'workloads'],
  virtual_service: ['virtual_service', 'virtual_services'],
  virtual_server: ['virtual_server', 'virtual_servers'],
} as const satisfies Record<string, readonly [keyof Actor, ReferredKind]>
type Prefix = keyof typeof PREFIXES

const EVERYONE = ['ams', 'container_host']
const FORM =
  'Write ams, key=value, !key=value, iplist:NAME, labelgroup:NAME, workload:NAME, virtual_service:NAME or virtual_server:NAME.'

/** Splits a string at the first occurrence of a separator; null if there is none. */
function split(value: string, mark: string): [string, string] | null {
  const at = value.indexOf(mark)
  return at === -1 ? null : [value.slice(0, at), value.slice(at + mark.length)]
}

const isPrefix = (word: string): word is Prefix => Object.hasOwn(PREFIXES, word)

/** An actor of a rule, an entry of a scope, or a label, written as one string. `allowed` lists the allowed prefixes. */
const actor = (allowed: readonly string[] = [...Object.keys(PREFIXES), 'dimension', ...EVERYONE]): Field => ({
  toFile(value, { book, left }, path) {
    const { exclusion, ...rest } = value as Actor
    const [selector, target] = Object.entries(rest).find(([, one]) => one !== null && one !== undefined) ?? []
    const not = exclusion === true ? '!' : ''
    if (selector === 'actors') return `${not}${target as string}`
    if (selector === 'label_dimension') return `${not}dimension:${target as string}`
    const { href = '' } = (target ?? {}) as { href?: string }
    if (selector === 'label') return `${not}${labelText(book, href)}`
    const known = Object.entries(PREFIXES).find(([, [own]]) => own === selector)
    if (known !== undefined) return `${not}${known[0]}:${book.textOf(known[1][1], href)}`
    left(`${path}.${selector ?? ''}`)
    return JSON.stringify(value)
  },
  toWire(value, reading, path) {
    if (typeof value !== 'string') {
      reading.fault(path, `it must be a text. ${FORM}`)
      return {}
    }
    const exclusion = value.startsWith('!') ? { exclusion: true } : {}
    const said = value.startsWith('!') ? value.slice(1) : value
    if (EVERYONE.includes(said) && allowed.includes(said) && said === value) return { actors: said }
    const [word, name] = split(said, ':') ?? ['', '']
    if (word === 'dimension' && allowed.includes(word)) return { label_dimension: name, ...exclusion }
    if (word === 'label' && name.startsWith('/orgs/'))
      return { label: refer(findLabelHref(reading.book, name), reading, path), ...exclusion }
    if (isPrefix(word) && allowed.includes(word)) {
      const [selector, kind] = PREFIXES[word]
      if ('exclusion' in exclusion && selector !== 'label_group')
        reading.fault(path, 'only labels and label groups can be excluded.')
      return { [selector]: refer(reading.book.find(kind, name), reading, path), ...exclusion }
    }
    const pair = isPrefix(word) ? null : split(said, '=')
    if (pair !== null) return { label: refer(reading.book.findLabel(...pair), reading, path), ...exclusion }
    reading.fault(
      path,
      `${quote(value)} cannot stand here. ${allowed.length > 1 ? FORM : 'Write key=value or labelgroup:NAME.'}`,
    )
    return {}
  },
})

/** Returns `key=value` for a label, or `label:` and its href if `key=value` would be read as something else. */
function labelText(book: NameBook, href: string): string {
  const label = book.labels.get(href)
  if (label === undefined) return `label:${href}`
  const { key, value } = label
  const word = split(key, ':')?.[0] ?? ''
  const isClear =
    !key.includes('=') && !key.startsWith('!') && !isPrefix(word) && word !== 'dimension' && word !== 'label'
  return isClear ? `${key}=${value}` : `label:${href}`
}

const findLabelHref = ({ labels }: NameBook, href: string): Found =>
  labels.get(href) === undefined ? { why: `No label has the href ${quote(href)}.` } : { href }

export const actors = list(actor())
/** The scopes of a rule set: entries of an inner list are ANDed, inner lists are ORed. */
export const scopes = list(list(actor(['labelgroup'])))

/** The labels of a label group, which on the PCE are plain references. */
const groupLabel = actor(['none'])
export const groupLabels = list({
  toFile: (value, writing, path) => groupLabel.toFile({ label: value }, writing, path),
  toWire(value, reading, path) {
    const { label, exclusion } = groupLabel.toWire(value, reading, path) as Actor
    if (exclusion === true) reading.fault(path, 'a label group cannot exclude a label.')
    return label ?? { href: '' }
  },
})

const words = (...allowed: readonly string[]) => list(oneOf(...allowed))
export const sides = words('providers', 'consumers')
const standsFor = words('workloads', 'virtual_services')
export const resolveAs = entry({ providers: standsFor, consumers: standsFor })
