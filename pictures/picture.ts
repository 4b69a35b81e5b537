import { isDecision, POLICY_DECISIONS, type PolicyDecision } from '../schemas/pce/policy-decisions.js'
import type { Markup } from './markup.js'

/** The kinds of pictures that this server can draw. */
export type PictureKind = 'map' | 'ringfence' | 'change' | 'paths'

/** The policy decisions as they are drawn. Any other value from the PCE is drawn as `unknown`. */
export const DECISIONS = POLICY_DECISIONS
export type Decision = PolicyDecision

export const DECISION_WORDS: Readonly<Record<Decision, string>> = {
  allowed: 'allowed',
  potentially_blocked: 'potentially blocked',
  blocked: 'blocked',
  unknown: 'not known',
}

export const decisionOf = (text: string): Decision => (isDecision(text) ? text : 'unknown')

/** A drawing whose upper left corner is at 0, 0. */
export interface Drawing {
  width: number
  height: number
  content: Markup
}

/** A drawing with a name, which distinguishes it from other drawings of the same facts. */
export interface View {
  name: string
  drawing: Drawing
  /** A sentence that says what the view is good for. Only pages show this sentence. */
  note?: string
}

/** The facts of a picture as a table, for people who cannot or do not look at the picture. */
export interface Table {
  caption: string
  columns: readonly { name: string; isNumber?: true }[]
  rows: readonly TableRow[]
}

export interface TableRow {
  cells: readonly (string | number)[]
  /**
   * The policy decision that this row is about, if any. If the reader switches off this decision, the row is hidden.
   */
  decision?: Decision
}

/** An entry of a legend: a type of line or mark, and its meaning. */
export interface LegendEntry {
  sample: Markup
  text: string
  /** The policy decision that these lines or marks stand for; absent if the reader cannot switch them off. */
  decision?: Decision
}

/** A picture before it is rendered as a file or as part of a page. All strings are plain text, not markup. */
export interface Picture {
  kind: PictureKind
  title: string
  /** Sentences about what the picture shows and what it leaves out. */
  notes: readonly string[]
  /** Sentences about the facts that deserve attention first. */
  warnings: readonly string[]
  /** All views. The first view is shown first. A file that contains a single drawing shows only this view. */
  views: readonly [View, ...View[]]
  legend: readonly LegendEntry[]
  tables: readonly Table[]
}

/** Formats a number in a short form for a drawing: `12.3 k`. */
export function shortNumber(value: number): string {
  for (const [unit, size] of [
    ['G', 1e9],
    ['M', 1e6],
    ['k', 1e3],
  ] as const)
    if (value >= size) return `${(value / size).toFixed(value < 10 * size ? 1 : 0)} ${unit}`
  return String(value)
}

/** Formats a number as `1,234,567`, whatever the language of the machine. */
export const wholeNumber = (value: number): string => value.toLocaleString('en')

/** Formats a count with its noun: `1 group`, `2 groups`. */
export const countOf = (count: number, noun: string): string => `${wholeNumber(count)} ${noun}${count === 1 ? '' : 's'}`

/**
 * Returns a name in quotation marks for use in a sentence, because its text comes from the PCE and not from this
 * server. The sentences of answers quote names in the same way.
 */
export const quoted = (name: string): string => JSON.stringify(name)

/** Formats a time window by its first and last day in UTC, for people to read. */
export function windowInWords({ start, end }: { start: string; end: string }): string {
  const [first, last] = [start.slice(0, 10), end.slice(0, 10)]
  return first === last ? `on ${first} (UTC)` : `from ${first} to ${last} (UTC)`
}
