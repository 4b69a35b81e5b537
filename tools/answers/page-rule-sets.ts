import type { Limits } from '../../schemas/config.js'
import { answerPage, type Paging } from './answer-page.js'
import type { Slice } from './fetch-slice.js'
import { encodeCursor, type Position } from './list-cursor.js'
import { answerBudget, countRowsThatFit, jsonBytes } from './split-format.js'

interface ShownRuleSet {
  href: string
  rules: unknown[]
}

/** Room left for the paging facts and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * Pages rule sets, and inside a rule set that is larger than one answer its rules: that one comes alone, with `rules_from`
 * where it continues, and the cursor goes on in the middle of it. Nothing is out of reach because of its size.
 */
export async function pageRuleSets<T extends { href: string }, R extends ShownRuleSet>(
  tool: string,
  filters: object,
  position: Position,
  slice: Slice<T>,
  ruleSets: readonly R[],
  limits: Limits,
): Promise<{ rulesets: (R & { rules_from?: number })[]; paging: Paging }> {
  const [first, ...rest] = ruleSets
  if (first === undefined) return finish(await answerPage(tool, filters, slice, ruleSets, limits))
  const from = position.within?.href === first.href ? position.within.parts : 0
  const opened = from === 0 ? first : { ...first, rules: first.rules.slice(from), rules_from: from }
  if (jsonBytes(opened) + ENVELOPE_BYTES <= answerBudget(limits)) {
    return finish(await answerPage(tool, filters, slice, [opened, ...rest], limits, { rulesets: [] }))
  }
  const kept = countRowsThatFit(opened.rules, [{ ...opened, rules: [] }, ' '.repeat(ENVELOPE_BYTES)], limits)
  const whole = kept === opened.rules.length
  const next: Position = whole
    ? { offset: slice.start + 1, after: first.href, within: null }
    : { offset: slice.start, after: position.after, within: { href: first.href, parts: from + kept } }
  const more = !whole || slice.more || ruleSets.length > 1
  return {
    rulesets: [{ ...opened, rules: opened.rules.slice(0, kept) }],
    paging: {
      total_count: slice.totalCount,
      pce_total: slice.pceTotal,
      truncated: more,
      ...(more ? { next_cursor: await encodeCursor(tool, filters, next) } : {}),
    },
  }
}

function finish<R>({ rows, paging }: { rows: R[]; paging: Paging }) {
  return { rulesets: rows, paging }
}
