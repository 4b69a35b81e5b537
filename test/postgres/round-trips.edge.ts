/**
 * What a call costs at the database: at most one round trip before it runs and one after it, and one before each change that it
 * sends, which asks whether the access of the caller was revoked (D282). A confirmed call has two more: its token is claimed, and
 * held against revocations.
 */
import t from 'tap'
import { post } from '../edge/support/call-tool.js'
import { countChanges, type Change } from './confirmed-changes.js'
import { startReplicas } from './replicas.js'
import { startPostgres } from './start-postgres.js'

const CALLS = 20
/** What the replica says by itself in the meantime; fewer than one a call. */
const BY_ITSELF = 12

t.test('round trips', async (t) => {
  const postgres = await startPostgres(t)
  const rig = await startReplicas(t, {
    postgres,
    count: 1,
    env: { MCP_RATE_LIMIT_PER_MINUTE: '6000', MCP_CONFIRM_RATE_PER_MINUTE: '600', MCP_REFUSED_TOKENS_PER_MINUTE: '0' },
  })
  const { world, callTool } = rig
  const { proxy, target } = rig.replicas[0]!
  const admin = await world.tokenOf('admin')
  await callTool(0, admin, 'register-pce-credentials', world.pce.registration)

  /** Round trips before the PCE hears of each of the calls, and in all, on average and rounded down. */
  async function measure(run: (n: number) => Promise<unknown>, isIt: (method: string, path: string) => boolean) {
    let before = 0
    let all = 0
    for (let n = 0; n < CALLS; n++) {
      const hold = world.pce.hold(({ method, path }) => isIt(method, path))
      proxy.clearCounts()
      const done = run(n)
      await Promise.race([hold.reached, done])
      before += proxy.counts.roundTrips
      hold.release()
      await done
      // What comes after the answer is counted with the next one's beginning.
      await post(target, null, {})
      all += proxy.counts.roundTrips
    }
    return { before, all }
  }

  const read = await measure(
    () => callTool(0, admin, 'get-labels', { key: 'env' }),
    () => true,
  )
  console.error(`a call that reads: ${JSON.stringify(read)} in ${CALLS}`)
  t.ok(read.before <= CALLS + BY_ITSELF && read.all <= 2 * CALLS + BY_ITSELF, JSON.stringify(read))

  const write = await measure(
    (n) => callTool(0, admin, 'create-label', { key: 'app', value: `app-${n}` }),
    () => true,
  )
  console.error(`a call that changes: ${JSON.stringify(write)} in ${CALLS}`)
  t.ok(write.before <= CALLS + BY_ITSELF && write.all <= 3 * CALLS + BY_ITSELF, JSON.stringify(write))

  const changes = countChanges(rig, admin)
  const prepared: Change[] = []
  for (let n = 0; n < CALLS; n++) prepared.push(await changes.confirmOne(0, `change ${n}`))
  const confirmed = await measure(
    (n) => changes.redeem(0, prepared[n]!),
    (method, path) => method === 'POST' && path.endsWith('/sec_policy'),
  )
  t.ok(prepared.every(({ outcomes }) => outcomes[0] === 'ran'))
  console.error(`a confirmed call: ${JSON.stringify(confirmed)} in ${CALLS}`)
  t.ok(confirmed.before <= 4 * CALLS + BY_ITSELF && confirmed.all <= 5 * CALLS + BY_ITSELF, JSON.stringify(confirmed))

  proxy.clearCounts()
  for (let n = 0; n < CALLS; n++) {
    t.equal((await post(target, `${admin}x`, {})).status, 401)
    t.equal((await post(target, null, {})).status, 401)
  }
  t.ok(proxy.counts.roundTrips <= BY_ITSELF, `refused tokens: ${proxy.counts.statements.join('; ')}`)
})
