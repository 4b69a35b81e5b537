/** What the proofs on PostgreSQL stand on: a server that can be stopped in every way, and a proxy that counts and breaks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import pg from 'pg'
import t, { type Test } from 'tap'
import { makeCertificate } from '../edge/support/make-certificate.js'
import { found, within } from '../edge/support/within.js'
import { compiled } from '../suite-folder.js'
import { startFaultProxy } from './fault-proxy.js'
import { sharedPostgres, startPostgres } from './start-postgres.js'

async function connectTo(t: Test, url: string, more: pg.ClientConfig = {}) {
  const client = new pg.Client({ connectionString: url, ...more })
  // A connection that is broken rejects what waits for it, too.
  client.on('error', () => {})
  t.teardown(() => client.end().catch(() => {}))
  await client.connect()
  return client
}

t.test('a database of its own', async (t) => {
  const postgres = await sharedPostgres()
  const [one, other] = await Promise.all([postgres.makeDatabase(), postgres.makeDatabase()])
  const client = await connectTo(t, one.url)
  await client.query('CREATE TABLE kept (n int)')
  await client.query('INSERT INTO kept VALUES ($1)', [7])
  t.same(await one.query('SELECT n FROM kept'), [{ n: 7 }])
  await t.rejects(other.query('SELECT n FROM kept'), { code: '42P01' })
  await t.rejects(connectTo(t, one.url.replace(postgres.password, 'wrong')), { code: '28P01' })
  t.same((await client.query('SELECT current_user, session_user')).rows, [
    { current_user: 'svc_mcp', session_user: 'svc_mcp' },
  ])
})

t.test('restarted, paused, killed: what was committed stays', async (t) => {
  const postgres = await startPostgres(t)
  const client = await connectTo(t, postgres.url)
  await client.query('CREATE TABLE kept (n int)')
  const rows = () => postgres.query('SELECT n FROM kept ORDER BY n', [], 'svc_mcp')
  const insert = (n: number) => postgres.query('INSERT INTO kept VALUES ($1)', [n], 'svc_mcp')

  postgres.pause()
  let isAnswered = false
  const late = client.query('SELECT 1').then(() => (isAnswered = true))
  await t.rejects(within(connectTo(t, postgres.url, { connectionTimeoutMillis: 300 }), 'a connection'), {
    message: /timeout/,
  })
  t.equal(isAnswered, false)
  postgres.resume()
  await late

  for (const [n, mode] of (['fast', 'immediate'] as const).entries()) {
    await insert(n)
    await postgres.restart(mode)
  }
  await t.rejects(client.query('SELECT 1'))
  await insert(2)
  const before = postgres.processes()
  await postgres.kill9()
  t.equal(postgres.isRunning(), false)
  await t.rejects(connectTo(t, postgres.url), { code: 'ECONNREFUSED' })
  await postgres.start()
  t.same(await rows(), [{ n: 0 }, { n: 1 }, { n: 2 }])
  t.equal(before.filter((pid) => postgres.processes().includes(pid)).length, 0)
})

t.test('its disk is full', async (t) => {
  const postgres = await startPostgres(t, { diskBytes: 48 << 20 })
  await postgres.query('CREATE TABLE kept (n int, text text)')
  const insert = (n: number) =>
    postgres.query("INSERT INTO kept SELECT $1, repeat('x', 1000) FROM generate_series(1, 10000)", [n])
  await postgres.query("INSERT INTO kept VALUES (0, '')")
  postgres.fillDisk()
  await t.rejects(insert(1))
  await postgres.freeDisk()
  await postgres.query("INSERT INTO kept VALUES (2, '')")
  t.same(await postgres.query('SELECT n FROM kept'), [{ n: 0 }, { n: 2 }])
})

t.test('over TLS only', async (t) => {
  const postgres = await startPostgres(t, { certificate: makeCertificate(t) })
  const client = await connectTo(t, postgres.url)
  t.same((await client.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).rows, [{ ssl: true }])
  await t.rejects(connectTo(t, postgres.url.replace(/\?.*/, '?sslmode=disable')), { code: '28000' })
})

t.test('nothing is left of it when the process that started it is killed', async (t) => {
  const code = `
    const { startPostgres } = await import(${JSON.stringify(compiled('test/postgres/start-postgres.ts'))})
    const postgres = await startPostgres({ teardown() {} })
    postgres.pause()
    console.log(JSON.stringify({ folder: postgres.folder, pids: postgres.processes() }))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = (await within(once(child.stdout, 'data'), 'it starts')) as [Buffer]
  const { folder, pids } = JSON.parse(line.toString()) as { folder: string; pids: number[] }
  t.equal(existsSync(folder), true)
  child.kill('SIGKILL')
  await found(() => !existsSync(folder), 'the folder is removed')
  t.same(
    pids.filter((pid) => existsSync(`/proc/${pid}`)),
    [],
  )
})

t.test('the proxy', async (t) => {
  const postgres = await sharedPostgres()
  const { url, query } = await postgres.makeDatabase()
  const proxy = await startFaultProxy(t, postgres)
  const connect = () => connectTo(t, proxy.through(url))
  const client = await connect()
  await client.query('CREATE TABLE kept (n int)')
  const rows = () => query('SELECT n FROM kept ORDER BY n')

  t.test('counts round trips', async (t) => {
    proxy.clearCounts()
    await client.query('SELECT 1')
    await client.query('INSERT INTO kept VALUES ($1)', [1])
    for (const n of [2, 3]) await client.query({ name: 'add', text: 'INSERT INTO kept VALUES ($1::int)', values: [n] })
    await client.query(`SELECT '${'x'.repeat(200_000)}'`)
    const { statements, ...counts } = proxy.counts
    t.same(counts, { connections: 0, roundTrips: 5, cancels: 0 })
    t.same(statements.slice(0, 4), [
      'SELECT 1',
      'INSERT INTO kept VALUES ($1)',
      'INSERT INTO kept VALUES ($1::int)',
      'INSERT INTO kept VALUES ($1::int)',
    ])
    await query('DELETE FROM kept')
  })

  t.test('delays, holds and refuses', async (t) => {
    proxy.delay(50)
    const begun = performance.now()
    await client.query('SELECT 1')
    t.ok(performance.now() - begun >= 95, 'there and back')
    proxy.delay(0)
    const release = proxy.hold()
    let isAnswered = false
    const late = client.query('SELECT 1').then(() => (isAnswered = true))
    await t.rejects(connectTo(t, proxy.through(url), { connectionTimeoutMillis: 100 }), { message: /timeout/ })
    t.equal(isAnswered, false)
    release()
    await late
    proxy.refuse()
    await t.rejects(connect(), { code: 'ECONNREFUSED' })
    await client.query('SELECT 1')
    await proxy.accept()
    await connect()
  })

  t.test('resets, before and after', async (t) => {
    proxy.resetAt(2)
    await client.query('INSERT INTO kept VALUES (1)')
    await t.rejects(client.query('INSERT INTO kept VALUES (2)'))
    t.same(await rows(), [{ n: 1 }], 'the second never arrived')
    const [one, other] = await Promise.all([connect(), connect()])
    proxy.resetAll()
    await t.rejects(one.query('SELECT 1'))
    await t.rejects(other.query('SELECT 1'))
    await query('DELETE FROM kept')
  })

  t.test('stops a connection at a message', async (t) => {
    for (const delivered of [false, true]) {
      const stopped = proxy.stopAt(2, { delivered })
      const [one, other] = await Promise.all([connect(), connect()])
      await one.query('SELECT 1')
      let isAnswered = false
      one
        .query('INSERT INTO kept VALUES ($1)', [1])
        .finally(() => (isAnswered = true))
        .catch(() => {})
      await stopped.reached
      await other.query('SELECT 1')
      t.same([await rows(), isAnswered], [delivered ? [{ n: 1 }] : [], false])
    }
    await query('DELETE FROM kept')
  })

  t.test('drops an answer', async (t) => {
    const [one, other] = await Promise.all([connect(), connect()])
    const { dropped } = proxy.dropAnswer(/^INSERT INTO kept/)
    await one.query('SELECT 1')
    await t.rejects(one.query('INSERT INTO kept VALUES ($1)', [1]))
    await dropped
    t.same(await rows(), [{ n: 1 }])
    const silent = proxy.dropAnswer(/^INSERT INTO kept/, 'silence')
    let isAnswered = false
    other
      .query('INSERT INTO kept VALUES ($1)', [2])
      .finally(() => (isAnswered = true))
      .catch(() => {})
    await silent.dropped
    t.same(await rows(), [{ n: 1 }, { n: 2 }])
    t.equal(isAnswered, false)
  })
})
