import type { LookupAddress } from 'node:dns'

/** What names last led to. */
export interface KeptAnswers {
  readonly has: (hostname: string) => boolean
  /** The answer to the same question, unless it is older than so many milliseconds. */
  readonly get: (hostname: string, question: string, oldestMs: number) => readonly LookupAddress[] | undefined
  /** In place of the one before; the name that was kept the longest ago goes when there are too many. */
  readonly keep: (hostname: string, question: string, addresses: readonly LookupAddress[]) => void
  readonly forget: (hostname: string) => void
}

const MOST_NAMES = 1000

/** For the names that were kept last, a thousand of them. */
export function keepAnswers(): KeptAnswers {
  const kept = new Map<string, { question: string; addresses: readonly LookupAddress[]; at: number }>()
  return {
    has: (hostname) => kept.has(hostname),
    get(hostname, question, oldestMs) {
      const found = kept.get(hostname)
      return found?.question === question && performance.now() - found.at <= oldestMs ? found.addresses : undefined
    },
    keep(hostname, question, addresses) {
      kept.delete(hostname)
      kept.set(hostname, { question, addresses, at: performance.now() })
      const [oldest] = kept.keys()
      if (kept.size > MOST_NAMES && oldest !== undefined) kept.delete(oldest)
    },
    forget: (hostname) => void kept.delete(hostname),
  }
}
