/** The command `who`: whom the state knows, when they used a server last, and nothing secret (D296). */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import { backUpStateFile } from '../../programs/composition/back-up-state.js'
import { forgetUser } from '../../programs/composition/forget-user.js'
import { listPeople, renderPeople, type WhoOptions } from '../../programs/composition/who.js'
import type { PerUserConfig, StateKeysConfig } from '../../schemas/config.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { people } from '../../storage/people.js'
import { ON_FILE_ONLY, registrationFor, startService } from '../contract/authenticated-service.js'
import { entriesOf } from '../edge/support/authenticated-world.js'
import { found } from '../edge/support/within.js'
import { partial } from '../partial.js'
import { bytesOf, credentialsOf, directoryOf } from './support.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NOW = Date.parse('2026-06-15T12:00:00Z')
const ISS = 'https://idp.example'
const KEK = Buffer.alloc(32, 7)
const iso = (at: number) => new Date(at).toISOString()

const who = (config: StateKeysConfig, options: Partial<WhoOptions> = {}, now = NOW) =>
  listPeople(config, { limit: 100, ...options }, { openAudit: () => null, osUser: 'ops', now: () => now })
const answerOf = async (...args: Parameters<typeof who>) => (await who(...args)).answer!

/** A service, and the command on its state as another process runs it. */
async function startWatched(t: Test, folder?: string, clock = { now: NOW }) {
  const service = await startService(t, { now: () => clock.now, ...(folder !== undefined && { folder }) })
  const { path, kek } = (service.config as PerUserConfig).keystore
  const config: StateKeysConfig = { mode: 'per_user', path, variable: 'MCP_KEYSTORE_PATH', kek }
  const tokenOf = (sub: string, name?: string) => service.tokenOf(sub, 'admin', name === undefined ? {} : { name })
  const lastUse = async (sub: string) => {
    const { people } = await answerOf(config, {}, clock.now)
    return people.find((person) => person.sub === sub)?.last_use
  }
  return { ...service, clock, state: config, tokenOf, lastUse }
}

t.test('who registered, who was here and who is revoked, without a secret', ON_FILE_ONLY, async (t) => {
  const { call, tokenOf, pce, state, clock, lastUse } = await startWatched(t)
  partial(t, await call(await tokenOf('alice', 'Alice Ahrens'), 'register-pce-credentials', registrationFor(pce)), {
    status: 'ok',
  })
  await found(() => lastUse('alice'), 'alice was seen')
  clock.now += 10 * MINUTE
  await call(await tokenOf('bob'), 'get-labels')
  await found(() => lastUse('bob'), 'bob was seen')
  const answer = await answerOf(state, {}, clock.now)
  const iss = answer.people[0]!.iss
  t.same(answer, {
    mode: 'per_user',
    as_of: iso(clock.now),
    total: 2,
    is_complete: true,
    people: [
      {
        ...{ iss, sub: 'bob', name: null, is_registered: false, pce_host: null, registered_at: null },
        ...{ last_use: iso(clock.now), is_revoked: false, revoked_until: null },
      },
      {
        ...{ iss, sub: 'alice', name: 'Alice Ahrens', is_registered: true, pce_host: `127.0.0.1:${pce.port}` },
        ...{ registered_at: iso(NOW), last_use: iso(NOW), is_revoked: false, revoked_until: null },
      },
    ],
  })
  const { api_key, api_secret } = registrationFor(pce)
  for (const secret of [api_key, api_secret, state.kek!.toString('base64')])
    t.notOk(JSON.stringify(answer).includes(secret) || renderPeople(answer).includes(secret))
})

t.test('the last use is written at most once in five minutes, whichever process is used', ON_FILE_ONLY, async (t) => {
  const first = await startWatched(t)
  const { clock, lastUse } = first
  const second = await startWatched(t, first.folder, clock)
  const use = async (at: typeof first, sub: string) => at.call(await at.tokenOf(sub), 'get-server-info')
  /** What came before has been written by the time at which somebody new is seen at both. */
  let strangers = 0
  const settle = async () => {
    for (const at of [first, second]) {
      const sub = `stranger ${strangers++}`
      await use(at, sub)
      await found(() => lastUse(sub), 'the stranger was seen')
    }
  }
  await use(first, 'alice')
  await settle()
  t.equal(await lastUse('alice'), iso(NOW))
  clock.now += 4 * MINUTE
  for (const at of [first, second]) await use(at, 'alice')
  await settle()
  t.equal(await lastUse('alice'), iso(NOW), 'too early')
  clock.now += MINUTE
  await use(second, 'alice')
  await found(async () => (await lastUse('alice')) === iso(clock.now), 'and after five minutes')
})

/** A keystore with people of all kinds. */
async function seeded(t: Test) {
  const folder = directoryOf(t)
  const path = join(folder, 'keystore.db')
  const { state, keystore } = await openKeystoreState({ path, kek: KEK }, { now: () => NOW })
  t.teardown(() => state.close())
  const known = people(state.notes)
  const person = (sub: string) => ({ iss: ISS, sub })
  for (const [sub, days] of Object.entries({ ann: 1, bob: 40, eve: 0 }))
    await known.used(person(sub), { at: NOW - days * DAY, ...(sub === 'eve' && { name: 'Eve\u001b[2J \u202eevil' }) })
  for (const sub of ['ann', 'old']) {
    const version = await keystore.write(person(sub), {
      ...credentialsOf('s3cret'),
      host: `${sub}.example`,
      port: 8443,
    })
    if (sub === 'ann') await known.registered(person(sub), { version, at: NOW - 2 * DAY })
    else await known.registered(person(sub), { version: 'an earlier one', at: NOW })
  }
  await state.revocations.set(person('bob'), { until: NOW + DAY, at: NOW, by: 'ops' })
  await state.revocations.set(person('eve'), { until: NOW - 1, at: NOW - DAY, by: 'ops' })
  await state.notes.set(`revoked ${JSON.stringify([ISS, 'zoe'])}`, 'written by hand')
  const config: StateKeysConfig = { mode: 'per_user', path, variable: 'MCP_KEYSTORE_PATH', kek: KEK, issuer: ISS }
  const subs = async (options: Partial<WhoOptions>) => {
    const { people, total } = await answerOf(config, options)
    return [total, ...people.map(({ sub }) => sub)]
  }
  return { folder, config, state, known, subs }
}

t.test('the table: who was seen last comes first, hidden characters are seen', async (t) => {
  const { config } = await seeded(t)
  const answer = await answerOf(config)
  t.equal(
    renderPeople(answer),
    [
      'NAME                         SUBJECT  ISSUER               PCE               REGISTERED                LAST USE                  REVOKED UNTIL',
      'Eve⟨U+001B⟩[2J ⟨U+202E⟩evil  eve      https://idp.example  -                 -                         2026-06-15T12:00:00.000Z  -',
      '-                            ann      https://idp.example  ann.example:8443  2026-06-13T12:00:00.000Z  2026-06-14T12:00:00.000Z  -',
      '-                            bob      https://idp.example  -                 -                         2026-05-06T12:00:00.000Z  2026-06-16T12:00:00.000Z',
      '-                            old      https://idp.example  old.example:8443  not known                 not known                 -',
      '-                            zoe      https://idp.example  -                 -                         not known                 further notice',
      '',
      '5 people.',
      '',
    ].join('\n'),
  )
  partial(
    t,
    answer.people[0],
    { is_revoked: false, revoked_until: iso(NOW - 1) },
    'one that is over is told to scripts',
  )
  partial(t, answer.people[4], { is_revoked: true, revoked_until: null })
})

t.test('filters, the limit, and the total', async (t) => {
  const { subs, config } = await seeded(t)
  t.same(await subs({ registered: true }), [2, 'ann', 'old'])
  t.same(await subs({ revoked: true }), [2, 'bob', 'zoe'])
  t.same(await subs({ idleDays: 1 }), [4, 'ann', 'bob', 'old', 'zoe'])
  t.same(await subs({ idleDays: 41 }), [2, 'old', 'zoe'])
  t.same(await subs({ limit: 2 }), [5, 'eve', 'ann'])
  t.match(renderPeople(await answerOf(config, { limit: 2 })), /\n\nThe first 2 of 5 people: --limit lists more\.\n$/)
})

t.test('without the key, or with another one, the host is not told and everything else is', async (t) => {
  const { config } = await seeded(t)
  const { kek: _, ...sealed } = config
  for (const [given, why, cell] of [
    [sealed, 'no key', '(sealed)'],
    [{ ...config, kek: Buffer.alloc(32, 8) }, 'unreadable', '(unreadable)'],
  ] as const) {
    const answer = await answerOf(given)
    partial(t, answer.people[1], { sub: 'ann', is_registered: true, pce_host: null, pce_host_unknown: why })
    t.ok(renderPeople(answer).includes(cell))
  }
  t.match(renderPeople(await answerOf(sealed)), /The hosts of PCEs are sealed: set MCP_KEK/)
  const changed = { ...config, kek: Buffer.alloc(32, 8), previousKek: KEK }
  partial(t, (await answerOf(changed)).people[1], { pce_host: 'ann.example:8443' }, 'while keys are changed')
})

t.test('in shared mode it says whom it can know', async (t) => {
  const { config } = await seeded(t)
  const text = renderPeople(await answerOf({ ...config, mode: 'shared' }, { limit: 1 }))
  t.match(text, /^NAME +SUBJECT +ISSUER +LAST USE +REVOKED UNTIL\n/)
  t.match(text, /In shared mode nobody registers: these people used the servers, or were revoked\.\n$/)
})

t.test('a backup has it, and who is forgotten is not in it any more', async (t) => {
  const { folder, config } = await seeded(t)
  const copy = join(folder, 'copy.db')
  backUpStateFile(config, copy)
  t.same(await answerOf({ ...config, path: copy }), await answerOf(config))
  const { lines } = await forgetUser(config, { iss: ISS, sub: 'ann' }, { openAudit: () => null, osUser: 'ops' })
  t.match(lines[0]?.text, /: PCE credentials: 1, last check: 0, open confirmation: 0, approval: 0, last use: 1$/)
  t.same(
    (await answerOf(config)).people.map(({ sub }) => sub),
    ['eve', 'bob', 'old', 'zoe'],
  )
})

t.test('it is audited, changes nothing, and lists nobody if it cannot be audited', async (t) => {
  const { folder, config } = await seeded(t)
  const auditFolder = directoryOf(t)
  const auditPath = join(auditFolder, 'audit.log')
  const before = await answerOf(config)
  const parts = { openAudit: () => createFileAudit(auditPath), osUser: 'ops', now: () => NOW }
  const { report } = await listPeople(config, { limit: 3 }, parts)
  t.same(report, { lines: [], ok: true })
  const common = {
    command: 'who',
    role: null,
    iss: null,
    sub: null,
    mode: 'per_user',
    transport: 'command',
    os_user: 'ops',
  }
  t.same(
    entriesOf(bytesOf(auditFolder).toString()).map(({ request_id: _, ...entry }) => entry),
    [
      { ts: iso(NOW), phase: 'decision', decision: 'allowed', ...common },
      { ts: iso(NOW), phase: 'outcome', outcome: 'success', listed: 3, ...common },
    ],
  )
  t.same(await answerOf(config), before)
  const broken = { ...createFileAudit(auditPath), sync: () => Promise.reject(new Error('ENOSPC')) }
  await t.rejects(
    listPeople(config, { limit: 3 }, { ...parts, openAudit: () => broken }),
    /audit log cannot be written/,
  )
  await t.rejects(listPeople({ ...config, path: join(folder, 'none.db') }, { limit: 3 }, parts), /nothing to list/)
})

t.test('a note that nobody here wrote tells nothing', async (t) => {
  const { state, known } = await seeded(t)
  const owner = { iss: ISS, sub: 'mallory' }
  for (const note of ['x', 'null', '{}', '[]', '{"at":"soon"}', '{"at":1e99,"of":"v"}']) {
    for (const kind of ['used', 'registered'])
      await state.notes.set(`${kind} ${JSON.stringify([ISS, 'mallory'])}`, note)
    t.same([await known.lastUse(owner), await known.registration(owner)], [null, null], note)
  }
  await state.notes.set(`used ${JSON.stringify([ISS, 'mallory'])}`, JSON.stringify({ at: 1, name: 'x'.repeat(500) }))
  t.same(await known.lastUse(owner), { at: 1 })
})
