import type { EndedSessions } from './ports.js'

/** Remembers ended sessions in memory: enough for one process, since a session lives for minutes. `now` in milliseconds since the epoch. */
export function rememberEndedSessions(now: () => number): EndedSessions {
  const ended = new Map<string, number>()
  return {
    add(id, until) {
      for (const [other, end] of ended) if (end <= now()) ended.delete(other)
      ended.set(id, until)
      return Promise.resolve()
    },
    has: (id) => Promise.resolve(ended.has(id)),
  }
}
