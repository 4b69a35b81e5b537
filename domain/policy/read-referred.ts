import { type PceClient, PceError } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isUnread } from '../inventory/fetch-every.js'
import { parseHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { isManaged } from '../inventory/workloads.js'
import { mapBounded } from '../text/pace-work.js'
import { NO_CONTENT } from './diff-fields.js'
import { digestContents } from './digest-content.js'
import { digestLarge } from './digest-large.js'

/** An object to which the requests of a call refer, directly or through other objects, as it was read. */
export interface ReferredObject {
  href: string
  /** The path segment of the object's type in hrefs, such as `ip_lists`. */
  kind: string
  /** The fields that count as the object's content; null if the object could not be read. */
  content: Record<string, unknown> | null
  /** A digest of the content, if it is too large to be kept in memory. In this case, `content` has only the name. */
  digest?: string
  /**
   * True if the object was not read, because it is larger than any answer may be or because other large objects had
   * used up the total limit.
   */
  isTooLarge?: true
  /**
   * How the call relates to the object. `target`: it writes or deletes this object or one inside it. `named`: a request
   * refers to the object. `inside`: no request refers to it, but another of these objects does.
   */
  as: 'target' | 'named' | 'inside'
}

/** The objects that the requests of a call refer to, directly or through other objects. */
export interface ReferredObjects {
  /**
   * The objects to which the requests refer, in the order of the requests, followed by the objects to which those
   * refer.
   */
  objects: readonly ReferredObject[]
  /** Number of further objects that were not read because the maximum number of objects was reached. */
  unread: number
  /** A digest of all these objects, including those that could not be read (D232). */
  digest: string
}

/** The planned requests of a dry run, and the values that they would replace. */
export interface PlannedCall {
  requests: readonly PlannedRequest[]
  previous?: unknown
}

/** Maximum number of objects read for one call. */
const MOST_READ = 100
/**
 * Maximum size of an object that is kept in memory. When the objects in memory together exceed this size, only objects
 * of up to MOST_HELD_LATER are kept. Larger objects are not kept; only their digest is computed while they arrive.
 */
const MOST_HELD = 8 * 1024 * 1024
const MOST_HELD_LATER = 64 * 1024
/** Maximum number of bytes read to compute digests of large objects. After that, no further large object is read. */
const MOST_STREAMED = 64 * 1024 * 1024
/**
 * Number of bytes counted for an object that turned out to be too large while it was read: the limit for any answer.
 */
const READ_IN_VAIN = 32 * 1024 * 1024
const IN_FLIGHT = 4

/** Stands for all fields of an object except the PCE's records of authors and times. */
const WHOLE = null
/**
 * The fields that count as an object's content, by type. Of policy objects, all fields count, even unknown ones (D222).
 * Some other objects have fields that VENs and clusters report; of these objects, only the fields that people choose
 * count. Types that are not listed here are not read, because they may contain secrets.
 */
const FIELDS: Readonly<Record<string, readonly string[] | typeof WHOLE>> = {
  rule_sets: WHOLE,
  sec_rules: WHOLE,
  deny_rules: WHOLE,
  ip_lists: WHOLE,
  services: WHOLE,
  label_groups: WHOLE,
  virtual_services: WHOLE,
  virtual_servers: WHOLE,
  enforcement_boundaries: WHOLE,
  labels: ['key', 'value', 'deleted'],
  workloads: ['name', 'hostname', 'description', 'managed', 'labels', 'enforcement_mode', 'deleted'],
  container_clusters: ['name', 'description'],
  container_workload_profiles: [
    'name',
    'namespace',
    'description',
    'managed',
    'labels',
    'assign_labels',
    'enforcement_mode',
  ],
  security_principals: ['name', 'sid', 'deleted'],
  networks: ['name'],
}

/** Returns true if objects of this type are read. */
export const isKindRead = (kind: string): boolean => Object.hasOwn(FIELDS, kind)

/**
 * The types of objects, apart from labels, that have no draft. If such an object is renamed, the new name appears at
 * once everywhere.
 */
export const NAMED_AT_ONCE: ReadonlySet<string> = new Set(['workloads', 'security_principals'])

interface Reader {
  pce: PceClient
  signal: AbortSignal
}

/**
 * An object to which the call refers. `withInside` is true if the call writes or deletes the object, which affects its
 * contents too.
 */
interface Named extends Pick<ReferredObject, 'href' | 'as'> {
  withInside?: true
}

/**
 * Reads, with the caller's credentials, the objects to which the requests of a call refer and the objects to which
 * those refer. An object that cannot be read is listed without content. Rejects if the call is cancelled.
 *
 * @param kinds the types whose objects are read; all types if absent.
 */
export async function readReferred(
  reader: Reader,
  call: PlannedCall,
  kinds?: ReadonlySet<string>,
): Promise<ReferredObjects> {
  const isWanted = ({ href }: Named) => kinds === undefined || kinds.has(parseHref(href)?.kind ?? '')
  const found = new Map<string, ReferredObject>()
  const left = new Set<string>()
  let [held, streamed] = [0, 0]
  for (let wave = namedBy(call).filter(isWanted); wave.length > 0;) {
    const next: Named[] = []
    for (let at = 0; at < wave.length; at += IN_FLIGHT) {
      const together = wave.slice(at, at + IN_FLIGHT)
      // The limits are checked only between groups of requests, so that every run reads the same objects.
      if (found.size + together.length > MOST_READ) {
        for (const { href } of together) left.add(href)
        continue
      }
      const most = held > MOST_HELD ? MOST_HELD_LATER : MOST_HELD
      const read = await mapBounded(together, IN_FLIGHT, (named) => readOne(reader, named, most))
      for (const [index, named] of together.entries()) {
        let one = read[index]!
        if (one !== 'too large') held += one.size
        else {
          // Large objects are read one after the other, so that in every run the limit on bytes is reached at the same
          // object.
          one = streamed > MOST_STREAMED ? tooLarge(named) : await readLarge(reader, named)
          streamed += one.size
        }
        const { object, inside } = one
        found.set(object.href, object)
        // The rules of a rule set belong to it and are not read as separate objects.
        const hrefs = inside.filter((href) => parseHref(href)?.parent?.href !== object.href)
        for (const href of hrefs) next.push({ href, as: 'inside' })
      }
    }
    wave = onlyOnce(next).filter((one) => isWanted(one) && !found.has(one.href) && !left.has(one.href))
  }
  const objects = [...found.values()]
  const bound = objects.map(({ href, content, digest }) => [href, content, ...(digest ? [digest] : [])] as const)
  bound.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return { objects, unread: left.size, digest: await digestContents(bound, reader.signal) }
}

const tooLarge = ({ href, as }: Named): Read => ({
  object: { href, kind: parseHref(href)?.kind ?? '', content: null, isTooLarge: true, as },
  size: 0,
  inside: [],
})

/** Lists the objects to which the requests refer. Workloads come last, because there may be thousands of them. */
function namedBy({ requests, previous }: PlannedCall): Named[] {
  const targets = requests.flatMap(({ method, path }) =>
    targetsOf(method, path).map((href, at): Named => {
      // If a call enables a rule set or changes its scopes, all its rules take effect as they are, so they count as its
      // content.
      const withInside = method !== 'POST' && at === 0
      return { href, as: 'target', ...(withInside && { withInside }) }
    }),
  )
  const inside = [...requests.map(({ body }) => body), previous].flatMap(hrefsIn)
  const named = onlyOnce([...targets, ...inside.map((href): Named => ({ href, as: 'named' }))])
  const isWorkload = ({ href }: Named) => parseHref(href)?.kind === 'workloads'
  return [...named.filter((one) => !isWorkload(one)), ...named.filter(isWorkload)]
}

/** Returns the object that a request's path identifies, and the object that contains it. */
function targetsOf(method: string, path: string): string[] {
  // A POST creates an object that has no href yet. The path without its last segment is that of the container.
  const parsed = parseHref(method === 'POST' ? path.replace(/\/[a-z_]+$/, '') : path)
  if (parsed?.id === undefined || /^bulk_/.test(parsed.id)) return []
  const own = method === 'POST' ? path.replace(/\/[a-z_]+$/, '') : path
  return parsed.parent === undefined ? [own] : [own, parsed.parent.href]
}

function onlyOnce(named: readonly Named[]): Named[] {
  const first = new Map<string, Named>()
  for (const one of named) if (!first.has(one.href)) first.set(one.href, one)
  return [...first.values()]
}

/** Lists the hrefs inside a value in order of appearance, except placeholders for objects that do not exist yet. */
export function hrefsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(hrefsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'href' && typeof inner === 'string' ? (parseHref(inner)?.id === undefined ? [] : [inner]) : hrefsIn(inner),
  )
}

interface Read {
  object: ReferredObject
  size: number
  /** The hrefs in the object's content. */
  inside: readonly string[]
}

/** Reads one object. Resolves with `too large` if it has more than `maxBytes`. */
async function readOne(
  { pce, signal }: Reader,
  { href, as, withInside }: Named,
  maxBytes: number,
): Promise<Read | 'too large'> {
  const { kind = '' } = parseHref(href) ?? {}
  const unread = { object: { href, kind, content: null, as }, size: 0, inside: [] }
  if (!isKindRead(kind)) return unread
  try {
    const answer = await pce.get(href, { includeOrg: false, signal, maxBytes })
    const object = answer.json<PceObject | null>()
    if (typeof object?.href !== 'string') return unread
    const withRules = withInside === true && kind === 'rule_sets'
    let [whole, size] = [object, answer.text.length]
    if (withRules) {
      const [complete] = await loadDenyRules(pce, [object as RuleSet], signal, maxBytes)
      if (complete?.isTooLarge === true) return 'too large'
      if (complete?.error !== undefined && complete.hasNone !== true) return unread
      whole = complete?.ruleSet ?? object
      size += JSON.stringify(complete?.ruleSet.deny_rules ?? []).length
    }
    const content = contentOf(kind, whole, withRules)
    return { object: { href, kind, content, as }, size, inside: hrefsIn(content) }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return error.code === 'body_too_large' ? 'too large' : unread
  }
}

/** Reads the name of an object that is too large for memory, and computes the digest of its content. */
async function readLarge(reader: Reader, { href, as, withInside }: Named): Promise<Read> {
  const { kind = '' } = parseHref(href) ?? {}
  const unread = { href, kind, content: null, as }
  const withRules = withInside === true && kind === 'rule_sets'
  // Whether a workload has a VEN is known only after it has been read to the end, so its addresses always count here.
  const isPart = (field: string) => isContent(kind, field, withRules) || (kind === 'workloads' && ADDRESSES.has(field))
  try {
    const read = await digestLarge(reader, href, isPart, hrefsIn, withRules)
    if (read === null) return { object: unread, size: 0, inside: [] }
    const { content, digest, bytes, hrefs } = read
    return { object: { href, kind, content, digest, as }, size: bytes, inside: hrefs }
  } catch (error) {
    if (!isUnread(error) || reader.signal.aborted) throw error
    const isTooLarge = error.code === 'body_too_large'
    return { object: { ...unread, ...(isTooLarge && { isTooLarge }) }, size: isTooLarge ? READ_IN_VAIN : 0, inside: [] }
  }
}

const ADDRESSES: ReadonlySet<string> = new Set(['public_ip', 'interfaces'])
const RULES: ReadonlySet<string> = new Set(['rules', 'deny_rules'])

function contentOf(kind: string, object: PceObject, withRules: boolean): Record<string, unknown> {
  const content = Object.fromEntries(
    Object.entries(object).filter(([name, value]) => value != null && isContent(kind, name, withRules)),
  )
  // The addresses of a managed workload are left out, because its VEN reports them and they change. Those of an
  // unmanaged workload count, because people enter them.
  const addresses =
    kind === 'workloads' && !isManaged(object as Workload)
      ? { public_ip: object['public_ip'] ?? null, interfaces: addressesOf(object['interfaces']) }
      : {}
  return { ...content, ...addresses, ...(object['update_type'] === 'delete' && { deletion_pending: true }) }
}

function isContent(kind: string, field: string, withRules: boolean): boolean {
  const chosen = FIELDS[kind] ?? WHOLE
  return chosen === WHOLE ? !NO_CONTENT.has(field) || (withRules && RULES.has(field)) : chosen.includes(field)
}

const addressesOf = (interfaces: unknown): unknown[] =>
  Array.isArray(interfaces) ? interfaces.map((one: { address?: unknown } | null) => one?.address ?? null) : []
