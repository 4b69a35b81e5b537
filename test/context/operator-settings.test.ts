/** What the operator's settings do to the PCEs of users: proxy, client certificate, TLS checks, a name service that does not answer. */
import type { LookupAddress } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { createPceHosts } from '../../plugins/pce-hosts/create-pce-hosts.js'
import { listen, until } from '../pce-client/support.js'
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

t.test('through a proxy the places of PCEs are still judged', async (t) => {
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
  t.match(registered, { connection: { ok: true } })
  t.same(await labels(), ['canary-of-key'])
  t.same(await labels(), ['canary-of-key'])
  t.equal(names.asked.length, 2, 'a name is looked at once a minute')
  advance(61_000)
  const { requests } = pce
  const refusal = { error: 'pce_unreachable', message: /cloud metadata service/, hint: new RegExp(PUBLIC_URL) }
  t.match(await call(ann, 'get-labels'), refusal, 'a name that leads inside by then')
  t.match(await call(ann, 'get-server-changelog'), { releases: Array }, 'which needs no PCE')
  t.equal(pce.requests, requests)
  advance(61_000)
  t.same(await labels(), ['canary-of-key'])

  const lenient = await startUserService(t, { pki, userPce: proxied })
  await lenient.call(ann, REGISTER, registration(pce.port, 'key', 's'))
  const { length } = proxy.lines
  const strict = await startUserService(t, { pki, file: lenient.path, userPce: { ...proxied, allowedHosts: [] } })
  t.match(await strict.call(ann, 'get-labels'), { error: 'pce_unreachable', message: /this machine is no place/ })
  t.equal(proxy.lines.length, length)
})

t.test('a proxy serves where no name service answers', async (t) => {
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

t.test('a host that the operator names may be known to the proxy alone', async (t) => {
  const pce = await startEchoPce(t, pki)
  const proxy = await startProxy(t)
  const names = nameService({ localhost: [['169.254.169.254']] })
  const { call } = await startUserService(t, {
    pki,
    resolve: names.resolve,
    userPce: { allowedHosts: ['localhost'], proxyUrl: proxy.url },
  })
  t.match(await call(ann, REGISTER, registration(pce.port, 'key', 's')), { connection: { ok: true } })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key'])
  t.same(names.asked, [])
})

t.test('the client certificate of the operator is for the hosts that the operator names', async (t) => {
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
      patienceMs: 50,
    })
    await call(ann, REGISTER, { ...registration(port, 'key', 's'), ...unchecked })
    t.ok(seen.length > 0)
    t.same(new Set(seen), new Set([expected]), allowedHosts.join() || 'any host')
  }
})

t.test('the status says whether the certificate is checked in the end', async (t) => {
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
    t.match(await call(ann, STATUS), { registered: true, tls_verify: isChecked }, what)
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

t.test('a name that is never answered stalls nobody else', async (t: Test) => {
  const pce = await startEchoPce(t, pki)
  const service = fewThreads()
  const { call } = await startUserService(t, {
    pki,
    resolve: (hostname) => service.resolve(hostname),
    userPce: { allowedHosts: ['localhost', 'pce.stalled.example'] },
    patienceMs: 50,
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
  t.match(await call(bob, REGISTER, registration(pce.port, 'bobs', 's')), { connection: { ok: true } })
  t.same(valuesOf(await call(bob, 'get-labels')), ['canary-of-bobs'])
  t.equal(service.stalled.length, before + 1, 'one name takes one thread, however many wait for it')
  service.stalled.forEach((answer) => answer())
  const timer = setInterval(() => service.stalled.forEach((answer) => answer()), 5)
  t.match(await anns, Array(8).fill({ error: 'pce_unreachable' }))
  clearInterval(timer)
})

t.test('names are asked for few at a time, and waited for so long', async (t) => {
  let running = 0
  let most = 0
  const ends: (() => void)[] = []
  const hosts = (patienceMs: number) =>
    createPceHosts({
      allowed: [],
      patienceMs,
      async resolve() {
        most = Math.max(most, (running += 1))
        await new Promise<void>((end) => ends.push(end))
        running -= 1
        return [{ address: '10.0.0.1', family: 4 }]
      },
    })
  const lookUp = (guarded: ReturnType<typeof hosts>, name: string) =>
    new Promise<{ code?: string; found: unknown }>((resolve) =>
      guarded
        .guard(name, 443)
        .lookup(name, {}, (error, found) => resolve({ found, ...(error?.code !== undefined && { code: error.code }) })),
    )
  const patient = hosts(60_000)
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e', 'a'].map((name) => lookUp(patient, `${name}.example`)))
  for (let answered = 0; answered < 5; answered += 1) {
    await until(() => ends.length > answered)
    ends[answered]!()
  }
  t.same(
    (await answers).map(({ found }) => found),
    Array(6).fill('10.0.0.1'),
  )
  t.equal(ends.length, 5, 'a name is asked for once by all who want it')
  t.equal(most, 2)

  const hasty = hosts(5)
  t.match(await Promise.all(['a', 'b', 'c'].map((name) => lookUp(hasty, name))), Array(3).fill({ code: 'ETIMEOUT' }))
  t.equal(ends.length, 7, 'who has gone is not asked for')
  ends.slice(5).forEach((end) => end())
  const later = lookUp(hosts(60_000), 'd')
  await until(() => ends.length > 7)
  ends[7]!()
  t.match(await later, { found: '10.0.0.1' })
})
