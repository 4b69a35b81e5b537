import { PceError, type PceClient } from '../../pce-client/index.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import type { ModifiedPolicyObject, PolicyVersion } from '../../schemas/pce/policy.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, scanEvery } from '../inventory/fetch-every.js'
import { mapBounded } from '../text/pace-work.js'
import type { Span } from './read-span.js'
import { loadVersions } from './read-versions.js'

const DAY_SECONDS = 86_400
/** The PCE gives its newest 10,000 of a question (P26): older ones are asked for so many times. */
const MOST_ROUNDS = 5
/** Versions whose changes are read, one request each. */
const MOST_VERSIONS = 40
const IN_FLIGHT = 4

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'now' | 'progress'>

/** Events that were looked for, and how far the search reached. */
export interface EventSearch {
  /** Newest first. */
  events: PceEvent[]
  /** How many were looked at. */
  searched: number
  /** The time of the oldest of these. */
  oldest?: string
  /** Everything was seen that the PCE has of this span. */
  isComplete: boolean
  /** How long the PCE keeps events (P79); null where it does not say. */
  keptDays: number | null
}

/** The events of a span that a test lets through. Bounded: a long span with many events is searched from its end, and not to its beginning. */
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
    // Kept apart until the list is over: a list that begins again gives everything once more.
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
            if (last === undefined || event.timestamp < last) last = event.timestamp
            if (test(event)) batch.set(event.href, event)
          }
        },
      },
    )
    for (const [href, event] of batch) found.set(href, event)
    for (const href of hrefs) seen.add(href)
    isComplete = read.isWhole
    // Events of one instant, more than the PCE gives at once, would be asked for again and again.
    if (seen.size === before) break
    ;[oldest, until] = [last, last]
    progress({ progress: seen.size, message: `${seen.size} events searched, back to ${last}` })
  }
  const events = [...found.values()].sort((a, b) =>
    a.timestamp < b.timestamp ? 1 : a.timestamp > b.timestamp ? -1 : 0,
  )
  return {
    events,
    searched: seen.size,
    ...(oldest !== undefined && { oldest }),
    isComplete,
    keptDays: await readRetention(pce, signal),
  }
}

/** A setting that not every account may read, and that only helps the reader. */
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

/** A version with the version before it, and what it changed. */
export interface VersionStep {
  version: PolicyVersion
  /** Null for the first one. */
  previous: PolicyVersion | null
  modified: ModifiedPolicyObject[]
}

/** Versions that were looked into, and how far that reached. */
export interface VersionSearch {
  /** Newest first. */
  steps: VersionStep[]
  /** Versions in the span, and of all time. */
  inSpan: number
  total: number
  /** Every version of the span was looked into. */
  isComplete: boolean
}

/** The newest versions of a span with what each changed. */
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
