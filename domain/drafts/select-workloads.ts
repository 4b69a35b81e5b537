import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { NamedObject, PolicyLookups } from '../inventory/find-object.js'

/** A set of workloads in the form of the PCE's `labels` filter. */
export interface WorkloadSelection {
  /**
   * The label combinations that select workloads. Entries of an inner list are ANDed, inner lists are ORed. `[[]]`
   * selects every workload; `[]` selects none by label.
   */
  labelGroups: string[][]
  workloads: string[]
  /** Hrefs of labels. Workloads with one of them are not selected. */
  excluded: Set<string>
  /** The reason why `labelGroups` is empty although labels select workloads; null if `labelGroups` is complete. */
  unread: string | null
}

/** Maximum number of combinations of labels with different keys. All combinations must fit into one request. */
const MOST_COMBINATIONS = 200

type Selector = Pick<ScopeEntry, 'label' | 'label_group' | 'exclusion'>
/** Label hrefs by key. Labels with the same key are alternatives; different keys are ANDed. */
type Conditions = Map<string, Set<string>>

/**
 * Determines which workloads one side of a rule selects. Labels with the same key are alternatives, and different keys
 * are ANDed. If `isBound` is true, as it is for providers, the side is also limited by the scopes of its rule set.
 */
export async function selectWorkloads(
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  { actors, isBound }: { actors: readonly Actor[]; isBound: boolean },
): Promise<WorkloadSelection> {
  const selectors = actors.filter(isSelector)
  const everyone = actors.some((actor) => actor.actors === 'ams')
  const own = everyone ? [] : selectors.filter(({ exclusion }) => exclusion !== true)
  const excluded = selectors.filter(({ exclusion }) => exclusion === true)
  const bounds: (readonly ScopeEntry[])[] = isBound ? [...scopes] : [[]]
  // With several scopes, an exclusion applies only within its own scope. Such an exclusion is ignored here; at worst,
  // this causes a needless warning.
  if (bounds.length === 1)
    excluded.push(...(bounds[0] ?? []).filter((entry) => isSelector(entry) && entry.exclusion === true))

  const labelGroups: string[][] = []
  let unread: string | null = null
  if (everyone || own.length > 0) {
    const ownConditions = await toConditions(lookups, own)
    const all: Conditions[] = []
    for (const bound of bounds) {
      if (!bound.every(isSelector)) unread = 'a scope names something that is not known'
      const scope = bound.filter((entry) => isSelector(entry) && entry.exclusion !== true)
      all.push(intersect(await toConditions(lookups, scope), ownConditions))
    }
    if (all.reduce((sum, conditions) => sum + countCombinations(conditions), 0) > MOST_COMBINATIONS)
      unread = `the labels make more than ${MOST_COMBINATIONS} combinations`
    if (unread === null) labelGroups.push(...all.flatMap(multiplyOut))
  }
  const excludedLabels = await toConditions(lookups, excluded)
  return {
    labelGroups,
    workloads: actors.flatMap(({ workload }) => workload?.href ?? []),
    excluded: new Set([...excludedLabels.values()].flatMap((hrefs) => [...hrefs])),
    unread,
  }
}

const isSelector = ({ label, label_group: group }: Selector) => label !== undefined || group !== undefined

async function toConditions(lookups: PolicyLookups, selectors: readonly Selector[]): Promise<Conditions> {
  const conditions: Conditions = new Map()
  for (const { label, label_group: group } of selectors) {
    const hrefs =
      label !== undefined ? [label.href] : await expandGroup(lookups, (group as { href: string }).href, new Set())
    for (const href of hrefs) {
      const key = lookups.labels.get(href)?.key ?? ''
      conditions.set(key, (conditions.get(key) ?? new Set()).add(href))
    }
  }
  return conditions
}

/** Returns the labels of a group and its sub-groups. `seen` stops the recursion if a group contains itself. */
async function expandGroup(lookups: PolicyLookups, href: string, seen: Set<string>): Promise<string[]> {
  if (seen.has(href)) return []
  seen.add(href)
  const group = (await lookups.byHref('label_groups', href)) as NamedObject & {
    labels?: { href: string }[] | null
    sub_groups?: { href: string }[] | null
  }
  const inner = []
  for (const sub of group.sub_groups ?? []) inner.push(...(await expandGroup(lookups, sub.href, seen)))
  return [...(group.labels ?? []).map((label) => label.href), ...inner]
}

/**
 * Combines two conditions with AND. If both have a key, only the labels that they have in common remain, which may be
 * none.
 */
function intersect(a: Conditions, b: Conditions): Conditions {
  const both: Conditions = new Map(a)
  for (const [key, hrefs] of b) {
    const other = a.get(key)
    both.set(key, other === undefined ? hrefs : new Set([...hrefs].filter((href) => other.has(href))))
  }
  return both
}

const countCombinations = (conditions: Conditions): number =>
  [...conditions.values()].reduce((product, hrefs) => product * hrefs.size, 1)

function multiplyOut(conditions: Conditions): string[][] {
  return [...conditions.values()].reduce<string[][]>(
    (groups, hrefs) => groups.flatMap((group) => [...hrefs].map((href) => [...group, href])),
    [[]],
  )
}
