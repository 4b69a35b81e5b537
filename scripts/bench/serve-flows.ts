/**
 * The other end of the flow benches, in a separate process: the labels of an estate, and a traffic query that is done at once
 * with so many of its rows, made and written as JSON before anyone asks. Other collections are empty, but for the ones that no PCE
 * in its right mind would answer like this. Argument: the number of rows.
 */
import { createServer, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { estateLabels, generateFlows } from './generate-flows.js'

const ROWS_PER_BLOCK = 200
const QUERY = '/orgs/1/traffic_flows/async_queries/1'

const rows = Number(process.argv[2])
const download = writeDownload()
const length = download.reduce((sum, block) => sum + block.length, 0)
const query = { href: QUERY, status: 'completed', result: `${QUERY}/download`, matches_count: rows, flows_count: rows }

const MIB = 1024 * 1024
/** Small on the wire, large in memory: by collection. */
const BOMBS: Readonly<Record<string, Buffer>> = {
  workloads: bomb('[', '{},', 32 * MIB, '{}]'),
  ip_lists: bomb('', '['.repeat(64), 32 * MIB, ''),
  services: bomb('[{"href":"', 'x'.repeat(64), 64 * MIB, '"}]'),
}

const server = createServer((request, response) => {
  const path = request.url!.replace('/api/v2', '')
  request.resume()
  response.setHeader('content-type', 'application/json')
  if (request.method === 'POST')
    response.writeHead(202, { location: QUERY }).end(JSON.stringify({ ...query, status: 'queued' }))
  else if (path === `${QUERY}/download`) Readable.from(download).pipe(response.setHeader('content-length', length))
  else if (path === QUERY) response.end(JSON.stringify(query))
  else if (/\/events\b/.test(path)) drip(response)
  else if (nameOf(path) in BOMBS) response.setHeader('content-encoding', 'gzip').end(BOMBS[nameOf(path)])
  else sendList(response, path.startsWith('/orgs/1/labels') ? estateLabels : [])
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))

function sendList(response: ServerResponse, list: readonly object[]): void {
  response.setHeader('x-total-count', list.length).end(JSON.stringify(list))
}

const nameOf = (path: string) => /\/([a-z_]+)(?:\?|$)/.exec(path)?.[1] ?? ''

function bomb(head: string, piece: string, bytes: number, tail: string): Buffer {
  return gzipSync(head + piece.repeat(Math.floor(bytes / piece.length)) + tail, { level: 9 })
}

/** A byte every five seconds. */
function drip(response: ServerResponse): void {
  response.write('[')
  const timer = setInterval(() => response.write(' '), 5000)
  response.on('close', () => clearInterval(timer))
}

/** In pieces, because one string of it all would be too long. */
function writeDownload(): Buffer[] {
  const blocks: Buffer[] = []
  let block: string[] = []
  const close = (end: string) => {
    blocks.push(Buffer.from(`${blocks.length === 0 ? '[' : ','}${block.join(',')}${end}`))
    block = []
  }
  let left = rows
  for (const flow of generateFlows(rows)) {
    block.push(JSON.stringify(flow))
    left -= 1
    if (left === 0) close(']')
    else if (block.length === ROWS_PER_BLOCK) close('')
  }
  return blocks
}
