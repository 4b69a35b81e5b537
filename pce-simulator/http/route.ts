import type { IncomingHttpHeaders } from 'node:http'
import type { World } from '../world.js'
import type { Fault } from './inject-faults.js'
import type { Change } from '../store/event-log.js'

export type Verb = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A request in the form in which a handler receives it. */
export interface Call {
  world: World
  verb: Verb
  /** The path of the request without `/api/v2` and without the query. */
  path: string
  params: Record<string, string>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** The parsed JSON body, or the text of a CSV body; undefined for GET and DELETE. */
  body: unknown
  sourceIp: string
  /** A fault that affects this request, but only after the PCE has begun to process it. */
  fault?: Fault | null
}

export interface Answer {
  status: number
  /** The JSON body of the answer; undefined for an empty body. */
  json?: unknown
  /** A JSON array that is sent in pieces, because it is too large for one string. */
  rows?: Iterable<unknown>
  /** True if the answer in `rows` or `lines` is sent as a gzip file, without a header that says so (P11). */
  isPacked?: boolean
  /** A text answer that is sent line by line. */
  lines?: { type: string; of: Iterable<string> }
  /** A file whose bytes are sent unchanged. */
  file?: { type: string; content: string | Buffer }
  headers?: Record<string, string>
  changes?: Change[]
}

export interface Action {
  handle(call: Call): Answer
  /** The type of the event that a write causes, as `<noun>.<verb>`; undefined for a read, which causes no event. */
  event?: string
  /** True for a POST or PUT that may come without a body; every other POST or PUT must have a body (P5). */
  emptyBody?: boolean
}

export interface Route {
  /** The path below `/api/v2`, in Fastify's notation. Methods that are missing in `verbs` answer 405. */
  path: string
  verbs: Partial<Record<Verb, Action>>
}

/** Creates a route for a GET, which changes nothing. */
export function readRoute(path: string, handle: (call: Call) => Answer): Route {
  return { path, verbs: { GET: { handle } } }
}
