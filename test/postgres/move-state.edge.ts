/** `svc-mcp-http move-state`: all of a keystore goes to a database, or nothing does, and then there is one keystore and not two. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { moveState } from '../../programs/composition/move-state.js'
import type { LastCheck } from '../../schemas/credentials.js'
import { StartupError } from '../../schemas/config.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { startProgram } from '../edge/support/start-program.js'
import { createWorld } from '../edge/support/authenticated-world.js'
import { callTool } from '../edge/support/call-tool.js'
import { found } from '../edge/support/within.js'
import { messagesOf } from '../log-lines.js'
import { bytesOf, credentialsOf, directoryOf } from '../state/support.js'
import { databaseOf } from './database-of.js'
import { startFaultProxy } from './fault-proxy.js'
import { sharedPostgres } from './start-postgres.js'

const KEK = randomBytes(32)
const NEXT = randomBytes(32)
const ISS = 'https://idp.example'
/** More than two pages. */
const OWNERS = Array.from({ length: 450 }, (_, n) => ({ iss: ISS, sub: `user ${n} é"'` }))
const now = () => Date.now()
const CHECK: LastCheck = { at: 1_750_000_000_000, ok: true }

const newPath = (t: Test) => join(directoryOf(t), 'keystore.db')
const whereOf = ({ url }: { url: string }) => url.replace(/.*@/, '')

interface Keys {
  kek: Buffer
  previousKek?: Buffer
}

async function open(t: Test, path: string, keys: Keys = { kek: KEK }, url?: string) {
  const opened = await openKeystoreState({ path, ...keys }, { now, ...(url && { database: databaseOf(url) }) })
  t.teardown(() => opened.state.close())
  return opened
}

async function fill(t: Test, path: string) {
  const file = await open(t, path)
  await file.keystore.write(OWNERS[0]!, credentialsOf('first'))
  return file
}

/** What it is refused with. */
const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof StartupError) || error.faults[0]!.remedy === '') throw error
  return error.faults[0]!.problem
}

const secretOf = (n: number) => `secret of ${n}`

t.test('a keystore moves whole, and its file is used no more', async (t) => {
  const postgres = await sharedPostgres()
  const database = await postgres.makeDatabase()
  const path = newPath(t)
  const old = await open(t, path)
  for (const [n, owner] of OWNERS.slice(0, 400).entries()) await old.keystore.write(owner, credentialsOf(secretOf(n)))
  const keys = { kek: NEXT, previousKek: KEK }
  const running = await open(t, path, keys)
  for (const [n, owner] of [...OWNERS.entries()].slice(400))
    await running.lastChecks.put(owner, await running.keystore.write(owner, credentialsOf(secretOf(n))), CHECK)
  await running.state.notes.setOnce('confirm_tokens', 'of the file')
  const before = await running.state.credentials.page(null, 1000)

  const urlFile = join(dirname(path), 'url')
  writeFileSync(urlFile, database.url)
  const env = { MCP_STATE_URL_FILE: urlFile }
  const program = startProgram(t, { args: ['move-state', '--from', path], env })
  const { code, stdout, stderr } = await program.ended
  t.equal(code, 0, stderr)
  t.same(messagesOf(stderr), [
    `Moved 450 registrations from '${path}' to the database at ${whereOf(database)}`,
    `Start the servers with MCP_STATE_URL. '${path}' is kept, but no server uses it any more`,
  ])
  t.equal((stdout + stderr).includes(postgres.password), false)
  t.equal(
    bytesOf(dirname(path)).toString('latin1').split(postgres.password).length,
    2,
    'it stands in its own file alone',
  )

  const moved = await open(t, '', keys, database.url)
  t.same(await moved.state.credentials.page(null, 1000), before, 'as it was, encrypted')
  for (const n of [0, 199, 200, 399, 400, 449])
    t.equal((await moved.keystore.find(OWNERS[n]!))?.open().apiSecret, secretOf(n))
  const { version } = (await moved.state.credentials.get(OWNERS[449]!))!
  t.same(await moved.lastChecks.find(OWNERS[449]!, version), CHECK)
  t.equal(await moved.state.notes.get('confirm_tokens'), null, 'tokens are bound to the state that they are of')
  t.equal(
    await refusal(open(t, '', { kek: NEXT }, database.url)),
    `The last change of MCP_KEK is incomplete in the keystore '${whereOf(database)}': 400 of its records need a key that is neither MCP_KEK nor MCP_KEK_PREVIOUS`,
  )
  t.same(await moved.keystore.rewrap(), { rewrapped: 400, already: 50, unreadable: 0 })
  await open(t, '', { kek: NEXT }, database.url)

  const late: (() => Promise<unknown>)[] = [
    () => running.keystore.write(OWNERS[0]!, credentialsOf('late')),
    () => running.keystore.remove(OWNERS[0]!),
    () => running.keystore.rewrap(),
  ]
  for (const write of late) await t.rejects(write(), { code: 'keystore_unavailable' })
  t.same(await running.state.credentials.page(null, 1000), before)
  const gone = `The keystore '${path}' has been moved to the database at ${whereOf(database)}`
  t.equal(await refusal(open(t, path, keys)), gone)
  const another = await postgres.makeDatabase()
  t.equal(await refusal(moveState(path, databaseOf(another.url))), gone)
  t.same(await another.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'svc_mcp'`), [])
})

t.test('revocations move, and what does not is said with its number', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  const path = newPath(t)
  const { state } = await fill(t, path)
  const revocation = { until: now() + 60_000, at: now(), by: 'ops' }
  // One of a person with a key, and one of a person without.
  for (const owner of [OWNERS[0]!, OWNERS[1]!]) await state.revocations.set(owner, revocation)
  // More than one page; of the last ones one waits for its second person, one is approved, and one has ended.
  const ids = Array.from({ length: 203 }, (_, n) => `${n}`.padStart(43, 'x'))
  for (const [n, id] of ids.entries())
    await state.approvals.open({ id, key: { owner: `o ${n}`, call: 'c' }, request: '{}', expiresAt: now() + 60_000 })
  await state.approvals.approveFirst(ids[200]!, 'first')
  await state.approvals.decide(ids[201]!, 'approved')
  await state.approvals.end(ids[202]!, 'revoked')
  await state.outbox.add(['a', 'b'].map((id) => ({ id, body: '{}', createdAt: now() })))

  const { ok, lines } = await moveState(path, databaseOf(database.url))
  t.equal(ok, true)
  t.same(
    lines.filter(({ level }) => level === 'warn').map(({ text }) => text),
    [
      'Not moved: open approvals: 202 (these calls have to be asked for again), notifications without an answer: 2 (the audit log has what they are about)',
    ],
  )
  const { state: moved } = await open(t, '', { kek: KEK }, database.url)
  for (const owner of [OWNERS[0]!, OWNERS[1]!]) t.same(await moved.revocations.find(owner), revocation)
  t.equal(await moved.revocations.find(OWNERS[2]!), null)
  t.same([await moved.approvals.live(null, 5), await moved.outbox.look()], [[], { waiting: 0, dueAt: null }])
})

t.test('nothing is moved', async (t) => {
  const postgres = await sharedPostgres()
  const path = newPath(t)
  const file = await fill(t, path)
  const goesOn = async () => {
    await file.keystore.write(OWNERS[1]!, credentialsOf('goes on'))
    await open(t, path)
  }

  await t.test('into a database that has a keystore', async (t) => {
    const used = await postgres.makeDatabase()
    const theirs = await open(t, '', { kek: NEXT }, used.url)
    const problem = `The database at ${whereOf(used)} already has a keystore`
    t.equal(await refusal(moveState(path, databaseOf(used.url))), problem, 'one that nobody has registered in')
    await theirs.keystore.write(OWNERS[2]!, credentialsOf('theirs'))
    t.equal(await refusal(moveState(path, databaseOf(used.url))), problem)
    t.same(
      (await theirs.state.credentials.page(null, 5)).map(({ owner }) => owner),
      [OWNERS[2]],
    )
    await goesOn()
  })

  await t.test('from where there is no keystore', async (t) => {
    const empty = await postgres.makeDatabase()
    const nowhere = newPath(t)
    t.equal(
      await refusal(moveState(nowhere, databaseOf(empty.url))),
      `--from '${nowhere}' does not exist: there is nothing to move`,
    )
    const foreign = newPath(t)
    writeFileSync(foreign, 'API_KEY=api_1\n'.repeat(400))
    t.equal(await refusal(moveState(foreign, databaseOf(empty.url))), `--from '${foreign}' is not an SQLite file`)
    const shared = newPath(t)
    openState(shared, { now, variable: 'MCP_STATE_PATH' }).close()
    t.equal(await refusal(moveState(shared, databaseOf(empty.url))), `There is no keystore in '${shared}'`)
    t.same(await empty.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'svc_mcp'`), [])
  })
})

t.test('where no answer comes the next run ends what was begun', async (t) => {
  const postgres = await sharedPostgres()
  const database = await postgres.makeDatabase()
  const path = newPath(t)
  const file = await fill(t, path)
  await (await openDatabase(databaseOf(database.url), { now })).close()
  const proxy = await startFaultProxy(t, postgres)
  const to = databaseOf(proxy.through(database.url))
  const there = () => database.query('SELECT sub FROM svc_mcp.credentials ORDER BY sub')
  const unknown = `The keystore '${path}' may not have been moved to the database at ${to.where}: `

  proxy.dropAnswer(/^INSERT INTO svc_mcp.credentials/)
  t.equal((await refusal(moveState(path, to))).startsWith(unknown), true)
  t.same(await there(), [])
  await file.keystore.write(OWNERS[1]!, credentialsOf('goes on'))
  proxy.dropAnswer(/^COMMIT/)
  t.equal((await refusal(moveState(path, to))).startsWith(unknown), true)
  const both = [OWNERS[0], OWNERS[1]].map((owner) => ({ sub: owner!.sub }))
  t.same(await there(), both, 'the database has it')
  await open(t, path)
  t.equal((await moveState(path, to)).ok, true)
  t.same(await there(), both)
  t.equal(await refusal(open(t, path)), `The keystore '${path}' has been moved to the database at ${to.where}`)
})

t.test('servers that were not stopped lose nothing that they have acknowledged', async (t) => {
  const postgres = await sharedPostgres()
  const database = await postgres.makeDatabase()
  const world = await createWorld(t)
  const servers = await Promise.all([world.serve(), world.serve()])
  const acknowledged = new Set<string>()
  const refused: string[] = []
  let isOver = false
  const call = async (worker: number, token: string, tool: string, args: object = {}) => {
    const answer = await callTool(servers[worker % 2]!.target, token, tool, args)
    if (answer.status !== 'ok') refused.push(answer.error)
    return answer.status === 'ok'
  }
  const working = [0, 1, 2, 3].map(async (worker) => {
    for (let n = 0; !isOver; n++) {
      const sub = `worker ${worker}, person ${n}`
      const token = await world.tokenOf(sub)
      if (!(await call(worker, token, 'register-pce-credentials', world.pce.registration))) continue
      acknowledged.add(sub)
      if (n % 3 === 0 && (await call(worker, token, 'delete-pce-credentials'))) acknowledged.delete(sub)
    }
  })
  await found(() => acknowledged.size >= 20, 'people register')
  const before = acknowledged.size

  // Between the first look at the file and the mark there is time.
  await (await openDatabase(databaseOf(database.url), { now })).close()
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('BEGIN; LOCK TABLE svc_mcp.notes IN ROW EXCLUSIVE MODE')
  const urlFile = join(directoryOf(t), 'url')
  writeFileSync(urlFile, `${database.url}\n`)
  const env = { MCP_STATE_URL_FILE: urlFile }
  const program = startProgram(t, { args: ['move-state', '--from', world.keystorePath], env })
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await found(async () => (await database.query(waiting)).length === 1, 'it waits')
  for (const of of ['cmdline', 'environ'])
    t.equal(readFileSync(`/proc/${program.pid}/${of}`, 'utf8').includes(postgres.password), false, of)
  await found(() => refused.length > 0, 'and so do the servers, not for ever')
  await holder.query('COMMIT')
  const { code, stderr } = await program.ended
  t.equal(code, 0, stderr)
  const then = refused.length
  await found(() => refused.length >= then + 8, 'nobody is registered any more')
  isOver = true
  await Promise.all(working)

  t.same([...new Set(refused)], ['keystore_unavailable'])
  const rows = await database.query('SELECT sub FROM svc_mcp.credentials')
  t.same(new Set(rows.map(({ sub }) => sub)), acknowledged)
  t.ok(acknowledged.size >= before)
  const { state } = await open(t, '', { kek: Buffer.from(world.secrets.kek, 'base64') }, database.url)
  t.ok(await state.notes.get('kek'))
})
