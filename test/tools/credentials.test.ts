/**
 * The tools for one's own PCE credentials, in per_user mode as the dispatcher runs them: real keystore, real host guard, simulated
 * PCEs over TLS (D9, D15, D18, D39, D40, D47, D48).
 */
import { inspect } from 'node:util'
import t from 'tap'
import { openSharedPce } from '../../programs/composition/compose-authenticated.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { renderError } from '../../plugins/errors/render-errors.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools } from '../../tools/index.js'
import {
  DELETE,
  type Json,
  makePki,
  nameService,
  person,
  PUBLIC_URL,
  REGISTER,
  registration,
  startEchoPce,
  startPce,
  startStranger,
  startUserService,
  STATUS,
  valuesOf,
} from '../context/user-service.js'
import { startAttempt } from '../../plugins/context/prove-pce.js'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import { until } from '../until.js'

const ann = person('ann')
const bob = person('bob')

const pki = makePki(t)

t.test('where nobody can log in with a browser, nobody is sent to /setup', async (t) => {
  const { call } = await startUserService(t, { pki, login: null })
  t.equal(
    (await call(ann, STATUS)).message,
    'No PCE credentials are registered. Register with register-pce-credentials.',
  )
  const refused = await call(ann, 'get-labels')
  t.equal(
    refused.hint,
    'Register your PCE API key with register-pce-credentials; this server has no login for browsers.',
  )
  t.notOk('setup_url' in refused)
})

t.test('registers a PCE, replaces it and deletes it', async (t) => {
  const [first, second] = [await startEchoPce(t, pki), await startEchoPce(t, pki)]
  const { call, audit } = await startUserService(t, { pki })

  t.same(await call(ann, STATUS), {
    registered: false,
    mode: 'per_user',
    message: `No PCE credentials are registered. Register at ${PUBLIC_URL}/setup in a browser.`,
  })
  partial(t, await call(ann, 'get-labels'), {
    error: 'no_pce_credentials',
    message: /needs a PCE/,
    hint: /https:\/\/mcp\.example\.com\/setup in a browser.*register-pce-credentials works too/,
    setup_path: '/setup',
    setup_url: `${PUBLIC_URL}/setup`,
  })
  partial(t, await call(ann, 'get-server-changelog'), { releases: Array }, 'what needs no PCE works before')

  t.same(await call(ann, REGISTER, registration(first.port, 'key-1', 's', { label: 'Lab' })), {
    status: 'ok',
    message: 'Your PCE credentials are stored, the PCE accepts them.',
    pce_host: 'localhost',
    pce_port: first.port,
    pce_org_id: 1,
    label: 'Lab',
    connection: { ok: true },
  })
  t.same(await call(ann, STATUS), {
    registered: true,
    mode: 'per_user',
    message: 'Your own PCE credentials are registered.',
    pce_host: 'localhost',
    pce_port: first.port,
    pce_org_id: 1,
    tls_verify: true,
    label: 'Lab',
    last_check: { at: '2026-06-15T12:00:00.000Z', ok: true },
  })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-1'])
  partial(t, await call(bob, STATUS), { registered: false }, 'they are nobody else’s')
  partial(t, await call(person('ann', ['operators'], 'https://other.example'), STATUS), { registered: false })

  const again = registration(second.port, 'key-2', 's')
  partial(t, await call(ann, REGISTER, { ...again, pce_host: `https://LocalHost:${second.port}/` }), {
    status: 'ok',
    pce_host: 'localhost',
    connection: { ok: true },
  })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-2'], 'a new registration takes the place of the old')
  t.notOk('label' in (await call(ann, STATUS)))

  partial(t, await call(ann, DELETE), { status: 'ok', message: /Revoke the API key/ })
  partial(t, await call(ann, 'get-labels'), { error: 'no_pce_credentials' }, 'at once')
  partial(t, await call(ann, DELETE), { status: 'noop' })
  partial(t, await call(ann, STATUS), { registered: false })

  const decisions = audit.filter(({ phase, tool }) => phase === 'decision' && tool === REGISTER)
  partial(t, decisions, [
    { decision: 'allowed', sub: 'ann' },
    { decision: 'allowed', sub: 'ann' },
  ])
  partial(
    t,
    audit.find(({ phase, tool }) => phase === 'outcome' && tool === 'get-labels'),
    { pce_host: `localhost:${first.port}`, upstream_request_ids: ['pce-key-1'] },
    'the audit log names the PCE and its ids',
  )
})

t.test('every role may register, even readers', async (t) => {
  const pce = await startEchoPce(t, pki)
  const { call } = await startUserService(t, { pki })
  for (const group of ['readers', 'operators', 'admins']) {
    const somebody = person(group, [group])
    partial(t, await call(somebody, REGISTER, registration(pce.port, group, 's')), { connection: { ok: true } })
    t.same(valuesOf(await call(somebody, 'get-labels')), [`canary-of-${group}`])
    partial(t, await call(somebody, DELETE), { status: 'ok' })
  }
  for (const name of [REGISTER, DELETE, STATUS])
    partial(t, await call(person('x', ['guests']), name, {}), { error: 'forbidden_no_role' }, name)
})

t.test('reports problems by field and stores nothing', async (t) => {
  const { call } = await startUserService(t, { pki })
  const good = registration(8443, 'api_1', 's3cr3t')
  for (const [field, value, message] of [
    ['pce_host', '', /empty/],
    ['pce_host', 'http://localhost', /https/],
    ['pce_host', 'localhost/api', /path/],
    ['pce_host', '169.254.169.254', /only accepts localhost/],
    ['pce_port', 0, /1 to 65535/],
    ['pce_port', 65_536, /1 to 65535/],
    ['pce_port', 1.5, /integer/],
    ['pce_port', '443', /integer/],
    ['pce_org_id', 0, /1 or more/],
    ['pce_org_id', -1, /1 or more/],
    ['pce_org_id', 2 ** 60, /1 or more/],
    ['api_key', '', /empty/],
    ['api_key', '   ', /empty/],
    ['api_key', 'a\r\nx-evil: 1', /invisible/],
    ['api_key', 'a\u0000', /invisible/],
    ['api_key', 'api_1:s3cr3t', /colon/],
    ['api_key', 'k'.repeat(256), /at most 255/],
    ['api_secret', '', /empty/],
    ['api_secret', 's\u001b[2J', /invisible/],
    ['api_secret', 's\u200b', /invisible/],
    ['api_secret', '\ud800', /invisible/],
    ['api_secret', 's'.repeat(1025), /at most 1024/],
    ['label', '', /empty/],
    ['label', 'a\u202eb', /invisible/],
    ['label', 'x'.repeat(101), /at most 100/],
    ['tls_verify', false, /MCP_ALLOW_INSECURE_PCE_TLS/],
    ['tls_verify', 'no', /boolean/],
  ] as const) {
    const answer = await call(ann, REGISTER, { ...good, [field]: value })
    partial(
      t,
      answer,
      { error: 'invalid_argument', problems: [{ path: `/${field}`, message }] },
      `${field}: ${String(value).slice(0, 20)}`,
    )
    t.equal(answer.problems.length, 1, JSON.stringify(answer.problems))
    t.notMatch(JSON.stringify(answer), /evil|api_1:|s3cr3t|\\u001b/)
  }
  partial(t, await call(ann, REGISTER, { ...good, pce_port: 0, api_key: '', pce_host: 'a/b' }), {
    problems: [{ path: '/pce_port' }, { path: '/api_key' }, { path: '/pce_host' }],
  })
  partial(t, await call(ann, REGISTER, { ...good, pce_version: 'v2' }), { error: 'invalid_argument' })
  partial(t, await call(ann, STATUS), { registered: false })
})

t.test('checks the host before anything else', async (t) => {
  const stranger = await startStranger(t, 'silent')
  const names = nameService({
    'inside.example': [['127.0.0.1']],
    'metadata.example': [['169.254.169.254']],
    'mixed.example': [['9.9.9.9', '::1']],
    'mapped.example': [['::ffff:127.0.0.1']],
    'flips.example': [['9.9.9.9'], ['127.0.0.1']],
  })
  const { call, log } = await startUserService(t, {
    pki,
    resolve: names.resolve,
    userPce: { allowedHosts: [] },
  })
  const to = (pce_host: string) => ({ ...registration(stranger.port, 'key', 'secret'), pce_host })
  for (const host of ['127.0.0.1', '0x7f.1', '[::1]', 'localhost', '169.254.169.254', '[::ffff:a9fe:a9fe]']) {
    partial(t, await call(ann, REGISTER, to(host)), {
      error: 'invalid_argument',
      problems: [{ path: '/pce_host', message: /not allowed for a PCE/ }],
    })
  }
  t.same(names.asked, [], 'literals are judged without a name service')
  for (const host of ['inside.example', 'metadata.example', 'mixed.example', 'mapped.example']) {
    const answer = await call(ann, REGISTER, to(host))
    partial(
      t,
      answer,
      { error: 'invalid_argument', problems: [{ path: '/pce_host', message: /the name of the PCE resolves to/ }] },
      host,
    )
  }
  partial(t, await call(ann, STATUS), { registered: false }, 'nothing was stored')

  const flipped = await call(bob, REGISTER, to('flips.example'))
  partial(t, flipped, {
    status: 'ok',
    connection: { ok: false, error: { code: 'pce_unreachable' } },
  })
  t.match(log.join('\n'), /resolves to a loopback address/, 'the log says why the try went wrong')
  partial(t, await call(bob, 'get-labels'), {
    error: 'pce_unreachable',
    reason: 'ADDRESS_REFUSED',
    message: /the name of the PCE resolves to a loopback address, which is not allowed for a PCE/,
  })
  t.equal(stranger.connections, 0, 'nobody was connected to')

  const unknown = await call(person('carl'), REGISTER, to('no-such-name.example'))
  partial(
    t,
    unknown,
    { status: 'ok', connection: { ok: false, error: { code: 'pce_unreachable' } } },
    'what may come is stored',
  )
  partial(t, await call(person('carl'), STATUS), { registered: true, pce_host: 'no-such-name.example' })
})

t.test('an unusable PCE is a warning that does not help port scanning', async (t) => {
  const pce = await startPce(t, pki, { seed: 1 })
  const other = makePki(t)
  const untrusted = await startPce(t, other, { seed: 2 })
  const { call, attempts } = await startUserService(t, { pki, patienceMs: 1500 })
  const { key, secret } = pce.credentials
  let callers = 0
  const register = async (args: object) => {
    const somebody = person(`caller-${callers++}`)
    const answer = await call(somebody, REGISTER, args)
    partial(t, await call(somebody, STATUS), { registered: true }, 'stored')
    return answer
  }

  const wrongSecret = await register(registration(pce.port, key, 'wrong'))
  partial(t, wrongSecret, {
    status: 'ok',
    message: /stored, but they could not be used yet: The PCE does not accept/,
    connection: { ok: false, error: { code: 'pce_error', message: /does not accept the API key and secret/ } },
  })
  const wrongOrg = await register(registration(pce.port, key, secret, { pce_org_id: 7 }))
  partial(t, wrongOrg.connection, {
    ok: false,
    error: { code: 'pce_error', message: /not for this organisation/ },
  })
  partial(t, attempts.splice(0), Array(2).fill({ hasRested: false, isOver: true }), 'a PCE is told of at once')

  const broken = await startPce(t, pki, { seed: 3 })
  broken.faults.add({ kind: 'status', status: 503, path: /./, times: 99 })
  const portal = await startPce(t, pki, { seed: 4 })
  portal.faults.add({ kind: 'html', path: /./, times: 99 })
  const places: Record<string, number> = {
    'nobody there': await freePort(),
    'somebody silent': (await startStranger(t, 'silent')).port,
    'somebody else': (await startStranger(t, 'ssh')).port,
    'no TLS': (await startStranger(t, 'plain http')).port,
    'an unknown certificate': untrusted.port,
    'a PCE that fails': broken.port,
    'a web page': portal.port,
  }
  const said = new Set<string>()
  const registering = Object.entries(places).map(async ([what, port]) => {
    const answer = await register(registration(port, key, secret))
    partial(t, answer.connection, { ok: false, error: { code: 'pce_unreachable' } }, what)
    said.add(JSON.stringify([answer.connection, answer.message]))
  })
  await until(() => attempts.filter(({ isOver }) => isOver).length === registering.length - 1)
  // Only somebody silent is still waited for, until the time is up.
  attempts.find(({ isOver }) => !isOver)!.end()
  await Promise.all(registering)
  t.equal(said.size, 1, 'all in the same words')
  const whole = { ms: 1500, hasRested: true, isOver: true }
  partial(t, attempts, Array(registering.length).fill(whole), 'each after the whole of the same time')
  t.equal(untrusted.requests.length, 0, 'a PCE that proves nothing is sent nothing')
  t.equal(broken.requests.length, 1, 'a try is not repeated')
})

t.test('by the real clock, too, no failure is told before the time is up', async (t) => {
  const { call } = await startUserService(t, { pki, patienceMs: 50, startAttempt })
  for (const port of [await freePort(), (await startStranger(t, 'silent')).port]) {
    const startedAt = performance.now()
    const answer = await call(person(`at-${port}`), REGISTER, registration(port, 'key', 'secret'))
    partial(t, answer, { status: 'ok', connection: { ok: false, error: { code: 'pce_unreachable' } } })
    t.ok(performance.now() - startedAt >= 45)
  }
})

t.test('later errors tell readers only that there is no connection', async (t) => {
  const { call } = await startUserService(t, { pki })
  const [closed, silent] = [await freePort(), (await startStranger(t, 'ssh')).port]
  const callers = [
    ['readers', closed],
    ['readers', silent],
    ['operators', closed],
    ['operators', silent],
  ] as const
  const said = await Promise.all(
    callers.map(async ([group, port]) => {
      const somebody = person(`${group}-${port}`, [group])
      await call(somebody, REGISTER, registration(port, 'k', 's'))
      const { error, message, reason }: Json = await call(somebody, 'get-labels')
      return { error, message: message.replaceAll(String(port), 'PORT'), reason }
    }),
  )
  t.same(said[0], said[1], 'a reader cannot tell what is at a port')
  partial(t, said[0], { error: 'pce_unreachable', message: /No PCE could be reached/, reason: undefined })
  partial(t, said[2], { error: 'pce_unreachable', reason: 'ECONNREFUSED' }, 'operators are told')
  t.not(said[2]!.message, said[3]!.message)
  const promoted = person(`readers-${closed}`, ['operators'])
  partial(t, await call(promoted, 'get-labels'), { reason: 'ECONNREFUSED' }, 'the role of the call decides')
})

t.test('allows five registrations a minute', async (t) => {
  const pce = await startEchoPce(t, pki)
  const { call, advance } = await startUserService(t, { pki })
  for (let round = 1; round <= 5; round += 1) {
    partial(t, await call(ann, REGISTER, registration(pce.port, `key-${round}`, 's')), { status: 'ok' })
    partial(
      t,
      await call(ann, REGISTER, registration(pce.port, '', 's')),
      { error: 'invalid_argument' },
      'no connection, no count',
    )
    advance(1000)
  }
  partial(t, await call(ann, REGISTER, registration(pce.port, 'key-6', 's')), {
    error: 'rate_limited',
    retry_after: 55,
    hint: 'Try again in 55 s.',
  })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-key-5'], 'what was refused was not stored')
  partial(t, await call(bob, REGISTER, registration(pce.port, 'bob', 's')), { status: 'ok' }, 'others are not held up')
  const namesake = person('ann', ['operators'], 'https://other.example')
  partial(t, await call(namesake, REGISTER, registration(pce.port, 'x', 's')), { status: 'ok' })
  partial(t, await call(ann, DELETE), { status: 'ok' }, 'nor is removing')
  advance(54_999)
  partial(t, await call(ann, REGISTER, registration(pce.port, 'key-6', 's')), { error: 'rate_limited', retry_after: 1 })
  advance(1)
  partial(t, await call(ann, REGISTER, registration(pce.port, 'key-6', 's')), { status: 'ok' })
  partial(
    t,
    await call(ann, REGISTER, registration(pce.port, 'key-7', 's')),
    { error: 'rate_limited' },
    'one at a time',
  )
})

t.test('the operator decides on tls_verify: false, even later', async (t) => {
  const strangerPki = makePki(t)
  const pce = await startPce(t, strangerPki, { seed: 5 })
  const { key, secret } = pce.credentials
  const args = registration(pce.port, key, secret, { tls_verify: false })
  const lenient = await startUserService(t, { pki, userPce: { allowInsecureTls: true } })
  partial(t, await lenient.call(ann, REGISTER, args), { connection: { ok: true } })
  partial(t, await lenient.call(ann, STATUS), { tls_verify: false })
  partial(t, await lenient.call(ann, 'get-labels', { key: 'env' }), { labels: Array })
  partial(t, await lenient.call(bob, REGISTER, { ...args, tls_verify: true }), { connection: { ok: false } })

  const strict = await startUserService(t, { pki, file: lenient.path })
  pce.clearRequests()
  partial(t, await strict.call(ann, 'get-labels'), { error: 'pce_unreachable' }, 'a record from before is no exception')
  t.equal(pce.requests.length, 0)
})

t.test('a missing keystore', async (t) => {
  const pce = await startEchoPce(t, pki)
  const { call, state } = await startUserService(t, { pki })
  await call(ann, REGISTER, registration(pce.port, 'key', 's'))
  state.close()
  for (const [name, args] of [
    ['get-labels', {}],
    [STATUS, {}],
    [DELETE, {}],
    [REGISTER, registration(pce.port, 'key', 's')],
  ] as const)
    partial(t, await call(ann, name, args), { error: 'keystore_unavailable', message: /.{10}/ }, name)
  partial(t, await call(ann, 'get-server-changelog'), { releases: Array }, 'what needs none works')
})

t.test('an unreadable record affects only its owner', async (t) => {
  const pce = await startEchoPce(t, pki)
  const { call, state, openContext } = await startUserService(t, { pki })
  for (const [who, key] of [
    [ann, 'a'],
    [bob, 'b'],
  ] as const)
    await call(who, REGISTER, registration(pce.port, key, 's'))
  const bobs = (await state.credentials.get(bob))!
  await state.credentials.put(ann, bobs)
  partial(
    t,
    await call(ann, 'get-labels'),
    { error: 'credentials_unreadable', hint: /Register them again/ },
    'swapped records open for nobody',
  )
  partial(t, await call(ann, STATUS), { error: 'credentials_unreadable' })
  t.equal((await openContext(ann)).pce, null)
  t.same(valuesOf(await call(bob, 'get-labels')), ['canary-of-b'])
  partial(t, await call(ann, REGISTER, registration(pce.port, 'new', 's')), { status: 'ok' })
  t.same(valuesOf(await call(ann, 'get-labels')), ['canary-of-new'], 'registering again heals')
  await state.credentials.put(ann, { ...bobs, sealed: bobs.sealed.slice(0, 5) })
  partial(t, await call(ann, DELETE), { status: 'ok' }, 'so does removing')
  partial(t, await call(ann, 'get-labels'), { error: 'no_pce_credentials' })
})

t.test('shared mode', async (t) => {
  const folder = t.testdir()
  const silent = () => undefined
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const pce = {
    url: 'https://pce.example',
    port: '443',
    orgId: '1',
    apiKey: 'k',
    apiSecret: 's',
    tls: { verify: true },
  }
  const callTracker = createCallTracker()
  const shared = await openSharedPce({ pce, statePath: `${folder}/state.db` } as Json, callTracker, { log }, () => 0)
  t.teardown(async () => {
    shared.close()
    await shared.state.close()
  })
  const dispatcher = createDispatcher({
    tools: catalogueOf(tools),
    gates: [shared.gate],
    audit: null,
    log,
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    callTracker,
    server: { name: 'svc-mcp', version: '0.1.0', changelog: async () => null },
    now: () => 0,
  })
  const call = async (name: string, args: object = {}) => {
    const session = { caller: { mode: 'shared', role: 'reader', iss: 'i', sub: 's' }, transport: 'http' } as const
    const result = await dispatcher.dispatch(
      { name, arguments: args as Json, requestId: 'r', sender: new AbortController(), progress: silent },
      { ...session, ...(await shared.find(ann, 'reader')) },
    )
    return result.ok ? result.value : renderError(result.error, 'r')
  }
  partial(t, await call(STATUS), { registered: true, mode: 'shared', message: String })
  partial(t, await call(REGISTER, registration(443, 'k', 's')), { error: 'shared_mode', message: /one PCE account/ })
  partial(t, await call(DELETE), { error: 'shared_mode' })
})

t.test('never shows a key or secret again', async (t) => {
  const KEY = 'KEY-CANARY-7d1f'
  const SECRET = 'SECRET-CANARY-91c3'
  const isShown = (text: string) =>
    /CANARY|S0VZLUNBTk|LUNBTkFSWS/.test(text.replace(/canary-of-KEY-CANARY-7d1f|pce-KEY-CANARY-7d1f/g, ''))
  t.ok(isShown(`Basic ${Buffer.from(`${KEY}:${SECRET}`).toString('base64')}`), 'encoded ones would be found as well')
  const pce = await startEchoPce(t, pki)
  const closed = await freePort()
  const names = nameService({
    localhost: [['127.0.0.1']],
    'inside.example': [['127.0.0.1']],
    'gone.example': [['9.9.9.9'], ['::1']],
  })
  const service = await startUserService(t, {
    pki,
    resolve: names.resolve,
    userPce: { allowedHosts: [], tls: { verify: true, caFile: pki.path('ca.pem') } },
  })
  const open = await startUserService(t, { pki, file: service.path, resolve: names.resolve })
  const answers: Json[] = []
  const say = async (from: typeof service, ...args: Parameters<typeof service.call>) =>
    answers.push(await from.call(...args))
  const with_ = (more: object, port = pce.port) => ({ ...registration(port, KEY, SECRET), ...more })

  for (const bad of [
    { pce_host: '' },
    { pce_host: 'http://x' },
    { pce_host: `https://${KEY}:${SECRET}@localhost` },
    { pce_host: '127.0.0.1' },
    { pce_host: 'inside.example' },
    { pce_port: 'x' },
    { pce_org_id: 0 },
    { label: '\u0000' },
    { api_key: `${KEY}:${SECRET}` },
    { api_secret: `${SECRET}\n` },
    { tls_verify: false },
    { unknown: SECRET },
  ])
    await say(service, ann, REGISTER, with_(bad))
  await say(service, ann, REGISTER, with_({ pce_host: 'gone.example' }))
  await say(service, ann, 'get-labels')
  const users = [person('one'), person('two', ['readers']), person('three', ['admins'])]
  for (const [index, port] of [pce.port, closed, pce.port].entries()) {
    await say(open, users[index]!, REGISTER, with_({ label: 'mine' }, port))
    // At once, because calls to a PCE that never was one wait for their try together.
    const others = tools.filter(({ name }) => name !== DELETE && name !== REGISTER)
    await Promise.all(others.map((tool) => say(open, users[index]!, tool.name, tool.example)))
  }
  const context = await open.openContext(users[0]!)
  t.ok(context.pce)
  const inspected = inspect(context, { depth: 12, showHidden: true, getters: true })
  open.state.close()
  for (const name of [STATUS, REGISTER, 'get-labels'])
    await say(open, users[0]!, name, name === REGISTER ? with_({}) : {})
  t.ok(answers.length > 150)
  t.ok(answers.some(({ connection }) => connection?.ok === true))
  for (const [what, text] of Object.entries({
    answers: JSON.stringify(answers),
    log: [...service.log, ...open.log].join('\n'),
    audit: JSON.stringify([...service.audit, ...open.audit]),
    disk: service.disk().join('\n'),
    context: inspected,
  })) {
    t.ok(text.length > 100, what)
    t.notOk(isShown(text), `not in the ${what}`)
  }
})
