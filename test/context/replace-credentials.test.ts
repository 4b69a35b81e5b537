/** A mistyped key replaces none that works, and everyone can see how theirs was last tried (D110). */
import Database from 'libsql'
import t from 'tap'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import {
  type Json,
  makePki,
  person,
  REGISTER,
  registration,
  startPce,
  startUserService,
  STATUS,
} from './user-service.js'

const ann = person('ann')
const pki = makePki(t)
const START = '2026-06-15T12:00:00.000Z'
const REFUSED = 'The PCE does not accept the API key and secret.'
const UNREACHABLE = 'No PCE could be reached at this address. Check host, port, certificate and network.'
const KEPT = 'Nothing was stored, and your registered credentials stay in use.'

/** A service whose user may register at a simulated PCE with the right key, a wrong one, and at a port without a PCE. */
async function startAll(t: Parameters<typeof startPce>[0], more: Parameters<typeof startUserService>[1] = {}) {
  const pce = await startPce(t, pki)
  const { key, secret } = pce.credentials
  const service = await startUserService(t, { pki, ...more })
  const good = registration(pce.port, key, secret, { label: 'first' })
  return {
    ...service,
    pce,
    good,
    mistyped: { ...good, api_secret: 'mistyped', label: 'second' },
    nowhere: { ...good, pce_port: await freePort(), label: 'third' },
  }
}

t.test('a key that the PCE refuses, and a PCE that does not answer, replace nothing', async (t) => {
  const { call, pce, good, mistyped, nowhere, advance } = await startAll(t)
  partial(t, await call(ann, REGISTER, good), { status: 'ok', connection: { ok: true } })
  const before: Json = await call(ann, STATUS)
  partial(t, before, { label: 'first', last_check: { at: START, ok: true } })
  advance(60_000)

  const refused: Json = await call(ann, REGISTER, mistyped)
  t.same(
    { ...refused, request_id: null },
    {
      error: 'pce_error',
      message: `${REFUSED} ${KEPT}`,
      hint: 'Correct the entry, or repeat it with replace_anyway: true to store it without an answer of the PCE.',
      request_id: null,
      kept: true,
      http_status: 401,
    },
  )
  const unanswered: Json = await call(ann, REGISTER, nowhere)
  t.same([unanswered.error, unanswered.kept, unanswered.http_status], ['pce_unreachable', true, undefined])
  t.equal(unanswered.message, `${UNREACHABLE} ${KEPT}`)
  t.same(await call(ann, STATUS), before, 'nor is anything else of the stored ones changed')
  partial(t, await call(ann, 'get-labels', { key: 'env' }), { labels: Array }, 'which go on working')

  const other = await startPce(t, pki, { seed: 2 })
  const { key, secret } = other.credentials
  partial(t, await call(ann, REGISTER, registration(other.port, key, secret)), { connection: { ok: true } })
  t.same((await call(ann, STATUS)).pce_port, other.port, 'what a PCE accepts takes their place')

  t.same(await call(ann, REGISTER, { ...mistyped, replace_anyway: true }), {
    status: 'ok',
    message: `Your PCE credentials are stored, but they could not be used yet: ${REFUSED}`,
    pce_host: 'localhost',
    pce_port: pce.port,
    pce_org_id: 1,
    label: 'second',
    connection: { ok: false, error: { code: 'pce_error', message: REFUSED } },
  })
  partial(t, await call(ann, STATUS), { label: 'second', last_check: { ok: false, message: REFUSED } })
})

t.test('a first key is stored whatever the PCE says, and so is one in place of what cannot be read', async (t) => {
  const { call, mistyped, nowhere, path } = await startAll(t)
  for (const [args, connection] of [
    [nowhere, { ok: false, error: { code: 'pce_unreachable', message: UNREACHABLE } }],
    [mistyped, { ok: false, error: { code: 'pce_error', message: REFUSED } }],
  ] as const) {
    partial(t, await call(ann, REGISTER, args), { status: 'ok', connection })
    partial(t, await call(ann, STATUS), { label: args.label, last_check: { ok: false } })
    const file = new Database(path)
    file.prepare('UPDATE credentials SET sealed = zeroblob(length(sealed))').run()
    file.close()
    partial(t, await call(ann, STATUS), { error: 'credentials_unreadable' })
  }
})

t.test('where the keystore cannot tell what is stored, no PCE is asked and nothing is stored', async (t) => {
  let isDown = false
  const { call, pce, good, mistyped } = await startAll(t, {
    wrapKeystore: (keystore) => ({
      ...keystore,
      find: (owner) => (isDown ? Promise.reject(new Error('down')) : keystore.find(owner)),
    }),
  })
  await call(ann, REGISTER, good)
  const asked = pce.requests.length
  isDown = true
  partial(t, await call(ann, REGISTER, mistyped), { error: 'internal' })
  isDown = false
  t.equal(pce.requests.length, asked)
  partial(t, await call(ann, STATUS), { label: 'first' })
})

t.test('the last check', async (t) => {
  const { call, pce, good, advance, state, path } = await startAll(t)
  await call(ann, REGISTER, good)
  advance(60_000)
  partial(t, await call(ann, 'check-pce-connection'), { connected: true })
  const lastCheck = async () => (await call(ann, STATUS)).last_check
  t.same(await lastCheck(), { at: '2026-06-15T12:01:00.000Z', ok: true })

  advance(60_000)
  pce.faults.add({ kind: 'status', path: /./, status: 401, times: 9, body: [{ token: 'x', message: 'CANARY' }] })
  partial(t, await call(ann, 'check-pce-connection'), { error: 'pce_error' })
  t.same(await lastCheck(), { at: '2026-06-15T12:02:00.000Z', ok: false, message: REFUSED }, 'in words of ours')
  pce.faults.clear()

  const other = await startUserService(t, { pki, file: path })
  t.same((await other.call(ann, STATUS)).last_check, await lastCheck(), 'is known to every process')
  partial(t, await other.call(ann, 'get-labels', { key: 'env' }), { labels: Array })
  partial(t, await lastCheck(), { at: START, ok: true }, 'where the first call has tried the PCE, that counts as well')

  await call(ann, REGISTER, good)
  await call(ann, 'delete-pce-credentials')
  t.equal(await state.notes.get('last_check ["https://id.example","ann"]'), null, 'goes with the credentials')
  t.equal(await lastCheck(), undefined)
})
