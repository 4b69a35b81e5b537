/** A request that changes something at the PCE. */
export interface Write {
  readonly method: string
  /** The path below `/api/<version>`, with or without the organisation. */
  readonly path: string
  readonly body?: unknown
}

/** The object or collection to which a request writes, taken from its path. */
export interface Target {
  /** The path segment that names the type, such as `workloads` or `rule_sets`; `sec_policy` for a provisioning. */
  readonly kind: string
  /** The id of the object, or the name of an action on the collection (`bulk_update`); absent for the collection. */
  readonly id?: string
  /** The type and id of an object inside the outer object, such as a rule in its rule set. */
  readonly inner?: { readonly kind: string; readonly id?: string }
  /** All further segments. A path that has any is of no known form. */
  readonly rest: readonly string[]
  /** The href of the outer object; absent for a collection, and for an object that the same call will create. */
  readonly href?: string
  /** True if the outer object will be created by an earlier request of the same call. */
  readonly isPlanned: boolean
}

/**
 * Matches the placeholder in braces with which a dry run refers to an object that does not exist yet. It may contain
 * slashes.
 */
const PLANNED = /^([a-z_]+)\/\{.*\}(?:\/([a-z_]+))?$/s
const VERSION = /^sec_policy\/(?:draft|active|\d+)\//

/** Splits a path of the PCE's API into the object or collection to which it refers. */
export function readTarget(path: string, orgId: string): Target {
  const org = `/orgs/${orgId}/`
  // The beginning of a path of another organisation is kept, so that its type is unknown.
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

/** Returns the href of the object that a request changes; undefined for a collection. */
export const hrefOf = ({ href, inner }: Target): { href?: string } =>
  href === undefined ? {} : { href: inner?.id === undefined ? href : `${href}/${inner.kind}/${inner.id}` }

/** Returns a name of the object for messages, if the request or answer contains one. */
export function nameOf(body: unknown): { name?: string } {
  const { name, key, value } = fieldsOf(body)
  if (typeof name === 'string') return { name }
  return typeof key === 'string' && typeof value === 'string' ? { name: `${key}=${value}` } : {}
}
