import type { IncomingHttpHeaders } from 'node:http'
import type { World } from '../world.js'
import type { Fault } from './inject-faults.js'
import type { Change } from '../store/event-log.js'

export type Verb = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** One request as a handler sees it. */
export interface Call {
  world: World
  verb: Verb
  /** Without `/api/v2`, without the query. */
  path: string
  params: Record<string, string>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** The parsed JSON body, or the text of a CSV one; undefined for GET and DELETE. */
  body: unknown
  sourceIp: string
  /** What struck the request without keeping it from the PCE. */
  fault?: Fault | null
}

export interface Answer {
  status: number
  /** Absent: an empty body. */
  json?: unknown
  /** A JSON array sent in pieces, for results too large for one string. */
  rows?: Iterable<unknown>
  /** A text sent in pieces, line by line. */
  lines?: { type: string; of: Iterable<string> }
  /** A file, as it is. */
  file?: { type: string; content: string | Buffer }
  headers?: Record<string, string>
  changes?: Change[]
}

export interface Action {
  handle(call: Call): Answer
  /** `<noun>.<verb>` of the event a write leaves; reads leave none. */
  event?: string
  /** A POST or PUT that needs no body, unlike all others (P5). */
  emptyBody?: boolean
}

export interface Route {
  /** Below `/api/v2`, in Fastify's notation. A verb without an entry answers 405. */
  path: string
  verbs: Partial<Record<Verb, Action>>
}

/** A route that only reads. */
export function readRoute(path: string, handle: (call: Call) => Answer): Route {
  return { path, verbs: { GET: { handle } } }
}
