/**
 * Rows that somebody has written into the database beside running servers: of other content, other sizes and other owners. Nothing runs that
 * was not approved, no approval runs twice at a server, and a bad row stops nobody but whom it is about.
 */
import pg from 'pg'
import t, { type Test } from 'tap'
import { startApproving } from '../approval/bench.js'
import { startConfirming } from '../confirm/harness.js'
import { registrationFor, startService } from '../contract/authenticated-service.js'
import { found } from '../edge/support/within.js'
import { partial } from '../partial.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { databaseOf } from './database-of.js'
import { sharedPostgres } from './start-postgres.js'

const FAR = '9223372036854775807'
/** Longer, in bytes, than anything that a server writes. */
const LONG = 4_000_000
/** In hexadecimal, longer than a text of Node.js can be. */
const HUGE = 300_000_000
const TOOL = 'create-deny-rule'
const QUICK = 'create-label'

const makeDatabase = async () => (await sharedPostgres()).makeDatabase()

/** Servers whose approved call adds the same rule as often as it runs. */
async function startAdding(t: Test) {
  const database = await makeDatabase()
  const bench = await startApproving(t, { database: databaseOf(database.url), confirm: { tools: [TOOL, QUICK] } })
  const href = await bench.draft('one')
  const rule = {
    ruleset_href: href,
    providers: ['ams'],
    consumers: ['ams'],
    ingress_services: [{ port: 8443, proto: 'tcp' }],
  }
  return {
    database,
    bench,
    set: (sql: string) => database.query(`UPDATE svc_mcp.approvals SET ${sql}`),
    call: () => bench.call('ann', TOOL, rule),
    /** Another one, whose preview takes less time. */
    label: (value = 'one', sub = 'ann') => bench.call(sub, QUICK, { key: 'app', value }),
    /** The same call at a server that has started since. */
    async callElsewhere(t: Test) {
      const other = await startApproving(t, { after: bench, confirm: { tools: [TOOL, QUICK] } })
      return () => other.call('ann', TOOL, rule)
    },
    added: () =>
      bench.simulator.requests.filter(({ method, path }) => method === 'POST' && /(deny_rules|labels)$/.test(path))
        .length,
  }
}

t.test('an approval whose end was taken back does not run again at this server', async (t) => {
  const { bench, database, set, call, added } = await startAdding(t)
  const { approval_id: id } = await call()
  await bench.decide(id, 'approved', bench.person('ann'))
  partial(t, await call(), { rule: { rule_type: 'deny' } })
  for (const change of ['ending = NULL', `ending = NULL, expires_at = ${FAR}`, `ending = 'expired'`]) {
    await set(`${change}, is_current = (id = '${id}')`)
    const again = await call()
    partial(t, again, { error: 'confirm_required' })
    t.not(again.approval_id, id, 'it is asked anew')
    await database.query('DELETE FROM svc_mcp.approvals WHERE id <> $1', [id])
  }
  t.equal(added(), 1)
})

t.test('an approval that was put back does not run again at another server', async (t) => {
  const { bench, database, set, call, callElsewhere, added } = await startAdding(t)
  const { approval_id: id } = await call()
  await bench.decide(id, 'approved', bench.person('ann'))
  await database.query('CREATE TABLE kept AS SELECT * FROM svc_mcp.approvals')
  partial(t, await call(), { rule: { rule_type: 'deny' } })
  const elsewhere = await callElsewhere(t)
  const waysBack = [
    () => set('ending = NULL'),
    async () => {
      await database.query('DELETE FROM svc_mcp.approvals')
      await database.query('INSERT INTO svc_mcp.approvals SELECT * FROM kept')
    },
    () => set(`ending = NULL, expires_at = ${FAR}`),
  ]
  for (const putBack of waysBack) {
    await putBack()
    partial(t, await elsewhere(), { error: 'confirm_token_replay' })
    const again = await elsewhere()
    partial(t, again, { error: 'confirm_required' })
    await database.query('DELETE FROM svc_mcp.approvals WHERE id <> $1', [id])
    await set('is_current = true')
  }
  t.equal(added(), 1)
})

t.test('of two runs of an approval at a time one begins, whatever the database forgets', async (t) => {
  const { bench, database, call, added } = await startAdding(t)
  const { approval_id: id } = await call()
  await bench.decide(id, 'approved', bench.person('ann'))
  // A database in which no approval ends, and which knows of no id that was used.
  for (const [table, event, forget] of [
    ['approvals', 'UPDATE', 'NEW.ending := NULL'],
    ['spent', 'INSERT', 'NEW.id := gen_random_uuid()'],
  ])
    await database.query(`CREATE FUNCTION forget_${table}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ${forget}; RETURN NEW; END';
      CREATE TRIGGER forget BEFORE ${event} ON svc_mcp.${table} FOR EACH ROW EXECUTE FUNCTION forget_${table}()`)
  const session = new pg.Client(database.url)
  await session.connect()
  t.teardown(() => session.end())
  await session.query('BEGIN')
  await session.query('SELECT * FROM svc_mcp.approvals FOR UPDATE')
  const both = Promise.all([call(), call()])
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await found(async () => (await database.query(waiting)).length === 2, 'both are about to end it')
  await session.query('ROLLBACK')
  const answers = (await both).map(({ rule, error }) => error ?? rule?.rule_type)
  t.same(answers.sort(), ['confirm_token_replay', 'deny'])
  t.equal(added(), 1)
})

t.test('a used confirm token whose record was deleted does not run again, at this server or another', async (t) => {
  const database = await makeDatabase()
  const lines: string[] = []
  const open = async () => {
    const state = await openDatabase(databaseOf(database.url), {
      now: () => bench.clock.now,
      warn: (line) => void lines.push(line),
    })
    t.teardown(() => state.close())
    return state
  }
  const state = await open()
  const bench = await startConfirming(t, { ports: () => state })
  const { href } = await bench.draft('shown')
  const args = { hrefs: [href] }
  const asked = await bench.call('provision-policy', args)
  const { confirm_token: token } = await bench.confirm(asked)
  // A note that is no time concerns no token, and is replaced when the next one is written.
  await database.query(`INSERT INTO svc_mcp.notes VALUES ('used_tokens_forgotten_until', 'not a time')`)
  partial(t, await bench.call('provision-policy', args, { token }), { ok: true })
  t.equal((await database.query('DELETE FROM svc_mcp.used_tokens RETURNING id')).length, 1)
  partial(t, await bench.call('provision-policy', args, { token }), { error: 'confirm_token_replay' })
  const other = await startConfirming(t, { after: bench, ports: () => state })
  partial(t, await other.call('provision-policy', args, { token }), { error: 'confirm_token_replay' })

  // A note of a time far ahead would have every token used, for ever.
  bench.clock.now = Date.now()
  const { href: next } = await bench.draft('next')
  const more = { hrefs: [next] }
  const { confirm_token: fresh } = await bench.confirm(await bench.call('provision-policy', more))
  const noted = `UPDATE svc_mcp.notes SET value = '9999999999999' WHERE name = 'used_tokens_forgotten_until' RETURNING name`
  t.equal((await database.query(noted)).length, 1)
  partial(t, await bench.call('provision-policy', more, { token: fresh }), { ok: true })
  await open()
  t.equal(lines.length, 1)
  t.match(lines[0], /^The note used_tokens_forgotten_until in the state database at \S+ had a time far ahead/)
  await open()
  t.equal(lines.length, 1, 'it is mended')
})

t.test('a question whose row was changed is asked anew, and its page is gone', async (t) => {
  const { bench, database, set, label, added } = await startAdding(t)
  const admin = bench.person('adam')
  const changes = {
    'an end that no server writes': `ending = 'approved'`,
    'a decision that no server writes': `decision = '{"verdict":"approved"}'`,
    'an empty decision': `decision = ''`,
    'a request of any size': `request = repeat('x', ${LONG})`,
    'an end of any size': `ending = repeat('x', ${LONG})`,
    'the call of somebody else': `call = repeat('0', 64)`,
    'the list of somebody else': `owner = repeat('0', 64)`,
  }
  for (const [what, change] of Object.entries(changes)) {
    const { approval_id: id } = await label()
    await set(change)
    const again = await label()
    partial(t, again, { error: 'confirm_required' }, what)
    t.not(again.approval_id, id, what)
    const known = await bench.desk.find(id)
    t.equal(known?.state, what.startsWith('an end') ? 'void' : undefined, what)
    await t.rejects(bench.decide(id, 'approved', { ...admin, sub: 'nobody', groups: [] }), { code: 'not_found' }, what)
    await database.query('DELETE FROM svc_mcp.approvals')
  }
  t.equal(added(), 0)
})

t.test('rows that no server wrote do not push requests off a list', async (t) => {
  const { bench, database, label } = await startAdding(t)
  const ids = [(await label('1')).approval_id, (await label('2')).approval_id, (await label('3', 'bob')).approval_id]
  const forge = (owner: string, count: number) =>
    database.query(
      `INSERT INTO svc_mcp.approvals SELECT 'forged ' || gen_random_uuid(), ${owner}, 'call ' || n, a.request, NULL, NULL, false, a.expires_at - 1000
       FROM generate_series(1, ${count}) AS n, svc_mcp.approvals a WHERE a.id = $1`,
      [ids[0]],
    )
  await forge(`'owner ' || n`, 150)
  await forge('a.owner', 150)
  for (const sub of ['ann', 'bob', 'adam']) {
    const { total, approvals } = await bench.desk.waitingFor(bench.person(sub))
    t.same([total, approvals.map(({ request: { id } }) => id).sort()], [3, [...ids].sort()], sub)
  }
  const { approvals } = await bench.desk.waitingFor(bench.person('bob', 'operator'))
  t.same(
    approvals.map(({ request: { id } }) => id),
    [ids[2]],
  )
})

t.test('a record of any size is unreadable to its owner, and nothing to others', async (t) => {
  const database = await makeDatabase()
  const service = await startService(t, { config: { database: databaseOf(database.url) } })
  const { call, tokenOf, pce } = service
  const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')]
  for (const token of [ann, bob])
    partial(t, await call(token, 'register-pce-credentials', registrationFor(pce)), {
      message: String,
      error: undefined,
    })
  const owner = `WHERE sub = 'ann'`
  for (const [column, length] of [
    ['wrapped_key', LONG],
    ['sealed', HUGE],
  ] as const) {
    await database.query(`UPDATE svc_mcp.credentials SET ${column} = repeat('x', ${length})::bytea ${owner}`)
    partial(t, await call(ann, 'get-labels', { key: 'env' }), { error: 'credentials_unreadable' }, column)
    partial(t, await call(bob, 'create-label', { key: 'app', value: column }), { label: { value: column } })
  }
  const note = `UPDATE svc_mcp.notes SET value = $1 WHERE name LIKE 'last_check%'`
  for (const value of ['', 'null', '7', '{"of":1}', JSON.stringify({ of: 'VERSION', at: 1e300, ok: 1, message: 7 })]) {
    const [{ version }] = (await database.query(`SELECT version FROM svc_mcp.credentials WHERE sub = 'bob'`)) as [
      { version: string },
    ]
    await database.query(note, [value.replace('VERSION', version)])
    partial(t, await call(bob, 'check-pce-credentials-status'), { registered: true, last_check: undefined }, value)
  }
})

/** A service with people, and a session beside it that locks what it is told to until it lets go. */
async function startBeside(t: Test) {
  const database = await makeDatabase()
  const service = await startService(t, {
    mode: 'shared',
    rates: { perCaller: 100 },
    config: { database: databaseOf(database.url) },
  })
  const session = new pg.Client(database.url)
  await session.connect()
  t.teardown(() => session.end())
  const { call, tokenOf, app } = service
  return {
    ...service,
    database,
    isReady: async () => (await app.inject({ url: '/readyz' })).statusCode === 200,
    read: async (sub: string) => call(await tokenOf(sub), 'get-labels', { key: 'env' }),
    label: async (sub: string, value: string) => call(await tokenOf(sub), 'create-label', { key: 'app', value }),
    lock: async (statement: string) => {
      await session.query('BEGIN')
      await session.query(statement)
    },
    letGo: () => session.query('ROLLBACK'),
  }
}

t.test('a count that is full or locked stops its caller at most', async (t) => {
  const { database, isReady, read, label, lock, letGo, log } = await startBeside(t)
  await read('ann')
  await database.query(`UPDATE svc_mcp.counts SET hits = ${FAR}, started = clock_timestamp()`)
  partial(t, await read('ann'), { error: undefined })
  partial(t, await label('bob', 'one'), { label: { value: 'one' } })

  // Somebody looks at a row in a transaction that they leave open.
  await lock('SELECT * FROM svc_mcp.counts WHERE hits > 1000 FOR UPDATE')
  const anns = Promise.all(Array.from({ length: 12 }, () => read('ann')))
  partial(t, await label('bob', 'two'), { label: { value: 'two' } }, 'there are connections for others')
  const told = (await anns).map(({ error }) => String(error?.data?.error)).sort()
  t.same(told, [...Array.from({ length: 10 }, () => 'overloaded'), 'undefined', 'undefined'])
  for (let n = 0; n < 3; n++) await read('ann')
  t.equal(await isReady(), true)
  partial(t, await label('bob', 'three'), { label: { value: 'three' } })
  const lines = log.filter(({ msg }) => /waited in vain for a lock/.test(String(msg)))
  t.equal(lines.length, 1)
  t.match(lines[0]!.msg, /in relation "counts"/)

  await letGo()
  await lock('LOCK TABLE svc_mcp.counts')
  for (const sub of ['ann', 'ann', 'bob']) await read(sub)
  t.equal(await isReady(), true, 'two callers may have met the same rows')
  await read('carol')
  t.equal(await isReady(), false, 'three are too many for that')
  partial(t, await label('dan', 'four'), { error: 'state_unavailable' })
  await letGo()
  partial(t, await label('dan', 'four'), { label: { value: 'four' } })
  t.equal(await isReady(), true)
})

/** A state in a database of its own, and a session beside it that locks what it is told to. */
async function openBeside(t: Test) {
  const database = await makeDatabase()
  const open = async () => {
    const state = await openDatabase(databaseOf(database.url), { now: () => Date.now() })
    t.teardown(() => state.close())
    return state
  }
  const state = await open()
  const session = new pg.Client(database.url)
  await session.connect()
  t.teardown(() => session.end())
  const lock = async (statement: string) => {
    await session.query('BEGIN')
    await session.query(statement)
  }
  const ask = { perMinute: 100, atATime: 100 }
  const admit = (sub: string) => state.admissions!.admit({ owner: { iss: 'i', sub }, ...ask })
  const count = (sub: string) => state.admissions!.count('tokens', { iss: 'i', sub }, 100, 1)
  return { database, open, state, lock, admit, count }
}

t.test('counts of one caller that are locked hold two connections, whatever they count', async (t) => {
  const { lock, admit, count } = await openBeside(t)
  await admit('ann')
  await count('ann')
  await lock('SELECT * FROM svc_mcp.counts FOR UPDATE')
  const settled = await Promise.allSettled([admit('ann'), admit('ann'), count('ann'), count('ann')])
  const codes = settled.map((one) => (one.status === 'rejected' ? (one.reason as { code: string }).code : one.status))
  t.same(codes, ['55P03', '55P03', 'overloaded', 'overloaded'])
})

t.test('places that are locked hold no connection, and are left behind', async (t) => {
  const { database, open, state, lock, admit } = await openBeside(t)
  const taken = await Promise.all(Array.from({ length: 12 }, () => admit('ann')))
  await database.query(
    `INSERT INTO svc_mcp.places SELECT gen_random_uuid(), 'dead', gen_random_uuid() FROM generate_series(1, 2)`,
  )
  await lock(
    `SELECT * FROM svc_mcp.places WHERE id <> (SELECT id FROM svc_mcp.places WHERE caller = 'dead' LIMIT 1) FOR UPDATE`,
  )
  for (const { holdPlace } of taken) holdPlace(false)
  await admit('bob')
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  t.same(await database.query(waiting), [])
  await found(() => state.pool!().waiting === 0, 'all are given back')
  await open()
  const left = await database.query(`SELECT 1 FROM svc_mcp.places WHERE caller = 'dead'`)
  t.equal(left.length, 1, 'a start removes what is not locked')
})

t.test('a lock ends a statement in the database, too, and stops no start', async (t) => {
  const { open, state, lock } = await openBeside(t)
  const name = await state.notes.setOnce('confirm_tokens', 'first')
  await state.approvals.open({
    id: 'one',
    key: { owner: 'o', call: 'c' },
    request: 'r',
    expiresAt: Date.now() + 60_000,
  })
  await lock('LOCK TABLE svc_mcp.notes, svc_mcp.spent IN SHARE MODE')
  const late = { code: '55P03' }
  await Promise.all([
    t.rejects(state.checkWritable(), late),
    t.rejects(state.usedTokens.claim('token', Date.now() + 60_000), late),
    t.rejects(state.approvals.end('one', 'used'), late),
    open().then(async (other) => t.equal(await other.notes.setOnce('confirm_tokens', 'second'), name)),
  ])
})

t.test('a lock on what the readiness writes makes nobody unready', async (t) => {
  const { database, isReady, lock } = await startBeside(t)
  await database.query(`INSERT INTO svc_mcp.notes VALUES ('checked', 'by an older program') ON CONFLICT DO NOTHING`)
  await lock(`SELECT * FROM svc_mcp.notes WHERE name LIKE 'checked%' FOR UPDATE`)
  t.equal(await isReady(), true)
})

t.test('while writes hang, the readiness and the calls say the same', async (t) => {
  const { database, isReady, read, label, lock, letGo } = await startBeside(t)
  await lock('LOCK TABLE svc_mcp.notes IN SHARE MODE')
  t.equal(await isReady(), false)
  partial(t, await label('ann', 'one'), { error: 'state_unavailable' })
  partial(t, await read('ann'), { error: undefined })
  partial(t, await label('ann', 'one'), { error: 'state_unavailable' }, 'an admission is not such a write')
  await letGo()
  await found(isReady, 'it is ready again')
  partial(t, await label('ann', 'one'), { label: { value: 'one' } })
  const notes = await database.query(`SELECT name FROM svc_mcp.notes WHERE name LIKE 'checked%'`)
  t.equal(notes.length, 1, 'earlier checks leave nothing behind')
})
