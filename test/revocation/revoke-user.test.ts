/** The command `revoke-user`: whom servers on the same state refuse from then on, and what ends. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import { ownerKey } from '../../plugins/confirm/confirmed-call.js'
import { forgetUser } from '../../programs/composition/forget-user.js'
import { revokeUser, type RevokeOptions } from '../../programs/composition/revoke-user.js'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { ON_FILE_ONLY, registrationFor } from '../contract/authenticated-service.js'
import { entriesOf } from '../edge/support/authenticated-world.js'
import { partial } from '../partial.js'
import { bytesOf, credentialsOf, directoryOf } from '../state/support.js'
import { pausingTool, startRevocable } from './revoked-service.js'

const MINUTE = 60_000
const NOW = Date.parse('2026-06-15T12:00:00Z')
const ISS = 'https://idp.example'
const ALICE = { iss: ISS, sub: 'alice' }

t.test('whoever is revoked is refused at once, and nobody else', async (t) => {
  let now = Date.now()
  const { tokenOf, confirm, send, revoke, log, oauth } = await startRevocable(t, { now: () => now })
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')]
  const status = async (token: string) => (await send(token, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode
  t.same([await status(alice), await status(bob)], [200, 200])

  t.equal((await revoke('alice', { until: new Date(now + 60 * MINUTE).toISOString() })).ok, true)
  const refused = await send(alice, { jsonrpc: '2.0', id: 1, method: 'ping' })
  partial(t, refused.json(), { error: { data: { error: 'unauthorized', reason: 'access revoked' } } })
  t.match(refused.headers['www-authenticate'], /error="invalid_token", error_description="access revoked"/)
  partial(t, await confirm(alice, { tool: 'provision-policy', params_hash: '0'.repeat(64) }).then((a) => a.json()), {
    error: 'unauthorized',
    reason: 'access revoked',
  })
  t.same([await status(alice), await status(bob)], [401, 200])
  t.equal(await status(await tokenOf('alice', 'admin', { iss: oauth.issuer })), 401, 'a new token is no better')
  t.ok(log.some(({ msg }) => msg === 'InvalidTokenError: access revoked'))

  now += 59 * MINUTE
  const meanwhile = await tokenOf('alice')
  t.equal(await status(meanwhile), 401, 'a minute before the end')
  now += 2 * MINUTE
  t.equal(await status(meanwhile), 401, 'a token from before the end is refused after it, too')
  const later = await tokenOf('alice')
  t.equal(await status(later), 200)

  t.equal((await revoke('alice', { until: 'now' })).ok, true, 'all that there is, and nothing to come')
  t.equal(await status(later), 401)
  now += MINUTE
  t.equal(await status(await tokenOf('alice')), 200)
})

t.test('what another process writes holds for those who were let in a moment ago', ON_FILE_ONLY, async (t) => {
  const { tokenOf, send, state } = await startRevocable(t)
  const alice = await tokenOf('alice')
  const status = async () => (await send(alice, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode
  t.same([await status(), await status()], [200, 200])
  const write = (sql: string, ...values: unknown[]) =>
    promisify(execFile)(process.execPath, [
      '-e',
      `new (require('libsql'))(...${JSON.stringify([state.path])}).prepare(${JSON.stringify(sql)}).run(${JSON.stringify(values)})`,
    ])
  const note = `revoked ${JSON.stringify([state.issuer, 'alice'])}`
  await write('INSERT INTO notes VALUES (?, ?)', note, '{"until":9e15,"at":1,"by":"ops"}')
  t.same([await status(), await status()], [401, 401])
  await write('DELETE FROM notes WHERE name = ?', note)
  t.equal(await status(), 200)
})

t.test('a token without a time of issue is refused for a day longer', async (t) => {
  let now = Date.now()
  const { tokenOf, send, revoke } = await startRevocable(t, { now: () => now })
  await revoke('alice', { until: 'now' })
  const status = async () => {
    const token = await tokenOf('alice', 'admin', { iat: undefined })
    return (await send(token, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode
  }
  now += 24 * 60 * MINUTE - 1000
  t.equal(await status(), 401)
  now += 1000
  t.equal(await status(), 200)
})

t.test('a confirm token from before a revocation is of no use after it', async (t) => {
  let now = Date.now()
  const { tokenOf, call, confirm, revoke } = await startRevocable(t, { now: () => now })
  const change = ['create-iplist', { name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] }] as const
  const before = await tokenOf('alice')
  await call(before, ...change)
  const provision = async (token: string, meta?: object) =>
    call(token, 'provision-policy', { change_description: 'Partners' }, meta)
  const asked = await provision(before)
  const { confirm_token } = (await confirm(before, asked.confirm.body)).json()
  await revoke('alice', { until: 'now' })
  now += 45_000
  const after = await tokenOf('alice')
  const refused = await provision(after, { confirm_token })
  t.same([refused.error, refused.reason], ['confirm_required', 'expired'])
  const anew = (await confirm(after, refused.confirm.body)).json()
  t.equal((await provision(after, anew)).error, undefined, 'and a new one is')
})

t.test('a call that is running sends no further change', async (t) => {
  const { tool, gate } = pausingTool()
  const { tokenOf, call, revoke, created, audit } = await startRevocable(t, { tools: [tool] })
  const run = async (sub: string, meanwhile: () => Promise<unknown>) => {
    let go = () => {}
    gate.go = new Promise<void>((resolve) => (go = resolve))
    const reached = new Promise<void>((resolve) => (gate.reached = resolve))
    const answer = call(await tokenOf(sub), 'update-label')
    await reached
    await meanwhile()
    go()
    return answer
  }
  const ended = await run('alice', () => revoke('alice'))
  t.same(
    [ended.error, ended.reason, ended.hint],
    ['unauthorized', 'access revoked', 'What the call sent before this request stays as it is.'],
  )
  t.same(created(), ['first 1'])
  partial(t, audit.at(-1), { phase: 'outcome', outcome: 'error', sub: 'alice', reason: 'unauthorized' })
  t.same(await run('bob', () => revoke('carol')), {}, 'that of somebody else goes on')
  t.same(created(), ['first 1', 'first 2', 'second 2'])
})

t.test('while the store cannot be read, changes are refused and known revocations stay', ON_FILE_ONLY, async (t) => {
  const { tool, gate } = pausingTool()
  const { app, tokenOf, call, send, revoke, created, breakStore } = await startRevocable(t, { tools: [tool] })
  await revoke('mallory')
  const status = async (sub: string) =>
    (await send(await tokenOf(sub), { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode
  t.same([await status('alice'), await status('mallory')], [200, 401])
  gate.reached = breakStore
  partial(t, await call(await tokenOf('alice'), 'update-label'), {
    error: 'state_unavailable',
    reason: 'STATE_UNREADABLE',
    hint: 'What the call sent before this request stays as it is.',
  })
  t.same(created(), ['first 1'])
  t.same([await status('alice'), await status('mallory')], [200, 401], 'reading goes on, for those who could read')
  t.ok(app)
})

t.test(
  'the PCE key of a person is deleted if asked, and not stored again by what is running',
  ON_FILE_ONLY,
  async (t) => {
    const { tokenOf, call, revoke, pce, state } = await startRevocable(t, { mode: 'per_user' })
    const open = () => openKeystoreState({ path: state.path, kek: Buffer.alloc(32, 7) }, { now: () => Date.now() })
    const hasKey = async () => {
      const { state: file, keystore } = await open()
      const found = await keystore.find({ iss: state.issuer!, sub: 'alice' })
      await file.close()
      return found !== null
    }
    const register = async () => call(await tokenOf('alice'), 'register-pce-credentials', registrationFor(pce))
    partial(t, await register(), { status: 'ok', connection: { ok: true } })
    t.match((await revoke('alice', { until: 'now' })).lines[0]?.text, /: open confirmation: 0, approval: 0$/)
    t.equal(await hasKey(), true, 'only if asked')
    t.match(
      (await revoke('alice', { deleteKey: true })).lines[0]?.text,
      /: open confirmation: 0, approval: 0, PCE credentials: 1, last check: [01]$/,
    )
    t.equal(await hasKey(), false)

    const { state: file, keystore } = await open()
    t.teardown(() => file.close())
    await t.rejects(keystore.write({ iss: state.issuer!, sub: 'alice' }, credentialsOf('late')), {
      code: 'keystore_unavailable',
    })
    t.equal(await hasKey(), false)
    await keystore.write({ iss: state.issuer!, sub: 'bob' }, credentialsOf('his'))
  },
)

/** The command on a keystore with Alice, and someone of nearly her name. */
async function onFile(t: Test) {
  const path = join(directoryOf(t), 'keystore.db')
  const file = await openKeystoreState({ path, kek: randomBytes(32) }, { now: () => NOW })
  t.teardown(() => file.state.close())
  for (const owner of [ALICE, { iss: 'https://other.example', sub: 'Alice' }])
    await file.keystore.write(owner, credentialsOf('key'))
  await file.state.challenges.put({ owner: ownerKey(ALICE), call: 'a'.repeat(64) }, 'x', NOW + 120_000)
  const config: StateFileConfig = { mode: 'per_user', path, variable: 'MCP_KEYSTORE_PATH', issuer: ISS }
  const auditPath = join(directoryOf(t), 'audit.log')
  const parts = { openAudit: () => createFileAudit(auditPath), osUser: 'ops', now: () => NOW }
  return {
    ...file,
    run: (options: RevokeOptions = {}, owner = ALICE) => revokeUser(config, owner, options, parts),
    forget: () => forgetUser(config, ALICE, parts),
    entries: () => entriesOf(bytesOf(join(auditPath, '..')).toString()),
  }
}

t.test('the report and the audit entries', async (t) => {
  const { run, forget, entries, state } = await onFile(t)
  const day = '2026-06-16T12:00:00.000Z'
  const near = { level: 'warn', text: "There is also 'Alice' of https://other.example" }
  t.same(await run({ dryRun: true }), {
    ok: true,
    lines: [
      {
        level: 'info',
        text: `Nothing was changed. The access of 'alice' of ${ISS} is not revoked now, would be until ${day}, and the stored PCE key would be kept`,
      },
      near,
    ],
  })
  t.same([await state.revocations.find(ALICE), entries()], [null, []])
  t.same(await run(), {
    ok: true,
    lines: [
      {
        level: 'info',
        text: `The access of 'alice' of ${ISS} is revoked until ${day}: open confirmation: 1, approval: 0`,
      },
      {
        level: 'info',
        text: 'Tokens and sessions from before that time are refused after it too; calls that are running send no further change',
      },
      near,
    ],
  })
  t.same(await state.revocations.find(ALICE), { until: NOW + 24 * 60 * MINUTE, at: NOW, by: 'ops' })
  const common = {
    command: 'revoke-user',
    role: null,
    ...ALICE,
    mode: 'per_user',
    transport: 'command',
    os_user: 'ops',
  }
  t.same(
    entries().map(({ request_id: _id, ...entry }) => entry),
    [
      { ts: '2026-06-15T12:00:00.000Z', phase: 'decision', decision: 'allowed', revoked_until: day, ...common },
      {
        ...{ ts: '2026-06-15T12:00:00.000Z', phase: 'outcome', outcome: 'success', revoked_until: day },
        ...{ removed: { challenges: 1, approvals: 0 }, ...common },
      },
    ],
  )
  const report = await run({ until: 'now', dryRun: true, deleteKey: true })
  t.equal(
    report.lines[0]?.text,
    `Nothing was changed. The access of 'alice' of ${ISS} is revoked until ${day} now, would be until 2026-06-15T12:00:00.000Z, and the stored PCE key would be deleted`,
  )
  t.equal(
    (await run({}, { iss: 'https://other.example', sub: 'Alice' })).lines[2]?.text,
    `MCP_OAUTH_ISSUER is ${ISS}: servers with this setting know nobody of https://other.example`,
  )
  const forgotten = await forget()
  t.equal(
    forgotten.lines.at(-1)?.text,
    'That their access was revoked is not removed: revoke-user --dry-run says until when',
  )
  t.ok(await state.revocations.find(ALICE), 'whoever is forgotten is not let in by that')
})

/** The problem because of which the command was refused. */
const refusalOf = (run: Promise<unknown>) =>
  run.then(
    () => 'it ran',
    (error: unknown) =>
      error instanceof StartupError ? error.faults.map(({ problem }) => problem).join() : String(error),
  )

t.test('options that cannot be used change nothing', async (t) => {
  const { run, state } = await onFile(t)
  for (const [until, problem] of [
    ['tomorrow', '--until "tomorrow" is not a time with its zone'],
    ['2026-06-16', '--until "2026-06-16" is not a time with its zone'],
    ['2026-06-16T12:00', '--until "2026-06-16T12:00" is not a time with its zone'],
    ['2026-06-31T12:00Z', '--until "2026-06-31T12:00Z" is not a time with its zone'],
    ['2026-06-16T25:00Z', '--until "2026-06-16T25:00Z" is not a time with its zone'],
    ['', '--until "" is not a time with its zone'],
    ['2026-06-15T11:59:59Z', '--until 2026-06-15T11:59:59Z is over'],
    ['2026-06-15T12:30+01:00', '--until 2026-06-15T12:30+01:00 is over'],
  ])
    t.equal(await refusalOf(run({ until: until! })), problem)
  for (const [sub, problem] of [
    ['', '--sub "" cannot be the subject of an access token'],
    ['a\nb', '--sub "a\\nb" cannot be the subject of an access token'],
    ['x'.repeat(256), `--sub "${'x'.repeat(255)}" cannot be the subject of an access token`],
  ] as const)
    t.equal(await refusalOf(run({}, { iss: ISS, sub })), problem)
  t.equal(await refusalOf(run({}, { iss: ' ', sub: 'alice' })), '--iss " " is not an issuer')
  t.equal(await state.revocations.find(ALICE), null)
  t.equal((await run({ until: '2026-06-15T13:30+01:00' })).ok, true)
  t.equal((await state.revocations.find(ALICE))?.until, NOW + 30 * MINUTE, 'a time is read in its zone')
})

t.test('what this process writes holds in the same turn of the event loop', async (t) => {
  const { state } = await onFile(t)
  t.equal(await state.revocations.findOnArrival(ALICE), null)
  await state.revocations.set(ALICE, { until: NOW, at: NOW, by: 'ops' })
  t.same(await state.revocations.findOnArrival(ALICE), { until: NOW, at: NOW, by: 'ops' })
})

t.test('a note that nobody here wrote locks the person out', async (t) => {
  const { state } = await onFile(t)
  for (const note of ['x', 'null', '{}', '{"until":"soon","at":1,"by":"x"}']) {
    await state.notes.set(`revoked ${JSON.stringify([ISS, 'alice'])}`, note)
    t.same(await state.revocations.find(ALICE), { until: Infinity, at: 0, by: '' }, note)
  }
})
