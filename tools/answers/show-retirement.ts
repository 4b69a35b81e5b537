import { Type, type Static } from '@sinclair/typebox'
import { StringEnum, Text, Count } from '../../schemas/common.js'
import { RuleTypeOut } from '../../schemas/rule-shapes.js'
import type { ShownObject } from '../../schemas/approvals.js'
import type { Preview } from '../../domain/call.js'
import type { DraftEvidence } from '../../domain/history/observe-draft.js'
import type { ExpiredRule, ExpiredRules, Retirement } from '../../domain/history/find-expired.js'
import type { Retired } from '../../domain/history/retire-rules.js'
import type { ReferenceNames } from '../../domain/inventory/reference-names.js'
import { nameRule } from '../../domain/policy/name-rule.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { coverageNote } from '../../domain/traffic/read-flows.js'
import {
  EVIDENCE,
  EVIDENCE_MEANINGS,
  NOT_KNOWN,
  showEvidence,
  showOnPage,
  type EvidenceShown,
} from './show-evidence.js'

const Pair = Type.Object({
  source: Text('Application, host or address'),
  destination: Text('Application, host or address'),
  ports: Type.Array(Type.String(), { description: 'The busiest' }),
  connections: Count('Observed'),
  effect: Text('Of retiring'),
  last_seen: Type.Optional(Text('Day, UTC')),
})
export const RetiredRuleOut = Type.Object({
  href: Type.String(),
  rule_type: RuleTypeOut,
  rule: Text('In one line'),
  rule_set: Text('Its name'),
  expires: Text('Last day, UTC'),
  outcome: Type.Optional(Text('disabled, deleted, kept or differs; absent in a dry run')),
  note: Type.Optional(Text('Why it was kept, or differs')),
  evidence: Type.Optional(StringEnum(EVIDENCE, { description: 'Of a dry run: what observed traffic says' })),
  says: Type.Optional(Text('In a sentence')),
  depends: Type.Optional(Type.Array(Pair, { description: 'Traffic that would be cut, the busiest' })),
  asked_for: Type.Optional(Type.Array(Pair, { description: 'Traffic that would pass, the busiest' })),
  pairs_total: Type.Optional(Count('Pairs, where more than shown')),
})
export type RetiredRule = Static<typeof RetiredRuleOut>

/** What observed traffic shows about the rules to retire, or the reason why that is not known. */
export type RetirementEvidence = DraftEvidence | string

const NOT_IN_FORCE = 'It is not in force, so no traffic depends on it.'

/** Shows the rules of a dry run with their evidence. Rules on which traffic depends come first. */
export function showPlanned(
  chosen: readonly ExpiredRule[],
  names: ReferenceNames,
  evidence: RetirementEvidence | null,
): RetiredRule[] {
  const rows = chosen.map((one) => ({ ...facts(one, names), ...evidenceOf(one.href, evidence) }))
  return rows.toSorted((a, b) => rank(a) - rank(b))
}

const rank = ({ evidence }: RetiredRule): number => (evidence === undefined ? 0 : EVIDENCE.indexOf(evidence))

function evidenceOf(href: string, evidence: RetirementEvidence | null): Partial<EvidenceShown> {
  if (evidence === null) return {}
  if (typeof evidence === 'string') return { evidence: 'not_known' }
  const { changes, read } = evidence
  const shown = showEvidence(changes.get(href) ?? { kind: 'no_rules' }, read?.truncated ?? false)
  return shown.evidence === 'no_rules' ? { ...shown, says: NOT_IN_FORCE } : shown
}

/** Shows the rules of a real call, each with its outcome. */
export function showRetired(
  chosen: readonly ExpiredRule[],
  names: ReferenceNames,
  retired: readonly Retired[],
): RetiredRule[] {
  const outcomes = new Map(retired.map((one) => [one.href, one]))
  return chosen.map((one) => {
    const { outcome, note } = outcomes.get(one.href) ?? {}
    return { ...facts(one, names), ...(outcome && { outcome }), ...(note && { note }) }
  })
}

const facts = ({ href, type, rule, ruleSet, date }: ExpiredRule, names: ReferenceNames) => ({
  href,
  rule_type: type,
  rule: nameRule(rule, names),
  rule_set: ruleSet.name,
  expires: date,
})

/** Returns warnings about the traffic that would be cut or allowed if these rules were retired. */
export function warnOfEvidence(rows: readonly RetiredRule[], evidence: RetirementEvidence | null): string[] {
  if (evidence === null) return []
  if (typeof evidence === 'string') return [evidence]
  const counts = EVIDENCE.map((word) => [word, rows.filter((row) => row.evidence === word).length] as const)
  const telling = counts.filter(([word, count]) => count > 0 && !QUIET.has(word))
  return telling.map(([word, count]) => `Of ${countOf(count, 'rule')}: ${EVIDENCE_MEANINGS[word]}.`)
}
const QUIET: ReadonlySet<string> = new Set(['none', 'no_rules'])

/** Returns the fields of an answer that say which traffic was read. */
export function showReading(evidence: RetirementEvidence | null): { observed?: Record<string, unknown> } {
  if (evidence === null || typeof evidence === 'string' || evidence.read === null) return {}
  const { read, modes } = evidence
  const notes = [
    'All of these rules are taken away together, and judged by policy, whatever the PCE recorded.',
    ...modes,
    ...(read.truncated ? [`The limit of ${read.rowLimit} rows was reached: counts are lower bounds.`] : []),
    coverageNote({ ...read, full: 0, announced: null }),
  ]
  const cut = read.truncated ? { flows_truncated: true, row_limit: read.rowLimit } : {}
  return { observed: { window: read.window, rows: read.rows, ...cut, note: notes.filter(Boolean).join(' ') } }
}

/** Returns the unconfirmed facts in docs/pce-facts.md on which the evidence depends. */
export function assumedByEvidence(evidence: RetirementEvidence | null): string[] {
  if (evidence === null || typeof evidence === 'string') return []
  const facts = [...evidence.changes.values()].flatMap((one) => (one.kind === 'judged' ? one.assumes : []))
  return [...new Set(facts)].sort()
}

/** Returns sentences about the rules that the call leaves alone. */
export function warnOfRest({ unclear, left }: ExpiredRules): string[] {
  return [
    ...(unclear.length > 0
      ? [
          `${countOf(unclear.length, 'description')} about an end that cannot be read: see unclear. They were left alone.`,
        ]
      : []),
    ...(left > 0 ? [`${countOf(left, 'further rule')} over: repeat the call for the next ones.`] : []),
  ]
}

/** Returns what a person sees before rules are retired: each rule, when it ends, and what traffic shows about it. */
export function pageOfRetirement(
  rows: readonly RetiredRule[],
  action: Retirement,
  warnings: readonly string[],
): NonNullable<Preview['page']> {
  return {
    warnings: [...warnings],
    objects: rows.map(({ says = NOT_KNOWN, ...row }): ShownObject => ({
      kind: `${row.rule_type.replaceAll('_', ' ')} rule`,
      name: `${row.rule} (${row.rule_set})`,
      href: row.href,
      change: action === 'delete' ? 'delete' : 'update',
      ...(row.evidence !== undefined && { evidence: showOnPage({ ...row, says }) }),
      fields: action === 'delete' ? [] : [{ path: 'enabled', before: true, after: false }],
      note: `It ended after ${row.expires}.`,
    })),
    objects_total: rows.length,
  }
}
