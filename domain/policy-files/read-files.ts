import type { PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { ALL_SERVICES_NAME, ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import type { ReadContext } from '../inventory/labels.js'
import { loadLabels } from '../inventory/labels.js'
import { type WholePolicy, draftHrefOf } from '../history/load-policy.js'
import { quote } from '../text/escape-text.js'
import type { Path } from './convert-fields.js'
import { type Document, outsideNamesIn, readDocument, readHead, writeDocument } from './convert-objects.js'
import { type FileKind, type NameBook, createNameBook, keyOf, loadOutsideNames, nounFor } from './name-book.js'

/** A policy file whose text has been parsed. */
export interface PolicyFile {
  /** The path of the file as messages show it. */
  path: string
  /** The parsed content of the file. */
  value: unknown
  /** Returns where a part of the content is in the file, such as `rule-sets/payments.yaml:12`. */
  placeOf: (path: Path) => string
}

/** A mistake in a file, with its location. */
export interface Fault {
  place: string
  why: string
}

/** An object that a file describes without mistakes. */
export interface FileObject {
  kind: FileKind
  name: string
  file: PolicyFile
  /** The object as a document, in the one standard form. */
  document: Document
  /** The made-up hrefs of the document's rules, in order. Each ends in the position of the rule in the file. */
  ruleHrefs: readonly string[]
  /**
   * The object in the PCE's form. Its href is that of the draft object with this name or, if there is none, made up.
   */
  wire: PceObject
  /** True if no object of this name is in the draft. */
  isNew: boolean
}

export interface ReadFiles {
  objects: readonly FileObject[]
  faults: readonly Fault[]
  /** The names of all objects in the draft and in the files. */
  book: NameBook
}

type Context = ReadContext & { pce: PceClient }

/** Returns true for a built-in object, which every PCE has and nobody can change. */
export const isBuiltIn = (kind: FileKind, name: unknown): boolean =>
  (kind === 'ip_lists' && ANY_IP_LIST_NAMES.includes(name as string)) ||
  (kind === 'services' && name === ALL_SERVICES_NAME)

/**
 * Returns the reason why an object has no file: nobody can change it, or its name is not unique. Returns null if it can
 * have one.
 */
export function whyWithoutFile(kind: FileKind, object: PceObject, book: NameBook): string | null {
  const { name } = object
  if (isBuiltIn(kind, name)) return 'it is built in'
  if (object.ip_list_attribute != null) return 'the PCE maintains it itself'
  if (typeof name !== 'string' || name === '') return 'it has no name'
  if (name.startsWith('/orgs/')) return 'its name looks like an href'
  return book.named(kind, name).length > 1 ? 'another one has the same name' : null
}

/**
 * Finds the objects to which files refer, and reports every mistake in the files. Names are looked up exactly, in the
 * draft and in the files.
 *
 * @param policies the policy versions to compare, the draft first.
 */
export async function readFiles(
  ctx: Context,
  files: readonly PolicyFile[],
  [draft, ...others]: readonly [WholePolicy, ...WholePolicy[]],
): Promise<ReadFiles> {
  const faults: Fault[] = []
  const faultIn = (file: PolicyFile) => (path: Path, why: string) =>
    void faults.push({ place: file.placeOf(path), why: `${path.length === 0 ? '' : `${nameOf(path)}: `}${why}` })
  const seen = new Map<string, PolicyFile>()
  const heads = files.flatMap((file) => {
    const fault = faultIn(file)
    const head = readHead(file.value, fault)
    if (head === null) return []
    const { kind, name } = head
    const first = seen.get(keyOf(kind, name))
    if (first !== undefined)
      fault(['name'], `the ${nounFor(kind)} ${quote(name)} is in ${first.placeOf(['name'])}, too.`)
    if (isBuiltIn(kind, name)) fault(['name'], `${quote(name)} is built in: every PCE has it, and it has no file.`)
    if (first !== undefined || isBuiltIn(kind, name)) return []
    seen.set(keyOf(kind, name), file)
    return [{ ...head, file }]
  })
  const inDraft = createNameBook(draft, await loadLabels(ctx.pce, ctx, 'fresh'), {
    textOf: new Map(),
    found: new Map(),
  })
  const planned = new Map<string, string>()
  for (const { kind, name } of heads) {
    if (inDraft.named(kind, name).length > 0) continue
    planned.set(keyOf(kind, name), `/orgs/${ctx.pce.orgId}/sec_policy/draft/${kind}/new:${planned.size}`)
  }
  const named = heads.map(({ file }) => outsideNamesIn(file.value as Document))
  const outside = await loadOutsideNames(ctx, hrefsOf([draft, ...others]), {
    workloads: [...new Set(named.flatMap(({ workloads }) => workloads))],
    security_principals: [...new Set(named.flatMap(({ security_principals: groups }) => groups))],
  })
  const book = createNameBook(draft, inDraft.labels, outside, planned)
  const objects = heads.flatMap(({ kind, name, file }): FileObject[] => {
    const fault = faultIn(file)
    const before = faults.length
    const [href] = book.named(kind, name)
    const there = draft[kind].get(href!)
    const why = there === undefined ? null : whyWithoutFile(kind, there, book)
    if (why !== null) fault(['name'], `the ${nounFor(kind)} ${quote(name)} of the draft cannot have a file: ${why}.`)
    const wire = readDocument(kind, file.value as Document, href!, { book, fault })
    if (faults.length > before) return []
    const { document, ruleHrefs } = writeDocument(kind, wire, book)
    return [{ kind, name, file, document, ruleHrefs, wire, isNew: planned.has(keyOf(kind, name)) }]
  })
  return { objects, faults, book }
}

/** Returns the path of a field as messages write it, such as `rules[2].consumers[0]`. */
export const nameOf = (path: Path): string =>
  path.map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`)).join('')

/** Returns all hrefs to which the objects in the given policy versions refer. */
function hrefsOf(policies: readonly WholePolicy[]): string[] {
  const hrefs = new Set<string>()
  for (const { rule_sets: ruleSets } of policies) for (const ruleSet of ruleSets.values()) collectHrefs(ruleSet, hrefs)
  return [...hrefs]
}

/** Adds all hrefs inside a value to a set, as draft hrefs. */
export function collectHrefs(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) for (const one of value) collectHrefs(one, found)
  else if (typeof value === 'object' && value !== null)
    for (const [field, inner] of Object.entries(value))
      if (field !== 'href') collectHrefs(inner, found)
      else if (typeof inner === 'string') found.add(draftHrefOf(inner))
}

/** Reads the names for the objects of one policy version when no files are involved. */
export async function bookOf(ctx: Context, policy: WholePolicy): Promise<NameBook> {
  const labels = await loadLabels(ctx.pce, ctx, 'fresh')
  const outside = await loadOutsideNames(ctx, hrefsOf([policy]), { workloads: [], security_principals: [] })
  return createNameBook(policy, labels, outside)
}
