import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { PlannedRule } from './plan-rules.js'
import type { NamedObject } from '../inventory/find-object.js'
import type { PolicyLookups } from '../inventory/policy-lookups.js'

/** A set of workloads as the PCE's `labels` filter takes it. */
export interface ConsumerSelection {
  /** Inner lists ANDed, outer ORed. `[[]]` is every workload, `[]` none by label. */
  labelGroups: string[][]
  workloads: string[]
  /** Label hrefs whose workloads do not count. */
  excluded: Set<string>
}

type Selector = Pick<ScopeEntry, 'label' | 'label_group' | 'exclusion'>
/** Label hrefs by key: alternatives of one key, keys ANDed. */
type Conditions = Map<string, Set<string>>

/**
 * The workloads a rule's consumers stand for. Labels of one key are alternatives, keys are ANDed; an intra-scope rule is
 * further bound by each scope of its rule set.
 */
export async function selectConsumers(
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rule: Pick<PlannedRule, 'consumers' | 'unscoped'>,
): Promise<ConsumerSelection> {
  const selectors = rule.consumers.filter(({ label, label_group: group }) => label !== undefined || group !== undefined)
  const everyone = rule.consumers.some(({ actors }) => actors === 'ams')
  const own = everyone ? [] : selectors.filter(({ exclusion }) => exclusion !== true)
  const excluded = selectors.filter(({ exclusion }) => exclusion === true)
  const bounds: (readonly ScopeEntry[])[] = rule.unscoped ? [[]] : [...scopes]
  // With several scopes an exclusion holds inside its own only; counting those workloads errs to the side of a warning.
  if (bounds.length === 1) excluded.push(...(bounds[0] ?? []).filter(({ exclusion }) => exclusion === true))

  const labelGroups: string[][] = []
  if (everyone || own.length > 0) {
    const ownConditions = await toConditions(lookups, own)
    for (const bound of bounds) {
      const scope = await toConditions(
        lookups,
        bound.filter(({ exclusion }) => exclusion !== true),
      )
      labelGroups.push(...multiplyOut(intersect(scope, ownConditions)))
    }
  }
  const excludedLabels = await toConditions(lookups, excluded)
  return {
    labelGroups,
    workloads: rule.consumers.flatMap(({ workload }) => workload?.href ?? []),
    excluded: new Set([...excludedLabels.values()].flatMap((hrefs) => [...hrefs])),
  }
}

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

/** Labels of a group and its sub-groups; `seen` ends a group that contains itself. */
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

/** Both conditions at once; a key of both keeps what they share, possibly nothing. */
function intersect(a: Conditions, b: Conditions): Conditions {
  const both: Conditions = new Map(a)
  for (const [key, hrefs] of b) {
    const other = a.get(key)
    both.set(key, other === undefined ? hrefs : new Set([...hrefs].filter((href) => other.has(href))))
  }
  return both
}

function multiplyOut(conditions: Conditions): string[][] {
  return [...conditions.values()].reduce<string[][]>(
    (groups, hrefs) => groups.flatMap((group) => [...hrefs].map((href) => [...group, href])),
    [[]],
  )
}
