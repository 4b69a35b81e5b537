import { protocolName } from '../inventory/protocols.js'
import { createDictionary, type DictionaryName, type FlowEncoder, type FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/** Something rows can be grouped by: how to read its code from a row, and what the code means. */
export interface Column<V = unknown> {
  readonly code: (row: FlowRow) => number
  readonly value: (code: number) => V
}

export type Side = 'src' | 'dst'

/** A column of one of the encoder's dictionaries; null when missing. */
export function textColumn({ dictionaries }: FlowEncoder, name: DictionaryName): Column<string | null> {
  const { value } = dictionaries[name]
  return { code: (row) => row[name], value }
}

/** The destination port, null when missing; for protocols without ports the PCE gives 0. */
export const portColumn: Column<number | null> = {
  code: (row) => row.port,
  value: (code) => (code === -1 ? null : code),
}

/** The IANA protocol number, null when missing. */
export const protocolColumn: Column<number | null> = {
  code: (row) => row.proto,
  value: (code) => (code === -1 ? null : code),
}

/** tcp, udp or icmp, any other as its number in text; null when missing. */
export const protocolNameColumn: Column<string | null> = {
  code: (row) => row.proto,
  value: (code) => (code === -1 ? null : protocolName(code)),
}

/**
 * A text derived from an end, once per distinct end. Both sides share their codes, so that the ends of a row can be compared by
 * code.
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

/** A text derived from another column's text, once per distinct text. */
export function derivedColumn(
  column: Column<string | null>,
  textOf: (text: string | null) => string | null,
): Column<string | null> {
  const { codeOf, value } = translate((code) => textOf(column.value(code)))
  return { code: (row) => codeOf(column.code(row)), value }
}

/** Maps numbers that count up from 0 to texts, and these to codes of a dictionary of its own. */
function translate(textOf: (number: number) => string | null): {
  readonly codeOf: (number: number) => number
  readonly value: (code: number) => string | null
} {
  const texts = createDictionary()
  // By number; -1 where not computed yet.
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

/** A text derived from one end of the row. */
export const endColumn = (
  encoder: FlowEncoder,
  side: Side,
  textOf: (end: FlowEnd) => string | null,
): Column<string | null> => endColumns(encoder, textOf)[side]

/** The end that a row's process and user belong to: the one that reported the flow, which for inbound records is the listener. */
export function runsOnColumn({ dictionaries }: FlowEncoder): Column<'destination' | 'source'> {
  const inbound = dictionaries.direction.code('inbound')
  return {
    code: (row) => (row.direction === inbound ? 1 : 0),
    value: (code) => (code === 1 ? 'destination' : 'source'),
  }
}

/** The whole end of a row. */
export function wholeEndColumn({ ends }: FlowEncoder, side: Side): Column<FlowEnd> {
  return { code: (row) => row[side], value: (code) => ends.end(code) }
}

/** The value of one label key at one end, null where it has none. */
export const labelColumn = (encoder: FlowEncoder, side: Side, key: string): Column<string | null> =>
  endColumn(encoder, side, ({ labels }) => (Object.hasOwn(labels, key) ? (labels[key] as string) : null))

/** A column with `-` where a value is missing, as all traffic answers show it (T8). */
export const dashed = (column: Column<string | null>): Column<string> => ({
  code: column.code,
  value: (code) => column.value(code) ?? '-',
})
