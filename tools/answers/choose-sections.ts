import { ToolError } from '../../schemas/errors.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import { quote } from '../../domain/text/escape-text.js'
import { type Section, type ShowOptions, showSections, type Truncation } from './byte-budget.js'

/** The parts of an answer that a caller wants to see. */
export interface Sections<N extends string> {
  /** Returns true if the caller wants this part. If the caller chose no parts, all are wanted. */
  has: (name: N) => boolean
  /** True if the caller chose a single part, which may then fill the whole answer. */
  isAlone: boolean
  /** The wanted parts, in the order of the answer. */
  names: readonly N[]
  /** All parts of the answer. */
  known: readonly N[]
}

/**
 * Reads the argument `sections` of an analysis; `known` lists the parts of its answer. Case, hyphens and spaces are
 * ignored. Throws invalid_argument for a part that does not exist; the error lists the existing parts.
 */
export function chooseSections<const N extends string>(
  asked: readonly string[] | undefined,
  known: readonly N[],
): Sections<N> {
  if (asked === undefined) return { has: () => true, isAlone: false, names: known, known }
  const byPlain = new Map(known.map((name) => [plain(name), name]))
  const unknown = asked.filter((name) => !byPlain.has(plain(name)))
  if (unknown.length > 0) {
    const near = [...new Set(unknown.flatMap((name) => nearNames(name, known, 1)))]
    const meant = near.length === 0 ? '' : ` Did you mean ${near.map(quote).join(', ')}?`
    const text = `sections: this answer has no part ${unknown.map(quote).join(', ')}.${meant} Parts: ${known.join(', ')}.`
    throw new ToolError('invalid_argument', text, {
      argument: 'sections',
      unknown_sections: unknown,
      known_sections: [...known],
    })
  }
  const wanted = new Set(asked.map((name) => byPlain.get(plain(name))))
  return {
    has: (name) => wanted.has(name),
    isAlone: wanted.size === 1,
    names: known.filter((name) => wanted.has(name)),
    known,
  }
}

const plain = (name: string) => name.toLowerCase().replace(/[-_\s]/g, '')

/** The output field that names the parts that were not computed, because the caller did not choose them. */
export function showLeftOut<N extends string>({ known, has }: Sections<N>): { sections_left_out?: N[] } {
  const leftOut = known.filter((name) => !has(name))
  return leftOut.length > 0 ? { sections_left_out: leftOut } : {}
}

/** The lists of an answer that may be limited by the caller's choice. A list that was not chosen is absent. */
type Chosen<S> = { [K in keyof S]?: Exclude<S[K], undefined> extends Section<infer T> ? T[] : never }

/**
 * Builds an answer like `showSections`, but only with the lists of the chosen parts. A list belongs to the part that
 * has its name, or the name before the first dot. A list that belongs to no part is always shown. `sections_left_out`
 * names the parts that have rows but were not chosen, so that an absent list is not mistaken for an empty one. Totals
 * of all lists belong in `envelope`.
 */
export function showChosen<N extends string, E extends object, S extends Record<string, Section | undefined>>(
  chosen: Sections<N>,
  envelope: E,
  lists: S,
  options: ShowOptions,
): E & Chosen<S> & Truncation & { sections_left_out?: string[] } {
  const named = Object.entries(lists).flatMap(([name, list]) => (list === undefined ? [] : [[name, list] as const]))
  const partOf = (name: string) => name.split('.', 1)[0] as N
  const isShown = (name: string) => chosen.has(partOf(name)) || !chosen.known.includes(partOf(name))
  const shown = named.filter(([name]) => isShown(name))
  const leftOut = new Set(named.flatMap(([name, { total }]) => (total > 0 && !isShown(name) ? [partOf(name)] : [])))
  return showSections(
    { ...envelope, ...(leftOut.size > 0 && { sections_left_out: [...leftOut] }) },
    Object.fromEntries(shown),
    options,
  )
}
