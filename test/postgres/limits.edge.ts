/** Limits per caller hold over three replicas, and a replica that died keeps no places. */
import t from 'tap'
import { post } from '../edge/support/call-tool.js'
import { found, within } from '../edge/support/within.js'
import { answerOf } from './confirmed-changes.js'
import { startReplicas } from './replicas.js'
import { startPostgres } from './start-postgres.js'

const PER_MINUTE = 20
const TOKENS_PER_MINUTE = 6
const AT_A_TIME = 4
const FREE_AGAIN_SECONDS = 60

const tallyOf = (values: readonly unknown[]) => {
  const tally: Record<string, number> = {}
  for (const value of values) tally[String(value)] = (tally[String(value)] ?? 0) + 1
  return tally
}

t.test('requests and confirm tokens a minute', async (t) => {
  const postgres = await startPostgres(t)
  const { replicas, world, callTool, confirm } = await startReplicas(t, {
    postgres,
    env: {
      MCP_RATE_LIMIT_PER_MINUTE: String(PER_MINUTE),
      MCP_CONFIRM_RATE_PER_MINUTE: String(TOKENS_PER_MINUTE),
    },
  })
  const alice = await world.tokenOf('alice')
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const answers = await Promise.all(
    Array.from({ length: 3 * PER_MINUTE }, (_, n) => post(replicas[n % 3]!.target, alice, ping)),
  )
  t.same(tallyOf(answers.map(({ status }) => status)), { 200: PER_MINUTE, 429: 2 * PER_MINUTE })
  const bob = await world.tokenOf('bob')
  t.equal((await post(replicas[0]!.target, bob, ping)).status, 200, 'nobody else is concerned')

  const [carol, dave] = [await world.tokenOf('carol'), await world.tokenOf('dave')]
  const bodies = await Promise.all(
    [carol, dave].map(async (token) => {
      await callTool(0, token, 'register-pce-credentials', world.pce.registration)
      return (await callTool(1, token, 'provision-policy')).confirm.body as unknown
    }),
  )
  const minted = await Promise.all(
    Array.from({ length: 2 * TOKENS_PER_MINUTE }, (_, n) => confirm(n % 3, carol, bodies[0])),
  )
  t.same(tallyOf(minted.map(({ status }) => status)), { 200: TOKENS_PER_MINUTE, 429: TOKENS_PER_MINUTE })
  t.equal((await confirm(0, dave, bodies[1])).status, 200, 'nobody else is concerned')
})

t.test('requests at a time, and those of a replica that dies', async (t) => {
  const postgres = await startPostgres(t)
  const { replicas, world, callTool, database } = await startReplicas(t, {
    postgres,
    env: { MCP_MAX_IN_FLIGHT_PER_CALLER: String(AT_A_TIME) },
  })
  const alice = await world.tokenOf('alice')
  await callTool(null, alice, 'register-pce-credentials', world.pce.registration)
  const read = (at: number) => answerOf(callTool(at, alice, 'get-labels', { key: 'env' }))
  // Each replica proves the PCE to itself, once for all calls that wait for it.
  for (const at of [0, 1, 2]) await read(at)
  const isFree = async (at: number) => {
    const { status } = await post(replicas[at]!.target, alice, { jsonrpc: '2.0', id: 1, method: 'ping' })
    return status === 200
  }

  /** As many as may run, waiting for the PCE. A place is given back after its answer, and another replica may be faster. */
  async function occupy(places: readonly number[]) {
    await found(async () => (await database!.query('SELECT 1 FROM svc_mcp.places')).length === 0, 'all places are free')
    let arrived = 0
    let allThere = () => {}
    const reached = new Promise<void>((resolve) => (allThere = resolve))
    const held = world.pce.hold(() => {
      if (++arrived === places.length) allThere()
      return true
    })
    const running = Promise.all(places.map(read))
    await within(reached, 'all calls wait for the PCE')
    return { running, release: () => held.release() }
  }

  const spread = await occupy([0, 0, 1, 2])
  t.same(await Promise.all([0, 1, 2].map(isFree)), [false, false, false])
  spread.release()
  t.same(
    (await spread.running).map((answer) => Array.isArray(answer.labels)),
    [true, true, true, true],
  )
  t.equal(await isFree(2), true)

  const doomed = await occupy([0, 0, 0, 0])
  await replicas[0]!.kill9()
  const left = 'SELECT id FROM svc_mcp.replicas WHERE id IN (SELECT replica FROM svc_mcp.places) AND expires_at'
  t.same(await database!.query(`${left} > clock_timestamp() + interval '${FREE_AGAIN_SECONDS} seconds'`), [])
  const [dead, ...others] = await database!.query(`${left} IS NOT NULL`)
  t.same(others, [])
  doomed.release()
  t.same(await doomed.running, [null, null, null, null])
  // The rest of the minute is taken from it; again if its last sign of life arrives only now.
  await found(async () => {
    await database!.query('UPDATE svc_mcp.replicas SET expires_at = clock_timestamp() WHERE id = $1', [dead!['id']])
    return isFree(1)
  }, 'the places of the dead replica are free')
})
