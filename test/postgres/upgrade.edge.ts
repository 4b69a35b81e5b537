/**
 * A release whose schema goes further, upgraded to and rolled back one replica after the other, with calls running. The release before is
 * what the sources are now; the next ones are these sources and steps of the schema that only this test has.
 */
import t from 'tap'
import { MIGRATIONS, PROGRAM_SCHEMA } from '../../storage/postgres/migrations.js'
import { bundleRelease } from '../bundle-program.js'
import { startProgram } from '../edge/support/start-program.js'
import { messagesOf } from '../log-lines.js'
import { partial } from '../partial.js'
import { underLoad } from './load.js'
import { startReplicas } from './replicas.js'
import { startPostgres } from './start-postgres.js'

const NOW = PROGRAM_SCHEMA
/** What a step may do to what older programs use, and things of its own. */
const NEXT = {
  number: NOW + 1,
  oldestProgram: MIGRATIONS.at(-1)!.oldestProgram,
  sql: `ALTER TABLE svc_mcp.credentials ADD COLUMN added text NOT NULL DEFAULT '';
    CREATE TABLE svc_mcp.added (id text PRIMARY KEY, credentials_sub text);
    CREATE INDEX added_to_used_tokens ON svc_mcp.used_tokens (expires_at, id);
    CREATE FUNCTION svc_mcp.admit_added(p text) RETURNS text LANGUAGE sql AS $body$ SELECT p $body$;`,
}
/** One release later what the one before the last needed goes. */
const LATER = { number: NOW + 2, oldestProgram: NOW + 1, sql: 'DROP INDEX svc_mcp.added_to_used_tokens' }

/** A program that has these steps as well. */
function withSteps(release: string, steps: readonly object[]): Promise<string> {
  const end = 'export const PROGRAM_SCHEMA ='
  return bundleRelease(release, 'storage/postgres/migrations.ts', (source) => {
    if (!source.includes(end)) throw new Error(`migrations.ts has no line '${end}'`)
    return source.replace(end, () => `;(MIGRATIONS as Migration[]).push(...${JSON.stringify(steps)})\n${end}`)
  })
}

t.test('an upgrade and its rollback lose no call and refuse none', async (t) => {
  const [next, later] = await Promise.all([withSteps('next', [NEXT]), withSteps('later', [NEXT, LATER])])
  const postgres = await startPostgres(t)
  const rig = await startReplicas(t, { postgres })
  const database = rig.database!
  const steps = () => database.query('SELECT number, oldest_program FROM svc_mcp.migrations ORDER BY number')
  const known = MIGRATIONS.map(({ number, oldestProgram }) => ({ number, oldest_program: oldestProgram }))
  const codes: (number | null)[] = []
  const restart = async (at: number, release?: string) => {
    codes.push(await rig.replicas[at]!.stop())
    await rig.replicas[at]!.start({}, release)
  }
  t.same(await steps(), known)

  const tally = await underLoad(
    t,
    rig,
    async (more) => {
      await restart(0, next)
      const upgraded = [...known, { number: NEXT.number, oldest_program: NEXT.oldestProgram }]
      t.same(await steps(), upgraded, 'the first one brings the schema further')
      await restart(1)
      await more()
      await restart(1, next)
      await restart(2, next)
      await more()
      await restart(2)
      await restart(0, next)
      await restart(1)
      await more()
      await restart(0)
      t.same(await steps(), upgraded, 'it stays')
    },
    { mayLose: false, direct: false },
  )
  console.error(`upgraded and rolled back: ${JSON.stringify(tally)}`)
  t.same(tally.refused, {})
  t.same(new Set(codes), new Set([0]))

  const migrated = await startProgram(t, { args: ['migrate'], env: { MCP_STATE_URL: database.url }, program: later })
    .ended
  t.same(messagesOf(migrated.stderr), [
    `The database at ${database.url.replace(/.*@/, '')} has schema ${LATER.number} now`,
  ])
  const admin = await rig.world.tokenOf('admin')
  for (const at of [0, 1, 2])
    partial(t, await rig.callTool(at, admin, 'get-labels', { key: 'env' }), { labels: Array }, 'those that run go on')
  await restart(0, next)
  await restart(1, later)
  await t.rejects(restart(2), {
    message: new RegExp(
      `"MCP_STATE_URL: this program is too old for the database at \\S+, whose schema ${LATER.number} needs a program that knows schema ${NEXT.number}; this one knows ${NOW}"`,
    ),
  })
  await rig.replicas[2]!.start({}, later)
})
