import { PceError, type PceClient } from '../../pce-client/index.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import type { ModifiedPolicyObject, PolicyVersion } from '../../schemas/pce/policy.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, scanEvery } from '../inventory/fetch-every.js'
import { compareTexts } from '../text/compare-texts.js'
import { mapBounded } from '../text/pace-work.js'
import type { Span } from './read-span.js'
import { loadVersions } from './read-versions.js'

const DAY_SECONDS = 86_400
/**
 * Maximum number of requests for events. The PCE returns only the newest 10,000 events per request (P26), so older
 * events need further requests.
 */
const MOST_ROUNDS = 5
/** Maximum number of policy versions whose changes are read. Each takes one request. */
const MOST_VERSIONS = 40
const IN_FLIGHT = 4

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'now' | 'progress'>

/** The events that a search found, and how far back it searched. */
export interface EventSearch {
  /** The events that were found, newest first. */
  events: PceEvent[]
  /** Number of events that were examined, whether they passed the test or not. */
  searched: number
  /** Time of the oldest event that was examined. */
  oldest?: string
  /** True if the search examined all events in the time span that the PCE still has. */
  isComplete: boolean
  /** Number of days for which the PCE keeps events (P79); null if the PCE does not say. */
  keptDays: number | null
}

/**
 * Finds the events in a time span that pass a test. The number of requests is limited, so that in a long span with many
 * events, only the latest part of the span is searched.
 */
export async function searchEvents(
  { pce, signal, progress }: Context,
  span: Span,
  test: (event: PceEvent) => boolean,
): Promise<EventSearch> {
  const found = new Map<string, PceEvent>()
  const seen = new Set<string>()
  let [oldest, until] = [undefined as string | undefined, span.until]
  let isComplete = false
  for (let round = 1; round <= MOST_ROUNDS && !isComplete; round++) {
    const params = { 'timestamp[gte]': span.since, 'timestamp[lte]': until }
    const before = seen.size
    // The events of one round of reading are kept separately until the round is complete. If the round starts over, all
    // of them arrive again.
    let batch = new Map<string, PceEvent>()
    let hrefs: string[] = []
    let last = oldest
    const read = await scanEvery(
      { api: pce.events, params, signal },
      {
        onBegin() {
          batch = new Map()
          hrefs = []
          last = oldest
        },
        onItems(items) {
          for (const event of items) {
            hrefs.push(event.href)
            const at = event.timestamp
            if (at !== null && (last === undefined || at < last)) last = at
            if (test(event)) batch.set(event.href, event)
          }
        },
      },
    )
    for (const [href, event] of batch) found.set(href, event)
    for (const href of hrefs) seen.add(href)
    isComplete = read.isWhole
    // If a round brought no new event, another request would return the same events again. This happens if the PCE has
    // more events with the same time than it returns at once.
    if (seen.size === before) break
    ;[oldest, until] = [last, last]
    progress({ progress: seen.size, message: `${seen.size} events searched, back to ${last}` })
  }
  const events = [...found.values()].sort((a, b) => compareTexts(b.timestamp ?? '', a.timestamp ?? ''))
  return {
    events,
    searched: seen.size,
    ...(oldest !== undefined && { oldest }),
    isComplete,
    keptDays: await readRetention(pce, signal),
  }
}

/**
 * Reads for how many days the PCE keeps events. Returns null if this setting cannot be read, because not every account
 * is permitted to read it and the search works without it.
 */
async function readRetention(pce: PceClient, signal: AbortSignal): Promise<number | null> {
  try {
    const { items } = await fetchEvery({ api: pce.eventSettings, params: {}, signal })
    const seconds = items[0]?.audit_event_retention_seconds
    return typeof seconds === 'number' ? seconds / DAY_SECONDS : null
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}

/** A policy version, the version before it, and the objects that changed between the two. */
export interface VersionStep {
  version: PolicyVersion
  /** The version before this one; null if this is the first version. */
  previous: PolicyVersion | null
  modified: ModifiedPolicyObject[]
}

/** The versions that a search examined, and whether these are all versions in the time span. */
export interface VersionSearch {
  /** The versions that were examined, newest first. */
  steps: VersionStep[]
  /** `inSpan` is the number of versions in the time span, `total` the number of all versions, whatever their time. */
  inSpan: number
  total: number
  /** True if all versions in the time span were examined. */
  isComplete: boolean
}

/** Returns the newest versions in a time span and what each of them changed. */
export async function searchVersions({ pce, signal }: Context, span: Span): Promise<VersionSearch> {
  const { versions, total } = await loadVersions(pce, signal)
  const inSpan = versions.flatMap((version, at) =>
    span.has(version.created_at) ? [{ version, previous: versions[at + 1] ?? null }] : [],
  )
  const steps = await mapBounded(inSpan.slice(0, MOST_VERSIONS), IN_FLIGHT, async (one): Promise<VersionStep> => {
    return { ...one, modified: await pce.getModifiedPolicyObjects(one.version.version, { signal }) }
  })
  return {
    steps,
    inSpan: inSpan.length,
    total,
    isComplete: inSpan.length === steps.length && total === versions.length,
  }
}
