import type { Actor, IngressService, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { PolicyFacts } from './load-snapshot.js'
import { coversServices } from './match-services.js'
import { toDraftHref } from '../inventory/parse-href.js'

/**
 * How a set compares with the one before the change: `wider` contains all of it, `narrower` contains nothing else. Undefined
 * where that cannot be determined.
 */
export type Extent = 'same' | 'wider' | 'narrower' | undefined

/** The combined extent of independent parts; undetermined if they pull in different directions. */
export function combineExtents(extents: readonly Extent[]): Extent {
  const changed = extents.filter((extent) => extent !== 'same')
  const [first] = changed
  if (first === undefined) return changed.length === 0 ? 'same' : undefined
  return changed.every((extent) => extent === first) ? first : undefined
}

/** Compares two sets of names by what they share. */
export function compareSets(before: ReadonlySet<string>, after: ReadonlySet<string>): Extent {
  return compareCover([...before], [...after], (a, b) => a === b)
}

/** Two lists of alternatives, where one of them can cover another. */
function compareCover<T>(before: readonly T[], after: readonly T[], covers: (wide: T, narrow: T) => boolean): Extent {
  const inside = (items: readonly T[], others: readonly T[]) =>
    items.every((item) => others.some((other) => covers(other, item)))
  const [kept, new_] = [inside(before, after), !inside(after, before)]
  if (kept) return new_ ? 'wider' : 'same'
  return new_ ? undefined : 'narrower'
}

/**
 * One end of a rule before and after. Labels of one key are alternatives, keys are ANDed, everything else is added to what they
 * select (P20), so another label of a new key narrows. Changed exclusions are not judged, nor is anything next to an unknown
 * selector.
 */
export function compareEnds(before: readonly Actor[], after: readonly Actor[], facts: PolicyFacts): Extent {
  const [a, b] = [readEnd(before, facts), readEnd(after, facts)]
  if (compareSets(a.everything, b.everything) === 'same') return 'same'
  if (a.unclear || b.unclear || compareSets(a.excluded, b.excluded) !== 'same') return undefined
  // All workloads are more than any selection of them.
  if (a.ams !== b.ams && compareSets(a.others, b.others) === 'same') return b.ams ? 'wider' : 'narrower'
  const fixed = [...([a, b] as const)].map(({ ams, others, workloads }) => {
    return new Set([...others, ...workloads, ...(ams ? ['ams'] : [])])
  }) as [Set<string>, Set<string>]
  const nothing = a.excluded.size > 0 ? 'everything' : 'nothing'
  return combineExtents([compareSets(...fixed), compareConditions(a.labels, b.labels, nothing)])
}

/** Label hrefs by key. */
type Conditions = ReadonlyMap<string, ReadonlySet<string>>

function readEnd(actors: readonly Actor[], { keyOf }: PolicyFacts) {
  const labels = new Map<string, Set<string>>()
  const [excluded, workloads, others, everything] = [0, 1, 2, 3].map(() => new Set<string>()) as [
    Set<string>,
    Set<string>,
    Set<string>,
    Set<string>,
  ]
  let [ams, unclear] = [false, false]
  for (const { exclusion, ...actor } of actors) {
    const [selector = '', target] = Object.entries(actor)[0] ?? []
    const named = (typeof target === 'object' ? target : { href: target }) as { href: string; key?: string }
    const id = toDraftHref(named.href)
    everything.add(`${exclusion === true ? '!' : ''}${selector} ${id}`)
    if (selector === 'label' || selector === 'label_group') {
      const key = named.key ?? keyOf(named.href)
      if (exclusion === true) excluded.add(id)
      else if (key === undefined) unclear = true
      else labels.set(key, (labels.get(key) ?? new Set()).add(id))
    } else if (exclusion === true || !KNOWN.has(selector)) unclear = true
    else if (id === 'ams') ams = true
    else (selector === 'workload' ? workloads : others).add(id)
  }
  return { labels, excluded, workloads, others, everything, ams, unclear }
}

/** Selectors that add to what an end selects, whatever else it has. */
const KNOWN = new Set(['actors', 'ip_list', 'workload', 'virtual_service', 'virtual_server'])

/**
 * Every further key narrows. The first one widens, because an end without labels selects nothing; next to exclusions it narrows,
 * because they alone select everything else.
 */
function compareConditions(before: Conditions, after: Conditions, none: 'nothing' | 'everything'): Extent {
  if (before.size === 0 || after.size === 0) {
    if (before.size === after.size) return 'same'
    return (before.size === 0) === (none === 'nothing') ? 'wider' : 'narrower'
  }
  const keys = new Set([...before.keys(), ...after.keys()])
  return combineExtents(
    [...keys].map((key) => {
      const [a, b] = [before.get(key), after.get(key)]
      if (a === undefined) return 'narrower'
      return b === undefined ? 'wider' : compareSets(a, b)
    }),
  )
}

/** Services of a rule: ports lie in ranges, everything lies in All Services, and other named services are only themselves. */
export function compareServices(
  before: readonly IngressService[],
  after: readonly IngressService[],
  facts: PolicyFacts,
): Extent {
  // Without services a rule has those of its virtual services, which is something else.
  if (before.length === 0 || after.length === 0) return before.length === after.length ? 'same' : undefined
  return compareCover(before, after, (wide, narrow) => coversServices([wide], [narrow], facts) === 'yes')
}

/** Scopes are alternatives; one condition fewer makes a scope wider, and the empty scope is everything. */
export function compareScopes(before: readonly ScopeEntry[][], after: readonly ScopeEntry[][]): Extent {
  // What a rule set without any scope applies to is not documented.
  if (before.length === 0 || after.length === 0) return before.length === after.length ? 'same' : undefined
  const covers = (wide: readonly ScopeEntry[], narrow: readonly ScopeEntry[]) => {
    const conditions = new Set(narrow.map(idOfCondition))
    return wide.every((entry) => conditions.has(idOfCondition(entry)))
  }
  return compareCover(before, after, covers)
}

export function idOfScope(scope: readonly ScopeEntry[]): string {
  return scope.map(idOfCondition).sort().join('&')
}

function idOfCondition({ label, label_group: group, exclusion }: ScopeEntry): string {
  return `${exclusion === true ? '!' : ''}${toDraftHref((label ?? group)?.href ?? '')}`
}
