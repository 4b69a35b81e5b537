import type { PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ReadContext } from '../inventory/labels.js'
import { type LabelIndex, isUnresolved, resolveLabel } from '../inventory/labels.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { findNamesakes, isNamedKind, nounOf, type NamedKind } from '../inventory/find-object.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { PceApiError } from '../../pce-client/index.js'
import type { WholePolicy } from '../history/load-policy.js'
import { canBeName, nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'

/** The types of objects that have files, in the order in which they are written. */
export const FILE_KINDS = ['services', 'ip_lists', 'label_groups', 'rule_sets'] as const
export type FileKind = (typeof FILE_KINDS)[number]

/** The types of policy objects to which documents refer by name. */
const POLICY_KINDS = [...FILE_KINDS, 'virtual_services', 'virtual_servers'] as const

/** The types of objects to which documents refer, except labels. User groups are called security principals in hrefs. */
export type ReferredKind = Exclude<(typeof POLICY_KINDS)[number], 'rule_sets'> | 'workloads' | 'security_principals'

/** The href for a reference, or a sentence that says why there is none. */
export type Found = { href: string } | { why: string }

/**
 * The names of all objects to which documents can refer. A name is used only if exactly one object has it. Every other
 * object is written by href, so that no reference is ever a guess.
 */
export interface NameBook {
  readonly labels: LabelIndex
  /** Returns the name of an object, or its draft href if the name is not unique. */
  textOf(kind: ReferredKind, href: string): string
  /** Finds the object that a document refers to by exact name or href. */
  find(kind: ReferredKind, text: string): Found
  /** Finds the label that a document refers to by its exact key and value. */
  findLabel(key: string, value: string): Found
  /** Returns the hrefs of all objects of this type with exactly this name. */
  named(kind: FileKind, name: string): readonly string[]
}

/** What is known about names of objects that are not part of the policy. */
export interface OutsideNames {
  /** The names of workloads and user groups, by href. Names that are not unique within their type are left out. */
  readonly textOf: ReadonlyMap<string, string>
  /** The lookup result for each workload or user group in the documents, by type and name. */
  readonly found: ReadonlyMap<string, Found>
}

const IN_FLIGHT = 4
const HREF = '/orgs/'

/**
 * Creates the name book of one version of the policy.
 *
 * @param planned the made-up hrefs of the objects that documents would create, by type and name.
 */
export function createNameBook(
  policy: WholePolicy,
  labels: LabelIndex,
  outside: OutsideNames,
  planned: ReadonlyMap<string, string> = new Map(),
): NameBook {
  const byName = new Map<string, string[]>()
  const nameOf = new Map<string, string>()
  const note = (kind: string, name: unknown, href: string) => {
    if (typeof name !== 'string' || name === '' || name.startsWith(HREF)) return
    nameOf.set(href, name)
    const key = keyOf(kind, name)
    byName.set(key, [...(byName.get(key) ?? []), href])
  }
  for (const kind of POLICY_KINDS) for (const [href, { name }] of policy[kind]) note(kind, name, href)
  for (const [key, href] of planned) note(...splitKey(key), href)
  const hrefs = (kind: string, name: string) => byName.get(keyOf(kind, name)) ?? []
  const isOutside = (kind: ReferredKind) => kind === 'workloads' || kind === 'security_principals'

  return {
    labels,
    named: hrefs,
    textOf(kind, href) {
      const draft = toDraftHref(href)
      if (isOutside(kind)) return outside.textOf.get(draft) ?? draft
      const name = nameOf.get(draft)
      return name !== undefined && hrefs(kind, name).length === 1 ? name : draft
    },
    find(kind, text) {
      if (isOutside(kind)) return outside.found.get(keyOf(kind, text)) ?? { why: noneNamed(kind, text, []) }
      if (text.startsWith(HREF)) {
        const href = toDraftHref(text)
        return policy[kind as FileKind].has(href)
          ? { href }
          : { why: `No ${nounFor(kind)} has the href ${quote(text)}.` }
      }
      const [only, ...others] = hrefs(kind, text)
      if (only === undefined) {
        const names = [...policy[kind as FileKind].values()].flatMap(({ name }) =>
          typeof name === 'string' ? [name] : [],
        )
        return { why: noneNamed(kind, text, canBeName(text) ? nearNames(text, names) : []) }
      }
      if (others.length > 0)
        return {
          why: `${others.length + 1} ${nounFor(kind)}s are named ${quote(text)}: write the href of one, or rename one.`,
        }
      return { href: only }
    },
    findLabel(key, value) {
      const label = labels.find(key, value)
      if (label !== undefined) return { href: label.href }
      const near = resolveLabel(labels, { key, value })
      const [first] = isUnresolved(near) && Array.isArray(near.valid) ? nearNames(value, near.valid, 1) : []
      const meant = first === undefined ? '' : ` Did you mean ${quote(`${key}=${first}`)}?`
      return { why: `No label is exactly ${quote(`${key}=${value}`)}.${meant} Labels have no files: create it first.` }
    },
  }
}

const noneNamed = (kind: ReferredKind, text: string, near: readonly string[]) =>
  `No ${nounFor(kind)} is named exactly ${quote(text)}.${near[0] === undefined ? '' : ` Did you mean ${quote(near[0])}?`}`

/** Returns the noun for a type of object in messages. */
export const nounFor = (kind: ReferredKind | FileKind): string => (isNamedKind(kind) ? nounOf(kind) : 'user group')

/** Returns the key of an object in the maps of this file. */
export const keyOf = (kind: string, name: string): string => `${kind} ${name}`

function splitKey(key: string): [string, string] {
  const at = key.indexOf(' ')
  return [key.slice(0, at), key.slice(at + 1)]
}

type Context = ReadContext & { pce: PceClient }

/**
 * Looks up the workloads and user groups to which the policy refers by href, and those that documents name. A workload
 * has two names, its own and its host name. A name stands for a workload only if no other workload has it as either of
 * the two (D224).
 *
 * @param hrefs the hrefs to which the policy refers, of any type.
 * @param names the names or hrefs in documents, by type.
 */
export async function loadOutsideNames(
  { pce, signal }: Context,
  hrefs: readonly string[],
  names: Readonly<Record<'workloads' | 'security_principals', readonly string[]>>,
): Promise<OutsideNames> {
  const textOf = new Map<string, string>()
  const found = new Map<string, Found>()
  const asked = new Map<string, Promise<readonly PceObject[]>>()
  const namesakes = (name: string) => {
    const known = asked.get(name) ?? findNamesakes(pce, 'workloads', name, 'draft', signal).then(({ exact }) => exact)
    asked.set(name, known)
    return known
  }
  const referred = (kind: string) =>
    [...new Set([...hrefs, ...names[kind as 'workloads'].filter((text) => text.startsWith(HREF))])].filter(
      (href) => parseHref(href)?.kind === kind,
    )

  await mapBounded(referred('workloads'), IN_FLIGHT, async (href) => {
    const workload = await readOrNull(pce, 'workloads', href, signal)
    if (workload === null) return
    found.set(keyOf('workloads', href), { href })
    for (const name of [workload.name, workload.hostname]) {
      if (typeof name !== 'string' || name === '' || name.startsWith(HREF)) continue
      if ((await namesakes(name)).length !== 1) continue
      textOf.set(href, name)
      return
    }
  })
  await mapBounded(
    names.workloads.filter((name) => !name.startsWith(HREF)),
    IN_FLIGHT,
    async (name) => {
      const exact = await namesakes(name)
      const [only] = exact
      const why =
        only === undefined
          ? noneNamed('workloads', name, [])
          : `${exact.length} workloads have the name or host name ${quote(name)}: write the href of one.`
      found.set(keyOf('workloads', name), exact.length === 1 ? { href: only!.href } : { why })
    },
  )
  if (referred('security_principals').length > 0 || names.security_principals.length > 0) {
    const { items } = await fetchEvery<PceObject>({ api: pce.securityPrincipals, params: {}, signal })
    const sharing = new Map<string, string[]>()
    for (const { href, name } of items)
      if (typeof name === 'string') sharing.set(name, [...(sharing.get(name) ?? []), href])
    for (const [name, own] of sharing) {
      if (own.length === 1) textOf.set(own[0]!, name)
      const why = `${own.length} user groups are named ${quote(name)}: write the href of one.`
      found.set(keyOf('security_principals', name), own.length === 1 ? { href: own[0]! } : { why })
    }
    for (const { href } of items) found.set(keyOf('security_principals', href), { href })
  }
  return { textOf, found }
}

/** Reads an object. Returns null if it does not exist or was deleted. */
async function readOrNull(
  pce: PceClient,
  kind: Extract<NamedKind, 'workloads'>,
  href: string,
  signal: AbortSignal,
): Promise<PceObject | null> {
  try {
    const object = await pce[kind].getByReference(href, { signal })
    return (object as { deleted?: boolean }).deleted === true ? null : object
  } catch (error) {
    if (error instanceof PceApiError && error.isGone) return null
    throw error
  }
}
