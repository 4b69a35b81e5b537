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
 * Returns the values that contain the typed text, ignoring case. Values that begin with it come first, then all others,
 * each part in alphabetical order. Hidden characters are made visible.
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
 * Time limit, in milliseconds, for reading the labels for a completion. A later answer is no use to a person who is
 * typing.
 */
const LOAD_MS = 30_000
/** The time, in milliseconds, for which a PCE that did not answer is not asked for its labels again. */
const RETRY_MS = 10_000

interface Load {
  index: Promise<LabelIndex | null>
  /** The time, in milliseconds since the epoch, before which the labels are not requested again. */
  until: number
}

/**
 * For each PCE client, the attempt to read its labels that is running or has failed. Because each client has its own
 * entry, nobody sees the labels of another PCE.
 */
const loads = new WeakMap<object, Load>()

/**
 * Returns the values that a label key has at the caller's PCE, from the label list that tools use to resolve labels (at
 * most a minute old, T3). Each typed letter causes a completion request; all requests that arrive while the list is
 * being read share that read. If the PCE does not answer, the result is empty instead of an error, and the PCE is not
 * asked again for a while.
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

/** Reads the labels. The code for this is loaded only here, because a stdio server must start fast. */
async function readLabels(pce: ToolContext<true>['pce'], now: () => number): Promise<LabelIndex> {
  const { loadLabels } = await import('../domain/inventory/labels.js')
  return loadLabels(pce, { now, signal: AbortSignal.timeout(LOAD_MS) })
}
