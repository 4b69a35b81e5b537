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

/** A bench whose PCE is a simulator behind a relay with a twist. */
export async function startTwisted(
  t: Test,
  options: BenchOptions = {},
): Promise<Bench & { twist: (twist?: Twist) => void; direct: Bench }> {
  const direct = await startBench(t, options)
  const { simulator } = direct
  let twisted: Twist | undefined
  const relay = http.createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method = '', url = '' } = request
      const { 'accept-encoding': _packed, ...headers } = request.headers
      const upstream = http.request(`${simulator.url}${url}`, { method, headers }, (answer) => {
        const back: Buffer[] = []
        answer.on('data', (piece: Buffer) => back.push(piece))
        answer.on('end', () => {
          // A download may be compressed without saying so (P11).
          const bytes = Buffer.concat(back)
          const body = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes
          const real = { status: answer.statusCode ?? 0, body: body.toString() }
          const path = url.replace(/^\/api\/v2/, '').replace(/\?.*/, '')
          const shown = twisted?.({ method, path }, real) ?? real
          const { 'content-length': _length, ...kept } = answer.headers
          const type = shown === real ? {} : { 'content-type': 'application/json' }
          response.writeHead(shown.status, { ...kept, ...type }).end(shown.body)
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
