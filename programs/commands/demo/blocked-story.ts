import { answered, chapter, lines } from './print.js'

/** Calls a tool and prints the call. Resolves with the tool's answer. */
export type Ask = <T>(name: string, args: Record<string, unknown>) => Promise<T>

interface Explanation {
  active: { verdict: string; why: string }
  draft: { verdict: string; why: string }
  source: { does?: string }
  destination: { does?: string }
  rules: { rule: string; ruleset: string }[]
  observed?: { days: number; connections: Record<string, number> }
  pce_check: { agrees: boolean | null }
}

interface Suggestion {
  message: string
  suggestion?: { rule: string; ruleset: string }
}

/** Maximum number of lines in the printed explanation. */
const MOST_LINES = 10

/**
 * Tells the second story: a host cannot reach another one, and an explanation of ten lines says why. Throws Error if
 * the explanation is longer, because the demonstration promises ten lines.
 */
export async function tellWhyBlocked(
  ask: Ask,
  number: number,
  flow: { source: string; destination: string; port: number; proto: string },
): Promise<string> {
  chapter(
    number,
    'Why is this blocked?',
    `The question every day starts with: ${flow.source} cannot reach ${flow.destination} on port ${flow.port}. By the rules in force and in draft, the modes of both ends, and what was seen.`,
  )
  const {
    active,
    draft,
    source,
    destination,
    rules,
    observed,
    pce_check: check,
  } = await ask<Explanation>('explain-flow', flow)
  const [first] = rules
  const seen = Object.entries(observed?.connections ?? {}).map(
    ([word, count]) => `${count.toLocaleString('en')} connections ${word}`,
  )
  const shown = lines([
    `${active.verdict}: ${active.why}`,
    `draft: ${draft.why}`,
    `source: ${source.does ?? ''}`,
    `destination: ${destination.does ?? ''}`,
    first === undefined ? 'rules: none is about it' : `rule: ${first.rule} (${first.ruleset})`,
    `seen in ${observed?.days ?? 0} days: ${seen.join(', ') || 'nothing'}`,
    `The PCE's own check ${check.agrees === true ? 'agrees' : 'does not agree'}.`,
  ])
  if (shown > MOST_LINES) throw new Error(`the answer takes ${shown} lines`)
  const { message, suggestion } = await ask<Suggestion>('suggest-rule', flow)
  answered(suggestion === undefined ? message : `${suggestion.rule}. ${message}`)
  return active.verdict
}
