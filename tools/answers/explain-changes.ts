import { EFFECT_MEANINGS, RISK_MEANINGS, type ChangeEffect, type PolicyChange } from '../../schemas/policy-changes.js'
import { isMixed, rankForReview } from '../../domain/policy/judge-change.js'
import { clipText, quote } from '../../domain/text/escape-text.js'

/** The fields of a pending change that are needed to describe its effect. */
export type JudgedRow = Pick<PolicyChange, 'href' | 'effect' | 'effect_note' | 'risks'> & {
  name?: string | undefined
  /** True if the effect of the change on the permitted traffic was not determined. */
  isUnjudged?: boolean
}

const MOST_NAMED = 5
export const LONGEST_NAME = 60

/**
 * Sorts changes, the most dangerous first. A change with an unknown effect ranks like one that may permit anything. The
 * sort is stable.
 */
export function worstFirst<T extends Pick<PolicyChange, 'risks' | 'effect'>>(changes: readonly T[]): T[] {
  return [...changes].sort((a, b) => rankForReview(a) - rankForReview(b))
}

/**
 * Describes how changes affect the permitted traffic, and names the changes to review. `since` says with which policy
 * they are compared: `today`, or for example `in version 12`.
 */
export function describeEffects(rows: readonly JudgedRow[], since = 'today'): string {
  const judged = rows.filter(({ isUnjudged }) => isUnjudged !== true)
  const count = (effect: ChangeEffect) => judged.filter((row) => row.effect === effect).length
  const shareOf = (part: number) =>
    part < rows.length ? `${part} of these` : rows.length === 1 ? 'It' : 'All of these'
  const [wider, narrower, mixed] = [count('widening'), count('narrowing'), judged.filter(isMixed).length]
  const undecided = judged.length - wider - narrower - mixed - count('neutral')
  const risky = worstFirst(judged.filter(({ risks = [] }) => risks.length > 0))
  const unjudged = rows.length - judged.length
  return [
    wider > 0 ? `${shareOf(wider)} may permit more traffic than ${since}.` : '',
    narrower > 0 ? `${shareOf(narrower)} may permit less.` : '',
    mixed > 0 ? `${shareOf(mixed)} ${mixed === 1 ? 'permits' : 'permit'} some traffic more and some less.` : '',
    undecided > 0 ? `${shareOf(undecided)} may permit more or less: the effect could not be determined.` : '',
    judged.length > 0 && count('neutral') === rows.length
      ? `${rows.length === 1 ? 'It does not change' : 'None of these changes'} what is permitted.`
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

/**
 * Returns the meanings of those words for effects and risks that occur in these changes. `since` is as in
 * `describeEffects`.
 */
export function explainWords(changes: readonly Explained[], since = 'today'): Record<string, string> {
  const words = new Set<string>()
  for (const change of changes) {
    for (const one of [change, ...(change.rules ?? [])])
      for (const word of [one.effect, ...(one.risks ?? []), ...Object.values(one.effect_by_rule_type ?? {})])
        if (word !== undefined) words.add(word)
  }
  const meanings: Readonly<Record<string, string>> = { ...EFFECT_MEANINGS, ...RISK_MEANINGS }
  const used = Object.entries(meanings).filter(([word]) => words.has(word))
  return Object.fromEntries(used.map(([word, text]) => [word, speakOf(text, since)]))
}

/**
 * Adapts a sentence about effects to a comparison with a policy other than today's, by replacing the word `today` with
 * `since`.
 */
export const speakOf = (text: string, since: string): string => text.replace(/\btoday\b/g, () => since)

type Explained = Pick<PolicyChange, 'effect' | 'effect_by_rule_type' | 'risks'> & Pick<Partial<PolicyChange>, 'rules'>
