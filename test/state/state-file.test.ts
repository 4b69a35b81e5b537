/** The one file: what it refuses to open, and what its ports promise. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { openState } from '../../storage/state/open-state.js'
import { StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { directoryOf } from './support.js'
import { partial } from '../partial.js'

const DAY = 24 * 60 * 60 * 1000
const CANARY = 'canary content'

/** A clock to be set by hand, and a state that is closed after the test. */
function open(t: Test, path: string, clock = { now: Date.now() }) {
  const warnings: string[] = []
  const state = openState(path, {
    now: () => clock.now,
    variable: 'MCP_STATE_PATH',
    warn: (line) => warnings.push(line),
  })
  t.teardown(() => state.close())
  return { state, clock, warnings }
}

/** A closed file with some content. */
async function makeFile(path: string): Promise<void> {
  const state = openState(path, { now: () => Date.now(), variable: 'MCP_STATE_PATH' })
  for (let number = 0; number < 200; number++) {
    await state.notes.set(`name-${number}`, `${CANARY} ${'x'.repeat(200)}`)
    await state.usedTokens.claim(`token-${number}`, Date.now() + 60_000)
  }
  state.close()
  // By itself, as a backup would be: the log was written back when the file was closed.
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
}

function sql(path: string, ...statements: string[]): void {
  const db = new Database(path)
  for (const statement of statements) db.exec(statement)
  db.close()
}

const recordOf = (text: string, version = 'v1') => ({
  version,
  kekId: 'kek',
  wrappedKey: new Uint8Array(Buffer.from(`wrapped ${text}`)),
  sealed: new Uint8Array(Buffer.from(`sealed ${text}`)),
})

t.test('a file of a release that knew no approvals is used as it is, and goes back to that release', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  await makeFile(path)
  sql(path, 'DROP TABLE approvals')
  const { state } = open(t, path)
  const row = { id: 'a', key: { owner: 'o', call: 'c' }, request: 'r', expiresAt: Date.now() + 60_000 }
  partial(t, await state.approvals.open(row), row)
  t.equal(await state.usedTokens.isUsed('token-0'), true)
  const again = open(t, path)
  partial(t, await again.state.approvals.find(row.key), row, 'kept by the next start')
  const db = new Database(path)
  t.teardown(() => db.close())
  t.same(db.pragma('user_version'), [{ user_version: 1 }], 'which that release takes')
})

t.test('an untrusted file stops the start with one line and is left unchanged', async (t) => {
  const good = join(directoryOf(t), 'good.db')
  await makeFile(good)
  const pages = statSync(good).size / 4096
  const damaged = 'is damaged'
  const cases: [what: string, make: (path: string) => void, says: RegExp | string][] = [
    ['text', (path) => writeFileSync(path, `${CANARY}\n`.repeat(1000)), 'is not an SQLite file'],
    ['a few bytes', (path) => writeFileSync(path, 'canary'), 'is not an SQLite file'],
    ['zeros', (path) => writeFileSync(path, Buffer.alloc(8192)), 'is not an SQLite file'],
    ['empty', (path) => writeFileSync(path, ''), 'is empty'],
    ['truncated to half', (path) => truncateTo(path, Math.floor(pages / 2) * 4096), damaged],
    ['truncated by a few bytes', (path) => truncateTo(path, pages * 4096 - 10), damaged],
    ['truncated within a page', (path) => truncateTo(path, (pages - 1) * 4096 + 100), damaged],
    ['truncated to its header', (path) => truncateTo(path, 100), damaged],
    ['a page of noise', (path) => overwrite(path, Math.floor(pages / 2) * 4096, Buffer.alloc(4096, 0x5a)), damaged],
    [
      'of a newer version',
      (path) => change(path, 'PRAGMA user_version = 2'),
      'was written by a newer version of this server (schema 2, known 1)',
    ],
    ['without a version', (path) => change(path, 'PRAGMA user_version = 0'), damaged],
    [
      'foreign',
      (path) => sql(path, 'CREATE TABLE t (x)', `INSERT INTO t VALUES ('${CANARY}')`),
      'is an SQLite file of another program',
    ],
    ['a directory', (path) => mkdirSync(path), 'is a folder'],
    ['a link to a foreign file', (path) => symlinkSync('/etc/passwd', path), 'is a symbolic link'],
    ['a link to a good file', (path) => symlinkSync(good, path), 'is a symbolic link'],
    ['a link to nothing', (path) => symlinkSync('/nowhere', path), 'is a symbolic link'],
    ['a pipe', (path) => execFileSync('mkfifo', [path]), 'is not a regular file'],
    ['gone, but for its log', (path) => writeFileSync(`${path}-wal`, CANARY), /^is missing, but '.*-wal' is there$/],
    [
      'with a link for its log',
      (path) => (copyFileSync(good, path), symlinkSync('/etc/passwd', `${path}-wal`)),
      /^has a companion '.*-wal' that is a symbolic link/,
    ],
  ]
  function truncateTo(path: string, length: number): void {
    copyFileSync(good, path)
    truncateSync(path, length)
  }
  function overwrite(path: string, at: number, bytes: Buffer): void {
    const content = readFileSync(good)
    bytes.copy(content, at)
    writeFileSync(path, content)
  }
  function change(path: string, statement: string): void {
    copyFileSync(good, path)
    sql(path, statement)
  }
  for (const [what, make, says] of cases) {
    await t.test(what, (t) => {
      const directory = directoryOf(t)
      const path = join(directory, 'state.db')
      make(path)
      const before = listing(directory)
      const line = refusalOf(path)
      const beginning = `MCP_STATE_PATH '${path}' `
      t.equal(line.slice(0, beginning.length), beginning)
      if (typeof says === 'string') t.equal(line.slice(beginning.length), says)
      else partial(t, line.slice(beginning.length), says)
      t.notMatch(line, /canary|\n/)
      t.strictSame(listing(directory), before)
      t.end()
    })
  }
})

/** What lies in a directory, with what is in it. */
function listing(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => !name.endsWith('-shm'))
    .map((name) => {
      const path = join(directory, name)
      const stats = lstatSync(path)
      const content = stats.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'no file'
      return `${name} ${stats.size} ${content}`
    })
    .filter((line) => !/-wal 0 /.test(line))
}

function refusalOf(path: string): string {
  try {
    openState(path, { now: () => Date.now(), variable: 'MCP_STATE_PATH' }).close()
  } catch (error) {
    if (error instanceof StartupError) return error.faults.map(({ problem }) => problem).join('\n')
    throw error
  }
  return 'opened'
}

t.test(
  "refuses another user's file",
  { skip: process.geteuid?.() !== 0 && 'only root can give a file away' },
  async (t) => {
    const path = join(directoryOf(t), 'state.db')
    await makeFile(path)
    execFileSync('chown', ['12345', path])
    t.equal(refusalOf(path), `MCP_STATE_PATH '${path}' belongs to user 12345, not to user 0, who runs this server`)
  },
)

t.test('refuses a place where folders cannot be made', (t) => {
  const why =
    process.geteuid?.() === 0 ? 'there is no such file or folder (ENOENT) in' : 'permission denied (EACCES) on'
  const path = '/proc/nowhere/data/state.db'
  t.equal(refusalOf(path), `MCP_STATE_PATH '${path}' cannot be created: ${why} '/proc'`, 'even below /proc, at once')
  t.end()
})

t.test('refuses a path through a file', (t) => {
  const directory = directoryOf(t)
  writeFileSync(join(directory, 'file'), '')
  const path = join(directory, 'file', 'state.db')
  t.equal(
    refusalOf(path),
    `MCP_STATE_PATH '${path}' cannot be reached: a part of the path is a file, not a folder (ENOTDIR)`,
  )
  t.end()
})

t.test('a start whose first write fails keeps nobody else from writing', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  await makeFile(path)
  // The trigger fails the statement and leaves its transaction open, as a full disk can.
  sql(path, "CREATE TRIGGER full BEFORE INSERT ON notes BEGIN SELECT RAISE(FAIL, 'full'); END")
  partial(t, refusalOf(path), / cannot be opened for writing: SQLITE_CONSTRAINT_TRIGGER$/)
  t.doesNotThrow(() => sql(path, 'PRAGMA busy_timeout = 0', 'DROP TRIGGER full'))
  t.strictSame(open(t, path).warnings, [], 'and the next start succeeds')
})

t.test('a new file and its folder are private to this user, whatever the umask', (t) => {
  const usual = process.umask()
  t.teardown(() => process.umask(usual))
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
  const directory = directoryOf(t)
  process.umask(0)
  const path = join(directory, 'made', 'state.db')
  open(t, path)
  t.strictSame(
    [modeOf(dirname(path)), ...readdirSync(dirname(path)).map((name) => modeOf(join(dirname(path), name)))],
    ['700', ...['state.db', 'state.db-shm', 'state.db-wal'].map(() => '600')],
  )
  process.umask(0o277)
  open(t, join(directory, 'state.db'))
  t.equal(modeOf(join(directory, 'state.db')), '600')
  t.end()
})

t.test('files open to others are made private, and a world-writable directory is reported', async (t) => {
  const directory = directoryOf(t)
  const path = join(directory, 'state.db')
  await makeFile(path)
  chmodSync(path, 0o664)
  chmodSync(directory, 0o777)
  const { warnings } = open(t, path)
  t.equal((statSync(path).mode & 0o777).toString(8), '600')
  t.strictSame(warnings, [
    `MCP_STATE_PATH '${path}': '${path}' was accessible to others (mode 664) and now has mode 600`,
    `MCP_STATE_PATH '${path}' is in a folder that anyone can write to: they could replace the file`,
  ])
  chmodSync(directory, 0o1777)
  t.strictSame(open(t, path).warnings, [], 'in a sticky directory nobody can')
})

t.test('the file of another program keeps its permissions', (t) => {
  const path = join(directoryOf(t), 'state.db')
  const db = new Database(path)
  db.exec('CREATE TABLE bookmarks (url TEXT)')
  db.close()
  chmodSync(path, 0o644)
  t.equal(refusalOf(path), `MCP_STATE_PATH '${path}' is an SQLite file of another program`)
  t.equal((statSync(path).mode & 0o777).toString(8), '644')
  t.end()
})

t.test('leftovers of a process killed while creating the file are removed once old', (t) => {
  const path = join(directoryOf(t), 'state.db')
  for (const name of [`${path}.new-1-old`, `${path}.new-1-old-wal`, `${path}.new-2-young`]) writeFileSync(name, 'draft')
  const anHourAgo = new Date(Date.now() - 3_600_000)
  for (const name of [`${path}.new-1-old`, `${path}.new-1-old-wal`]) utimesSync(name, anHourAgo, anHourAgo)
  open(t, path).state.close()
  const { state } = open(t, path)
  t.strictSame(
    readdirSync(dirname(path)).filter((name) => name.includes('.new-')),
    ['state.db.new-2-young'],
  )
  state.close()
  t.end()
})

t.test('credentials are stored by issuer and subject, byte for byte', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state } = open(t, path)
  const { credentials } = state
  const subs = [
    'a',
    'a|b',
    'A',
    '__proto__',
    'constructor',
    'é',
    'e\u0301',
    '😀',
    "'; DROP TABLE credentials; --",
    'x'.repeat(255),
    '',
  ]
  const owners = ['https://a', 'https://a|b'].flatMap((iss) => subs.map((sub) => ({ iss, sub })))
  for (const owner of owners) t.equal(await credentials.get(owner), null)
  for (const owner of owners) await credentials.put(owner, recordOf(`${owner.iss} ${owner.sub}`))
  state.close()
  const again = open(t, path).state.credentials
  for (const owner of owners) t.strictSame(await again.get(owner), recordOf(`${owner.iss} ${owner.sub}`))

  const seen = []
  for (let page = await again.page(null, 5); page.length > 0; page = await again.page(page.at(-1)!.owner, 5)) {
    seen.push(...page)
  }
  t.equal(seen.length, owners.length)
  for (const { owner, record } of seen)
    t.strictSame(record, recordOf(`${owner.iss} ${owner.sub}`), 'a page has them whole')
  const keyOf = (owner: object) => JSON.stringify(owner)
  t.strictSame(seen.map(({ owner }) => keyOf(owner)).sort(), owners.map(keyOf).sort())

  t.equal(await again.remove(owners[0]!), true)
  t.equal(await again.remove(owners[0]!), false)
  t.equal(await again.get(owners[0]!), null)
  t.equal((await again.page(null, 1000)).length, owners.length - 1)
})

t.test('refuses names that the file could not distinguish', async (t) => {
  const { state } = open(t, join(directoryOf(t), 'state.db'))
  for (const sub of ['a\u0000', '\ud800', 'x\udc00y']) {
    const owner = { iss: 'https://a', sub }
    await t.rejects(state.credentials.get(owner), RangeError)
    await t.rejects(state.credentials.put(owner, recordOf('x')), RangeError)
    await t.rejects(state.credentials.put({ iss: sub, sub: 'a' }, recordOf('x')), RangeError)
    await t.rejects(state.credentials.remove(owner), RangeError)
    await t.rejects(state.usedTokens.claim(sub, 1), RangeError)
    await t.rejects(state.challenges.put({ owner: 'o', call: sub }, 'x', 1), RangeError)
    await t.rejects(state.challenges.put({ owner: sub, call: 'c' }, 'x', 1), RangeError)
  }
  for (const expiresAt of [NaN, Infinity, 1.5]) await t.rejects(state.usedTokens.claim('x', expiresAt), RangeError)
  t.strictSame(await state.credentials.page(null, 10), [])
  t.equal(await state.usedTokens.claim('x', 1), true, 'and the next call is served')
})

t.test('replaces a record only if it is still the one that was read', async (t) => {
  const { credentials } = open(t, join(directoryOf(t), 'state.db')).state
  const owner = { iss: 'https://a', sub: 'u' }
  const [old, mine, other] = [recordOf('old'), recordOf('mine', 'v2'), recordOf('other', 'v3')]
  t.equal(await credentials.replace(owner, old.wrappedKey, mine), false, 'there is none')
  t.equal(await credentials.get(owner), null)
  await credentials.put(owner, old)
  t.equal(await credentials.replace(owner, other.wrappedKey, mine), false, 'it is another')
  t.strictSame(await credentials.get(owner), old)
  t.equal(await credentials.replace(owner, old.wrappedKey, mine), true)
  t.strictSame(await credentials.get(owner), mine)
})

t.test('an id is claimed once, even concurrently and after a restart', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const until = clock.now + 60_000
  t.equal(await state.usedTokens.isUsed('a'), false)
  const claims = await Promise.all(Array.from({ length: 100 }, () => state.usedTokens.claim('a', until)))
  t.equal(claims.filter(Boolean).length, 1)
  t.equal(await state.usedTokens.isUsed('a'), true)
  t.equal(await state.usedTokens.isUsed('A'), false)
  state.close()
  const again = open(t, path).state.usedTokens
  t.equal(await again.isUsed('a'), true)
  t.equal(await again.claim('a', until), false)
  t.equal(await again.claim('a', until + DAY), false, 'whatever expiry is said')
  t.equal(await again.claim('b', until), true)
})

t.test('ids are forgotten a day after expiry and stay used when the clock is set back', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const { usedTokens } = state
  const start = clock.now
  const count = () => new Database(path).prepare('SELECT count(*) AS n FROM used_tokens').all()[0] as { n: number }
  for (let number = 0; number < 250; number++) await usedTokens.claim(`old-${number}`, start + number)
  clock.now = start + DAY - 1
  await usedTokens.claim('just before', clock.now + 60_000)
  t.equal(count().n, 251, 'for a day nothing is forgotten')
  t.equal(await usedTokens.claim('old-0', start), false)
  clock.now = start + DAY + 250
  await usedTokens.claim('new-0', clock.now + 60_000)
  t.equal(count().n, 152, 'then the old ones go, some with every claim')
  for (let number = 1; number < 3; number++) await usedTokens.claim(`new-${number}`, clock.now + 60_000)
  t.equal(count().n, 4)
  for (const back of [600_000, DAY, 2 * DAY]) {
    clock.now = start + DAY + 250 - back
    t.equal(await usedTokens.claim('old-0', start), false)
    t.equal(await usedTokens.claim('old-249', start + 249), false)
    t.equal(await usedTokens.claim(`fresh-${back}`, clock.now + 2 * DAY + 60_000), true)
  }
  state.close()
  const again = open(t, path, clock).state.usedTokens
  t.equal(await again.claim('old-249', start + 249), false, 'also after a restart')
  t.equal(await again.claim('old-never-seen', start + 249), false, 'when it cannot be known any more')
})

t.test('the file does not grow with used tokens', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const sizes: number[] = []
  for (let day = 0; day < 5; day++) {
    for (let number = 0; number < 120; number++) {
      clock.now += DAY / 120
      await state.usedTokens.claim(`token-${day}-${number}`, clock.now + 120_000)
      await state.challenges.put({ owner: 'o', call: `${day}-${number}` }, 'x'.repeat(64), clock.now + 120_000)
    }
    new Database(path).exec('PRAGMA wal_checkpoint(TRUNCATE)')
    sizes.push(statSync(path).size)
  }
  t.ok(Math.max(...sizes) <= sizes[1]!, `as large after 5 days as after 2: ${sizes.join(' ')}`)
})

t.test('a challenge is known until it expires', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const { challenges } = state
  const [k, other] = [
    { owner: 'o', call: 'k' },
    { owner: 'o', call: 'other' },
  ]
  t.equal(await challenges.get(k), null)
  await challenges.put(k, 'first', clock.now + 1000)
  await challenges.put(k, 'second', clock.now + 2000)
  await challenges.put(other, 'third', clock.now + 3000)
  clock.now += 1999
  t.equal(await open(t, path, clock).state.challenges.get(k), 'second')
  clock.now += 1
  t.equal(await challenges.get(k), null)
  t.equal(await challenges.get(other), 'third')
})

t.test('open challenges are bounded, for each owner and in all; what expires first makes room', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const { challenges } = state
  const countOf = (where = '') =>
    (new Database(path).prepare(`SELECT count(*) AS n FROM challenges ${where}`).get() as { n: number }).n
  await challenges.put({ owner: 'ann', call: 'hers' }, 'kept', clock.now + 500_000)
  for (let n = 0; n < 150; n++) await challenges.put({ owner: 'bob', call: `${n}` }, 'x', clock.now + 1000 + n)
  t.equal(countOf(`WHERE key LIKE 'bob:%'`), 100)
  t.equal(await challenges.get({ owner: 'bob', call: '49' }), null)
  t.equal(await challenges.get({ owner: 'bob', call: '50' }), 'x')
  await challenges.put({ owner: 'bob', call: '149' }, 'y', clock.now + 2000)
  t.equal(countOf(`WHERE key LIKE 'bob:%'`), 100, 'one that is asked again takes its own place')
  t.equal(await challenges.get({ owner: 'bob', call: '50' }), 'x')
  t.equal(await challenges.get({ owner: 'ann', call: 'hers' }), 'kept', 'and nobody else loses any')

  const fill = new Database(path)
  fill.exec('BEGIN')
  const insert = fill.prepare('INSERT INTO challenges VALUES (?, ?, ?)')
  for (let n = countOf(); n < 10_000; n++) insert.run(`o${n}:c`, 'x', clock.now + 10_000 + n)
  fill.exec('COMMIT')
  await challenges.put({ owner: 'ann', call: 'another' }, 'y', clock.now + 500_000)
  t.equal(countOf(), 10_000)
  t.equal(await challenges.get({ owner: 'bob', call: '50' }), null, 'the one that would have expired first')
  t.equal(await challenges.get({ owner: 'bob', call: '51' }), 'x')
})

t.test('a note is set once, by the first writer', async (t) => {
  const { notes } = open(t, join(directoryOf(t), 'state.db')).state
  t.equal(await notes.get('n'), null)
  t.equal(await notes.setOnce('n', 'first'), 'first')
  t.equal(await notes.setOnce('n', 'second'), 'first')
  await notes.set('n', 'third')
  t.equal(await notes.get('n'), 'third')
})

t.test('while the file is locked, reads work and writes wait without blocking the process', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  await state.notes.set('n', 'before')
  const other = new Database(path)
  other.exec("BEGIN IMMEDIATE; INSERT INTO notes VALUES ('theirs', '1')")
  const waiting = Promise.all([
    state.usedTokens.claim('a', clock.now),
    state.notes.set('n', 'after'),
    state.credentials.put({ iss: 'i', sub: 's' }, recordOf('x')),
  ])
  t.equal(await state.notes.get('n'), 'before')
  // The check gives up while the file is still locked.
  await t.rejects(state.checkWritable(), { message: `'${path}' cannot be used: SQLITE_BUSY` })
  other.exec('COMMIT')
  t.equal((await waiting)[0], true)
  // What was told to be written must be there for everyone: libsql can leave a busy statement behind that keeps later ones
  // uncommitted.
  await state.notes.set('later', 'x')
  const seen = other.prepare('SELECT name FROM notes ORDER BY name').all() as { name: string }[]
  t.strictSame(
    seen.map(({ name }) => name),
    ['checked', 'later', 'n', 'theirs'],
  )
  t.equal(await open(t, path).state.usedTokens.isUsed('a'), true)
  other.close()
})

t.test('every call notices that the open file was replaced', async (t) => {
  const directory = directoryOf(t)
  const path = join(directory, 'state.db')
  const { state, clock } = open(t, path)
  await state.checkWritable()
  const moved = (name: string) =>
    ['', '-wal', '-shm'].forEach((end) => existsSync(path + end) && renameSync(path + end, join(directory, name) + end))
  const calls: (() => Promise<unknown>)[] = [
    () => state.checkWritable(),
    () => state.usedTokens.claim('a', clock.now),
    () => state.usedTokens.isUsed('a'),
    () => state.notes.set('n', 'x'),
    () => state.notes.get('n'),
  ]
  moved('away.db')
  clock.now += 1000
  for (const call of calls) await t.rejects(call(), { message: `'${path}' cannot be used: ENOENT` })
  t.notOk(existsSync(path), 'and nothing is recreated')
  await makeFile(path)
  clock.now += 1000
  for (const call of calls) {
    await t.rejects(call(), { message: `'${path}' was replaced while it was in use: restart the server` })
  }
  moved('theirs.db')
  for (const end of ['', '-wal', '-shm']) renameSync(join(directory, 'away.db') + end, path + end)
  clock.now += 1000
  for (const call of calls) await call()
})

t.test('checks whether the file is writable at most once a second', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state, clock } = open(t, path)
  const other = new Database(path)
  const mark = () =>
    (other.prepare("SELECT value FROM notes WHERE name = 'checked'").all()[0] as { value: string }).value
  await state.checkWritable()
  const first = mark()
  clock.now += 999
  await Promise.all([state.checkWritable(), state.checkWritable()])
  t.equal(mark(), first)
  clock.now += 1
  await Promise.all([state.checkWritable(), state.checkWritable()])
  const second = mark()
  t.not(second, first)
  clock.now -= DAY
  await state.checkWritable()
  t.not(mark(), second, 'also when the clock was set back')
  other.close()
})

t.test('a closed store refuses calls and can be closed again', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const { state } = open(t, path)
  await state.notes.set('n', 'x')
  state.close()
  state.close()
  const calls: ((state: State) => Promise<unknown>)[] = [
    ({ notes }) => notes.get('n'),
    ({ usedTokens }) => usedTokens.claim('a', 1),
    (state) => state.checkWritable(),
  ]
  for (const call of calls) await t.rejects(call(state), { message: `'${path}' is closed` })
  copyFileSync(path, `${path}.copy`)
  t.equal(await open(t, `${path}.copy`).state.notes.get('n'), 'x', 'the file alone is all there is')
})
