/** A request that changes something at the PCE. */
export interface Write {
  readonly method: string
  /** The path below `/api/<version>`, with or without the organisation. */
  readonly path: string
  readonly body?: unknown
}

/** The object or collection to which a request writes, as its path says. */
export interface Target {
  /** The path segment that names the type: `workloads`, `rule_sets`, `sec_policy` for a provisioning. */
  readonly kind: string
  /** The id of the object, or the name of an action on the collection (`bulk_update`); absent for the collection. */
  readonly id?: string
  /** The type and id of an object inside, such as a rule in its rule set. */
  readonly inner?: { readonly kind: string; readonly id?: string }
  /** Everything that follows; a path with such a rest is none that is known. */
  readonly rest: readonly string[]
  /** The href of the outer object; absent for a collection, and for an object that the same call will create. */
  readonly href?: string
  /** True if the outer object will be created by an earlier request of the same call. */
  readonly isPlanned: boolean
}

/** Matches an object that a dry run names in braces, because it does not exist yet. Its name may contain slashes. */
const PLANNED = /^([a-z_]+)\/\{.*\}(?:\/([a-z_]+))?$/s
const VERSION = /^sec_policy\/(?:draft|active|\d+)\//

/** Reads what a path of the PCE's API refers to. */
export function readTarget(path: string, orgId: string): Target {
  const org = `/orgs/${orgId}/`
  // A path of another organisation keeps its beginning, so that it is of no known type.
  const below = path.startsWith(org) ? path.slice(org.length) : path.replace(/^\//, '')
  const [version = ''] = VERSION.exec(below) ?? []
  const inVersion = below.slice(version.length)
  const planned = PLANNED.exec(inVersion)
  if (planned !== null) {
    const [, kind = '', inner] = planned
    return { kind, isPlanned: true, rest: [], ...(inner !== undefined && { inner: { kind: inner } }) }
  }
  const [kind = '', id, innerKind, innerId, ...rest] = inVersion.split('/')
  return {
    kind,
    isPlanned: false,
    rest,
    ...(id !== undefined && { id, href: `${org}${version}${kind}/${id}` }),
    ...(innerKind !== undefined && { inner: { kind: innerKind, ...(innerId !== undefined && { id: innerId }) } }),
  }
}

/** Returns the fields of a JSON object; an empty object for any other value. */
export const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

/** Returns a JSON list; an empty list for any other value. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Returns the hrefs of a list of references, `[{href}]`. A reference without an href becomes an empty text. */
export const hrefsIn = (value: unknown): string[] =>
  listOf(value).map((reference) => {
    const { href } = fieldsOf(reference)
    return typeof href === 'string' ? href : ''
  })

/** Returns the href of the object that a request changes; none for a collection. */
export const hrefOf = ({ href, inner }: Target): { href?: string } =>
  href === undefined ? {} : { href: inner?.id === undefined ? href : `${href}/${inner.kind}/${inner.id}` }

/** Returns the name of an object for people, as far as a request or an answer has it. */
export function nameOf(body: unknown): { name?: string } {
  const { name, key, value } = fieldsOf(body)
  if (typeof name === 'string') return { name }
  return typeof key === 'string' && typeof value === 'string' ? { name: `${key}=${value}` } : {}
}
