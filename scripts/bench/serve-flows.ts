/**
 * The server for the flow benchmarks, which runs in a separate process. It has the labels of an estate, and a traffic
 * query that is complete at once. The rows of the result were generated and written as JSON in advance. Other
 * collections are empty, except for a few with answers that no real PCE would give. Arguments: the number of rows, and
 * optionally `daily`, which gives each day of a longer window this number of rows, up to the limit of the query. All
 * days have the same rows, so these are written only once.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { estateLabels, generateFlows } from './generate-flows.js'

const ROWS_PER_BLOCK = 200
const QUERIES = '/orgs/1/traffic_flows/async_queries'
const DAY_MS = 86_400_000

/**
 * The times of rows that occur on every day. They are within one day, so that the rows of a part do not extend into the
 * following day.
 */
const LAST_DAY = { first_detected: '2026-06-14T08:00:00Z', last_detected: '2026-06-14T20:00:00Z' }

const rows = Number(process.argv[2])
const isDaily = process.argv[3] === 'daily'
const download = writeDownload()
const length = download.reduce((sum, block) => sum + block.length, 0)
/** Describes a query. Its href contains the number of its rows, so no other data about the query must be stored. */
const query = (count: number) => {
  const href = `${QUERIES}/${count}`
  return { href, status: 'completed', result: `${href}/download`, matches_count: count, flows_count: count }
}

const MIB = 1024 * 1024
/** Answers by collection that are small when sent but large in memory. */
const BOMBS: Readonly<Record<string, Buffer>> = {
  workloads: bomb('[', '{},', 32 * MIB, '{}]'),
  ip_lists: bomb('', '['.repeat(64), 32 * MIB, ''),
  services: bomb('[{"href":"', 'x'.repeat(64), 64 * MIB, '"}]'),
}

const server = createServer((request, response) => {
  const path = request.url!.replace('/api/v2', '')
  response.setHeader('content-type', 'application/json')
  if (request.method === 'POST') return void accept(request, response)
  request.resume()
  if (path.startsWith(QUERIES) && path.endsWith('/download'))
    Readable.from(download).pipe(response.setHeader('content-length', length))
  else if (path.startsWith(`${QUERIES}/`)) response.end(JSON.stringify(query(Number(path.slice(QUERIES.length + 1)))))
  else if (/\/events\b/.test(path)) drip(response)
  else if (nameOf(path) in BOMBS) response.setHeader('content-encoding', 'gzip').end(BOMBS[nameOf(path)])
  else sendList(response, path.startsWith('/orgs/1/labels') ? estateLabels : [])
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))

function rowsOfWindow({
  start_date: start = '',
  end_date: end = '',
  max_results: most = 0,
}: Partial<TrafficQuery>): number {
  return Math.min(rows * Math.ceil((Date.parse(end) - Date.parse(start)) / DAY_MS), most)
}

async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = (await json(request)) as Partial<TrafficQuery>
  const asked = query(isDaily ? rowsOfWindow(body) : rows)
  response.writeHead(202, { location: asked.href }).end(JSON.stringify({ ...asked, status: 'queued' }))
}

function sendList(response: ServerResponse, list: readonly object[]): void {
  response.setHeader('x-total-count', list.length).end(JSON.stringify(list))
}

const nameOf = (path: string) => /\/([a-z_]+)(?:\?|$)/.exec(path)?.[1] ?? ''

function bomb(head: string, piece: string, bytes: number, tail: string): Buffer {
  return gzipSync(head + piece.repeat(Math.floor(bytes / piece.length)) + tail, { level: 9 })
}

/** Sends the answer at a rate of one byte every five seconds. */
function drip(response: ServerResponse): void {
  response.write('[')
  const timer = setInterval(() => response.write(' '), 5000)
  response.on('close', () => clearInterval(timer))
}

/** Writes the download in pieces, because it would be too long for a single string. */
function writeDownload(): Buffer[] {
  const blocks: Buffer[] = []
  let block: string[] = []
  const close = (end: string) => {
    blocks.push(Buffer.from(`${blocks.length === 0 ? '[' : ','}${block.join(',')}${end}`))
    block = []
  }
  let left = rows
  for (const made of generateFlows(rows)) {
    const flow = isDaily ? { ...made, timestamp_range: LAST_DAY } : made
    block.push(JSON.stringify(flow))
    left -= 1
    if (left === 0) close(']')
    else if (block.length === ROWS_PER_BLOCK) close('')
  }
  return blocks
}
