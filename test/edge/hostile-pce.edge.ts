/** A PCE that answers to do harm: every call on it ends with a clear error, and the callers of another PCE notice nothing. */
import { createServer, type Server } from 'node:https'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createWorld } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
import { memoryOf } from './support/raw-connection.js'

const MIB = 1024 * 1024
/** Calls that fetch each bomb at a time. */
const AT_ONCE = 12
/** What the whole process may hold: MiB. */
const MOST_MEMORY = 1024
/** How long somebody else may wait for a light call, as a part of the time that the whole attack takes. */
const LONGEST_WAIT = 1 / 4
const WINDOW = { start_date: '2026-06-08', end_date: '2026-06-14' }
const QUERY = '/orgs/1/traffic_flows/async_queries/1'
const JOB = '/orgs/1/jobs/1'

const filled = (head: string, piece: string, bytes: number, tail: string) =>
  gzipSync(head + piece.repeat(Math.floor(bytes / piece.length)) + tail, { level: 9 })

/** Small on the wire, large in memory. */
const BOMBS: Readonly<Record<string, Buffer>> = {
  workloads: filled('[', '{},', 32 * MIB, '{}]'),
  ip_lists: filled('', '['.repeat(64), 16 * MIB, ''),
  services: filled('[{"href":"', 'x'.repeat(64), 64 * MIB, '"}]'),
}
const ROW = JSON.stringify({ src: { ip: '10.0.0.1' }, dst: { ip: '10.0.0.2' }, service: { port: 1, proto: 6 } })

/** Registers as any PCE does; every collection that is read from it does harm, but the labels where it has some. */
async function startHostile(t: Test, { cert, key }: { cert: string; key: string }, hasLabels: boolean) {
  const server: Server = createServer({ cert, key }, (request, response) => {
    const path = request.url!.replace(/^\/api\/v2/, '').split('?', 1)[0]!
    const name = path.split('/').at(-1)!
    request.resume()
    response.setHeader('content-type', 'application/json')
    if (hasLabels && name === 'labels') response.setHeader('x-total-count', '0').end('[]')
    else if (request.method === 'POST')
      response.writeHead(202, { location: QUERY }).end(JSON.stringify({ href: QUERY, status: 'queued' }))
    else if (path === QUERY)
      response.end(JSON.stringify({ href: QUERY, status: 'completed', result: `${QUERY}/download` }))
    else if (path === JOB)
      response.end(JSON.stringify({ href: JOB, status: 'done', result: { href: '/orgs/1/datafiles/1' } }))
    else if (path === `${QUERY}/download`) endless(response, `${ROW},`)
    else if (path === '/orgs/1/datafiles/1') endless(response, '{"href":"/orgs/1/labels/1","key":"app","value":"x"},')
    else if (name === 'labels' && request.headers.prefer === 'respond-async')
      response.writeHead(202, { location: JOB, 'retry-after': '0' }).end()
    else if (name === 'labels') response.setHeader('x-total-count', 10_000_000).end('[]')
    else if (name in BOMBS && !path.includes('/settings/'))
      response.setHeader('content-encoding', 'gzip').end(BOMBS[name])
    else response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function endless(response: ServerResponse, line: string): void {
  const block = Buffer.from(line.repeat(2000))
  response.write('[')
  const more = () => {
    while (!response.destroyed && response.write(block));
  }
  response.on('drain', more)
  more()
}

t.test('a PCE that answers to do harm', { timeout: 300_000 }, async (t) => {
  const world = await createWorld(t)
  const ports = await Promise.all([false, true].map((hasLabels) => startHostile(t, world.certificate, hasLabels)))
  const { target, pid } = await world.serve()
  const bombs = ['get-workloads', 'get-iplists', 'get-services']
  const [victim, streaming, ...attackers] = await Promise.all(
    ['victim', 'streaming', ...bombs, 'job'].map((sub) => world.tokenOf(sub)),
  )
  await callTool(target, victim!, 'register-pce-credentials', world.pce.registration)
  for (const token of [streaming!, ...attackers]) {
    const hostile = { ...world.pce.registration, pce_port: ports[token === streaming ? 1 : 0], pce_org_id: 1 }
    const { status } = await callTool(target, token, 'register-pce-credentials', hostile)
    t.equal(status, 'ok')
  }

  let isOver = false
  let slowest = 0
  const watch = async () => {
    while (!isOver) {
      const begun = performance.now()
      const { labels } = await callTool(target, victim!, 'get-labels', { key: 'env' })
      slowest = Math.max(slowest, performance.now() - begun)
      if (!Array.isArray(labels)) throw new Error('the victim got no labels')
    }
  }
  const ended = async (token: string, name: string, args: object = {}) =>
    [name, (await callTool(target, token, name, args)).error] as const
  const attackedAt = performance.now()
  const attack = Promise.all([
    ...bombs.flatMap((name, at) => Array.from({ length: AT_ONCE }, () => ended(attackers[at]!, name))),
    ended(streaming!, 'get-traffic-flows-summary', WINDOW),
    // Its labels come from a job.
    ended(attackers.at(-1)!, 'find-unmanaged-traffic'),
  ]).finally(() => (isOver = true))
  const [outcomes] = await Promise.all([attack, watch()])
  const seen = [...new Set(outcomes.map((pair) => pair.join(' ')))].toSorted()
  t.same(
    seen,
    [...bombs, 'get-traffic-flows-summary', 'find-unmanaged-traffic']
      .map((name) => `${name} pce_answer_too_large`)
      .toSorted(),
  )
  const part = slowest / (performance.now() - attackedAt)
  t.ok(part < LONGEST_WAIT, `the victim waited ${slowest.toFixed(0)} ms, ${part.toFixed(2)} of the attack`)
  t.ok(memoryOf(pid).most < MOST_MEMORY, `${memoryOf(pid).most.toFixed(0)} MiB`)
})
