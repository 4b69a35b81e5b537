/** The schema goes forward, once, whoever starts; and a database that cannot be used is told in one line that names no password. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { StartupError } from '../../schemas/config.js'
import { PROGRAM_SCHEMA as NOW } from '../../storage/postgres/migrations.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { startProgram } from '../edge/support/start-program.js'
import { found } from '../edge/support/within.js'
import { freePort } from '../free-port.js'
import { linesOf, messagesOf } from '../log-lines.js'
import { databaseOf } from './database-of.js'
import { pageStatements } from './page-statements.js'
import { sharedPostgres, startPostgres } from './start-postgres.js'

/** 'svc-mcp' in bytes. */
const LOCK = '32499790657708912'
const now = () => Date.now()

type Database = Awaited<ReturnType<Awaited<ReturnType<typeof sharedPostgres>>['makeDatabase']>>

const whereOf = ({ url }: Pick<Database, 'url'>) => url.replace(/.*@/, '')
const stepsOf = ({ query }: Database) => query('SELECT number, oldest_program FROM svc_mcp.migrations ORDER BY number')
const STEPS = [...Array(NOW).keys()].map((before) => ({ number: before + 1, oldest_program: 1 }))

async function open(t: Test, { url }: Pick<Database, 'url'>, env: Record<string, string> = {}) {
  const state = await openDatabase(databaseOf(url, env), { now })
  t.teardown(() => state.close())
  return state
}

/** What a start is refused with. */
const refusal = async (url: string, env: Record<string, string> = {}) => {
  const warnings: string[] = []
  const error = await openDatabase(databaseOf(url, env), { now, warn: (line) => void warnings.push(line) }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof StartupError)) throw error
  return { ...error.faults[0]!, warnings }
}

t.test('of programs that start together one applies the steps', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query(`SELECT pg_advisory_lock(${LOCK})`)
  const env = { MCP_STATE_URL: database.url }
  const programs = [startProgram(t, { args: ['migrate'], env }), startProgram(t, { args: ['migrate'], env })]
  const opening = [open(t, database), open(t, database)]
  const waiting = `SELECT count(*)::int AS n FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`
  await found(async () => (await database.query(waiting))[0]!.n === 4, 'all four wait')
  await holder.query(`SELECT pg_advisory_unlock(${LOCK})`)
  const states = await Promise.all(opening)
  const ended = await Promise.all(programs.map((program) => program.ended))
  t.same(
    ended.map(({ code, stdout }) => [code, stdout]),
    [
      [0, ''],
      [0, ''],
    ],
  )
  // Each of the four may apply any of the steps, because each step takes the lock anew, and says so of its own.
  const applied = ended.flatMap(({ stderr }) => {
    const said = messagesOf(stderr)
    const numbers = said.flatMap((line) => / has schema (\d+) now$/.exec(line)?.slice(1).map(Number) ?? [])
    t.same(
      numbers,
      numbers.toSorted((one, other) => one - other),
    )
    t.same(said.length - numbers.length, numbers.length === 0 ? 1 : 0, said.join('\n'))
    if (numbers.length === 0) t.match(said[0], /is up to date$/)
    return numbers
  })
  t.equal(new Set(applied).size, applied.length, 'no step is applied twice')
  t.same(await stepsOf(database), STEPS)
  for (const [n, state] of states.entries()) t.equal(await state.usedTokens.claim(`token ${n}`, now()), true)
})

t.test('a database that newer programs have brought further', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  await open(t, database)
  const further = (oldest: number) =>
    database.query(`INSERT INTO svc_mcp.migrations (number, oldest_program)
      SELECT max(number) + 1, ${oldest} FROM svc_mcp.migrations`)
  await further(1)
  const state = await open(t, database)
  await state.notes.set('n', 'kept')
  t.equal(await state.notes.get('n'), 'kept')
  await further(NOW + 1)
  const steps = [...STEPS, { number: NOW + 1, oldest_program: 1 }, { number: NOW + 2, oldest_program: NOW + 1 }]
  const tooOld = {
    problem: `MCP_STATE_URL: this program is too old for the database at ${whereOf(database)}, whose schema ${NOW + 2} needs a program that knows schema ${NOW + 1}; this one knows ${NOW}`,
    remedy:
      'Start a newer release. Schemas cannot be downgraded: for an older program, restore a backup that was made with it.',
    warnings: [],
  }
  t.same(await refusal(database.url), tooOld)
  await further(1)
  t.equal(
    (await refusal(database.url)).problem,
    tooOld.problem.replace(`schema ${NOW + 2}`, `schema ${NOW + 3}`),
    'a later step is none',
  )
  t.same(await stepsOf(database), [...steps, { number: NOW + 3, oldest_program: 1 }])
  t.equal(await state.notes.get('n'), 'kept', 'one that runs goes on')
})

t.test('a step that fails leaves nothing', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  await database.query('CREATE SCHEMA svc_mcp AUTHORIZATION svc_mcp')
  await database.query('CREATE TABLE svc_mcp.notes (mine int)')
  t.same(await refusal(database.url), {
    problem: `MCP_STATE_URL: the schema of the database at ${whereOf(database)} cannot be updated from 0 to 1: relation "notes" already exists`,
    remedy: 'This step was undone. Run svc-mcp-http migrate again.',
    warnings: [],
  })
  const left = `SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'svc_mcp'
    UNION SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'svc_mcp'`
  t.same(await database.query(left), [{ relname: 'notes' }])
  await database.query('DROP TABLE svc_mcp.notes')
  await open(t, database)
  t.same(await stepsOf(database), STEPS)
})

t.test('the right to make tables is needed for the steps alone', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  await database.query(`ALTER DATABASE ${database.name} OWNER TO postgres`)
  const { problem, remedy } = await refusal(database.url)
  t.equal(
    problem,
    `MCP_STATE_URL: the schema of the database at ${whereOf(database)} cannot be updated from 0 to 1: permission denied for database ${database.name}`,
  )
  t.equal(
    remedy,
    'Run svc-mcp-http migrate as the owner of the database, or allow this user to create schemas: GRANT CREATE ON DATABASE.',
  )
  await database.query(`GRANT CREATE ON DATABASE ${database.name} TO svc_mcp`)
  await open(t, database)
  await database.query(`REVOKE CREATE ON DATABASE ${database.name} FROM svc_mcp`)
  await database.query('ALTER SCHEMA svc_mcp OWNER TO postgres')
  await database.query('GRANT USAGE ON SCHEMA svc_mcp TO svc_mcp')
  const state = await open(t, database)
  t.equal(await state.usedTokens.claim('after', now()), true)
  await state.checkWritable()
  await database.query('ALTER TABLE svc_mcp.places OWNER TO postgres')
  t.equal(
    (await refusal(database.url)).problem,
    `MCP_STATE_URL: the database at ${whereOf(database)} cannot be used: permission denied for table places`,
  )
  await database.query('REVOKE USAGE ON SCHEMA svc_mcp FROM svc_mcp')
  t.equal(
    (await refusal(database.url)).problem,
    `MCP_STATE_URL: the schema of the database at ${whereOf(database)} cannot be read: permission denied for schema svc_mcp`,
  )
})

t.test('the statements of the page, and the roles that they make', async (t) => {
  const postgres = await startPostgres(t)
  await postgres.query('DROP DATABASE svc_mcp')
  await postgres.query('DROP ROLE svc_mcp')
  const [make, grant, , forget, ...more] = pageStatements()
  t.same(more, [])
  for (const statement of make!) await postgres.query(statement)
  const urlOf = (user: string) => `postgres://${user}:PASSWORD@127.0.0.1:${postgres.port}/svc_mcp`
  const inside = (sql: string) => postgres.query(sql, [], 'svc_mcp')
  await open(t, { url: urlOf('svc_mcp') })
  for (const statement of grant!) await inside(statement)
  // What a later release adds.
  const owner = new pg.Client({ connectionString: urlOf('svc_mcp') })
  await owner.connect()
  t.teardown(() => owner.end())
  await owner.query('CREATE TABLE svc_mcp.later (n int)')

  const served = await open(t, { url: urlOf('svc_mcp_server') })
  const name = await served.notes.setOnce('confirm_tokens', 'first')
  t.equal(await served.usedTokens.claim('token', now()), true)
  await served.challenges.put({ owner: 'a', call: 'b' }, 'c', now() + 1000)
  const caller = { owner: { iss: 'i', sub: 's' }, perMinute: 1, atATime: 1 }
  t.equal((await served.admissions!.admit(caller)).record, null)
  const server = new pg.Client({ connectionString: urlOf('svc_mcp_server') })
  await server.connect()
  t.teardown(() => server.end())
  await server.query('INSERT INTO svc_mcp.later VALUES (1)')
  await t.rejects(server.query('CREATE TABLE svc_mcp.mine (n int)'), { code: '42501' })
  for (const statement of forget!) await inside(statement)
  t.not(await served.notes.setOnce('confirm_tokens', 'second'), name)
})

t.test('one that refuses stops the start at once, without its password', async (t) => {
  const postgres = await sharedPostgres()
  const database = await postgres.makeDatabase()
  const remedy = 'Check the user, the password, the database and the certificates that MCP_STATE_URL names.'
  const cases = [
    [
      database.url.replace(postgres.password, 'pw-canary'),
      /password authentication failed for user "svc_mcp" \(28P01\)$/,
    ],
    [database.url.replace(`:${postgres.password}`, ''), /password/],
    [database.url.replace(database.name, 'nowhere'), /database "nowhere" does not exist \(3D000\)$/],
    [`${database.url}?sslmode=verify-full`, /SSL/],
  ] as const
  for (const [url, why] of cases) {
    // It would be waited for much longer than this file may take.
    const said = await refusal(url, { MCP_STATE_CONNECT_TIMEOUT_SECONDS: '3600' })
    t.match(said.problem, /^MCP_STATE_URL: the database at 127\.0\.0\.1:\d+\/\w+ cannot be used: \S/)
    t.equal(why.test(said.problem), true, said.problem)
    t.equal(said.remedy, remedy)
    t.notMatch(JSON.stringify(said), /canary/)
    t.equal(JSON.stringify(said).includes(postgres.password), false)
  }
  const missing = await refusal(`${database.url}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`)
  t.equal(
    missing.problem,
    "MCP_STATE_URL: sslrootcert '/nowhere/ca.pem' cannot be read: there is no such file or folder (ENOENT)",
  )
})

t.test('one that does not answer is waited for', async (t) => {
  const port = await freePort()
  const url = `postgres://svc_mcp:pw-canary@127.0.0.1:${port}/state`
  const problem = (why: string, seconds = 1) =>
    `MCP_STATE_URL: the database at 127.0.0.1:${port}/state cannot be used within ${seconds} s: ${why}`
  const env = { MCP_STATE_URL: url, MCP_STATE_CONNECT_TIMEOUT_SECONDS: '1' }
  const { code, stdout, stderr } = await startProgram(t, { args: ['migrate'], env }).ended
  t.equal(code, 1)
  t.notMatch(stdout + stderr, /canary/)
  t.same(
    linesOf(stderr)
      .filter(({ level }) => level > 40)
      .map(({ msg }) => msg),
    [
      problem(`connect ECONNREFUSED 127.0.0.1:${port}`),
      'Not started. svc-mcp-http --help shows what each mode needs, and docs/configuration.md lists every setting.',
    ],
  )

  // One that takes connections and drops them.
  const postgres = await sharedPostgres()
  const real = await postgres.makeDatabase()
  let asked = 0
  const server = createServer((socket) => {
    asked++
    socket.on('error', () => {})
    socket.destroy()
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const said = await refusal(url, { MCP_STATE_CONNECT_TIMEOUT_SECONDS: '4' })
  t.equal(said.problem.startsWith(problem('', 4)), true, said.problem)
  t.ok(asked > 1)
  t.same(
    said.warnings.map((line) => line.split(': ')[0]),
    [`Waiting for the database of MCP_STATE_URL at 127.0.0.1:${port}/state`],
  )
  t.notMatch(JSON.stringify(said), /canary/)

  await postgres.query(`ALTER DATABASE ${real.name} CONNECTION LIMIT 0`)
  const opening = open(t, real)
  await found(() => postgres.log().includes('too many connections for database'), 'it is tried')
  await postgres.query(`ALTER DATABASE ${real.name} CONNECTION LIMIT -1`)
  t.equal(await (await opening).usedTokens.claim('token', now()), true)
})
