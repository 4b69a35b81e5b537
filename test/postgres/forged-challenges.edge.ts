/** A challenge that somebody changed in the database confirms nothing (D141); test/confirm/forged-challenges.test.ts has every way to forge one. */
import t from 'tap'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { startConfirming } from '../confirm/harness.js'
import { partial } from '../partial.js'
import { databaseOf } from './database-of.js'
import { sharedPostgres } from './start-postgres.js'

t.test('a row that was changed is refused at POST /confirm and at the call', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  const clock = { now: () => bench.clock.now }
  const state = await openDatabase(databaseOf(database.url), { now: () => clock.now() })
  t.teardown(() => state.close())
  const bench = await startConfirming(t, { ports: () => state })
  const { href } = await bench.draft('shown')
  const args = { hrefs: [href] }
  const asked = await bench.call('provision-policy', args)
  const { challenge: _, ...body } = asked.confirm.body
  await database.query(`UPDATE svc_mcp.challenges SET bound_to = regexp_replace(bound_to, '^.', 'x')`)
  const refused = { error: 'confirm_required', reason: 'stale' }
  partial(t, await bench.confirm(asked), refused)
  const token = (await bench.confirm({ confirm: { body } })).confirm_token
  bench.writes()
  partial(t, await bench.call('provision-policy', args, { token }), refused)
  t.same(bench.writes(), [])
  const again = await bench.call('provision-policy', args)
  const { confirm_token: good } = await bench.confirm(again)
  partial(t, await bench.call('provision-policy', args, { token: good }), { ok: true })
  t.equal((await database.query('SELECT 1 FROM svc_mcp.used_tokens')).length, 1)
})
