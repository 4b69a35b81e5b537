import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, StringEnum, Text } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { RuleTypeOut } from '../../../schemas/rule-shapes.js'
import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { nameRule } from '../../../domain/policy/name-rule.js'
import type { HeldRule, RuleReport } from '../../../domain/hygiene/judge-rules.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { adviseOnRows, showSections, Truncation } from '../byte-budget.js'
import { nameScope, nameScopes } from './name-scopes.js'

/** The kinds of findings about rules and scopes, the most certain first. */
export const FINDING_KINDS = [
  'duplicate',
  'covered',
  'always_denied',
  'always_allowed',
  'names_nobody',
  'any_to_any',
  'scope_without_workloads',
] as const
export type FindingKind = (typeof FINDING_KINDS)[number]

const MEANINGS: Readonly<Record<FindingKind, string>> = {
  duplicate: 'the rule in `by` decides about exactly the same connections',
  covered: 'the rules in `by`, together, decide about everything it decides about',
  always_denied: 'the override deny rules in `by` come first and block everything it allows',
  always_allowed: 'the rules in `by` come first for everything it denies, so it never blocks anything',
  names_nobody:
    'within the scopes of its rule set its ends are nobody, or addresses on both sides, so it is written nowhere',
  any_to_any: 'it allows every service between any address or all workloads on both sides',
  scope_without_workloads: 'no workload, container or virtual service has the labels of this scope',
}

/** Maximum numbers of rules that a finding names as the reason for redundancy, and of examples of undecided rules. */
const MOST_SHOWN = 5
const STANDARD_FINDINGS = 10

const RuleLine = {
  rule_type: RuleTypeOut,
  href: Type.String(),
  rule: Text('In one line: sources to destinations, services'),
  rule_set: Text('Its name, or that of the enforcement boundary'),
  scope: Text('Of its rule set'),
  unscoped_consumers: Type.Optional(Type.Boolean({ description: 'Sources beyond the scope' })),
  pending: Type.Optional(Text('Change that is not provisioned: of the rule, or as `rule set: update` of its rule set')),
}

const Finding = Type.Object({
  kind: StringEnum(FINDING_KINDS),
  ...RuleLine,
  by: Type.Optional(Type.Array(Type.Object(RuleLine), { description: 'The proof: rules that decide in its place' })),
  by_total: Type.Optional(Count('Where more prove it than are shown')),
})

export const RedundantOutput = Type.Object({
  summary: Text('What was found'),
  policy_version: Text('Which one was judged'),
  rules_compared: Counts('Enabled rules, by type'),
  counts: Counts('Findings by kind, shown or not'),
  undecided: Type.Optional(
    Type.Object(
      {
        rules: Count('Rules that may be redundant'),
        because: Type.Array(Type.String(), { description: 'Why' }),
        examples: Type.Array(Type.Object(RuleLine)),
      },
      { description: 'Neither proven nor ruled out' },
    ),
  ),
  ...AssumesOut,
  not_assessed: Type.Optional(Type.Array(Type.String(), { description: 'What is not in this answer, and why' })),
  meanings: Type.Record(Type.String(), Type.String(), { description: 'Of the kinds found' }),
  findings: Type.Array(Finding, { description: 'Rules, the surest kinds first' }),
  scopes: Type.Array(
    Type.Object({
      rule_set: Text('Its name'),
      href: Type.String(),
      scopes: Type.Array(Type.String(), { description: 'Those without workloads' }),
      scopes_total: Count('Scopes it has'),
      rules: Count('Enabled rules it has'),
    }),
    { description: 'Rule sets with scopes that nothing is in' },
  ),
  ...Truncation,
})

interface Shown {
  kinds: ReadonlySet<FindingKind>
  /** If the caller limited the findings to one rule set, its draft href. */
  ruleSet: string | undefined
  detail: 'standard' | 'full'
  version: 'draft' | 'active'
  limits: Limits
}

/** Builds the answer about redundant rules. Counts cover all requested findings; the answer has as many rows as fit. */
export function showRedundant(
  report: RuleReport,
  { kinds, ruleSet, detail, version, limits }: Shown,
): Static<typeof RedundantOutput> {
  const { rules, names } = report
  const line = (at: number) => describe(rules[at] as HeldRule, names)
  const isWanted = (at: number) => ruleSet === undefined || toDraftHref((rules[at] as HeldRule).holder.href) === ruleSet
  const all = [
    ...report.redundant,
    ...report.anyToAny.map((rule) => ({ kind: 'any_to_any' as const, rule, by: [] })),
  ].filter(({ kind, rule }) => kinds.has(kind) && isWanted(rule))
  const sorted = all.sort((a, b) => FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind) || a.rule - b.rule)
  const findings = sorted.map(({ kind, rule, by }) => ({
    kind,
    ...line(rule),
    ...(by.length > 0 && { by: by.slice(0, MOST_SHOWN).map(line) }),
    ...(by.length > MOST_SHOWN && { by_total: by.length }),
  }))
  const scopes = kinds.has('scope_without_workloads') ? listScopes(report, ruleSet) : []
  const counts = countKinds([...all.map(({ kind }) => kind), ...scopes.map(() => 'scope_without_workloads' as const)])
  const undecided = describeUndecided(report, isWanted, line)
  const isUnclear = report.undecided.some(({ rule, because }) => because === 'unclear' && isWanted(rule))
  const compared = countKinds(rules.map(({ type }) => type))
  return showSections(
    {
      summary: [
        summarise(
          report,
          version,
          all.length - (counts.any_to_any ?? 0),
          counts,
          undecided?.rules ?? 0,
          kinds.size < FINDING_KINDS.length || ruleSet !== undefined,
        ),
        ...tellPending(all.map(({ by }) => by.map((at) => rules[at] as HeldRule))),
      ].join(' '),
      policy_version: version,
      rules_compared: compared,
      counts,
      ...(undecided !== undefined && { undecided }),
      ...showAssumed(isUnclear ? ['P65'] : []),
      ...(report.notAssessed.length > 0 && { not_assessed: report.notAssessed }),
      meanings: Object.fromEntries(
        FINDING_KINDS.filter((kind) => counts[kind] !== undefined).map((kind) => [kind, MEANINGS[kind]]),
      ),
    },
    { findings: { rows: findings, total: findings.length }, scopes: { rows: scopes, total: scopes.length } },
    {
      detail,
      limits,
      standard: STANDARD_FINDINGS,
      hint: (limit, isFull) =>
        `Each list shows ${limit} at most; ${adviseOnRows(detail, isFull, 'kinds and rule_set show fewer at a time.')}`,
    },
  )
}

function summarise(
  { rules, population, unclearScopes }: RuleReport,
  version: string,
  removable: number,
  counts: Partial<Record<string, number>>,
  undecided: number,
  isNarrowed: boolean,
): string {
  const any = counts.any_to_any ?? 0
  const scopes = counts.scope_without_workloads ?? 0
  const all =
    version === 'draft' ? `the ${rules.length} enabled rules of the draft` : `the ${rules.length} rules in force`
  return [
    removable === 0
      ? `None of ${all} is found redundant${isNarrowed ? ' in what was asked for' : ''}.`
      : `${removable} of ${all} can be removed, all of them at once, without changing what is decided about any connection.`,
    ...(any > 0 ? [`${countOf(any, 'rule')} from anything to anything.`] : []),
    ...(scopes > 0
      ? [`${countOf(scopes, 'rule set')} with scopes that none of ${population.workloads} workloads is in.`]
      : []),
    ...(undecided > 0 ? [`${undecided} more may be redundant: undecided.`] : []),
    ...(unclearScopes > 0 ? [`The scopes of ${countOf(unclearScopes, 'rule set')} are not clear.`] : []),
  ].join(' ')
}

/**
 * Returns warnings that some findings hold only once pending changes are provisioned. `proofs` lists the rules on which
 * each finding rests. A rule set counts as pending even if only others of its rules have changes.
 */
function tellPending(proofs: readonly (readonly HeldRule[])[]): string[] {
  const isSure = ({ rule, holder }: HeldRule) => updateOf(rule) != null || updateOf(holder) === 'create'
  const [sure, open] = [
    proofs.filter((by) => by.some(isSure)).length,
    proofs.filter((by) => !by.some(isSure) && by.some((held) => pendingOf(held) !== undefined)).length,
  ]
  const rest = (many: number) => `${many} ${many === 1 ? 'rests' : 'rest'}`
  return [
    ...(sure > 0
      ? [
          `${rest(sure)} on rules with changes that are not provisioned (pending in \`by\`): provision these first, or together with the removal, or what is in force loses them.`,
        ]
      : []),
    ...(open > 0
      ? [
          `${rest(open)} on rules whose rule sets have pending changes, perhaps only of other rules (\`rule set: update\` in \`by\`): compare-draft-active shows whether scopes or the state of the rule set are among them.`,
        ]
      : []),
  ]
}

const updateOf = (object: object) => (object as { update_type?: string | null }).update_type

/** Returns the pending change of a rule or, if it has none, that of its rule set. */
function pendingOf({ rule, holder }: HeldRule): string | undefined {
  const around = updateOf(holder)
  return updateOf(rule) ?? (around == null ? undefined : `rule set: ${around}`)
}

const REASONS = {
  unclear: 'what it depends on is not documented, such as excluded labels or empty label groups',
  size: 'too many rules overlap with it to compare them all',
} as const

function describeUndecided(
  { undecided }: RuleReport,
  isWanted: (at: number) => boolean,
  line: (at: number) => ReturnType<typeof describe>,
) {
  const wanted = undecided.filter(({ rule }) => isWanted(rule))
  if (wanted.length === 0) return undefined
  return {
    rules: wanted.length,
    because: [...new Set(wanted.map(({ because }) => REASONS[because]))],
    examples: wanted.slice(0, MOST_SHOWN).map(({ rule }) => line(rule)),
  }
}

function listScopes({ emptyScopes, names }: RuleReport, wanted: string | undefined) {
  return emptyScopes
    .filter(({ ruleSet: { href } }) => wanted === undefined || toDraftHref(href) === wanted)
    .map(({ ruleSet, scopes }) => ({
      rule_set: ruleSet.name,
      href: ruleSet.href,
      scopes: scopes.map((scope) => nameScope(scope, names)),
      scopes_total: ruleSet.scopes.length,
      rules: [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].filter(({ enabled }) => enabled).length,
    }))
}

function describe(held: HeldRule, names: ReferenceNames) {
  const { type, rule, holder, scopes, isBoundary } = held
  const pending = pendingOf(held)
  return {
    rule_type: type,
    href: rule.href,
    rule: nameRule(rule, names),
    ...(rule.unscoped_consumers === true && !isBoundary && { unscoped_consumers: true }),
    rule_set: isBoundary ? `enforcement boundary ${holder.name}` : holder.name,
    scope: nameScopes(scopes, names),
    ...(pending !== undefined && { pending }),
  }
}

function countKinds<K extends string>(kinds: readonly K[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
