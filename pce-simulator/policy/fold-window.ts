import type { Conversation } from '../model.js'

const DAY_MS = 86_400_000

/**
 * The number of occurrences of a conversation within a window, with the times of its first and last occurrence there in
 * milliseconds since the epoch.
 */
export interface Occurrences {
  count: number
  first: number
  last: number
}

/**
 * Counts the occurrences of a conversation from `start` to `end`, both included, in milliseconds since the epoch.
 * Returns null if there are none. The first occurrence is on the first day, and the others follow every `everyDays`
 * days at the same second of the day.
 */
export function foldWindow(conversation: Conversation, start: number, end: number): Occurrences | null {
  const step = conversation.everyDays * DAY_MS
  const origin = conversation.firstDay * DAY_MS + conversation.secondOfDay * 1000
  const lastDay =
    conversation.lastDay === null
      ? Infinity
      : Math.floor((conversation.lastDay - conversation.firstDay) / conversation.everyDays)
  const from = Math.max(0, Math.ceil((start - origin) / step))
  const to = Math.min(lastDay, Math.floor((end - origin) / step))
  // If `start` or `end` is not a valid date, `from` or `to` is NaN, and the comparison is false.
  if (!(from <= to)) return null
  return { count: to - from + 1, first: origin + from * step, last: origin + to * step }
}
