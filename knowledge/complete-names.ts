import { compareTexts } from '../domain/text/compare-texts.js'
import { escapeText } from '../domain/text/escape-text.js'
import type { LabelIndex } from '../domain/inventory/labels.js'
import type { ToolContext } from '../domain/call.js'

/** The result of the MCP request completion/complete. */
export interface Completion {
  values: string[]
  /** Total number of matching values, including those that are not in `values`. */
  total: number
  hasMore: boolean
}

/** Maximum number of values that MCP allows in one answer. */
const MOST_VALUES = 100

/**
 * Returns the values that contain the typed text, regardless of case. Values that begin with the text come first, then
 * all others, both sorted alphabetically. Hidden characters are made visible.
 */
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

/**
 * Time limit, in milliseconds, for reading the label list for a completion. After that time, the person who is typing
 * no longer needs it.
 */
const LOAD_MS = 30_000
/** Time, in milliseconds, for which a PCE that did not answer is not asked for its labels again. */
const RETRY_MS = 10_000

interface Load {
  index: Promise<LabelIndex | null>
  /** The time, in milliseconds since the epoch, before which the labels are not read again. */
  until: number
}

/**
 * The attempts to read a label list that are in progress or have failed, by PCE client. Each client has its own entry,
 * so that nobody sees the labels of another PCE.
 */
const loads = new WeakMap<object, Load>()

/**
 * Returns the values of a label key at the caller's PCE, from the list that tools use to resolve labels (at most a
 * minute old, T3). A completion request arrives for each typed letter, so the requests that arrive during one read of
 * the list share it. If the PCE does not answer, the result is empty instead of an error, and the PCE is not asked
 * again for a while.
 */
export async function labelValues(
  { pce, now }: Pick<ToolContext<true>, 'pce' | 'now'>,
  key: string,
): Promise<readonly string[]> {
  const known = loads.get(pce)
  if (known !== undefined && now() < known.until) return (await known.index)?.values(key) ?? []
  const load: Load = { until: Infinity, index: Promise.resolve(null) }
  load.index = readLabels(pce, now).then(
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

/** Reads the labels. The code for it is loaded here, because a stdio server must start fast. */
async function readLabels(pce: ToolContext<true>['pce'], now: () => number): Promise<LabelIndex> {
  const { loadLabels } = await import('../domain/inventory/labels.js')
  return loadLabels(pce, { now, signal: AbortSignal.timeout(LOAD_MS) })
}
