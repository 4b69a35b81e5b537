import { type PceClient, PceError } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { parseHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { isManaged } from '../inventory/workloads.js'
import { mapBounded } from '../text/pace-work.js'
import { NO_CONTENT } from './diff-fields.js'
import { digestContents } from './digest-content.js'

/** An object, as it was read, to which the requests of a call refer directly or through other objects. */
export interface ReferredObject {
  href: string
  /** The path segment that names the object's type, such as `ip_lists`. */
  kind: string
  /** The fields that count as the object's content; null if the object could not be read. */
  content: Record<string, unknown> | null
  /** True if the object was not read because it exceeds the size limit for all objects together. */
  isTooLarge?: true
  /**
   * `target` if the call writes or deletes this object or an object inside it; `named` if a request refers to it;
   * `inside` if no request refers to it, but another of these objects does.
   */
  as: 'target' | 'named' | 'inside'
}

/** The objects that the requests of a call refer to, directly or through other objects. */
export interface ReferredObjects {
  /** The objects of the requests in the order of the requests, followed by the objects to which these refer. */
  objects: readonly ReferredObject[]
  /** Number of further objects that were not read because the limits were reached. */
  unread: number
  /** A digest of all these objects, including those that could not be read (D232). */
  digest: string
}

/** The planned requests of a dry run, and the previous values that they replace. */
export interface PlannedCall {
  requests: readonly PlannedRequest[]
  previous?: unknown
}

/** Maximum number of objects read for one call, and maximum total size of the answers in characters. */
const MOST_READ = 100
const MOST_CHARACTERS = 8 * 1024 * 1024
const IN_FLIGHT = 4

/** The value that stands for all fields of an object, apart from the PCE's records of authors and times. */
const WHOLE = null
/**
 * The fields that count as the content of an object, by type. All fields of policy objects count, even unknown ones
 * (D222). VENs and clusters report some fields of other objects, and for these objects only the fields that people
 * choose count. Objects of types not listed here are not read, because they may contain secrets.
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
 * The types without a draft, other than labels. A new name of such an object applies at once wherever the name is
 * shown.
 */
export const NAMED_AT_ONCE: ReadonlySet<string> = new Set(['workloads', 'security_principals'])

interface Reader {
  pce: PceClient
  signal: AbortSignal
}

/**
 * An object that the call refers to. `withInside` is true if the call writes or deletes the object and therefore
 * affects its contents too.
 */
interface Named extends Pick<ReferredObject, 'href' | 'as'> {
  withInside?: true
}

/**
 * Reads the objects to which the requests of a call refer, and the objects to which these refer in turn, with the
 * caller's own credentials. An object that cannot be read is listed without content. Rejects if the call is cancelled.
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
  let characters = 0
  for (let wave = namedBy(call).filter(isWanted); wave.length > 0;) {
    const next: Named[] = []
    for (let at = 0; at < wave.length; at += IN_FLIGHT) {
      const together = wave.slice(at, at + IN_FLIGHT)
      // The limits are checked only between groups of requests, so that every run reads the same objects.
      if (found.size + together.length > MOST_READ || characters > MOST_CHARACTERS) {
        for (const { href } of together) left.add(href)
        continue
      }
      const read = await mapBounded(together, IN_FLIGHT, (named) => readOne(reader, named))
      for (const { object, size } of read) {
        found.set(object.href, object)
        characters += size
        // The rules of a rule set are part of the rule set.
        const hrefs = hrefsIn(object.content).filter((href) => parseHref(href)?.parent?.href !== object.href)
        for (const href of hrefs) next.push({ href, as: 'inside' })
      }
    }
    wave = onlyOnce(next).filter((one) => isWanted(one) && !found.has(one.href) && !left.has(one.href))
  }
  const objects = [...found.values()]
  const bound = objects.map(({ href, content }) => [href, content] as const)
  bound.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return { objects, unread: left.size, digest: await digestContents(bound, reader.signal) }
}

/** Lists the objects to which the requests refer. Workloads come last, because there may be thousands of them. */
function namedBy({ requests, previous }: PlannedCall): Named[] {
  const targets = requests.flatMap(({ method, path }) =>
    targetsOf(method, path).map((href, at): Named => {
      // If a rule set is enabled or gets other scopes, all its rules take effect as they are, so they count as content.
      const withInside = method !== 'POST' && at === 0
      return { href, as: 'target', ...(withInside && { withInside }) }
    }),
  )
  const inside = [...requests.map(({ body }) => body), previous].flatMap(hrefsIn)
  const named = onlyOnce([...targets, ...inside.map((href): Named => ({ href, as: 'named' }))])
  const isWorkload = ({ href }: Named) => parseHref(href)?.kind === 'workloads'
  return [...named.filter((one) => !isWorkload(one)), ...named.filter(isWorkload)]
}

/** Returns the object that the path of a request identifies, and the object that contains it. */
function targetsOf(method: string, path: string): string[] {
  // A POST creates an object that has no href yet. The part of the path before the last segment is its container.
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

/**
 * Lists the hrefs inside a value in the order in which they occur. Placeholders for objects that do not exist yet do
 * not count.
 */
export function hrefsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(hrefsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'href' && typeof inner === 'string' ? (parseHref(inner)?.id === undefined ? [] : [inner]) : hrefsIn(inner),
  )
}

async function readOne(
  { pce, signal }: Reader,
  { href, as, withInside }: Named,
): Promise<{ object: ReferredObject; size: number }> {
  const { kind = '' } = parseHref(href) ?? {}
  const unread = { object: { href, kind, content: null, as }, size: 0 }
  if (!isKindRead(kind)) return unread
  try {
    const answer = await pce.get(href, { includeOrg: false, signal, maxBytes: MOST_CHARACTERS })
    const object = answer.json<PceObject | null>()
    if (typeof object?.href !== 'string') return unread
    if (withInside !== true || kind !== 'rule_sets')
      return { object: { href, kind, content: contentOf(kind, object, false), as }, size: answer.text.length }
    const whole = await withDenyRules(pce, object as RuleSet, signal)
    if (whole === null) return unread
    const size = answer.text.length + JSON.stringify(whole.deny_rules ?? []).length
    return { object: { href, kind, content: contentOf(kind, whole, true), as }, size }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return error.code === 'body_too_large' ? { ...unread, object: { ...unread.object, isTooLarge: true } } : unread
  }
}

async function withDenyRules(pce: PceClient, ruleSet: RuleSet, signal: AbortSignal): Promise<RuleSet | null> {
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  const isUnread = complete?.error !== undefined && complete.hasNone !== true
  return isUnread ? null : (complete?.ruleSet ?? null)
}

const RULES: ReadonlySet<string> = new Set(['rules', 'deny_rules'])

function contentOf(kind: string, object: PceObject, withRules: boolean): Record<string, unknown> {
  const chosen = FIELDS[kind] ?? WHOLE
  const isChosen = (name: string) =>
    chosen === WHOLE ? !NO_CONTENT.has(name) || (withRules && RULES.has(name)) : chosen.includes(name)
  const content = Object.fromEntries(Object.entries(object).filter(([name, value]) => value != null && isChosen(name)))
  // The addresses of a managed workload are left out, because its VEN reports them and they change. Those of an
  // unmanaged workload are entered by people.
  const addresses =
    kind === 'workloads' && !isManaged(object as Workload)
      ? { public_ip: object['public_ip'] ?? null, interfaces: addressesOf(object['interfaces']) }
      : {}
  return { ...content, ...addresses, ...(object['update_type'] === 'delete' && { deletion_pending: true }) }
}

const addressesOf = (interfaces: unknown): unknown[] =>
  Array.isArray(interfaces) ? interfaces.map((one: { address?: unknown } | null) => one?.address ?? null) : []
