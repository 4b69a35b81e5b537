import {
  EFFECT_MEANINGS,
  RISK_MEANINGS,
  type ChangeEffect,
  type PolicyChange,
  type Risk,
} from '../../schemas/policy-changes.js'
import { rankForReview } from '../../domain/policy/judge-change.js'
import { clipText, quote } from '../../domain/text/escape-text.js'

/** A pending change as far as the words for its effect go. */
export type JudgedRow = Pick<PolicyChange, 'href' | 'effect' | 'risks'> & {
  name?: string | undefined
  /** Absent: it was judged. */
  isUnjudged?: boolean
}

const MOST_NAMED = 5
export const LONGEST_NAME = 60

/** Changes with the worst first; what was not judged stands with what may do anything. Equal ones stay in their order. */
export function worstFirst<T extends Pick<PolicyChange, 'risks' | 'effect'>>(changes: readonly T[]): T[] {
  return [...changes].sort((a, b) => rankForReview(a) - rankForReview(b))
}

/** What changes do to permitted traffic and which of them to review, in sentences. */
export function describeEffects(rows: readonly JudgedRow[]): string {
  const judged = rows.filter(({ isUnjudged }) => isUnjudged !== true)
  const count = (effect: ChangeEffect | undefined) => judged.filter((row) => row.effect === effect).length
  const shareOf = (part: number) =>
    part < rows.length ? `${part} of these` : rows.length === 1 ? 'It' : 'All of these'
  const [wider, narrower, undecided] = [count('widening'), count('narrowing'), count(undefined)]
  const risky = worstFirst(judged.filter(({ risks = [] }) => risks.length > 0))
  const unjudged = rows.length - judged.length
  return [
    wider > 0 ? `${shareOf(wider)} may permit more traffic than today.` : '',
    narrower > 0 ? `${shareOf(narrower)} may permit less.` : '',
    undecided > 0 ? `${shareOf(undecided)} may permit more or less: the effect could not be determined.` : '',
    judged.length > 0 && count('neutral') === rows.length
      ? `${rows.length === 1 ? 'It changes' : 'None of these changes'} what is permitted.`
      : '',
    unjudged > 0 ? `${shareOf(unjudged)} ${unjudged === 1 ? 'was' : 'were'} not looked at.` : '',
    risky.length > 0
      ? `Review ${risky.slice(0, MOST_NAMED).map(describeRisk).join('; ')}${risky.length > MOST_NAMED ? ` and ${risky.length - MOST_NAMED} more` : ''}.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

const describeRisk = ({ name, href, risks }: JudgedRow) =>
  `${name === undefined || name === '' ? href : quote(clipText(name, LONGEST_NAME))} (${risks?.join(', ')})`

/** What the words for effects and risks mean, as far as these changes use them. */
export function explainWords(changes: readonly PolicyChange[] | readonly JudgedRow[]): Record<string, string> {
  const effects = new Set<ChangeEffect | 'undecided'>()
  const risks = new Set<Risk>()
  for (const change of changes as readonly (JudgedRow & Partial<PolicyChange>)[]) {
    if (change.isUnjudged === true || change.diff_error !== undefined) continue
    for (const one of [change, ...(change.rules ?? [])]) {
      effects.add(one.effect ?? 'undecided')
      for (const risk of one.risks ?? []) risks.add(risk)
      for (const word of Object.values(one.effect_by_rule_type ?? {})) if (word !== 'mixed') effects.add(word)
    }
  }
  const pick = <K extends string>(meanings: Readonly<Record<K, string>>, used: ReadonlySet<K>) =>
    Object.entries(meanings).filter(([word]) => used.has(word as K))
  return Object.fromEntries([...pick(EFFECT_MEANINGS, effects), ...pick(RISK_MEANINGS, risks)]) as Record<
    string,
    string
  >
}
