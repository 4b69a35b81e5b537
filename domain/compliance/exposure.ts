import type { EndClass } from './classify-end.js'

/** Traffic between two applications, or an application and something else, that the evaluators cannot tell apart. */
export interface Cell {
  source: EndClass
  target: EndClass
  /** Comes into what is assessed, leaves it; both when it runs between two parts of it. */
  inbound: boolean
  outbound: boolean
  /** Of TCP and UDP, and one of those the evaluators asked for; else null. */
  port: number | null
  decision: string
  /** Allowed, but at an end in selective mode, where that may only mean that no deny rule matched. */
  byDefault: boolean
}

export interface ShownFlow {
  from: string
  to: string
  port: number | null
  proto: string | null
  decision: string
  connections: number
}

/** Rows and what they add up to. */
export interface Count {
  rows: number
  connections: number
}

/** The traffic of what is assessed, without what runs inside one application: that is no risk (T19). */
export interface Exposure {
  /** Rows that were read, those inside applications included. */
  rows: number
  /** Of these inside one application. */
  inside: number
  /** The row limit was reached. */
  truncated: boolean
  count(test: (cell: Cell) => boolean): Count
  /** The busiest flows that pass the test, at most `limit`. */
  busiest(test: (cell: Cell) => boolean, limit: number): ShownFlow[]
}
