import { PceApiError } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, type ListQuery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toActiveHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { readableEnds, readableScopes } from '../inventory/require-rule-shape.js'
import { compareTexts } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import { catalogOf, type PolicyCatalog } from '../policy/load-snapshot.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import { denyType, pceNameOf, type RuleType } from '../policy/rule-type.js'

/** A rule together with the rule set that contains it, or an enforcement boundary in the form of a rule. */
export interface PlacedRule {
  type: RuleType
  rule: AnyRule
  holder: Pick<RuleSet, 'href' | 'name' | 'enabled' | 'scopes'> & Partial<RuleSet>
  isBoundary: boolean
}

export interface ReadRules {
  rules: PlacedRule[]
  /** Sentences that say which rules could not be read or searched, and why. */
  unread: string[]
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>

/**
 * Reads all allow and deny rules of a policy version, and its enforcement boundaries. Hrefs of a numbered version are
 * converted to active hrefs, so that they can be compared with other hrefs. Throws not_found if the version does not
 * exist.
 */
export async function readEveryRule(ctx: Context, version: PolicyVersionSelector): Promise<ReadRules> {
  const [ruleSets, boundaries] = await Promise.all([readRuleSets(ctx, version), readBoundaries(ctx, version)])
  const complete =
    typeof version === 'number'
      ? ruleSets.map((ruleSet) => ({ ruleSet, error: ruleSet.deny_rules === undefined ? NOT_EMBEDDED : undefined }))
      : await loadDenyRules(ctx.pce, ruleSets, ctx.signal)
  const without = complete.filter(({ error }) => error !== undefined)
  const [first] = without
  const tables = ruleSets.reduce((sum, { ip_tables_rules: own }) => sum + (own?.length ?? 0), 0)
  return {
    rules: inOrder([...complete.flatMap(({ ruleSet }) => rulesOf(ruleSet)), ...boundaries]),
    unread: [
      ...(first?.error === undefined
        ? []
        : [`The deny rules of ${without.length} rule sets could not be read: ${first.error}`]),
      ...(tables === 0
        ? []
        : [`${countOf(tables, 'rule')} in the words of iptables ${tables === 1 ? 'is' : 'are'} not searched.`]),
    ],
  }
}

const NOT_EMBEDDED = 'this release does not keep them with the rule sets of old versions'

async function readRuleSets({ pce, signal }: Context, version: PolicyVersionSelector): Promise<RuleSet[]> {
  try {
    const { items } = await fetchEvery({ api: pce.ruleSets, policyVersion: version, params: {}, signal })
    return typeof version === 'number' ? asActive(items, version) : items
  } catch (error) {
    if (typeof version !== 'number' || !(error instanceof PceApiError) || error.status !== 404) throw error
    throw new ToolError('not_found', `The PCE has no policy version ${version}.`, { policy_version: version })
  }
}

/**
 * Reads enforcement boundaries and converts them to rules. Returns an empty list if the PCE does not support
 * boundaries.
 */
export async function readBoundaries({ pce, signal }: Context, version: PolicyVersionSelector): Promise<PlacedRule[]> {
  const query = { api: pce.enforcementBoundaries, policyVersion: version, params: {}, signal }
  const items = await fetchEvery<EnforcementBoundary>(query).then(
    (page) => page.items,
    (error: unknown) => {
      if (error instanceof PceApiError && error.status === 404) return []
      throw error
    },
  )
  return (typeof version === 'number' ? asActive(items, version) : items).map((boundary) => ({
    type: 'deny',
    rule: withEnds({ ...boundary, enabled: boundary.enabled !== false, unscoped_consumers: true }),
    holder: { href: boundary.href, name: boundary.name, enabled: true, scopes: [[]] },
    isBoundary: true,
  }))
}

function rulesOf(ruleSet: RuleSet): PlacedRule[] {
  const holder = { ...ruleSet, scopes: readableScopes(ruleSet.scopes) }
  const place = (type: RuleType, rule: AnyRule): PlacedRule => ({
    type,
    rule: withEnds(rule),
    holder,
    isBoundary: false,
  })
  return [
    ...(ruleSet.rules ?? []).map((rule) => place('allow', rule)),
    ...(ruleSet.deny_rules ?? []).map((rule) => place(denyType(rule), rule)),
  ]
}

/** Replaces rule fields of unexpected shape with readable lists, so that the rule can be searched and shown. */
const withEnds = <T extends AnyRule>(rule: T): T => ({ ...rule, ...readableEnds(rule) })

/**
 * The default page size of a PCE. If the length of a list is a multiple of this number, the PCE may have truncated the
 * list silently (P8).
 */
const PCE_PAGE = 500

/**
 * Runs several rule searches on the PCE and returns the rules that they found, each once and without enforcement
 * boundaries. If the PCE has no rule search, refuses it, or may have truncated the result, returns a string with the
 * reason.
 */
export async function searchRules(
  { pce, signal }: Context,
  version: 'draft' | 'active',
  queries: readonly object[],
): Promise<PlacedRule[] | string> {
  const found = new Map<string, PlacedRule>()
  for (const query of queries) {
    try {
      const rules = await pce.searchRules({ ...query, rule_types: RULE_TYPES.map(pceNameOf) }, version, { signal })
      if (rules.length > 0 && rules.length % PCE_PAGE === 0) return 'the rule search of the PCE may have been cut'
      for (const { rule_type: pceName, rule_set: holder, ...rule } of rules) {
        const type = RULE_TYPES.find((one) => pceNameOf(one) === pceName)
        if (type === undefined) continue
        if (holder?.name === undefined || holder.scopes == null)
          return 'the rule search of the PCE leaves out rule sets'
        found.set(rule.href, {
          type,
          rule: withEnds(rule as unknown as AnyRule),
          holder: {
            href: holder.href,
            name: holder.name,
            enabled: holder.enabled !== false,
            scopes: readableScopes(holder.scopes),
          },
          isBoundary: false,
        })
      }
    } catch (error) {
      if (!(error instanceof PceApiError) || error.status === 401) throw error
      return `the rule search of the PCE answered ${error.status}`
    }
  }
  return [...found.values()]
}

/**
 * Sorts rules by rule set and, within a rule set, by type in the order of RULE_TYPES. Enforcement boundaries come last.
 */
export function inOrder(rules: readonly PlacedRule[]): PlacedRule[] {
  const idOf = (href: string) => href.slice(href.lastIndexOf('/') + 1)
  const byId = (a: string, b: string) => idOf(a).length - idOf(b).length || compareTexts(idOf(a), idOf(b))
  return [...rules].sort(
    (a, b) =>
      Number(a.isBoundary) - Number(b.isBoundary) ||
      byId(a.holder.href, b.holder.href) ||
      RULE_TYPES.indexOf(a.type) - RULE_TYPES.indexOf(b.type) ||
      byId(a.rule.href, b.rule.href),
  )
}

/**
 * Loads the objects that are needed to interpret the rules of a policy version, limited to the types in `needs`.
 * Answers that depend on a missing object are undecided.
 */
export async function loadCatalog(
  { pce, signal }: Context,
  version: PolicyVersionSelector,
  labels: LabelIndex,
  needs: ReadonlySet<'services' | 'ipLists' | 'labelGroups'>,
): Promise<PolicyCatalog> {
  const read = async <K extends 'services' | 'ipLists' | 'labelGroups'>(kind: K): Promise<never[]> => {
    if (!needs.has(kind)) return []
    const api: ListQuery<object>['api'] = pce[kind]
    const { items } = await fetchEvery({ api, policyVersion: version, params: {}, signal })
    return (typeof version === 'number' ? asActive(items, version) : items) as never[]
  }
  const [services, lists, groups] = await Promise.all([read('services'), read('ipLists'), read('labelGroups')])
  return catalogOf({ labels, services, lists, groups })
}

/** Copies a value. In the copy, all hrefs of the numbered version are replaced with active hrefs. */
function asActive<T>(value: T, version: number): T {
  const from = `/sec_policy/${version}/`
  const map = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(map)
    if (typeof inner !== 'object' || inner === null) return inner
    return Object.fromEntries(
      Object.entries(inner).map(([field, own]) => [
        field,
        field === 'href' && typeof own === 'string' ? toActiveHref(own.replace(from, '/sec_policy/active/')) : map(own),
      ]),
    )
  }
  return map(value) as T
}

/** Converts an active href to an href of the policy version that was read. */
export const asVersion = (href: string, version: PolicyVersionSelector): string =>
  typeof version === 'number' ? href.replace('/sec_policy/active/', `/sec_policy/${version}/`) : href
