/** A simulator behind a relay that may replace what it answers. */
import http from 'node:http'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { listen } from '../pce-client/support.js'
import { benchOf, startBench, type Bench, type BenchOptions } from './harness.js'

export interface Answer {
  status: number
  body: string
}

/** What comes back in place of the simulator's answer; undefined leaves it. Called when the simulator has done its work. */
export type Twist = (request: { method: string; path: string }, answer: Answer) => Answer | undefined

interface TwistedOptions extends BenchOptions {
  /**
   * True if the simulator is asked for each collection or object once, and the relay repeats its answer until something
   * is written through it. What is written past the relay is then not seen.
   */
  remembers?: boolean
}

/** What changes nothing, although it is a POST. */
const ASKING = /\/(?:async_queries|dependencies|impact|rule_search)(?:\/|$)/
/** What answers differently while it is under way, or is an answer to something that was asked before. */
const PASSING = /\/(?:async_queries|traffic_flows|jobs|datafiles)(?:\/|$)/

/** A bench whose PCE is a simulator behind a relay with a twist. */
export async function startTwisted(
  t: Test,
  { remembers = false, ...options }: TwistedOptions = {},
): Promise<Bench & { twist: (twist?: Twist) => void; direct: Bench }> {
  const direct = await startBench(t, options)
  const { simulator } = direct
  let twisted: Twist | undefined
  const known = new Map<string, { real: Answer; kept: http.OutgoingHttpHeaders }>()
  const relay = http.createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method = '', url = '' } = request
      const { 'accept-encoding': _packed, ...headers } = request.headers
      const path = url.replace(/^\/api\/v2/, '').replace(/\?.*/, '')
      const answer = ({ real, kept }: { real: Answer; kept: http.OutgoingHttpHeaders }) => {
        const shown = twisted?.({ method, path }, real) ?? real
        const type = shown === real ? {} : { 'content-type': 'application/json' }
        response.writeHead(shown.status, { ...kept, ...type }).end(shown.body)
      }
      if (method !== 'GET' && !ASKING.test(path)) known.clear()
      const isKept = remembers && method === 'GET' && !PASSING.test(path) && headers.prefer === undefined
      const before = known.get(url)
      if (isKept && before !== undefined) return answer(before)
      const upstream = http.request(`${simulator.url}${url}`, { method, headers }, (original) => {
        const packed: Buffer[] = []
        original.on('data', (piece: Buffer) => packed.push(piece))
        original.on('end', () => {
          // A download may be compressed without saying so (P11).
          const bytes = Buffer.concat(packed)
          const body = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes
          const { 'content-length': _length, ...kept } = original.headers
          const back = { real: { status: original.statusCode ?? 0, body: body.toString() }, kept }
          if (isKept && back.real.status === 200) known.set(url, back)
          answer(back)
        })
      })
      upstream.on('error', () => response.destroy())
      upstream.end(Buffer.concat(pieces))
    })
  })
  const bench = benchOf(t, simulator, `http://127.0.0.1:${await listen(t, relay)}`, options)
  return { ...bench, direct, twist: (twist) => (twisted = twist) }
}

/** The twist by which the rows of traffic report other modes of their ends. */
export const reportModes =
  (other: (mode: string) => string | undefined): Twist =>
  ({ path }, answer) =>
    /\/traffic_flows\/.*\/download$/.test(path)
      ? {
          ...answer,
          body: answer.body.replace(
            /("enforcement_mode":\s*")(\w+)/g,
            (_all, before: string, mode: string) => before + (other(mode) ?? mode),
          ),
        }
      : undefined
