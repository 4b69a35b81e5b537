/** Where a request comes from, for limits, log and audit: by the socket, or by the proxies that the operator trusts (D80). */
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { TrustedProxies } from '../../schemas/config.js'
import { PUBLIC_URL, startService, type ServiceOptions } from './authenticated-service.js'

const LISTEN = { host: '127.0.0.1', port: 0, publicUrl: PUBLIC_URL, allowedHosts: [], maxInFlight: 256 }
const network = (address: string, prefix: number) => ({ address, prefix })
const STATUS = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'check-pce-credentials-status', arguments: {} },
}

const startBehind = (t: Test, trustedProxies: TrustedProxies, options: ServiceOptions & { socket?: string } = {}) =>
  startService(t, {
    ...options,
    config: { http: { ...LISTEN, trustedProxies, ...(options.socket !== undefined && { socket: options.socket }) } },
  })

t.test('the client is the first address from the right that is not trusted', async (t) => {
  const { send, tokenOf, audit, log } = await startBehind(t, {
    networks: [
      network('10.0.0.0', 24),
      network('::ffff:192.168.7.0', 120),
      network('2001:db8:cafe::', 48),
      network('fe80::', 10),
    ],
    unix: true,
  })
  const ann = await tokenOf('ann')
  const clientOf = async (remoteAddress: string, headers: Record<string, string> = {}) => {
    audit.length = log.length = 0
    await send(ann, STATUS, { remoteAddress, headers })
    const seen = new Set([
      ...audit.map(({ client_address }) => client_address),
      ...log.filter(({ msg }) => msg === 'request').map(({ client_address }) => client_address),
    ])
    t.equal(seen.size, 1, 'the log and both audit entries agree')
    return [...seen][0]
  }
  const via = (header: string, remoteAddress = '10.0.0.1') => clientOf(remoteAddress, { 'x-forwarded-for': header })

  t.equal(await clientOf('10.0.0.1'), '10.0.0.1', 'a proxy that says nothing is the client')
  t.equal(await clientOf('203.0.113.7'), '203.0.113.7')
  t.equal(await via('198.51.100.1', '203.0.113.7'), '203.0.113.7', 'a stranger is not believed')
  t.equal(await via('198.51.100.1', '10.0.1.1'), '10.0.1.1', 'nor a neighbour of the network')
  t.equal(await via('198.51.100.1'), '198.51.100.1')
  t.equal(await via('1.1.1.1, 198.51.100.1'), '198.51.100.1', 'what the client wrote itself stands further left')
  t.equal(await via('1.1.1.1, 198.51.100.1,10.0.0.9 , 192.168.7.3'), '198.51.100.1', 'through a chain of proxies')
  t.equal(await via('10.0.0.8, 10.0.0.9'), '10.0.0.8', 'all trusted: the furthest')
  t.equal(await via('198.51.100.1', '::ffff:10.0.0.1'), '198.51.100.1', 'a trusted peer in its mapped form')
  t.equal(await via('198.51.100.1', '2001:db8:cafe:7::1'), '198.51.100.1')
  t.equal(await via('198.51.100.1', 'fe80::1%eth0'), '198.51.100.1', 'with a zone')
  t.equal(await via('::FFFF:198.51.100.1'), '198.51.100.1')
  t.equal(await via('2001:DB8:0::A'), '2001:db8::a')
  t.equal(await via('198.51.100.1:4711'), '198.51.100.1', 'some proxies write the port')
  t.equal(await via('[2001:db8::a]:4711'), '2001:db8::a')
  t.equal(await via('198.51.100.1, , '), '198.51.100.1', 'empty elements say nothing')
  for (const junk of [
    'unknown',
    '_hidden',
    'evil\u00a0',
    '127.1',
    '1.2.3.4.5',
    '999.1.1.1',
    '"198.51.100.1"',
    '<b>',
    '::g',
  ]) {
    t.equal(await via(`198.51.100.1, ${junk}`), '10.0.0.1', `${junk} is no address: the hop that reported it counts`)
    t.equal(await via(`${junk}, 10.0.0.9`), '10.0.0.9')
  }
  t.equal(await via(`${'10.0.0.9,'.repeat(2000)}198.51.100.1`), '198.51.100.1')

  const others = {
    forwarded: 'for=198.51.100.1',
    'x-real-ip': '198.51.100.1',
    'x-client-ip': '198.51.100.1',
    'cf-connecting-ip': '198.51.100.1',
    'true-client-ip': '198.51.100.1',
  }
  t.equal(await clientOf('10.0.0.1', others), '10.0.0.1', 'no other header is read')
})

t.test('limits tell the clients of a trusted proxy apart', async (t) => {
  const limits = { rates: { refusedTokensPerAddress: 2, perCaller: 2 } }
  const { send, app } = await startBehind(t, { networks: [network('127.0.0.1', 32)], unix: false }, limits)
  const refused = async (client: string, times: number) => {
    const seen: number[] = []
    for (let time = 0; time < times; time++)
      seen.push((await send('x.y.z', STATUS, { headers: { 'x-forwarded-for': client } })).statusCode)
    return seen
  }
  t.same(await refused('198.51.100.1', 3), [401, 401, 429])
  t.same(await refused('6.6.6.6, 198.51.100.1', 1), [429], 'a forged entry is no way out')
  t.same(await refused('198.51.100.2', 1), [401], 'another client has its own count')
  t.same(await refused('2001:db8:1:2::a', 2), [401, 401])
  t.same(await refused('2001:db8:1:2:ffff::b', 1), [429], 'one /64 counts as one')

  const metadata = await app.inject({
    url: '/setup',
    headers: { host: 'mcp.example.test', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' },
  })
  t.notMatch(JSON.stringify(metadata.headers) + metadata.body, /evil/)
})

t.test('entries of /confirm and of refused forms name the client as well', async (t) => {
  const { confirm, app, tokenOf, audit } = await startBehind(t, { networks: [network('127.0.0.1', 32)], unix: false })
  const ann = await tokenOf('ann')
  const from = { 'x-forwarded-for': '198.51.100.1' }
  await confirm(ann, { tool: 'provision-policy', params_hash: 'a'.repeat(64) }, from)
  await confirm(ann, 'no json', from)
  await app.inject({
    method: 'POST',
    url: '/setup/remove',
    headers: { ...from, host: 'mcp.example.test', authorization: `Bearer ${ann}`, origin: 'https://evil.example' },
  })
  await app.inject({
    method: 'POST',
    url: '/setup/remove',
    headers: {
      ...from,
      host: 'mcp.example.test',
      authorization: `Bearer ${ann}`,
      'sec-fetch-site': 'cross-site',
      'content-type': 'application/x-www-form-urlencoded',
    },
  })
  t.same(
    audit.map(({ route, client_address }) => [route, client_address]),
    [
      ['/confirm', '198.51.100.1'],
      ['/confirm', '198.51.100.1'],
      ['/setup/remove', '198.51.100.1'],
    ],
  )
})

t.test('the peer of a Unix socket is believed where the operator says so', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'client-address-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const [unix, expected] of [
    [true, ['198.51.100.1', undefined]],
    [false, [undefined, undefined]],
  ] as const) {
    const socket = join(folder, `${unix}.sock`)
    const service = await startBehind(t, { networks: [network('10.0.0.0', 8)], unix }, { socket })
    await service.app.listen({ path: socket })
    const token = await service.tokenOf('ann')
    const post = (headers: Record<string, string>) =>
      new Promise<void>((resolve, reject) => {
        const all = {
          host: 'mcp.example.test',
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token}`,
          ...headers,
        }
        request({ socketPath: socket, method: 'POST', path: '/mcp', headers: all }, (response) =>
          response.resume().on('end', resolve),
        )
          .on('error', reject)
          .end(JSON.stringify(STATUS))
      })
    await post({ 'x-forwarded-for': '6.6.6.6, 198.51.100.1, 10.0.0.9' })
    await post({})
    t.same(
      service.audit.filter(({ phase }) => phase === 'decision').map(({ client_address }) => client_address),
      expected,
    )
  }
})
