/**
 * What happens to the database under three replicas with calls running: nothing runs twice, nothing acknowledged is lost, no call hangs, and
 * all of it comes back by itself. `REPLICA_PROOF=full npm test -- --timeout=1200 test/postgres/database.edge.ts` restarts it 20 times, and
 * pauses it for 30 s.
 */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { partial } from '../partial.js'
import { found } from '../edge/support/within.js'
import { type Json, mintFor } from '../edge/support/call-tool.js'
import { underLoad, UNAVAILABLE } from './load.js'
import { allNotice, allReady, type Replica, startReplicas } from './replicas.js'
import { startPostgres } from './start-postgres.js'

const IS_FULL = process.env.REPLICA_PROOF === 'full'
const RESTARTS = IS_FULL ? 20 : 4
const PAUSE_MS = IS_FULL ? 30_000 : 8000
const RESETS = 20
const SLOW_MS = 500
const DISK_BYTES = 64 << 20
/** So slow that with two connections most of the crowd waits longer than anybody may for one. */
const CROWDED_MS = 1200
const CROWD = 24

const show = (what: string, tally: object) => console.error(`${what}: ${JSON.stringify(tally)}`)

t.test(`restarted ${RESTARTS} times`, async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres })
  const tally = await underLoad(
    t,
    replicas,
    async (more) => {
      for (let n = 0; n < RESTARTS; n++) {
        if (n % 3 === 2) {
          await postgres.kill9()
          await postgres.start()
        } else await postgres.restart(n % 3 === 0 ? 'fast' : 'immediate')
        // /readyz may not have noticed yet; calls have to succeed before the next one.
        await allReady(replicas)
        await more()
      }
    },
    { allowed: UNAVAILABLE },
  )
  show('restarted', tally)
})

t.test(`paused for ${PAUSE_MS / 1000} s`, async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres })
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      postgres.pause()
      await Promise.all([wait(PAUSE_MS), allNotice(t, replicas)])
      postgres.resume()
    },
    { allowed: UNAVAILABLE },
  )
  show('paused', tally)
})

t.test('its disk is full', async (t) => {
  const postgres = await startPostgres(t, { diskBytes: DISK_BYTES })
  const replicas = await startReplicas(t, { postgres })
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      postgres.fillDisk()
      // What is at hand of the log is soon used up; now it is.
      await postgres.query('SELECT pg_switch_wal()').catch(() => {})
      await allNotice(t, replicas)
      await postgres.freeDisk()
    },
    { allowed: UNAVAILABLE },
  )
  show('full', tally)
})

t.test('connections reset, before and after what they asked for', async (t) => {
  const postgres = await startPostgres(t)
  // A place whose answer was lost stays taken for a while, and how many are lost depends on the speed of the machine.
  const replicas = await startReplicas(t, { postgres, env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '1000' } })
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      for (let n = 0; n < RESETS; n++)
        for (const { proxy } of replicas.replicas) {
          if (n % 3 === 2) proxy.resetAll()
          else proxy.resetAt(1 + (n % 5), { delivered: n % 3 === 1 })
          await wait(100)
        }
    },
    { allowed: UNAVAILABLE },
  )
  show('reset', tally)
})

t.test(`slow: ${SLOW_MS} ms for each answer`, async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres })
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      for (const { proxy } of replicas.replicas) proxy.delay(SLOW_MS / 2)
      await wait(10_000)
      for (const { readiness } of replicas.replicas) t.equal((await readiness()).status, 200)
      for (const { proxy } of replicas.replicas) proxy.delay(0)
    },
    { mayLose: false },
  )
  show('slow', tally)
})

t.test('a crowd that waits for connections is no outage', async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres, count: 1, env: { MCP_STATE_POOL_SIZE: '2' } })
  const { world, callTool } = replicas
  const [{ proxy, program, readiness }] = replicas.replicas as [Replica]
  const alice = await world.tokenOf('alice')
  await callTool(0, alice, 'register-pce-credentials', world.pce.registration)
  proxy.delay(CROWDED_MS / 2)
  const label = (n: number) => callTool(0, alice, 'create-label', { key: 'app', value: `crowd-${n}` })
  const calls = Promise.allSettled(Array.from({ length: CROWD }, (_, n) => label(n)))
  let isOver = false
  void calls.finally(() => (isOver = true))
  const statuses = new Set<number>()
  while (!isOver) statuses.add((await readiness()).status)
  t.same([...statuses], [200], 'while they wait')
  const answers = await calls
  const made = answers.filter(({ status, value }: PromiseSettledResult<Json> & { value?: Json }) => {
    return status === 'fulfilled' && value?.label !== undefined
  })
  t.ok(made.length > 0 && made.length < CROWD, `${made.length} of ${CROWD} had their turn`)
  t.equal((await readiness()).status, 200)
  t.notOk(/state database .* does not answer/.test(program().output.stderr), 'and nothing is said of an outage')
})

t.test('comes back refusing logins: it is asked again', async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres, count: 1 })
  const admit = (isOpen: boolean) =>
    postgres.query(`ALTER DATABASE ${replicas.database!.name} ALLOW_CONNECTIONS ${isOpen}`)
  const refusals = () => postgres.log().match(/is not currently accepting connections/g)?.length ?? 0
  await admit(false)
  await postgres.restart('immediate')
  await allNotice(t, replicas)
  await found(() => refusals() > 2, 'it is asked more than once')
  await admit(true)
  await allReady(replicas)
  t.notMatch(replicas.replicas[0]!.program().output.stderr, /secretKey/, 'no log has the key of a connection')
})

t.test('gone: what needs no state goes on', async (t) => {
  const postgres = await startPostgres(t)
  const replicas = await startReplicas(t, { postgres, mode: 'shared' })
  const { world, callTool } = replicas
  const alice = await world.tokenOf('alice')
  await callTool(null, alice, 'create-iplist', { name: 'before', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
  const token = await mintFor(replicas.front, alice, 'provision-policy')
  await postgres.stop('immediate')
  await allNotice(t, replicas)
  for (const at of [null, 0, 1, 2]) {
    partial(t, await callTool(at, alice, 'get-labels', { key: 'env' }), { labels: Array })
    partial(t, await callTool(at, alice, 'create-label', { key: 'app', value: 'unseen' }), {
      error: 'state_unavailable',
    })
    const meta = { confirm_token: token }
    partial(t, await callTool(at, alice, 'provision-policy', {}, { meta }), { error: 'state_unavailable' })
  }
  await postgres.start()
  await allReady(replicas)
  partial(t, await callTool(null, alice, 'provision-policy', {}, { meta: { confirm_token: token } }), {
    version: Number,
  })
})
