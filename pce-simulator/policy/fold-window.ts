import type { Conversation } from '../model.js'

const DAY_MS = 86_400_000

/** How often a conversation occurred inside a window, and when first and last (milliseconds since the epoch). */
export interface Occurrences {
  count: number
  first: number
  last: number
}

/**
 * Folds a conversation's occurrences from `start` to `end`, both included (milliseconds). null when there are none.
 * Occurrences are `everyDays` apart, counted from the first day, each at the same second of its day.
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
  // An unreadable date makes both NaN.
  if (!(from <= to)) return null
  return { count: to - from + 1, first: origin + from * step, last: origin + to * step }
}
