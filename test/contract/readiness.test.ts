/** Whether a process should be given calls: as long as it would answer them, and no longer. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import t from 'tap'
import { createReadiness } from '../../plugins/health/check-readiness.js'
import { partial } from '../partial.js'
import { ON_FILE_ONLY, registrationFor, startService } from './authenticated-service.js'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }
const MINUTE = 60_000

t.test('stays ready during a provider outage for as long as it accepts tokens', async (t) => {
  let time = Date.parse('2026-06-15T12:00:00Z')
  const { app, keys, send, tokenOf, log } = await startService(t, { now: () => time })
  const ready = async () => (await app.inject('/readyz')).statusCode
  const ping = async () => (await send(await tokenOf('ann'), PING)).statusCode
  keys.fault = 'error'
  time += 59 * MINUTE
  t.equal(await ping(), 200)
  t.equal(await ready(), 200, 'its last keys serve, so it stays')
  partial(
    t,
    log.filter(
      ({ msg }) => msg === 'signing keys of the identity provider cannot be loaded: the answer has status 500',
    ),
    [{ level: 40, age_seconds: 59 * 60 }],
    'and says in the log how old they are',
  )
  time += 2 * MINUTE
  t.equal(await ping(), 503)
  // An answer is given again for a second.
  while ((await ready()) === 200) await new Promise((done) => setImmediate(done))
  t.equal(await ready(), 503)
  partial(
    t,
    log.filter(({ msg }) => msg === 'not ready'),
    [{ check: 'signing keys' }],
  )
  keys.fault = null
  time += MINUTE
  t.equal(await ping(), 200)
  while ((await ready()) === 503) await new Promise((done) => setImmediate(done))
  t.equal(await ready(), 200)
})

t.test('a shared key that the PCE refuses is told in the log and in /readyz, and stops nothing', async (t) => {
  for (const [status, message, pce] of [
    [401, /^The PCE refuses API_KEY and API_SECRET \(401\)/, 'refuses API_KEY and API_SECRET (401)'],
    [403, /^The PCE knows API_KEY and gives it no access/, 'gives API_KEY no access to its organisation (403)'],
  ] as const) {
    let time = Date.parse('2026-06-15T12:00:00Z')
    const { app, log, pce: place, call, tokenOf } = await startService(t, { mode: 'shared', now: () => time })
    const { simulator } = place
    const told = () => log.filter((line) => line.level === 40 && 'remedy' in line)
    const ready = async () => {
      const answer = await app.inject('/readyz')
      return { code: answer.statusCode, ...answer.json<{ status: string; pce?: string }>() }
    }
    t.same(await ready(), { code: 200, status: 'ready' })
    simulator.faults.add({ kind: 'status', path: /./, status, times: 1000 })
    await app.listen({ host: '127.0.0.1', port: 0 })
    while (told().length === 0) await new Promise((done) => setImmediate(done))
    partial(t, told(), [{ http_status: status, msg: message, remedy: String }])
    t.same(await ready(), { code: 200, status: 'ready', pce })
    const ann = await tokenOf('ann')
    partial(t, await call(ann, 'get-labels'), { error: 'pce_error', http_status: status })
    t.equal(told().length, 1, 'once')

    simulator.faults.clear()
    t.same(await ready(), { code: 200, status: 'ready', pce }, 'the PCE is not asked again at once')
    time += 30_000
    while ((await ready()).pce !== undefined) await new Promise((done) => setImmediate(done))
    partial(
      t,
      log.filter(({ msg }) => /takes API_KEY/.test(String(msg))),
      [{ level: 30 }],
    )
  }
})

t.test('a shared key that is refused only later is told as well', async (t) => {
  const { app, pce, call, tokenOf, log } = await startService(t, { mode: 'shared' })
  pce.simulator.faults.add({ kind: 'status', path: /./, status: 401, times: 1000 })
  partial(t, await call(await tokenOf('ann'), 'get-labels'), { error: 'pce_error', http_status: 401 })
  t.same((await app.inject('/readyz')).json(), { status: 'ready', pce: 'refuses API_KEY and API_SECRET (401)' })
  t.equal(log.filter(({ msg }) => /^The PCE refuses API_KEY/.test(String(msg))).length, 1)
})

t.test('a shared PCE that does not answer at the start is told, and stops nothing', async (t) => {
  const { app, log, pce } = await startService(t, { mode: 'shared' })
  await pce.simulator.close()
  await app.listen({ host: '127.0.0.1', port: 0 })
  const told = () => log.filter(({ msg }) => /^The PCE does not answer as it should: GET \/health: /.test(String(msg)))
  while (told().length === 0) await new Promise((done) => setImmediate(done))
  partial(t, told(), [{ level: 40 }])
  t.same((await app.inject('/readyz')).json(), { status: 'ready' })
})

t.test("one user's broken PCE or record does not make the server unready", ON_FILE_ONLY, async (t) => {
  const { app, pce, folder, send, tokenOf, call } = await startService(t)
  const ann = await tokenOf('ann')
  partial(t, await call(ann, 'register-pce-credentials', registrationFor(pce)), { status: 'ok' })
  await pce.simulator.close()
  partial(t, await call(ann, 'get-labels'), { error: 'pce_unreachable' })
  t.equal((await app.inject('/readyz')).statusCode, 200, 'a PCE that is gone')

  const file = new Database(join(folder, 'keystore.db'))
  t.equal(file.prepare("UPDATE credentials SET sealed = x'00', version = 'another'").run().changes, 1)
  file.close()
  partial(t, await call(ann, 'get-labels'), { error: 'credentials_unreadable' })
  t.equal((await app.inject('/readyz')).statusCode, 200, 'a record that cannot be opened')
  t.equal((await send(ann, PING)).statusCode, 200)
})

t.test(
  'a process that has lost its state file, or the place of its audit log, is not ready',
  ON_FILE_ONLY,
  async (t) => {
    for (const [lost, check] of [
      ['states', 'state file'],
      ['logs', 'audit log'],
    ] as const) {
      const folder = mkdtempSync(join(tmpdir(), 'lost-'))
      t.teardown(() => rmSync(folder, { recursive: true, force: true }))
      for (const name of ['states', 'logs']) mkdirSync(join(folder, name))
      const config = { auditLogPath: join(folder, 'logs', 'audit.log') }
      const { app, log } = await startService(t, { mode: 'shared', folder: join(folder, 'states'), config })
      renameSync(join(folder, lost), join(folder, 'elsewhere'))
      const answer = await app.inject('/readyz')
      t.equal(answer.statusCode, 503)
      t.same(answer.json(), { status: 'unavailable', check })
      partial(
        t,
        log.filter(({ msg }) => msg === 'not ready'),
        [{ check }],
      )
    }
  },
)

t.test('a deleted audit file is made again without a signal, by a call or by the next look at /readyz', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'deleted-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const auditLogPath = join(folder, 'audit.log')
  const { app, log, tokenOf, call } = await startService(t, { mode: 'shared', folder, config: { auditLogPath } })
  const lines = () =>
    readFileSync(auditLogPath, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { phase: string; tool?: string })
  const ann = await tokenOf('ann')
  await call(ann, 'get-labels')
  rmSync(auditLogPath)
  partial(t, await call(ann, 'create-label', { key: 'app', value: 'kept' }), { label: { value: 'kept' } })
  t.same(
    lines().map(({ phase, tool }) => [phase, tool]),
    [
      ['gap', undefined],
      ['decision', 'create-label'],
      ['outcome', 'create-label'],
    ],
  )
  rmSync(auditLogPath)
  t.equal((await app.inject('/readyz')).statusCode, 200)
  t.same(
    lines().map(({ phase }) => phase),
    ['gap'],
  )
  t.equal(log.filter(({ msg }) => /audit log was deleted/.test(String(msg))).length, 2, 'the operator is told')
})

t.test('a hanging check starts once and fails when its time is up', async (t) => {
  const changes: unknown[] = []
  const ends: (() => void)[] = []
  let time = 0
  let known: Error | null = null
  const findFailure = createReadiness(
    [
      { name: 'quick', run: () => {}, findProblem: () => known },
      { name: 'slow', run: () => new Promise((end) => ends.push(end)) },
      {
        name: 'broken',
        run() {
          if (time >= 20_000 && time < 30_000) throw new Error('broken')
        },
      },
    ],
    { now: () => time, patienceMs: 1000, changed: (failed) => changes.push(failed) },
  )
  const isReady = async () => (await findFailure()) === null
  const asked = Array.from({ length: 50 }, () => isReady())
  time = 5000
  asked.push(isReady())
  t.same(new Set(await Promise.all(asked)), new Set([false]))
  partial(t, changes, [{ name: 'slow', error: { message: 'no answer in 1000 ms' } }])
  t.equal(await isReady(), false)
  t.equal(ends.length, 1)

  const endNext = async () => {
    const before = ends.length
    const answer = isReady()
    await new Promise((turn) => setImmediate(turn))
    if (ends.length > before) ends.at(-1)!()
    return answer
  }
  ends[0]!()
  await new Promise((turn) => setImmediate(turn))
  time = 10_000
  t.equal(await endNext(), true, 'it ended late, and the next one ends in time')
  t.equal(await isReady(), true)
  t.equal(ends.length, 2, 'which is an answer for a second')
  time = 20_000
  t.equal(await endNext(), false)
  time = 25_000
  t.equal(await endNext(), false)
  time = 29_900
  t.equal(await endNext(), false)
  time = 30_149
  t.equal(await endNext(), false, 'which is an answer for a quarter of a second')
  time = 30_150
  t.equal(await endNext(), true)
  known = new Error('calls are refused')
  t.equal(await isReady(), false, 'what calls are refused for counts at once')
  known = null
  t.equal(await isReady(), true, 'and no longer than they are')
  partial(
    t,
    changes.slice(1),
    [
      null,
      { name: 'broken', error: { message: 'broken' } },
      null,
      { name: 'quick', error: { message: 'calls are refused' } },
      null,
    ],
    'every change is told once',
  )
})
