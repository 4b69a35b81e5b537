import type { PceObject } from '../../schemas/pce/reference.js'
import { nounOf } from '../inventory/find-object.js'
import { quote } from '../text/escape-text.js'
import type { WholePolicy } from '../history/load-policy.js'
import { type Document, type DocumentRule, writeDocument } from './convert-objects.js'
import { type FileKind, type NameBook, FILE_KINDS } from './name-book.js'
import { type FileObject, type ReadFiles, whyWithoutFile } from './read-files.js'

/** A field that differs between a file and the policy. A value is undefined if the field has its default there. */
export interface FieldDifference {
  field: string
  was: unknown
  is: unknown
}

/** A rule that differs between a file and the policy. It may be in the file only, in the policy only, or in both. */
export interface RuleDifference {
  was: DocumentRule | null
  is: DocumentRule | null
  fields: readonly FieldDifference[]
}

/** An object that differs between the files and a version of the policy. */
export interface ObjectDifference {
  change: 'create' | 'update' | 'delete'
  kind: FileKind
  name: string
  /** The object in the files; null if it is only in the policy. */
  object: FileObject | null
  /** The object in the policy; null if it is only in the files. */
  before: PceObject | null
  fields: readonly FieldDifference[]
  rules: readonly RuleDifference[]
  /**
   * The href on the PCE of each rule that is in both the file and the policy, by the rule's made-up href in the file.
   */
  ruleHrefs: ReadonlyMap<string, string>
  /** The policy's version of the object, converted to a document; null if the object is only in the files. */
  written: ReturnType<typeof writeDocument> | null
}

export interface FilesDifference {
  differences: readonly ObjectDifference[]
  /** The number of objects that are the same in the files and in the policy. */
  same: number
  /** The types of objects for which there is at least one file. Objects of other types are not compared. */
  kinds: readonly FileKind[]
}

/**
 * Lists the objects that differ between files and a version of the policy, in the order in which they would be written.
 */
export function compareFiles(
  { objects }: Pick<ReadFiles, 'objects'>,
  policy: WholePolicy,
  book: NameBook,
): FilesDifference {
  const differences: ObjectDifference[] = []
  let same = 0
  const kinds = FILE_KINDS.filter((kind) => objects.some((one) => one.kind === kind))
  for (const kind of kinds) {
    const own = new Map(objects.filter((one) => one.kind === kind).map((one) => [one.name, one]))
    const there = new Map<string, PceObject>()
    for (const object of policy[kind].values())
      if (whyWithoutFile(kind, object, book) === null) there.set(String(object.name), object)
    for (const name of [...new Set([...own.keys(), ...there.keys()])].sort()) {
      const difference = compareObject(kind, name, own.get(name) ?? null, there.get(name) ?? null, book)
      if (difference === null) same++
      else differences.push(difference)
    }
  }
  return { differences, same, kinds }
}

function compareObject(
  kind: FileKind,
  name: string,
  object: FileObject | null,
  before: PceObject | null,
  book: NameBook,
): ObjectDifference | null {
  const written = before === null ? null : writeDocument(kind, before, book)
  const [was, is] = [written?.document ?? null, object?.document ?? null]
  const change = was === null ? 'create' : is === null ? 'delete' : 'update'
  if (change === 'update' && JSON.stringify(was) === JSON.stringify(is)) return null
  const { rules, ruleHrefs } = compareRules(was, is, written?.ruleHrefs ?? [], object)
  const fields = diffFields(was ?? {}, is ?? {}).filter(({ field }) => !['kind', 'name', 'rules'].includes(field))
  return { change, kind, name, object, before, fields, rules, ruleHrefs, written }
}

function diffFields(was: object, is: object): FieldDifference[] {
  const [a, b] = [was as Record<string, unknown>, is as Record<string, unknown>]
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((field) =>
    JSON.stringify(a[field]) === JSON.stringify(b[field]) ? [] : [{ field, was: a[field], is: b[field] }],
  )
}

const rulesIn = (document: Document | null) => (document?.rules ?? []) as readonly DocumentRule[]

interface Placed {
  rule: DocumentRule
  text: string
  href: string
}

/**
 * Pairs the rules of a document with those of the policy. Rules have no names, so equal rules are paired first, and of
 * the others those that are most alike. A rule without a partner was added or removed.
 */
function compareRules(was: Document | null, is: Document | null, hrefs: readonly string[], object: FileObject | null) {
  const place = (document: Document | null, own: readonly string[]): Placed[] =>
    rulesIn(document).map((rule, at) => ({ rule, text: JSON.stringify(rule), href: own[at]! }))
  const before = place(was, hrefs)
  const after = place(is, object?.ruleHrefs ?? [])
  const ruleHrefs = new Map<string, string>()
  const equal = new Map<string, Placed[]>()
  for (const one of before) equal.set(one.text, [...(equal.get(one.text) ?? []), one])
  const added = after.filter(({ text, href }) => {
    const twin = equal.get(text)?.shift()
    if (twin !== undefined) ruleHrefs.set(href, twin.href)
    return twin === undefined
  })
  const removed = new Set([...equal.values()].flat())
  const rules: RuleDifference[] = []
  for (const one of added) {
    const twin = mostAlike(one, removed)
    if (twin === null) rules.push({ was: null, is: one.rule, fields: [] })
    else {
      removed.delete(twin)
      ruleHrefs.set(one.href, twin.href)
      rules.push({ was: twin.rule, is: one.rule, fields: diffFields(twin.rule, one.rule) })
    }
  }
  for (const { rule } of removed) rules.push({ was: rule, is: null, fields: [] })
  return { rules, ruleHrefs }
}

/**
 * The fields by which changed rules are recognised. Two rules that agree in at least two of them count as the same
 * rule, changed.
 */
const TELLING = ['consumers', 'providers', 'ingress_services', 'description']
const ENOUGH = 2

const kindOf = ({ rule_type: type = 'allow' }: DocumentRule) => (type === 'allow' ? 'allow' : 'deny')

function mostAlike({ rule }: Placed, others: ReadonlySet<Placed>): Placed | null {
  let best: Placed | null = null
  let most = ENOUGH - 1
  for (const other of others) {
    if (kindOf(other.rule) !== kindOf(rule)) continue
    const alike = TELLING.filter(
      (field) => rule[field] !== undefined && JSON.stringify(rule[field]) === JSON.stringify(other.rule[field]),
    ).length
    if (alike > most) [best, most] = [other, alike]
  }
  return best
}

/** Returns the object of a difference as messages name it. */
export const whatOf = ({ kind, name }: ObjectDifference): string => `the ${nounOf(kind)} ${quote(name)}`

/** Returns the object of a file with the hrefs that it and its rules have in the draft. */
export function withHrefs(wire: PceObject, href: string, ruleHrefs: ReadonlyMap<string, string>): PceObject {
  const lists = (['rules', 'deny_rules'] as const).flatMap((list) => {
    const rules = wire[list] as PceObject[] | undefined
    return rules === undefined
      ? []
      : [[list, rules.map((rule) => ({ ...rule, href: ruleHrefs.get(rule.href) ?? rule.href }))] as const]
  })
  return { ...wire, href, ...(Object.fromEntries(lists) as object) }
}

/**
 * Returns a version of the policy as it will be with the objects of the files. Objects without a file are kept, except
 * those in `without`.
 */
export function policyAfter(
  { differences }: Pick<FilesDifference, 'differences'>,
  policy: WholePolicy,
  without: ReadonlySet<ObjectDifference> = new Set(),
): WholePolicy {
  const after: Record<string, Map<string, PceObject>> = {}
  for (const kind of FILE_KINDS) after[kind] = new Map(policy[kind])
  for (const one of differences) {
    const { kind, object, before, ruleHrefs } = one
    if (without.has(one)) after[kind]!.delete(before!.href)
    if (object === null) continue
    const wanted = withHrefs(object.wire, before?.href ?? object.wire.href, ruleHrefs)
    after[kind]!.set(wanted.href, { ...before, ...wanted })
  }
  return { ...policy, ...after }
}
