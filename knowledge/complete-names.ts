import { compareTexts } from '../domain/text/compare-texts.js'
import { escapeText } from '../domain/text/escape-text.js'
import { loadLabels, type LabelIndex } from '../domain/inventory/labels.js'
import type { ToolContext } from '../domain/call.js'

/** The result of completion/complete. */
export interface Completion {
  values: string[]
  /** Matches in all. */
  total: number
  hasMore: boolean
}

/** As many as MCP lets a server answer. */
const MOST_VALUES = 100

/** What begins with the typed text before what contains it, case ignored, each in alphabetical order; hidden characters visible. */
export function completeFrom(values: Iterable<string>, typed: string): Completion {
  const part = typed.toLowerCase()
  const matches = [...values]
    .map((value) => ({ shown: escapeText(value), at: escapeText(value).toLowerCase().indexOf(part) }))
    .filter(({ at }) => at !== -1)
    .sort(
      (a, b) =>
        Number(a.at > 0) - Number(b.at > 0) ||
        compareTexts(a.shown.toLowerCase(), b.shown.toLowerCase()) ||
        compareTexts(a.shown, b.shown),
    )
  return {
    values: matches.slice(0, MOST_VALUES).map(({ shown }) => shown),
    total: matches.length,
    hasMore: matches.length > MOST_VALUES,
  }
}

/** A list that takes longer is given up; whoever types has gone on long before. */
const LOAD_MS = 30_000
/** Between two tries to read the labels of a PCE that did not answer. */
const RETRY_MS = 10_000

interface Load {
  index: Promise<LabelIndex | null>
  /** Until then it is not tried again. */
  until: number
}

/** Of each client, so that nobody sees the labels of another's PCE: the load that is under way, or the one that failed. */
const loads = new WeakMap<object, Load>()

/**
 * Values of a label key at the caller's PCE, from the list that tools resolve labels with (T3: at most a minute old). Every letter that
 * somebody types asks, so all share one load, and a PCE that did not answer is left alone for a while: empty, and never an error.
 */
export async function labelValues(
  { pce, now }: Pick<ToolContext<true>, 'pce' | 'now'>,
  key: string,
): Promise<readonly string[]> {
  const known = loads.get(pce)
  if (known !== undefined && now() < known.until) return (await known.index)?.values(key) ?? []
  const load: Load = { until: Infinity, index: Promise.resolve(null) }
  load.index = loadLabels(pce, { now, signal: AbortSignal.timeout(LOAD_MS) }).then(
    (index) => {
      loads.delete(pce)
      return index
    },
    () => {
      load.until = now() + RETRY_MS
      return null
    },
  )
  loads.set(pce, load)
  return (await load.index)?.values(key) ?? []
}
