/** What an operator does with the state file beside running servers: back it up, and forget a person. */
import { randomBytes, randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { backUpStateFile } from '../../programs/composition/back-up-state.js'
import { forgetUser } from '../../programs/composition/forget-user.js'
import { readStateFile } from '../../config/index.js'
import { ownerKey } from '../../plugins/confirm/confirmed-call.js'
import { type AuditLog, createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import type { StateFileConfig } from '../../schemas/config.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { entriesOf } from '../edge/support/authenticated-world.js'
import { partial } from '../partial.js'
import { bytesOf, credentialsOf, directoryOf } from './support.js'

const KEK = randomBytes(32)
const ISS = 'https://idp.example'
const ALICE = { iss: ISS, sub: 'alice' }
const BOB = { iss: ISS, sub: 'bob' }
const NOW = Date.parse('2026-06-15T12:00:00Z')

const newPath = (t: Test) => join(directoryOf(t), 'keystore.db')
const configOf = (path: string): StateFileConfig => ({ mode: 'per_user', path, variable: 'MCP_KEYSTORE_PATH' })

async function open(t: Test, path: string) {
  const file = await openKeystoreState({ path, kek: KEK }, { now: () => NOW })
  t.teardown(() => file.state.close())
  return file
}

t.test('a backup is the state file as it is, while a server writes', async (t) => {
  const path = newPath(t)
  const { keystore, state } = await open(t, path)
  await keystore.write(ALICE, credentialsOf('first'))
  await state.notes.setOnce('confirm_tokens', 'before')
  const token = randomUUID()
  await state.usedTokens.claim(token, NOW + 120_000)

  const target = join(dirname(path), 'backup of "today".db')
  const writing = (async () => {
    for (let i = 0; i < 20; i++) await keystore.write(BOB, credentialsOf(`bob ${i}`))
  })()
  const { lines, ok } = backUpStateFile(configOf(path), target)
  t.same(
    [ok, lines],
    [
      true,
      [
        {
          level: 'info',
          text: `'${path}' is backed up to '${target}' (${statSync(target).size / 1024} KiB, schema 1)`,
        },
        {
          level: 'info',
          text: 'The PCE keys in it can only be decrypted with MCP_KEK: back that up too, in another place',
        },
      ],
    ],
  )
  await writing
  t.same(
    readdirSync(dirname(path)).filter((name) => name.startsWith('backup')),
    ['backup of "today".db'],
    'one file, whole by itself',
  )
  t.equal(statSync(target).mode & 0o777, 0o600)
  t.equal((await keystore.find(BOB))?.open().apiSecret, 'bob 19', 'the server has gone on')
  t.equal(await state.notes.get('confirm_tokens'), 'before')

  await keystore.write(ALICE, credentialsOf('changed after it'))
  const restored = newPath(t)
  copyFileSync(target, restored)
  const copy = await open(t, restored)
  t.equal((await copy.keystore.find(ALICE))?.open().apiSecret, 'first')
  t.equal(await copy.state.usedTokens.isUsed(token), true)
  t.equal(await copy.state.notes.get('confirm_tokens'), null, 'a token that was used since is for another file')
  const file = new Database(restored)
  t.same(file.pragma('journal_mode'), [{ journal_mode: 'wal' }])
  file.close()
})

t.test('a backup replaces nothing, and is whole or not there', async (t) => {
  const path = newPath(t)
  const { state } = await open(t, path)
  const folder = dirname(path)
  const there = join(folder, 'there.db')
  writeFileSync(there, 'another')
  const refused = (source: string, target: string) => {
    try {
      backUpStateFile(configOf(source), target)
    } catch (error) {
      return (error as { faults: { problem: string }[] }).faults.map(({ problem }) => problem)
    }
    return []
  }
  const lost = join(folder, 'lost', 'backup.db')
  t.same(
    [refused(path, there), refused(path, path), refused(path, lost), refused(join(folder, 'none.db'), lost)],
    [
      [`'${there}' exists already`],
      [`'${path}' exists already`],
      [`'${lost}' cannot be written: there is no such file or folder (ENOENT)`],
      [`MCP_KEYSTORE_PATH '${join(folder, 'none.db')}' does not exist: there is nothing to back up`],
    ],
  )
  t.equal(existsSync(join(folder, 'none.db')), false, 'nor is anything made')
  state.close()
  writeFileSync(path, Buffer.alloc(5000, 'x'))
  t.same(refused(path, join(folder, 'new.db')), [`MCP_KEYSTORE_PATH '${path}' is not an SQLite file`])
  t.same(
    readdirSync(folder).filter((name) => name.startsWith('new.db')),
    [],
  )
})

/** A state file with Alice and Bob in it, and what audits the command. */
async function people(t: Test) {
  const path = newPath(t)
  const file = await open(t, path)
  for (const owner of [ALICE, BOB, { iss: 'https://other.example', sub: 'ALICE ' }]) {
    await file.keystore.write(owner, credentialsOf(`of ${owner.sub}`))
    await file.lastChecks.put(owner, 'v', { at: NOW, ok: true })
    for (const call of ['a', 'b'])
      await file.state.challenges.put({ owner: ownerKey(owner), call: call.repeat(64) }, 'x', NOW + 120_000)
  }
  const auditPath = join(dirname(path), 'audit.log')
  const forget = (sub: string, openAudit: () => AuditLog | null = () => createFileAudit(auditPath)) =>
    forgetUser(configOf(path), { iss: ISS, sub }, { openAudit, osUser: 'ops', now: () => NOW })
  return {
    ...file,
    path,
    forget,
    entries: () =>
      entriesOf(
        bytesOf(dirname(path))
          .toString()
          .match(/^\{"ts".*$/gm)
          ?.join('\n') ?? '',
      ),
  }
}

const REGISTER_AGAIN = {
  level: 'info',
  text: 'People who can still log in, or who have a valid access token, can register again',
}

t.test('forgetting a person', async (t) => {
  const { keystore, lastChecks, state, forget, entries } = await people(t)
  t.same(await forget('alice'), {
    ok: true,
    lines: [
      {
        level: 'info',
        text: `Removed for 'alice' of ${ISS}: PCE credentials: 1, last check: 1, open confirmation: 2, approval: 0, last use: 0`,
      },
      REGISTER_AGAIN,
    ],
  })
  const left = async (owner: typeof ALICE) => [
    (await keystore.find(owner)) !== null,
    (await lastChecks.find(owner, 'v')) !== null,
    (await state.challenges.get({ owner: ownerKey(owner), call: 'a'.repeat(64) })) !== null,
  ]
  t.same(
    [await left(ALICE), await left(BOB)],
    [
      [false, false, false],
      [true, true, true],
    ],
  )
  const common = {
    ts: new Date(NOW).toISOString(),
    command: 'forget-user',
    role: null,
    iss: ISS,
    sub: 'alice',
    mode: 'per_user',
    transport: 'command',
    os_user: 'ops',
  }
  const [first, second, ...more] = entries().map(({ request_id: _id, ...entry }) => entry)
  t.same(first, { ...common, phase: 'decision', decision: 'allowed' })
  t.same(second, {
    ...common,
    phase: 'outcome',
    outcome: 'success',
    removed: { credentials: 1, last_checks: 1, challenges: 2, approvals: 0, last_uses: 0 },
  })
  t.same(more, [])

  t.same(
    (await forget('alice')).lines,
    [
      { level: 'warn', text: `Nothing is stored for 'alice' of ${ISS}` },
      { level: 'warn', text: "There is 'ALICE ' of https://other.example" },
      REGISTER_AGAIN,
    ],
    'of somebody who has nothing it says so, and who may have been meant',
  )
})

t.test('nobody is forgotten without an entry in the audit log', async (t) => {
  const { keystore, forget } = await people(t)
  const broken = (fails: number): AuditLog => {
    let syncs = 0
    const sync = () => (++syncs >= fails ? Promise.reject(new Error('ENOSPC')) : Promise.resolve())
    const nothing = () => undefined
    const log = { write: nothing, flush: nothing, check: nothing, reopen: nothing, close: nothing }
    return { ...log, writeInTurn: async () => {}, sync }
  }
  await t.rejects(
    forget('alice', () => broken(1)),
    { name: 'StartupError', faults: [{ problem: 'The audit log cannot be written: ENOSPC' }] },
  )
  t.ok(await keystore.find(ALICE))
  const { ok, lines } = await forget('alice', () => broken(2))
  t.equal(ok, false, 'and one whose outcome has none is told of')
  partial(t, lines.at(-1), { level: 'error', text: 'The outcome is missing from the audit log: ENOSPC' })
  t.equal(await keystore.find(ALICE), null)
})

t.test('the commands need no secret, and take the paths of the servers', async (t) => {
  t.same(readStateFile({}), { mode: 'per_user', path: './data/keystore.db', variable: 'MCP_KEYSTORE_PATH' })
  t.same(
    readStateFile({
      MCP_PCE_MODE: 'shared',
      MCP_STATE_PATH: '/var/lib/svc-mcp/state.db',
      MCP_AUDIT_LOG_PATH: '/var/log/audit.log',
      MCP_OAUTH_ISSUER: ISS,
    }),
    {
      mode: 'shared',
      path: '/var/lib/svc-mcp/state.db',
      variable: 'MCP_STATE_PATH',
      auditLogPath: '/var/log/audit.log',
      issuer: ISS,
    },
  )
  t.throws(() => readStateFile({ MCP_PCE_MODE: 'hybrid' }), {
    name: 'StartupError',
    message: /^MCP_PCE_MODE 'hybrid' is unknown/,
  })
})
