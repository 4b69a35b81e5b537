import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { checkRanges, type Claim } from './build-table.js'
import type { Feed } from './feeds.js'

/** The text of a feed, and the date (YYYY-MM-DD) that is used if the text does not state one. */
interface FeedText {
  text: string
  asOf: string
}

export type FeedReader = (feed: Feed) => Promise<FeedText>

const TIMEOUT_MS = 30_000

/** Reads feeds from files in a directory. A feed without a date gets the date of its file. */
export const fromDirectory =
  (directory: string): FeedReader =>
  async ({ file }) => {
    const path = join(directory, file)
    return { text: await readFile(path, 'utf8'), asOf: dayOf((await stat(path)).mtime) }
  }

/** Reads feeds from their publishers. A feed without a date gets today's date. */
export const fromPublishers =
  (today: Date): FeedReader =>
  async ({ url, query }) => {
    const response = await fetch(`${url}${query?.() ?? ''}`, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    return { text: await response.text(), asOf: dayOf(today) }
  }

/**
 * Reads the claims of all feeds. Throws one error that lists every feed that could not be fetched, could not be read or
 * is implausible, with the reason.
 */
export async function readClaims(feeds: readonly Feed[], read: FeedReader): Promise<Claim[]> {
  const outcomes = await Promise.allSettled(feeds.map((feed) => claimsOf(feed, read)))
  const failures = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected' ? [`${feeds[at]!.file}: ${reasonOf(outcome.reason)}`] : [],
  )
  if (failures.length > 0) throw new Error(failures.join('\n'))
  return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
}

async function claimsOf(feed: Feed, read: FeedReader): Promise<Claim[]> {
  const { text, asOf } = await read(feed)
  const facts = feed.parse(text)
  return Object.entries(facts.ranges).map(([provider, ranges]) => {
    // An empty feed is faulty, because no provider loses all its addresses overnight.
    if (ranges.length === 0) throw new Error(`no range for ${provider}`)
    checkRanges(ranges)
    return { provider, url: feed.url, asOf: facts.asOf ?? asOf, ranges }
  })
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10)
}

/** Returns the message of an error and of its cause, because fetch itself only says "fetch failed". */
function reasonOf(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason)
  return reason.cause instanceof Error ? `${reason.message} (${reason.cause.message})` : reason.message
}
