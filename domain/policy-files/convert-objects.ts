import type { PceObject } from '../../schemas/pce/reference.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { isDefault } from '../policy/default-fields.js'
import { NO_CONTENT } from '../policy/diff-fields.js'
import { denyType } from '../policy/rule-type.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import {
  type Field,
  type Path,
  type Reading,
  type Writing,
  actors,
  flag,
  fqdns,
  groupLabels,
  labelGroups,
  oneOf,
  ports,
  ranges,
  resolveAs,
  ruleServices,
  scopes,
  services,
  sides,
  text,
  userGroups,
} from './convert-fields.js'
import { type FileKind, FILE_KINDS } from './name-book.js'

/** For each type of object, the word that documents use for it. */
const WORDS = {
  services: 'service',
  ip_lists: 'ip_list',
  label_groups: 'label_group',
  rule_sets: 'rule_set',
} as const satisfies Record<FileKind, string>

const EXTERNAL = { external_data_set: text, external_data_reference: text }

/** The fields of each type of object, in the order in which documents have them. */
const FIELDS: Readonly<Record<FileKind, Readonly<Record<string, Field>>>> = {
  services: {
    description: text,
    process_name: text,
    service_ports: ports,
    windows_services: ports,
    windows_egress_services: ports,
    ...EXTERNAL,
  },
  ip_lists: { description: text, ip_ranges: ranges, fqdns, ...EXTERNAL },
  label_groups: { key: text, description: text, labels: groupLabels, sub_groups: labelGroups, ...EXTERNAL },
  rule_sets: { description: text, enabled: flag, scopes, ...EXTERNAL },
}

const EITHER_RULE = {
  description: text,
  enabled: flag,
  consumers: actors,
  providers: actors,
  ingress_services: ruleServices,
  egress_services: services,
  unscoped_consumers: flag,
  network_type: oneOf('brn', 'non_brn', 'all'),
  log_flow: flag,
  all_ips_except_for_in_consumers: flag,
  all_ips_except_for_in_providers: flag,
}
const ALLOW_ONLY = {
  resolve_labels_as: resolveAs,
  sec_connect: flag,
  stateless: flag,
  machine_auth: flag,
  consuming_security_principals: userGroups,
  use_workload_subnets: sides,
  ...EXTERNAL,
}
const RULE_TYPE = oneOf('allow', 'deny', 'override_deny')

/** The fields that a document must have. */
const REQUIRED: Readonly<Record<FileKind, readonly string[]>> = {
  services: [],
  ip_lists: [],
  label_groups: ['key'],
  rule_sets: ['scopes'],
}
const REQUIRED_IN_RULE = ['consumers', 'providers']

/** The fields of objects that only report something and are therefore not part of a document. */
const REPORTED = new Set([...NO_CONTENT, 'name', 'risk_details', 'ip_list_attribute', 'override'])

/** An object in the form of a document, as a file contains it. */
export type Document = Readonly<Record<string, unknown>> & { kind: string; name: string }
export type DocumentRule = Readonly<Record<string, unknown>>

/** An object converted to a document, with the hrefs of its rules in the order of the document. */
export interface Written {
  document: Document
  /** The hrefs of the rules; empty for an object without rules. */
  ruleHrefs: readonly string[]
  /** The fields with content that a document cannot express. */
  left: readonly string[]
}

/**
 * Converts an object to a document: names replace hrefs, fields and lists are in a fixed order, and defaults are left
 * out.
 */
export function writeDocument(kind: FileKind, object: PceObject, book: Writing['book']): Written {
  const left = new Set<string>()
  const writing: Writing = { book, left: (field) => void left.add(field) }
  const head = { kind: WORDS[kind], name: String(object.name) }
  const own = writeFields(FIELDS[kind], object, writing, '')
  if (kind !== 'rule_sets') return { document: { ...head, ...own }, ruleHrefs: [], left: [...left] }
  const rules = rulesOf(object as RuleSet)
    .map(({ rule, type }) => ({ href: rule.href, rule: writeRule(rule, type, writing) }))
    .map((one) => ({ ...one, text: JSON.stringify(one.rule) }))
    .sort((a, b) => rank(a.rule) - rank(b.rule) || compareTexts(a.text, b.text))
  return {
    document: { ...head, ...own, ...(rules.length > 0 && { rules: rules.map(({ rule }) => rule) }) },
    ruleHrefs: rules.map(({ href }) => href),
    left: [...left],
  }
}

/** Rules are listed in the order in which the PCE considers them. */
const rank = ({ rule_type: type = 'allow' }: DocumentRule) => ['override_deny', 'allow', 'deny'].indexOf(type as string)

function rulesOf({ rules, deny_rules: denies }: RuleSet) {
  const isThere = ({ update_type: type }: Rule | DenyRule) => type !== 'delete'
  return [
    ...(rules ?? []).filter(isThere).map((rule) => ({ rule: rule, type: 'allow' })),
    ...(denies ?? []).filter(isThere).map((rule) => ({ rule: rule, type: denyType(rule) })),
  ]
}

function writeRule(rule: PceObject, type: string, writing: Writing): DocumentRule {
  const fields = type === 'allow' ? { ...EITHER_RULE, ...ALLOW_ONLY } : EITHER_RULE
  return { ...(type !== 'allow' && { rule_type: type }), ...writeFields(fields, rule, writing, 'rules.') }
}

function writeFields(fields: Readonly<Record<string, Field>>, object: PceObject, writing: Writing, at: string) {
  for (const field of Object.keys(object))
    if (
      !Object.hasOwn(fields, field) &&
      !REPORTED.has(field) &&
      !isDefault(field, object[field]) &&
      hasContent(object[field])
    )
      writing.left(`${at}${field}`)
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) =>
      isDefault(name, object[name]) ? [] : [[name, field.toFile(object[name], writing, `${at}${name}`)] as const],
    ),
  )
}

/** Returns false for a value without content, such as an object whose values are all empty. */
const hasContent = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.values(value).some(hasContent) : value !== null && value !== ''

/** Returns the type and the name of the object in a document. If either is wrong, reports it and returns null. */
export function readHead(value: unknown, fault: Reading['fault']): { kind: FileKind; name: string } | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    fault([], 'a file has the fields of one object: kind, name and those of its kind.')
    return null
  }
  const { kind: word, name } = value as Record<string, unknown>
  const kind = FILE_KINDS.find((one) => WORDS[one] === word)
  if (kind === undefined) {
    const words = Object.values(WORDS).join(', ')
    fault('kind' in value ? ['kind'] : [], `kind must be one of ${words}. A folder of policy has no other YAML files.`)
    return null
  }
  if (typeof name === 'string' && name !== '' && !name.startsWith('/orgs/')) return { kind, name }
  const why = typeof name === 'number' || typeof name === 'boolean' ? ' Put it into quotation marks.' : ''
  fault('name' in value ? ['name'] : [], `name must be a text that is not empty and no href.${why}`)
  return null
}

/**
 * Converts a document to an object in the PCE's form, with the hrefs of everything to which it refers. The object gets
 * the given href, and its rules get made-up hrefs below it. Every mistake is reported.
 */
export function readDocument(kind: FileKind, document: Document, href: string, reading: Reading): PceObject {
  const { kind: _kind, name, ...rest } = document
  for (const field of REQUIRED[kind]) if (!(field in rest)) reading.fault([], `the field ${field} is missing.`)
  const known = kind === 'rule_sets' ? [...Object.keys(FIELDS[kind]), 'rules'] : Object.keys(FIELDS[kind])
  const own = readFields(FIELDS[kind], rest, known, reading, [])
  if (kind !== 'rule_sets') return { href, name, ...own }
  const { rules = [] } = rest as { rules?: unknown }
  if (!Array.isArray(rules)) reading.fault(['rules'], 'it must be a list.')
  const read = (Array.isArray(rules) ? rules : []).map((rule, at) => readRule(rule, href, at, reading))
  return {
    enabled: true,
    href,
    name,
    ...own,
    rules: read.filter(({ type }) => type === 'allow').map(({ rule }) => rule),
    deny_rules: read.filter(({ type }) => type !== 'allow').map(({ rule }) => rule),
  }
}

function readRule(value: unknown, ruleSet: string, at: number, reading: Reading) {
  const path = ['rules', at]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    reading.fault(path, 'a rule has fields: consumers, providers, ingress_services and others.')
    return { type: 'allow', rule: { href: '' } }
  }
  const { rule_type: given = 'allow', ...rest } = value as Record<string, unknown>
  const type = RULE_TYPE.toWire(given, reading, [...path, 'rule_type']) as string
  const isDeny = type === 'deny' || type === 'override_deny'
  for (const field of REQUIRED_IN_RULE) if (!(field in rest)) reading.fault(path, `the field ${field} is missing.`)
  const fields = isDeny ? EITHER_RULE : { ...EITHER_RULE, ...ALLOW_ONLY }
  const own = readFields(fields, rest, ['rule_type', ...Object.keys(fields)], reading, path)
  const common = { enabled: true, ingress_services: [], ...own }
  return {
    type,
    rule: isDeny
      ? { href: `${ruleSet}/deny_rules/new:${at}`, override: type === 'override_deny', ...common }
      : {
          href: `${ruleSet}/sec_rules/new:${at}`,
          resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
          ...common,
        },
  }
}

function readFields(
  fields: Readonly<Record<string, Field>>,
  value: Readonly<Record<string, unknown>>,
  known: readonly string[],
  reading: Reading,
  path: Path,
): Record<string, unknown> {
  const read: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field !== undefined) read[name] = field.toWire(inner, reading, [...path, name])
    else if (!known.includes(name))
      reading.fault([...path, name], `there is no field ${quote(name)} here: ${known.join(', ')}.`)
  }
  return read
}

/** Returns the names of workloads and user groups in a document, valid or not, so that they can be looked up. */
export function outsideNamesIn(document: Document): { workloads: string[]; security_principals: string[] } {
  const workloads = new Set<string>()
  const groups = new Set<string>()
  for (const rule of Array.isArray(document.rules) ? (document.rules as unknown[]) : []) {
    const { consumers, providers, consuming_security_principals: users } = (rule ?? {}) as Record<string, unknown>
    for (const one of [consumers, providers].flat())
      if (typeof one === 'string' && one.startsWith('workload:')) workloads.add(one.slice('workload:'.length))
    for (const one of Array.isArray(users) ? (users as unknown[]) : []) if (typeof one === 'string') groups.add(one)
  }
  return { workloads: [...workloads], security_principals: [...groups] }
}
