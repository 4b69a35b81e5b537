import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import type { Version } from '../inventory/find-object.js'
import { loadLabels } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import { countOf } from '../text/describe-numbers.js'
import { workInTurns } from '../text/pace-work.js'
import type { PolicyContents } from '../policy/load-contents.js'
import { isInForce, loadSnapshot, rulesOf, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { namesOf, withUserGroups } from '../policy/name-references.js'
import { findRedundantRules, type DatedRule, type RedundantRules } from './find-redundant.js'
import { loadPopulation, type Population } from './population.js'

/**
 * A rule and its holder, which is the rule set that contains it; the holder of an enforcement boundary is the boundary
 * itself.
 */
export interface HeldRule extends DatedRule {
  holder: { href: string; name: string }
  isBoundary: boolean
}

export interface EmptyScope {
  ruleSet: RuleSet
  /**
   * The scopes of the rule set that match no workload. If this is true of all its scopes, the rule set applies to
   * nothing.
   */
  scopes: RuleSet['scopes']
}

export interface RuleReport extends RedundantRules {
  rules: readonly HeldRule[]
  emptyScopes: EmptyScope[]
  /**
   * Number of rule sets for which it is not known whether a scope is empty, for example because a label group could not
   * be read.
   */
  unclearScopes: number
  population: Population
  names: ReferenceNames
  /** Descriptions of the parts that could not be assessed, each with the reason. */
  notAssessed: string[]
}

/**
 * Finds rules of a policy version that change nothing, and scopes that contain no workload. Disabled rules and rules
 * that are pending deletion do not count. Throws the errors of the PCE client.
 */
export async function judgeRules(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'now' | 'progress'>,
  version: Version,
): Promise<RuleReport> {
  ctx.progress({ progress: 0, total: 3, message: 'Reading the policy' })
  const snapshot = await withDenyRules(ctx, await loadSnapshot(ctx, version, await loadLabels(ctx.pce, ctx)))
  ctx.progress({ progress: 1, total: 3, message: 'Reading the labels of all workloads' })
  const population = await loadPopulation(ctx, version, workloadsIn(snapshot))
  const rules = holdRules(snapshot, {
    ...snapshot,
    labelsOf: (href: string) => population.named.get(href)?.labels,
  })
  ctx.progress({ progress: 2, total: 3, message: `Comparing ${rules.length} rules` })
  const found = await workInTurns(findRedundantRules(rules), ctx.signal)
  const names = namesOf(snapshot, (href) => population.named.get(href)?.name)
  return {
    ...found,
    rules,
    ...findEmptyScopes(snapshot, population),
    population,
    names: await withUserGroups(
      ctx,
      names,
      rules.map(({ rule }) => rule),
    ),
    notAssessed: [...listUnreadLists(snapshot, rules), ...listUnread(snapshot, population)],
  }
}

/** Lists the rules of a policy that are in force, or would be in force if the policy were provisioned. */
export function holdRules(
  snapshot: Pick<PolicySnapshot, 'ruleSets' | 'boundaries'>,
  contents: PolicyContents,
): HeldRule[] {
  const since = ({ created_at: created }: { created_at?: string | null }) => created ?? ''
  const held = snapshot.ruleSets.filter(isInForce).flatMap((ruleSet) =>
    RULE_TYPES.flatMap((type) =>
      rulesOf(ruleSet, type).map((rule) => ({
        type,
        rule: rule,
        scopes: ruleSet.scopes,
        contents,
        since: since(rule),
        holder: ruleSet,
        isBoundary: false,
      })),
    ),
  )
  const boundaries = snapshot.boundaries.filter(isInForce).map((boundary) => ({
    type: 'deny' as const,
    rule: { ...boundary, enabled: true, unscoped_consumers: true },
    scopes: [[]],
    contents,
    since: since(boundary),
    holder: boundary,
    isBoundary: true,
  }))
  return [...held, ...boundaries]
}

function workloadsIn({ ruleSets, boundaries }: PolicySnapshot): Set<string> {
  const rules = [...ruleSets.flatMap((set) => [...(set.rules ?? []), ...(set.deny_rules ?? [])]), ...boundaries]
  return new Set(
    rules.flatMap(({ providers, consumers }) =>
      [...providers, ...consumers].flatMap(({ workload }) => workload?.href ?? []),
    ),
  )
}

function findEmptyScopes(snapshot: PolicySnapshot, population: Population) {
  const emptyScopes: EmptyScope[] = []
  let unclearScopes = 0
  if (population.unread.length > 0) return { emptyScopes, unclearScopes }
  for (const ruleSet of snapshot.ruleSets.filter(isInForce)) {
    const answers = ruleSet.scopes.map((scope) => population.has(scope, snapshot))
    if (answers.includes(null)) unclearScopes += 1
    const scopes = ruleSet.scopes.filter((_, at) => answers[at] === false)
    if (scopes.length > 0) emptyScopes.push({ ruleSet, scopes })
  }
  return { emptyScopes, unclearScopes }
}

/**
 * Counts rules that are disabled or belong to a disabled rule set. Rules marked for deletion are not counted, because
 * enabling them would have no effect.
 */
function countDisabled({ ruleSets, boundaries }: Pick<PolicySnapshot, 'ruleSets' | 'boundaries'>): number {
  const isKept = ({ update_type: pending }: { update_type?: string | null }) => pending !== 'delete'
  const inSets = ruleSets
    .filter(isKept)
    .flatMap((set) =>
      [...(set.rules ?? []), ...(set.deny_rules ?? [])].filter(
        (rule) => isKept(rule) && !(isInForce(set) && isInForce(rule)),
      ),
    )
  return inSets.length + boundaries.filter((boundary) => isKept(boundary) && !isInForce(boundary)).length
}

/**
 * Returns a sentence that says how many rules refer to an IP list that could not be read. For these rules it is not
 * known whether rules with other IP lists cover them.
 */
function listUnreadLists({ listOf }: PolicySnapshot, rules: readonly HeldRule[]): string[] {
  const unread = new Set<string>()
  const holding = rules.filter(({ rule: { providers, consumers } }) => {
    const named = [...providers, ...consumers].flatMap(({ ip_list: list }) => list?.href ?? [])
    const missing = named.filter((href) => listOf(href) === undefined)
    for (const href of missing) unread.add(toDraftHref(href))
    return missing.length > 0
  })
  if (holding.length === 0) return []
  return [
    `${countOf(unread.size, 'IP list')} could not be read, and ${countOf(holding.length, 'rule')} ${holding.length === 1 ? 'names' : 'name'} such a list: whether rules with other lists cover them is not known.`,
  ]
}

function listUnread({ unread, ruleSets, boundaries }: PolicySnapshot, population: Population): string[] {
  const [why] = unread.values()
  const disabled = countDisabled({ ruleSets, boundaries })
  const iptables = ruleSets.filter(isInForce).flatMap(({ ip_tables_rules: rules }) => rules ?? [])
  return [
    ...(why === undefined ? [] : [`The deny rules of ${unread.size} rule sets could not be read: ${why}`]),
    ...(population.unread.length === 0
      ? []
      : [`Scopes: who is in them is not known, because ${population.unread.join('; ')}`]),
    ...(iptables.length === 0 ? [] : [`${iptables.length} rules in the words of iptables are not compared.`]),
    ...(disabled === 0
      ? []
      : [
          `${countOf(disabled, 'rule')} that ${disabled === 1 ? 'is' : 'are'} switched off, or in a rule set that is, ${disabled === 1 ? 'was' : 'were'} not judged.`,
        ]),
  ]
}
