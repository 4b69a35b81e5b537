import type { Markup } from './markup.js'

/** The pictures there are. */
export type PictureKind = 'map' | 'ringfence' | 'change' | 'paths'

/** What policy decides, as it is drawn; anything else that the PCE says is `unknown`. */
export const DECISIONS = ['allowed', 'potentially_blocked', 'blocked', 'unknown'] as const
export type Decision = (typeof DECISIONS)[number]

export const DECISION_WORDS: Readonly<Record<Decision, string>> = {
  allowed: 'allowed',
  potentially_blocked: 'potentially blocked',
  blocked: 'blocked',
  unknown: 'not known',
}

export const decisionOf = (text: string): Decision =>
  (DECISIONS as readonly string[]).includes(text) ? (text as Decision) : 'unknown'

/** A drawing in a coordinate system that begins at 0, 0. */
export interface Drawing {
  width: number
  height: number
  content: Markup
}

/** A drawing and what it is called among several of the same facts. */
export interface View {
  name: string
  drawing: Drawing
  /** What it is for, a sentence of a page that has it. */
  note?: string
}

/** The facts of a picture for people who do not look at it. */
export interface Table {
  caption: string
  columns: readonly { name: string; isNumber?: true }[]
  rows: readonly TableRow[]
}

export interface TableRow {
  cells: readonly (string | number)[]
  /** What hides with the switch of this decision. */
  decision?: Decision
}

/** One entry of a legend: a class of lines or marks, and what it means. */
export interface LegendEntry {
  sample: Markup
  text: string
  /** Of a decision that can be hidden. */
  decision?: Decision
}

/** A picture before it becomes a file or a part of a page. All texts are plain texts. */
export interface Picture {
  kind: PictureKind
  title: string
  /** What it is of, and what is not in it, each a sentence. */
  notes: readonly string[]
  /** What to look at first, each a sentence. */
  warnings: readonly string[]
  /** The first is shown first; a file that is one drawing has that one. */
  views: readonly [View, ...View[]]
  legend: readonly LegendEntry[]
  tables: readonly Table[]
}

/** `12.3 k`, as short as a number in a drawing has to be. */
export function shortNumber(value: number): string {
  for (const [unit, size] of [
    ['G', 1e9],
    ['M', 1e6],
    ['k', 1e3],
  ] as const)
    if (value >= size) return `${(value / size).toFixed(value < 10 * size ? 1 : 0)} ${unit}`
  return String(value)
}

/** `1,234,567`; the same everywhere, whatever the language of the machine. */
export const wholeNumber = (value: number): string => value.toLocaleString('en')

/** `1 group`, `2 groups`. */
export const countOf = (count: number, noun: string): string => `${wholeNumber(count)} ${noun}${count === 1 ? '' : 's'}`

/** `3 to 9 June 2026`-like spans are for people; a window is named by its first and last day, in UTC. */
export function windowInWords({ start, end }: { start: string; end: string }): string {
  const [first, last] = [start.slice(0, 10), end.slice(0, 10)]
  return first === last ? `on ${first} (UTC)` : `from ${first} to ${last} (UTC)`
}
