import type { ObjectApi, PceClient, TypedPendingChange } from '../../pce-client/index.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { mapBounded } from '../text/pace-work.js'
import { isUnread, scanEvery } from './fetch-every.js'
import { toDraftHref } from './parse-href.js'
import { loadDenyRules } from './read-rules.js'

/**
 * The href of an author, or the reason why the author is not known: `unnamed` if the PCE names no author, `unread` if
 * the changed object could not be read.
 */
export type Author = `/${string}` | 'unnamed' | 'unread'

/** A pending change, with the authors of the changes to the object and its rules, as far as they are known. */
export interface Authored<T> {
  change: T
  authors: Author[]
}

/**
 * Maximum number of objects of one type that are read one by one. If there are more, the complete list is read instead.
 */
const MOST_SINGLE = 4
/**
 * Maximum number of rule sets whose deny rules are read separately. For all further rule sets, the authors of the deny
 * rules remain unknown.
 */
const MOST_APART = 100
const IN_FLIGHT = 4
const RULE_LISTS = ['rules', 'deny_rules', 'ip_tables_rules'] as const

/** The fields of an object that say who changed it. The PCE may send them in an unexpected shape. */
interface Stamped {
  update_type?: unknown
  created_by?: unknown
  updated_by?: unknown
  deleted_by?: unknown
}

/** Returns who last changed or deleted an object and, if the object was never provisioned, also who created it. */
function authorsOf(object: object): Author[] {
  const { update_type: type, created_by: first, updated_by: last, deleted_by: end } = object as Stamped
  if (type === 'delete') return [toAuthor(end ?? last)]
  return type === 'create' ? [toAuthor(last), ...(first == null ? [] : [toAuthor(first)])] : [toAuthor(last)]
}

function toAuthor(reference: unknown): Author {
  const href = (reference as { href?: unknown } | null | undefined)?.href
  return typeof href === 'string' && href.startsWith('/') ? (href as Author) : 'unnamed'
}

/**
 * Returns the authors of those pending rules that the PCE embeds in this rule set. Rules that it stores separately are
 * not included.
 */
function authorsInside(ruleSet: object): Author[] {
  return RULE_LISTS.flatMap((name) => {
    const rules = (ruleSet as Partial<Record<string, unknown>>)[name] ?? []
    if (!Array.isArray(rules)) return ['unread' as const]
    return (rules as (Stamped | null)[]).flatMap((rule) => (rule?.update_type == null ? [] : authorsOf(rule)))
  })
}

/**
 * Returns a draft object with the authors of its pending changes. The rules of a rule set are provisioned together with
 * it (P34), so their authors count as well. If the PCE stores deny rules separately, they are read too.
 */
export async function readAuthorsOf<T extends { href: string }>(
  pce: PceClient,
  draft: T,
  signal: AbortSignal,
): Promise<Authored<T>> {
  const isApart = isRuleSet(draft.href) && isWithoutDenyRules(draft)
  const apart = isApart ? await readDenyAuthors(pce, [draft.href], signal) : undefined
  return { change: draft, authors: [...authorsOf(draft), ...authorsInside(draft), ...(apart?.get(draft.href) ?? [])] }
}

const isRuleSet = (href: string) => /\/rule_sets\/[^/]+$/u.test(href)
const isWithoutDenyRules = (ruleSet: object) => (ruleSet as Partial<RuleSet>).deny_rules === undefined

/** Returns pending changes with their authors. The authors of pending rules are read from the draft rule sets. */
export async function readAuthors(
  pce: PceClient,
  pending: readonly TypedPendingChange[],
  signal: AbortSignal,
): Promise<Authored<TypedPendingChange>[]> {
  // If a rule set is marked for deletion, its rules will be deleted with it, so their authors do not matter.
  const holders = pending.filter(({ type, update_type: kind }) => type === 'rule_sets' && kind !== 'delete')
  const hrefs = [...new Set(holders.map(({ href }) => toDraftHref(href)))]
  const read = await readInside(pce, hrefs, signal)
  const apart = [...read].flatMap(([href, { isApart }]) => (isApart ? href : []))
  const denying = await readDenyAuthors(pce, apart.slice(0, MOST_APART), signal)
  for (const href of apart.slice(MOST_APART)) denying.set(href, ['unread'])
  const makers = await readMakers(pce, pending, signal)
  const wanted = new Set(hrefs)
  return pending.map((change) => {
    const href = toDraftHref(change.href)
    const inside = wanted.has(href) ? (read.get(href)?.authors ?? ['unread']) : []
    return {
      change,
      authors: [...authorsOf(change), ...inside, ...(denying.get(href) ?? []), ...(makers.get(href) ?? [])],
    }
  })
}

/**
 * Reads the creators of new objects (rule sets excepted), because the list of pending changes does not contain
 * creators.
 */
async function readMakers(
  pce: PceClient,
  pending: readonly TypedPendingChange[],
  signal: AbortSignal,
): Promise<Map<string, Author[]>> {
  const makers = new Map<string, Author[]>()
  const apis = {
    ip_lists: pce.ipLists,
    services: pce.services,
    label_groups: pce.labelGroups,
    virtual_services: pce.virtualServices,
    virtual_servers: pce.virtualServers,
    enforcement_boundaries: pce.enforcementBoundaries,
  }
  for (const [kind, api] of Object.entries(apis)) {
    const created = pending.filter(({ type, update_type: is }) => type === kind && is === 'create')
    const hrefs = [...new Set(created.map(({ href }) => toDraftHref(href)))]
    for (const href of hrefs) makers.set(href, ['unread'])
    await readEach<Stamped & { href: string }>(api, hrefs, signal, (href, object) =>
      makers.set(href, object.update_type === 'create' ? authorsOf(object) : []),
    )
  }
  return makers
}

interface Inside {
  authors: Author[]
  /** True if the PCE stores the deny rules separately from their rule set. */
  isApart: boolean
}

/** Reads the authors of pending rules in these rule sets. Rule sets that cannot be read are left out. */
async function readInside(pce: PceClient, hrefs: readonly string[], signal: AbortSignal): Promise<Map<string, Inside>> {
  const found = new Map<string, Inside>()
  await readEach<RuleSet>(pce.ruleSets, hrefs, signal, (href, ruleSet) => {
    // The creator of a new rule set is read here, because the list of pending changes does not contain it.
    const makers = ruleSet.update_type === 'create' ? authorsOf(ruleSet) : []
    found.set(href, { authors: [...makers, ...authorsInside(ruleSet)], isApart: isWithoutDenyRules(ruleSet) })
  })
  return found
}

/**
 * Reads drafts of one type. A few are read one by one; for more, the complete list is read. `keep` receives each draft
 * that could be read. It may receive a draft twice if the list has to be read again.
 */
async function readEach<T extends { href: string }>(
  api: Pick<ObjectApi<T>, 'scan' | 'getByReference'>,
  hrefs: readonly string[],
  signal: AbortSignal,
  keep: (href: string, draft: T) => unknown,
): Promise<void> {
  const orNothing = async (reading: Promise<unknown>) => {
    await reading.catch((error: unknown) => {
      if (!isUnread(error) || signal.aborted) throw error
    })
  }
  if (hrefs.length <= MOST_SINGLE) {
    await mapBounded(hrefs, IN_FLIGHT, (href) =>
      orNothing(api.getByReference(href, { signal }).then((draft) => keep(href, draft))),
    )
    return
  }
  const wanted = new Set(hrefs)
  const onItems = (items: T[]) => {
    for (const item of items) if (wanted.has(toDraftHref(item.href))) keep(toDraftHref(item.href), item)
  }
  await orNothing(scanEvery({ api, params: {}, signal }, { onItems }))
}

/** Reads the authors of pending deny rules in rule sets whose deny rules the PCE stores separately. */
async function readDenyAuthors(
  pce: PceClient,
  hrefs: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Author[]>> {
  const bare = hrefs.map((href) => ({ href }) as RuleSet)
  const read = await loadDenyRules(pce, bare, signal)
  return new Map(
    read.map(({ ruleSet, error, hasNone }) => [
      ruleSet.href,
      error === undefined ? authorsInside(ruleSet) : hasNone === true ? [] : ['unread'],
    ]),
  )
}
