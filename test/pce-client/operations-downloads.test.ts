import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { DownloadOptions, DownloadSink, PceClient, RequestOptions } from '../../pce-client/index.js'
import { partial } from '../partial.js'
import { clientOf, startServer, type Reply, type Responder } from './support.js'

let respond: Responder = () => ({})
const server = await startServer(t, (seen, index) => respond(seen, index))

function setup(answer: Responder | Reply, options: Parameters<typeof clientOf>[1] = {}) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server, options)
}

const UUID = '5a0c6ad1-0000-4000-8000-000000000001'
/** Bytes that are no text in any encoding. */
const FILE = Buffer.from([0x25, 0x50, 0x44, 0x46, 0x00, 0xff, 0xfe, 0x80, 0x0d, 0x0a])

interface Case {
  path: string
  accept: string
  bytes: (client: PceClient, options?: RequestOptions) => Promise<Uint8Array>
  sunk: (client: PceClient, options: DownloadOptions) => Promise<{ bytes: number }>
}
const CASES: Record<string, Case> = {
  downloadAsyncQuery: {
    path: `/orgs/1/traffic_flows/async_queries/${UUID}/download`,
    // For any other, a PCE writes CSV (P71).
    accept: 'application/json',
    bytes: (client, options) => client.downloadAsyncQuery(UUID, options),
    sunk: (client, options) => client.downloadAsyncQuery(UUID, options),
  },
  downloadReport: {
    path: `/orgs/1/reports/${UUID}/download`,
    accept: '*/*',
    bytes: (client, options) => client.downloadReport(`/orgs/1/reports/${UUID}`, options),
    sunk: (client, options) => client.downloadReport({ href: `/orgs/1/reports/${UUID}` }, options),
  },
  downloadLabelMappingResults: {
    path: `/orgs/1/label_mapping_rules/run/${UUID}/download`,
    accept: '*/*',
    bytes: (client, options) => client.downloadLabelMappingResults(UUID, options),
    sunk: (client, options) => client.downloadLabelMappingResults(UUID, options),
  },
}

function collecting(): DownloadSink & { begun: number; taken: () => Buffer } {
  let pieces: Uint8Array[] = []
  const sink = {
    begun: 0,
    begin: () => {
      sink.begun += 1
      pieces = []
    },
    take: (chunk: Uint8Array) => void pieces.push(chunk),
    taken: () => Buffer.concat(pieces),
  }
  return sink
}

for (const [name, { path, accept, bytes, sunk }] of Object.entries(CASES)) {
  t.test(name, async (t) => {
    const client = setup({ body: FILE, headers: { 'content-type': 'application/pdf' } })
    const file = await bytes(client)
    t.ok(file instanceof Uint8Array, 'gives bytes')
    t.same(Buffer.from(file), FILE, 'unchanged')
    t.strictSame(server.requests(), [`GET ${path}`])
    t.equal(server.seen[0]?.headers.accept, accept, 'says what it takes')
    await bytes(client, { headers: { accept: 'text/csv' }, params: { a: 1 } })
    partial(t, server.seen[1], { path: `${path}?a=1`, headers: { accept: 'text/csv' } }, 'takes request options')

    const sink = collecting()
    t.strictSame(await sunk(client, { sink }), { bytes: FILE.length }, 'or hands them over and counts them')
    t.same(sink.taken(), FILE)
    t.equal(sink.begun, 1)

    t.equal((await bytes(setup({}))).length, 0, 'an empty file')
    const packed = setup({ body: gzipSync(FILE), headers: { 'content-encoding': 'gzip' } })
    t.same(Buffer.from(await bytes(packed)), FILE, 'is unpacked')
    t.same(Buffer.from(await bytes(setup({ body: gzipSync(FILE) }))), FILE, 'is unpacked without being announced')
    const announced = setup({ body: FILE, headers: { 'content-encoding': 'gzip' } })
    t.same(Buffer.from(await bytes(announced)), FILE, 'is left as it is where the announcement is false')
    const damage = { code: 'invalid_response', message: /the compressed answer is damaged/ }
    for (const body of [gzipSync(FILE).subarray(0, -9), Buffer.concat([gzipSync('').subarray(0, 10), FILE])])
      await t.rejects(bytes(setup({ body })), damage)

    const cutOnce: Responder = (_seen, index) =>
      index === 0 ? { body: Buffer.from('broken'), breaks: true } : { body: FILE }
    t.same(Buffer.from(await bytes(setup(cutOnce))), FILE, 'that breaks off is begun again')
    const again = collecting()
    t.strictSame(await sunk(setup(cutOnce), { sink: again }), { bytes: FILE.length }, 'and only the whole one counts')
    t.strictSame([again.begun, again.taken()], [2, FILE], 'which the sink is told')

    await t.rejects(bytes(setup({ status: 404, body: [{ token: 'not_found_error', message: 'Not ready' }] })), {
      name: 'PceApiError',
      status: 404,
      path,
      errors: [{ token: 'not_found_error' }],
    })
    await t.rejects(bytes(setup({ status: 302, headers: { location: 'http://example.com/x' } })), {
      code: 'invalid_response',
    })
    const full = new Error('disk full')
    const failing = { begin: () => undefined, take: () => Promise.reject(full) }
    await t.rejects(sunk(setup({ body: FILE }), { sink: failing }), full, 'what the sink throws is thrown')
    t.equal(server.seen.length, 1, 'and not repeated')
    const lost = Object.assign(new Error('the file server is gone'), { code: 'ECONNRESET' })
    const closed = {
      begin: () => {
        throw lost
      },
      take: () => undefined,
    }
    await t.rejects(sunk(setup({ body: FILE }), { sink: closed }), lost, 'from its beginning on')
    t.equal(server.seen.length, 1, 'whatever it looks like')
  })
}

t.test('a file larger than an answer may be', async (t) => {
  const size = 33 * 1024 * 1024
  const client = setup({ body: Buffer.alloc(size, 'x') })
  t.equal((await client.downloadReport(`/orgs/1/reports/${UUID}`)).length, size)
  let largest = 0
  const sink = { begin: () => undefined, take: (chunk: Uint8Array) => void (largest = Math.max(largest, chunk.length)) }
  t.strictSame(await client.downloadReport(`/orgs/1/reports/${UUID}`, { sink }), { bytes: size })
  t.ok(largest < 1024 * 1024, `comes in pieces: ${largest} bytes at most`)
})

t.test("a download has no deadline except the caller's", async (t) => {
  const hasty = { totalTimeout: 0.001 }
  const size = 8 * 1024 * 1024
  const client = setup({ body: Buffer.alloc(size) }, hasty)
  t.equal((await client.downloadAsyncQuery(UUID)).length, size, 'that of other calls does not end it')
  const slow = setup({ hangs: true })
  await t.rejects(slow.downloadAsyncQuery(UUID, { totalTimeoutMs: 20 }), { code: 'deadline' }, 'the caller’s own does')
  const controller = new AbortController()
  const cancelled = slow.downloadAsyncQuery(UUID, { signal: controller.signal })
  controller.abort()
  await t.rejects(cancelled, { code: 'aborted' }, 'and so does a cancellation')
})
