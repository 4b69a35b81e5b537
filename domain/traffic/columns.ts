import { protocolName } from '../inventory/protocols.js'
import { createDictionary, type DictionaryName, type FlowEncoder, type FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/**
 * A property by which rows can be grouped. `code` returns the property of a row as a number, and `value` converts this
 * number back to the value it stands for.
 */
export interface Column<V = unknown> {
  readonly code: (row: FlowRow) => number
  readonly value: (code: number) => V
}

export type Side = 'src' | 'dst'

/**
 * Creates a column for a row field whose strings are stored in the given dictionary of the encoder. A missing string is
 * null.
 */
export function textColumn({ dictionaries }: FlowEncoder, name: DictionaryName): Column<string | null> {
  const { value } = dictionaries[name]
  return { code: (row) => row[name], value }
}

/**
 * Creates a column for the decision that the PCE recorded. The row's own field `decision` may instead contain the
 * decision that this server derived from the rules.
 */
export const recordedColumn = ({ dictionaries }: FlowEncoder): Column<string | null> => ({
  code: (row) => row.recorded ?? row.decision,
  value: dictionaries.decision.value,
})

/** The column of the destination port; null if missing. For protocols without ports, the PCE sends 0. */
export const portColumn: Column<number | null> = {
  code: (row) => row.port,
  value: (code) => (code === -1 ? null : code),
}

/** The column of the IANA protocol number; null if missing. */
export const protocolColumn: Column<number | null> = {
  code: (row) => row.proto,
  value: (code) => (code === -1 ? null : code),
}

/**
 * The column of the protocol's name (tcp, udp, icmp …), or of its number as a string if it has no name; null if
 * missing.
 */
export const protocolNameColumn: Column<string | null> = {
  code: (row) => row.proto,
  value: (code) => (code === -1 ? null : protocolName(code)),
}

/**
 * Creates two columns, for source and destination, whose string is computed once for each distinct host or address.
 * Both columns use the same codes, so the source and the destination of a row can be compared by code.
 */
export function endColumns(
  { ends }: FlowEncoder,
  textOf: (end: FlowEnd) => string | null,
): Record<Side, Column<string | null>> {
  const { codeOf, value } = translate((end) => textOf(ends.end(end)))
  return {
    src: { code: (row) => codeOf(row.src), value },
    dst: { code: (row) => codeOf(row.dst), value },
  }
}

/** Creates a column whose string is computed from the string of another column, once for each distinct string. */
export function derivedColumn(
  column: Column<string | null>,
  textOf: (text: string | null) => string | null,
): Column<string | null> {
  const { codeOf, value } = translate((code) => textOf(column.value(code)))
  return { code: (row) => codeOf(column.code(row)), value }
}

/**
 * Creates two functions. `codeOf` returns a code for a number (0 or above), and `value` returns the string that a code
 * stands for. Numbers with equal strings share a code, and the string of each number is computed only once.
 */
function translate(textOf: (number: number) => string | null): {
  readonly codeOf: (number: number) => number
  readonly value: (code: number) => string | null
} {
  const texts = createDictionary()
  // The code at the index of each number; -1 if it has not been computed yet.
  let codes = new Int32Array(1024).fill(-1)
  return {
    value: texts.value,
    codeOf(number) {
      if (number >= codes.length) {
        const longer = new Int32Array(Math.max(2 * codes.length, number + 1)).fill(-1)
        longer.set(codes)
        codes = longer
      }
      const known = codes[number] as number
      return known === -1 ? (codes[number] = texts.code(textOf(number))) : known
    },
  }
}

/** Creates a column whose string is computed from the source or the destination of the row. */
export const endColumn = (
  encoder: FlowEncoder,
  side: Side,
  textOf: (end: FlowEnd) => string | null,
): Column<string | null> => endColumns(encoder, textOf)[side]

/**
 * Creates a column that names the end of the connection on which the row's process and user ran. This is the end that
 * reported the flow: the destination if the flow's direction is inbound, otherwise the source.
 */
export function runsOnColumn({ dictionaries }: FlowEncoder): Column<'destination' | 'source'> {
  const inbound = dictionaries.direction.code('inbound')
  return {
    code: (row) => (row.direction === inbound ? 1 : 0),
    value: (code) => (code === 1 ? 'destination' : 'source'),
  }
}

/** Creates a column whose values are the sources or destinations themselves, with all their properties. */
export function wholeEndColumn({ ends }: FlowEncoder, side: Side): Column<FlowEnd> {
  return { code: (row) => row[side], value: (code) => ends.end(code) }
}

/** Creates a column for the value of a label key at the source or destination; null if that end has no such label. */
export const labelColumn = (encoder: FlowEncoder, side: Side, key: string): Column<string | null> =>
  endColumn(encoder, side, ({ labels }) => (Object.hasOwn(labels, key) ? (labels[key] as string) : null))

/** Wraps a column so that missing values become `-`, as all traffic answers show them (T8). */
export const dashed = (column: Column<string | null>): Column<string> => ({
  code: column.code,
  value: (code) => column.value(code) ?? '-',
})
