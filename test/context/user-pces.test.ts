/** Roles, and whose PCE a call reaches (S2, S13, S14, D45). */
import { fastify } from 'fastify'
import fp from 'fastify-plugin'
import { execFileSync } from 'node:child_process'
import http from 'node:http'
import https from 'node:https'
import { writeFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import clientAddress from '../../plugins/client-address/index.js'
import context from '../../plugins/context/index.js'
import { createPcePool } from '../../plugins/context/find-pce.js'
import { createUserPces } from '../../plugins/context/user-pces.js'
import { explainNoRole, mapRole } from '../../plugins/context/open-context.js'
import { createPceClient, type PceClient } from '../../pce-client/index.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import type { Identity, Role } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import { startForwardProxy } from '../pce-client/contract/transport/start-forward-proxy.js'
import { until } from '../until.js'
import {
  DELETE,
  type Json,
  makePki,
  nameService,
  person,
  PUBLIC_URL,
  REGISTER,
  registration,
  ROLES,
  startEchoPce,
  startPce,
  startStranger,
  startUserService,
  STATUS,
  valuesOf,
} from './user-service.js'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'

const ann = person('ann')
const pki = makePki(t)

t.test('roles', async (t) => {
  const mapping = {
    groups: {
      reader: ['all', 'Readers', ''],
      operator: ['ops', '1f2e-object-id'],
      admin: ['/admins', 'all-admins', ''],
    },
    otherwise: null as Role | null,
  }
  const roleOf = (groups: unknown, more: Partial<Identity> = {}, otherwise: Role | null = null) =>
    mapRole({ ...person('x', groups as string[]), ...more }, { ...mapping, otherwise })
  for (const [groups, role] of [
    [['all'], 'reader'],
    [['all', 'ops'], 'operator'],
    [['/admins', 'ops', 'all'], 'admin'],
    [['ops', '/admins'], 'admin'],
    [['1f2e-object-id'], 'operator'],
    [[], null],
    [['readers'], null],
    [['READERS'], null],
    [['admins'], null],
    [['/admins '], null],
    [['all-admin'], null],
    [['all-admins-not'], null],
    [[''], null],
    [['constructor', '__proto__', 'length', '0'], null],
  ] as const) {
    t.equal(roleOf(groups), role, JSON.stringify(groups))
    t.equal(roleOf(groups, {}, 'reader'), role ?? 'reader', 'the default is for those on no list')
  }

  const overage = { hasGroupsOverage: true }
  for (const otherwise of ['reader', 'operator', 'admin'] as const)
    t.equal(roleOf([], overage, otherwise), null, `nobody can say that they are on no list: no ${otherwise}`)
  t.equal(roleOf(['ops'], overage, 'admin'), 'operator', 'an app role, which stays in the token, counts')
  t.equal(explainNoRole(person('x', [])), undefined)

  const lookedUp: string[] = []
  const { call } = await startUserService(t, {
    wrapKeystore: (keystore) => ({
      ...keystore,
      find(owner) {
        lookedUp.push(owner.sub)
        return keystore.find(owner)
      },
    }),
  })
  const crowded = { ...person('x', []), ...overage }
  partial(t, await call(crowded, STATUS), {
    error: 'forbidden_no_role',
    message: /too many/,
    reason: 'groups_overage',
    hint: /app role/,
  })
  partial(t, await call(person('x', []), STATUS), {
    error: 'forbidden_no_role',
    message: /Your groups give you no role/,
  })
  t.same(lookedUp, [], 'no key is taken out of the keystore for somebody who may do nothing with it')
  t.equal(ROLES.otherwise, null)
})

t.test('the context of a request', async (t) => {
  const seen: Identity[] = []
  const app = fastify()
  t.teardown(() => app.close())
  const stub = (name: string) => fp((_app, _options, done) => done(), { name })
  await app.register(
    fp(
      (app, _options, done) => {
        app.decorateRequest('identity', null)
        app.addHook('onRequest', async (request) => {
          if (request.headers['x-sub'] !== undefined) request.identity = person(String(request.headers['x-sub']))
        })
        done()
      },
      { name: 'auth' },
    ),
  )
  await app.register(clientAddress, {})
  await app.register(stub('dispatcher'))
  await app.register(stub('offer'))
  await app.register(async (secured) => {
    await secured.register(context, {
      openContext(identity) {
        seen.push(identity)
        if (identity.sub === 'broken') return Promise.reject(new Error('no session'))
        return Promise.resolve({ caller: identity } as Json)
      },
    })
    secured.get('/who', (request) => ({ context: request.callerContext }))
  })
  const who = (sub?: string) => app.inject({ url: '/who', headers: sub === undefined ? {} : { 'x-sub': sub } })
  partial(t, (await who('ann')).json(), { context: { caller: { sub: 'ann', iss: 'https://id.example' } } })
  partial(t, (await who('bob')).json(), { context: { caller: { sub: 'bob' } } }, 'created for each request')
  t.same((await who()).json(), { context: null }, 'nobody has none')
  t.equal(seen.length, 2)
  t.equal((await who('broken')).statusCode, 500, 'without a session no route runs')

  const alone = fastify()
  t.teardown(() => alone.close())
  await t.rejects(async () => {
    await alone.register(context, { openContext: () => Promise.reject(new Error()) })
  }, /dependency/)
})

t.test('keeps one client per caller and version of the credentials', async (t) => {
  const pce = await startEchoPce(t, pki)
  let opened = 0
  const service = await startUserService(t, {
    pki,
    wrapKeystore: (keystore) => ({
      ...keystore,
      async find(owner) {
        const record = await keystore.find(owner)
        if (record === null) return null
        const { version } = record
        return { version, open: () => (opened++, record.open()) }
      },
    }),
  })
  const { call, openContext } = service
  await call(ann, REGISTER, registration(pce.port, 'key-1', 's'))
  const before = pce.connections
  const first = (await openContext(ann)).pce!
  for (let round = 0; round < 5; round += 1) t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-1'])
  t.equal(pce.connections - before, 1, 'its connection is used again')
  t.equal(opened, 1, 'and the record decrypted once')
  t.equal((await openContext(ann)).pce, first)

  await until(() => pce.open === 1)
  pce.hold()
  const underWay = call(ann, 'get-labels')
  await until(() => pce.held > 0)
  pce.letGo()
  t.same(valuesOf(await underWay), ['canary-of-key-1'])

  pce.hold()
  const slow = [call(ann, 'get-labels'), call(ann, 'get-events')]
  await until(() => pce.held === 2)
  const replaced = call(ann, REGISTER, registration(pce.port, 'key-2', 's'))
  await until(() => pce.held === 3)
  pce.letGo()
  t.same(valuesOf(await slow[0]!), ['canary-of-key-1'], 'what is under way finishes with the key it began with')
  await slow[1]
  partial(t, await replaced, { connection: { ok: true } })
  const second = (await openContext(ann)).pce!
  t.not(second, first, 'a new registration is a new client')
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-2'])
  const { facts } = await (
    await openContext(ann)
  ).credentials.register({
    host: 'localhost',
    port: pce.port,
    orgId: 1,
    apiKey: 'key-2',
    apiSecret: 's',
    tlsVerify: true,
  })
  t.same(facts, { host: 'localhost', port: pce.port, orgId: 1, tlsVerify: true }, 'facts hold no key')

  partial(t, await call(ann, DELETE), { status: 'ok' })
  t.equal((await openContext(ann)).pce, null)

  await call(ann, REGISTER, registration(pce.port, 'key-3', 's'))
  const sameAgain = (await openContext(ann)).pce
  t.ok(sameAgain)
  t.not(sameAgain, second)
})

/** How many connections stay open: those that are idle would be closed later anyway, so the turns of the event loop are counted. */
async function openSoonAfter(pce: { readonly open: number }): Promise<number> {
  let turns = 0
  await until(() => pce.open === 0 || ++turns > 1000)
  return pce.open
}

t.test('closes connections that use a replaced or removed key', async (t) => {
  const pce = await startEchoPce(t, pki)
  const { call } = await startUserService(t, { pki })
  const elsewhere = await startEchoPce(t, pki)
  for (const [what, end] of [
    ['removed', () => call(ann, DELETE)],
    ['replaced', () => call(ann, REGISTER, registration(elsewhere.port, 'key-2', 's'))],
  ] as const) {
    await call(ann, REGISTER, registration(pce.port, 'key-1', 's'))
    await call(ann, 'get-labels')
    t.ok(pce.open > 0)
    partial(t, await end(), { status: 'ok' })
    t.equal(await openSoonAfter(pce), 0, what)
  }
})

t.test('a removal or registration in another process takes effect at once', async (t) => {
  const pce = await startEchoPce(t, pki)
  const one = await startUserService(t, { pki })
  const two = await startUserService(t, { pki, file: one.path })
  await one.call(ann, REGISTER, registration(pce.port, 'key-1', 's'))
  for (const { call } of [one, two]) t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-1'])
  await two.call(ann, REGISTER, registration(pce.port, 'key-2', 's'))
  t.same(valuesOf(await one.call(ann, 'get-labels')), ['canary-of-key-2'])
  t.same(valuesOf(await two.call(ann, 'get-labels')), ['canary-of-key-2'])
  await one.call(ann, DELETE)
  partial(t, await two.call(ann, 'get-labels'), { error: 'no_pce_credentials' })
  t.equal(await openSoonAfter(pce), 0, 'and the other process keeps no connection with the key')
  partial(t, await two.call(ann, STATUS), { registered: false })
})

t.test('the pool', async (t) => {
  let time = 1
  const closed: string[] = []
  const clientOf = (name: string) => () => ({ name, close: () => closed.push(name) }) as unknown as PceClient
  const pool = createPcePool(() => time, 3)
  const owner = (sub: string, iss = 'i') => ({ iss, sub })
  const first = pool.clientOf(owner('a'), '1', clientOf('a1'))
  t.equal(pool.clientOf(owner('a'), '1', clientOf('never')), first)
  for (const [iss, sub] of [
    ['i', 'a","1'],
    ['i","a', ''],
    ['I', 'a'],
    ['', 'ia'],
    ['ia', ''],
  ] as const) {
    const probe = createPcePool(() => time)
    probe.clientOf(owner('a'), '1', clientOf('a1'))
    partial(
      t,
      probe.clientOf(owner(sub, iss), '1', clientOf('other')),
      { name: 'other' },
      `${iss} ${sub} is somebody else`,
    )
    t.equal(probe.size, 2)
  }
  for (const sub of ['__proto__', 'constructor', 'x'.repeat(255), '😀', '']) {
    const probe = createPcePool(() => time)
    const made = probe.clientOf(owner(sub), '1', clientOf(sub))
    t.equal(probe.clientOf(owner(sub), '1', clientOf('never')), made, sub.slice(0, 20))
  }

  pool.clientOf(owner('a'), '2', clientOf('a2'))
  t.same(closed.splice(0), ['a1'], 'the client of an older version goes')
  t.throws(() =>
    pool.clientOf(owner('a'), '3', () => {
      throw new Error('unreadable')
    }),
  )
  t.same(closed.splice(0), ['a2'], 'and stays gone where the new one cannot be made')
  t.equal(pool.size, 0)

  for (const sub of ['a', 'b', 'c', 'd']) pool.clientOf(owner(sub), '1', clientOf(sub))
  t.same(closed.splice(0), ['a'], 'the longest unused goes where there are too many')
  t.equal(pool.size, 3)
  time += 14 * 60_000
  pool.clientOf(owner('b'), '1', clientOf('never'))
  time += 2 * 60_000
  pool.clientOf(owner('e'), '1', clientOf('e'))
  t.same(closed.splice(0).sort(), ['c', 'd'], 'after a quarter of an hour of no use, so does its key')
  pool.drop(owner('b'))
  pool.drop(owner('b'))
  t.same(closed.splice(0), ['b'])
  pool.close()
  t.same(closed, ['e'])
})

t.test("with twenty users on six PCEs, no one sees another's data", async (t) => {
  const echo = [await startEchoPce(t, pki), await startEchoPce(t, pki)]
  const simulators = await Promise.all([11, 12, 13, 14].map((seed) => startPce(t, pki, { seed })))
  for (const [index, simulator] of simulators.entries()) {
    const client = createPceClient({ url: 'https://localhost', port: simulator.port })
    client.setTlsSettings(pki.path('ca.pem'))
    client.setCredentials(simulator.credentials.key, simulator.credentials.secret)
    await client.labels.create({ key: 'app', value: `canary-sim-${index}` })
    client.close()
  }
  const { call, audit } = await startUserService(t, { pki })
  const issuers = ['https://id.example', 'https://other.example']
  const users = Array.from({ length: 20 }, (_, index) => {
    // Pairs of namesakes of different issuers, and keys of many users at one place.
    const identity = person(
      `user-${index >> 1}`,
      [['readers'], ['operators'], ['admins']][index % 3],
      issuers[index % 2],
    )
    const simulator = index % 5 === 0 ? simulators[(index / 5) % 4]! : undefined
    if (simulator === undefined) {
      const args = registration(echo[index % 2]!.port, `key-${index}`, `secret-${index}`, { label: `label-${index}` })
      return { identity, args, canary: `canary-of-key-${index}`, own: [`label-${index}`] }
    }
    const { key, secret } = simulator.credentials
    const args = registration(simulator.port, key, secret, { label: `label-${index}` })
    return { identity, args, canary: `canary-sim-${simulators.indexOf(simulator)}`, own: [`label-${index}`] }
  })
  const foreign: string[] = []
  let calls = 0
  const look = (user: (typeof users)[number], answer: Json) => {
    calls += 1
    const text = JSON.stringify(answer)
    for (const [found] of text.matchAll(/canary-(?:of-key|sim)-\d+|label-\d+/g))
      if (found !== user.canary && !user.own.includes(found)) foreign.push(`${user.identity.sub}: ${found}`)
  }
  t.same(
    await Promise.all(users.map(async ({ identity }) => (await call(identity, STATUS)).registered)),
    users.map(() => false),
  )
  t.same(
    await Promise.all(users.map(async ({ identity, args }) => (await call(identity, REGISTER, args)).connection)),
    users.map(() => ({ ok: true })),
  )
  await Promise.all(
    users.map(async (user, index) => {
      const labels = await call(user.identity, 'get-labels', { key: 'app', max_results: 500 })
      look(user, labels)
      if (!valuesOf(labels).includes(user.canary)) foreign.push(`${user.identity.sub} misses ${user.canary}`)
      for (const name of [STATUS, 'check-pce-connection', 'get-labels'])
        look(user, await call(user.identity, name, name === 'get-labels' ? { value: 'canary' } : {}))
      if (index % 7 === 0) {
        look(user, await call(user.identity, DELETE))
        look(user, await call(user.identity, 'get-labels'))
        look(user, await call(user.identity, REGISTER, user.args))
      }
    }),
  )
  t.same(foreign, [])
  t.equal(calls, 20 * 4 + 3 * 3)
  const wrong = audit.filter(({ phase, tool, iss, sub, pce_host: host }) => {
    const user = users.find(({ identity }) => identity.iss === iss && identity.sub === sub)!
    return (
      phase === 'outcome' && tool === 'get-labels' && host !== undefined && host !== `localhost:${user.args.pce_port}`
    )
  })
  t.same(wrong, [], 'the audit log says the same')
  const ids = audit.flatMap(({ iss, sub, upstream_request_ids: upstream = [] }) =>
    upstream.map((id: string) => ({
      id,
      user: users.find(({ identity }) => identity.iss === iss && identity.sub === sub)!,
    })),
  )
  t.ok(ids.length > 20)
  t.same(
    ids.filter(({ id, user }) => /^pce-key/.test(id) && id !== `pce-${user.args.api_key}`),
    [],
    'and the ids of the answers are those of the caller’s own',
  )
})

t.test('enforces the host rules at every connection, not only at registration', async (t) => {
  const pce = await startEchoPce(t, pki)
  const table = nameService({ localhost: [['127.0.0.1']] })
  const lenient = await startUserService(t, { pki, resolve: table.resolve })
  await lenient.call(ann, REGISTER, registration(pce.port, 'key', 's'))
  const { connections } = pce

  const narrowed = await startUserService(t, {
    pki,
    file: lenient.path,
    userPce: { allowedHosts: ['pce.example.com'] },
  })
  partial(t, await narrowed.call(ann, 'get-labels'), {
    error: 'pce_unreachable',
    message: /does not connect to the PCE that you registered: this server only accepts pce\.example\.com/,
    hint: `Register another at ${PUBLIC_URL}/setup in a browser.`,
  })
  partial(t, await narrowed.call(ann, STATUS), { registered: true, pce_host: 'localhost' })
  const guarded = await startUserService(t, { pki, file: lenient.path, userPce: { allowedHosts: [] } })
  partial(t, await guarded.call(ann, 'get-labels'), {
    error: 'pce_unreachable',
    message: /this machine is not allowed/,
  })
  const ours = await startUserService(t, {
    pki,
    file: lenient.path,
    own: () => ({ address: '127.0.0.1', port: pce.port }),
  })
  partial(t, await ours.call(ann, 'get-labels'), { error: 'pce_unreachable', message: /this server itself/ })
  const moved = await startUserService(t, {
    pki,
    file: lenient.path,
    // Of the try before the first call, of that call, and of the next.
    resolve: nameService({ localhost: [['127.0.0.1'], ['127.0.0.1'], ['127.0.0.1', '169.254.169.254']] }).resolve,
  })
  t.same(valuesOf(await moved.call(ann, 'get-labels')), ['canary-of-key'])
  ;(await moved.openContext(ann)).pce!.close()
  partial(
    t,
    await moved.call(ann, 'get-labels'),
    { error: 'pce_unreachable', message: /cloud metadata service/ },
    'rebound later',
  )
  t.equal(pce.connections - connections, 2, 'the try and the first call')
})

t.test('sends no key to a PCE with an untrusted certificate', async (t) => {
  const { call } = await startUserService(t, { pki })
  const stranger = makePki(t)
  const good = { cert: pki.read('server.pem'), key: pki.read('server.key') }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const places = [
    [
      'an unknown authority',
      { cert: stranger.read('server.pem'), key: stranger.read('server.key') },
      /UNABLE_TO_VERIFY/,
    ],
    ['an expired certificate', { ...good, cert: signed('localhost', -1) }, /CERT_HAS_EXPIRED/],
    ['a certificate of another name', { ...good, cert: signed('pce.example.com', 2) }, /ALTNAME_INVALID/],
    ['TLS before 1.2', { ...good, ...old }, /./],
    ['none of that', good, null],
  ] as const
  await Promise.all(
    places.map(async ([what, options, reason]) => {
      let requests = 0
      const server = https.createServer(options, (_request, response) => {
        requests += 1
        response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      t.teardown(() => void server.close().closeAllConnections())
      const somebody = person(what)
      await call(somebody, REGISTER, registration((server.address() as AddressInfo).port, 'key', 'secret'))
      const answer = await call(somebody, 'get-labels')
      if (reason === null) partial(t, answer, { labels: [] }, what)
      else partial(t, answer, { error: 'pce_unreachable', reason }, what)
      t.equal(requests > 0, reason === null, `${what}: ${requests} requests`)
    }),
  )
})

/** A certificate of the server's key by the known authority. */
function signed(name: string, days: number): string {
  writeFileSync(pki.path('more.txt'), `subjectAltName=DNS:${name}\n`)
  const by = ['-CA', pki.path('ca.pem'), '-CAkey', pki.path('ca.key'), '-CAcreateserial', '-days', String(days)]
  const of = ['-in', pki.path('server.csr'), '-extfile', pki.path('more.txt')]
  return execFileSync('openssl', ['x509', '-req', ...of, ...by], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

t.test('through a proxy', async (t) => {
  const pce = await startEchoPce(t, pki)
  const proxy = await startForwardProxy(t)
  const lines: string[] = []
  const unwilling = http.createServer()
  unwilling.on('connect', ({ url }: http.IncomingMessage, socket: Socket) => {
    lines.push(String(url))
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  await new Promise<void>((resolve) => unwilling.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void unwilling.close())
  const stranger = await startStranger(t, 'silent')
  const { call } = await startUserService(t, {
    pki,
    resolve: nameService({ 'inside.example': [['127.0.0.1']] }).resolve,
    userPce: { allowedHosts: [], proxyUrl: `http://127.0.0.1:${(unwilling.address() as AddressInfo).port}` },
  })
  for (const pce_host of ['127.0.0.1', 'localhost', 'inside.example', '169.254.169.254'])
    partial(t, await call(ann, REGISTER, { ...registration(stranger.port, 'k', 's'), pce_host }), {
      error: 'invalid_argument',
    })
  partial(
    t,
    await call(ann, REGISTER, { ...registration(stranger.port, 'k', 's'), pce_host: 'known-to-the-proxy.example' }),
    {
      status: 'ok',
      connection: { ok: false },
    },
  )
  t.same(lines, [`known-to-the-proxy.example:${stranger.port}`], 'it resolves the names')
  t.equal(stranger.connections, 0)

  const local = await startUserService(t, { pki, userPce: { proxyUrl: proxy.url } })
  partial(t, await local.call(ann, REGISTER, registration(pce.port, 'key', 's')), { connection: { ok: true } })
  t.same(valuesOf(await local.call(ann, 'get-labels')), ['canary-of-key'])
})

t.test('broken operator settings fail at start-up', async (t) => {
  const stores = { keystore: {} as never, lastChecks: {} as never }
  const parts = { ...stores, callTracker: createCallTracker(), log: {} as never, now: () => 0 }
  const compose = (more: object) =>
    createUserPces(
      {
        http: { publicUrl: PUBLIC_URL },
        userPce: { allowedHosts: [], allowInsecureTls: false, tls: { verify: true }, ...more },
      },
      parts,
    )
  t.throws(() => compose({ tls: { verify: true, caFile: '/no/such/ca.pem' } }), {
    name: 'StartupError',
    message: /ca\.pem/,
  })
  t.throws(() => compose({ proxyUrl: 'http://%zz' }), { name: 'StartupError' })
  t.doesNotThrow(() => compose({}))
  t.ok((await freePort()) > 0)
})

t.test('an unexpected lookup failure affects the PCE, not the server', async (t) => {
  const { call, log } = await startUserService(t, {
    pki,
    wrapKeystore: (keystore) => ({ ...keystore, find: () => Promise.reject(new TypeError('a bug with secret=x')) }),
  })
  partial(t, await call(ann, 'get-labels'), { error: 'keystore_unavailable', message: /cannot be looked up now/ })
  partial(t, await call(ann, 'get-server-changelog'), { releases: Array })
  t.match(log.join(), /a bug/)
})

t.test('a registration that the store does not count is refused with the reason', async (t) => {
  const pce = await startEchoPce(t, pki)
  let problem: Error = new ToolError('overloaded', 'Others wait.')
  const count = () => Promise.reject(problem)
  const { call } = await startUserService(t, { pki, admissions: { count, admit: () => Promise.reject(problem) } })
  const register = () => call(ann, REGISTER, registration(pce.port, 'key', 's'))
  partial(t, await register(), { error: 'overloaded', message: /Others wait/ })
  problem = new ToolError('rate_limited', 'Too many.', { retry_after: 7 })
  partial(t, await register(), { error: 'rate_limited', hint: 'Try again in 7 s.' })
  problem = new Error('no answer')
  partial(t, await register(), { connection: { ok: true } })
})
