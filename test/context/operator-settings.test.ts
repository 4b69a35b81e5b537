/** What the operator's settings do to the PCEs of users: proxy, client certificate, TLS checks, a name service that does not answer. */
import type { LookupAddress } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { createPceHosts } from '../../plugins/context/pce-hosts/create-pce-hosts.js'
import { partial } from '../partial.js'
import { listen } from '../pce-client/support.js'
import { until } from '../until.js'
import {
  makePki,
  nameService,
  person,
  PUBLIC_URL,
  REGISTER,
  registration,
  startEchoPce,
  startUserService,
  STATUS,
  valuesOf,
} from './user-service.js'

const ann = person('ann')
const bob = person('bob')
const pki = makePki(t)

/** A proxy to which every name is this machine's. */
async function startProxy(t: Test) {
  const lines: string[] = []
  const ends = new Set<net.Socket>()
  const proxy = http.createServer().on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    lines.push(request.url!)
    const onward = net.connect(Number(request.url!.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    for (const end of [socket, onward]) ends.add(end.on('error', () => ends.forEach((each) => each.destroy())))
  })
  t.teardown(() => ends.forEach((end) => end.destroy()))
  return { url: `http://127.0.0.1:${await listen(t, proxy)}`, lines }
}

/** At a PCE whose certificate is of another name. */
const unchecked = { pce_host: 'pce.example', tls_verify: false }

t.test('still checks PCE addresses when connecting through a proxy', async (t) => {
  const proxy = await startProxy(t)
  const pce = await startEchoPce(t, pki)
  const proxied = { proxyUrl: proxy.url, allowInsecureTls: true }
  const names = nameService({ 'pce.example': [['10.0.0.1'], ['10.0.0.1'], ['169.254.169.254'], ['10.0.0.1']] })
  const { call, advance } = await startUserService(t, {
    pki,
    resolve: names.resolve,
    userPce: { ...proxied, allowedHosts: [] },
  })
  const labels = async () => valuesOf(await call(ann, 'get-labels'))
  const registered = await call(ann, REGISTER, { ...registration(pce.port, 'key', 's'), ...unchecked })
  partial(t, registered, { connection: { ok: true } })
  t.same(await labels(), ['canary-of-key'])
  t.same(await labels(), ['canary-of-key'])
  t.equal(names.asked.length, 2, 'a name is looked at once a minute')
  advance(61_000)
  const { requests } = pce
  const refusal = { error: 'pce_unreachable', message: /cloud metadata service/, hint: new RegExp(PUBLIC_URL) }
  partial(t, await call(ann, 'get-labels'), refusal, 'a name that leads inside by then')
  partial(t, await call(ann, 'get-server-changelog'), { releases: Array }, 'which needs no PCE')
  t.equal(pce.requests, requests)
  advance(61_000)
  t.same(await labels(), ['canary-of-key'])

  const lenient = await startUserService(t, { pki, userPce: proxied })
  await lenient.call(ann, REGISTER, registration(pce.port, 'key', 's'))
  const { length } = proxy.lines
  const strict = await startUserService(t, { pki, file: lenient.path, userPce: { ...proxied, allowedHosts: [] } })
  partial(t, await strict.call(ann, 'get-labels'), { error: 'pce_unreachable', message: /this machine is not allowed/ })
  t.equal(proxy.lines.length, length)
})

t.test('works through a proxy without DNS', async (t) => {
  const pce = await startEchoPce(t, pki)
  const proxy = await startProxy(t)
  const { call } = await startUserService(t, {
    pki,
    resolve: () => Promise.reject(Object.assign(new Error('no name service'), { code: 'EAI_AGAIN' })),
    userPce: { allowedHosts: [], proxyUrl: proxy.url, allowInsecureTls: true },
  })
  await call(ann, REGISTER, { ...registration(pce.port, 'key', 's'), ...unchecked })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key'])
})

t.test('an operator-listed host may be known only to the proxy', async (t) => {
  const pce = await startEchoPce(t, pki)
  const proxy = await startProxy(t)
  const names = nameService({ localhost: [['169.254.169.254']] })
  const { call } = await startUserService(t, {
    pki,
    resolve: names.resolve,
    userPce: { allowedHosts: ['localhost'], proxyUrl: proxy.url },
  })
  partial(t, await call(ann, REGISTER, registration(pce.port, 'key', 's')), { connection: { ok: true } })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key'])
  t.same(names.asked, [])
})

t.test("presents the operator's client certificate only to operator-listed hosts", async (t) => {
  const seen: (string | undefined)[] = []
  const server = https.createServer(
    { cert: pki.read('server.pem'), key: pki.read('server.key'), requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      seen.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN as string | undefined)
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
    },
  )
  t.teardown(() => server.closeAllConnections())
  const port = await listen(t, server)
  const tls = {
    verify: true,
    caFile: pki.path('ca.pem'),
    clientCertFile: pki.path('client.pem'),
    clientKeyFile: pki.path('client.key'),
  }
  // No host of a PCE is on this machine unless it is named, so the proxy knows where this one is.
  const proxyUrl = (await startProxy(t)).url
  for (const [allowedHosts, expected] of [
    [['pce.example'], 'contract client'],
    [[], undefined],
  ] as const) {
    seen.length = 0
    const { call } = await startUserService(t, {
      pki,
      resolve: () => Promise.resolve([{ address: '10.0.0.1', family: 4 }]),
      userPce: { allowedHosts, tls, proxyUrl, allowInsecureTls: true },
    })
    await call(ann, REGISTER, { ...registration(port, 'key', 's'), ...unchecked })
    t.ok(seen.length > 0)
    t.same(new Set(seen), new Set([expected]), allowedHosts.join() || 'any host')
  }
})

t.test('the status says whether the certificate is actually checked', async (t) => {
  const pce = await startEchoPce(t, pki)
  const lax = { allowInsecureTls: true }
  const off = { tls: { verify: false } }
  const first = await startUserService(t, { pki, userPce: lax })
  for (const [wanted, userPce, isChecked] of [
    [true, {}, true],
    [true, off, false],
    [false, lax, false],
    [false, {}, true],
    [false, { ...off, ...lax }, false],
  ] as const) {
    const what = JSON.stringify([wanted, userPce])
    await first.call(ann, REGISTER, { ...registration(pce.port, 'key', 's'), tls_verify: wanted })
    const { call } = await startUserService(t, { pki, file: first.path, userPce })
    partial(t, await call(ann, STATUS), { registered: true, tls_verify: isChecked }, what)
  }
})

/** A name service that has as many threads as Node.js, and one name that is never answered until it is told. */
function fewThreads() {
  const stalled: (() => void)[] = []
  const waiting: (() => void)[] = []
  let busy = 0
  const leave = () => {
    busy -= 1
    waiting.shift()?.()
  }
  return {
    stalled,
    async resolve(hostname: string): Promise<LookupAddress[]> {
      if (busy === 4) await new Promise<void>((go) => waiting.push(go))
      busy += 1
      if (hostname.endsWith('.stalled.example')) {
        await new Promise<void>((answer) => stalled.push(answer))
        leave()
        throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
      }
      leave()
      return [{ address: '127.0.0.1', family: 4 }]
    },
  }
}

t.test('a name that never resolves stalls no one else', async (t: Test) => {
  const pce = await startEchoPce(t, pki)
  const service = fewThreads()
  const { call } = await startUserService(t, {
    pki,
    resolve: (hostname) => service.resolve(hostname),
    userPce: { allowedHosts: ['localhost', 'pce.stalled.example'] },
  })
  t.teardown(() => service.stalled.forEach((answer) => answer()))
  const registering = call(ann, REGISTER, { ...registration(443, 'a', 's'), pce_host: 'pce.stalled.example' })
  await until(() => service.stalled.length > 0)
  service.stalled.forEach((answer) => answer())
  await until(() => service.stalled.length > 1)
  service.stalled.forEach((answer) => answer())
  await registering

  const before = service.stalled.length
  const anns = Promise.all(Array.from({ length: 8 }, () => call(ann, 'get-labels')))
  await until(() => service.stalled.length > before)
  partial(t, await call(bob, REGISTER, registration(pce.port, 'bobs', 's')), { connection: { ok: true } })
  t.same(valuesOf(await call(bob, 'get-labels')), ['canary-of-bobs'])
  t.equal(service.stalled.length, before + 1, 'one name takes one thread, however many wait for it')
  service.stalled.forEach((answer) => answer())
  const timer = setInterval(() => service.stalled.forEach((answer) => answer()), 5)
  partial(t, await anns, Array(8).fill({ error: 'pce_unreachable' }))
  clearInterval(timer)
})

type Hosts = ReturnType<typeof createPceHosts>
const lookUp = (hosts: Hosts, name: string) =>
  new Promise<{ code?: string; found: unknown }>((resolve) =>
    hosts
      .guard(name, 443)
      .lookup(name, {}, (error, found) => resolve({ found, ...(error?.code !== undefined && { code: error.code }) })),
  )

/** A name service that answers with 10.0.0.1, but to names that are held only when they are let go. */
function holding(held: (name: string) => boolean) {
  const asked: string[] = []
  const waiting: (() => void)[] = []
  return {
    asked,
    running: () => waiting.length,
    letGo: () => waiting.splice(0).forEach((answer) => answer()),
    resolve: async (name: string): Promise<LookupAddress[]> => {
      asked.push(name)
      if (held(name)) await new Promise<void>((answer) => waiting.push(answer))
      return [{ address: '10.0.0.1', family: 4 }]
    },
  }
}

t.test('resolves few names at a time, each with a time limit', async (t) => {
  const names = holding(() => true)
  const hosts = (patienceMs: number) => createPceHosts({ allowed: [], patienceMs, resolve: names.resolve })
  const patient = hosts(60_000)
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e', 'a'].map((name) => lookUp(patient, `${name}.example`)))
  for (const running of [2, 2, 1]) {
    await until(() => names.running() === running)
    names.letGo()
  }
  t.same(
    (await answers).map(({ found }) => found),
    Array(6).fill('10.0.0.1'),
  )
  t.equal(names.asked.length, 5, 'a name is asked for once by all who want it')

  const hasty = hosts(5)
  partial(t, await Promise.all(['a', 'b', 'c'].map((name) => lookUp(hasty, name))), Array(3).fill({ code: 'ETIMEOUT' }))
  names.letGo()
  t.equal(names.asked.length, 7)
  const later = lookUp(hasty, 'd')
  partial(t, [await later, names.asked.slice(7)], [{ code: 'ETIMEOUT' }, ['d']], 'who has gone is not asked for')
  names.letGo()

  const shared = hosts(60_000)
  const slow = ['a', 'b'].map((name) => lookUp(shared, name))
  const early = shared.inspect('c', 443, 5)
  const late = lookUp(shared, 'c')
  t.equal(await early, null)
  names.letGo()
  await Promise.all(slow)
  await until(() => names.running() === 1)
  names.letGo()
  partial(t, await late, { found: '10.0.0.1' }, 'later callers wait just as long')

  const { length } = names.asked
  const ways = [4, 6, 0].map(
    (family) => new Promise((resolve) => shared.guard('e', 443).lookup('e', { family }, (error) => resolve(error))),
  )
  const other = lookUp(shared, 'f')
  await until(() => names.running() === 2)
  t.same(names.asked.slice(length), ['e', 'f'], 'one name has one place, however it is asked for')
  const done = Promise.all([...ways, other])
  for (const running of [2, 1, 1]) {
    await until(() => names.running() === running)
    names.letGo()
  }
  t.same((await done).slice(0, 3), [null, null, null])
})

t.test('unresponsive names take no slots from responsive ones', async (t) => {
  const held = new Set(['slow-1', 'slow-2', 'slow-3', 'slow-4'])
  const names = holding((name) => held.has(name))
  const hosts = createPceHosts({ allowed: [], patienceMs: 2000, resolve: names.resolve })
  t.teardown(() => names.letGo())
  for (const name of ['pce-1', 'pce-2', 'turning']) partial(t, await lookUp(hosts, name), { found: '10.0.0.1' })

  const slow = ['slow-1', 'slow-2', 'slow-3', 'slow-4'].map((name) => lookUp(hosts, name))
  await until(() => names.running() === 2)
  for (const name of ['pce-1', 'pce-2', 'pce-1']) partial(t, await lookUp(hosts, name), { found: '10.0.0.1' })
  t.same(names.asked.slice(-3), ['pce-1', 'pce-2', 'pce-1'], 'looked up again')
  const unknown = lookUp(hosts, 'never-seen')

  held.add('turning')
  const turned = [lookUp(hosts, 'turning'), hosts.inspect('turning', 443)]
  const otherwise = new Promise((resolve) => hosts.guard('turning', 443).lookup('turning', { family: 4 }, resolve))
  await until(() => names.running() === 3)
  const { length } = names.asked
  partial(t, await lookUp(hosts, 'pce-1'), { found: '10.0.0.1' }, 'what it led to stands in where no place is left')
  t.equal(names.asked.length, length)
  partial(t, await Promise.all(slow), Array(4).fill({ code: 'ETIMEOUT' }))
  partial(t, await unknown, { code: 'ETIMEOUT' })
  await Promise.all([...turned, otherwise])

  names.letGo()
  await new Promise(setImmediate)
  const again = [lookUp(hosts, 'slow-1'), lookUp(hosts, 'turning'), lookUp(hosts, 'slow-2')]
  await until(() => names.running() === 2)
  partial(t, await lookUp(hosts, 'pce-2'), { found: '10.0.0.1' })
  t.equal(names.running(), 2, 'a name that has become slow is one of the slow ones')
  names.letGo()
  await until(() => names.running() === 1)
  names.letGo()
  await Promise.all(again)
})

t.test('through a proxy, a busy name service lets nothing bypass the check', async (t) => {
  const pce = await startEchoPce(t, pki)
  const userPce = { allowedHosts: [], proxyUrl: (await startProxy(t)).url, allowInsecureTls: true }
  const at = (host: string) => ({ ...registration(pce.port, 'key', 's'), ...unchecked, pce_host: host })
  const resolve = () => Promise.resolve([{ address: '10.0.0.1', family: 4 }])
  const before = await startUserService(t, { pki, resolve, userPce })
  partial(t, await before.call(ann, REGISTER, at('pce.example')), { connection: { ok: true } })

  const names = holding((name) => name.startsWith('slow'))
  const { call, keystore } = await startUserService(t, {
    pki,
    file: before.path,
    async resolve(name) {
      const found = await names.resolve(name)
      return name === 'pce.example' ? [{ address: '169.254.169.254', family: 4 }] : found
    },
    userPce,
  })
  t.teardown(() => names.letGo())
  const { requests } = pce
  const registering = ['slow-1', 'slow-2'].map((name) => call(person(name), REGISTER, at(`${name}.example`)))
  await until(() => names.running() === 2)
  const busy = { error: 'pce_unreachable', message: /could not be resolved in time/, hint: /Repeat the call/ }
  partial(t, await call(ann, 'get-labels'), busy)
  partial(t, await call(ann, 'get-server-changelog'), { releases: Array }, 'which needs no PCE')
  partial(t, await Promise.all(registering), [busy, busy])
  t.equal(await keystore.find(person('slow-1')), null, 'nothing is stored')
  names.letGo()
  partial(t, await call(ann, 'get-labels'), { error: 'pce_unreachable', message: /cloud metadata service/ }, 'at once')
  t.equal(pce.requests, requests)
})
