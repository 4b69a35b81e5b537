/**
 * Three replicas behind nginx that are killed (SIGKILL) at each step of registration, minting and redemption, and one token that everybody
 * redeems at once. `REPLICA_KILLS=300 npm test -- --timeout=3600 test/postgres/kills.edge.ts` for a long run.
 */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import type { Json } from '../edge/support/call-tool.js'
import { answerOf, countChanges, type Change } from './confirmed-changes.js'
import { killAt, STEPS } from './kill-at.js'
import { startReplicas } from './replicas.js'
import { stateEngine } from './state-engine.js'

const KILLS = Number(process.env.REPLICA_KILLS ?? 39)
const REDEMPTIONS = 100
const SEVERAL_HOURS = 20 * 3600
const OPERATIONS = ['register', 'mint', 'redeem'] as const
type Operation = (typeof OPERATIONS)[number]

t.test(`of ${REDEMPTIONS} redemptions at once over three replicas one runs`, async (t) => {
  const replicas = await startReplicas(t, {
    postgres: await stateEngine(t),
    // Nobody is to wait so long for a connection that it is refused for that.
    env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '0', MCP_STATE_POOL_SIZE: '20' },
  })
  const { world } = replicas
  const admin = await world.tokenOf('admin')
  partial(t, await replicas.callTool(null, admin, 'register-pce-credentials', world.pce.registration), { status: 'ok' })
  const changes = countChanges(replicas, admin)
  const change = await changes.confirmOne(null, 'redeemed by everybody')
  await Promise.all(Array.from({ length: REDEMPTIONS }, (_, n) => changes.redeem(n % 4 === 3 ? null : n % 4, change)))
  const tally: Record<string, number> = {}
  for (const outcome of change.outcomes) tally[String(outcome)] = (tally[String(outcome)] ?? 0) + 1
  t.same(tally, { ran: 1, confirm_token_replay: REDEMPTIONS - 1 })
  t.equal(changes.timesAtPce('redeemed by everybody'), 1)
})

t.test(`loses nothing when killed ${KILLS} times`, async (t) => {
  const replicas = await startReplicas(t, {
    postgres: await stateEngine(t),
    // Those who died in the last minute have left theirs.
    env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '1000' },
  })
  const { world, callTool, confirm } = replicas
  const exp = Math.floor(Date.now() / 1000) + SEVERAL_HOURS
  const admin = await world.tokenOf('admin', 'admin', { exp })
  await replicas.callTool(null, admin, 'register-pce-credentials', world.pce.registration)
  const changes = countChanges(replicas, admin)
  const tally: Record<string, number> = {}
  const count = (what: string) => (tally[what] = (tally[what] ?? 0) + 1)

  let kills = 0
  for (let round = 0; kills < KILLS; round++) {
    // In every round each replica does something else, and dies at the same step of it; 13 rounds reach each step of each operation.
    const rounds = replicas.replicas.map((_, index) => ({
      index,
      operation: OPERATIONS[(round + index) % OPERATIONS.length]!,
      step: STEPS[round % STEPS.length]!,
    }))
    const prepared = await Promise.all(
      rounds.map(({ index, operation }) => prepare(index, operation, `round ${round}, replica ${index}`)),
    )
    await Promise.all(
      rounds.map(async ({ index, step, operation }, n) => {
        const reached = await killAt(replicas, index, step, () => prepared[n]!.run())
        count(`${operation} ${reached ? 'killed' : 'done before'}`)
        kills++
      }),
    )
    await Promise.all(replicas.replicas.map((replica) => replica.start()))
    for (const one of prepared) count(await one.check(t))
  }
  console.error(JSON.stringify(tally))
  const allowed = replicas
    .auditEntries()
    .filter(({ decision, tool, route }) => decision === 'allowed' && tool === 'provision-policy' && route === '/mcp')
  t.equal(new Set(allowed.map(({ confirm_jti: jti }) => jti)).size, allowed.length, 'no token was let through twice')

  /** What is to be killed, and what is looked at once all replicas are back. */
  async function prepare(index: number, operation: Operation, name: string) {
    if (operation === 'register') {
      const token = await world.tokenOf(name)
      let isAcknowledged = false
      return {
        async run() {
          const registration = { ...world.pce.registration, label: name }
          const answer = await answerOf(callTool(index, token, 'register-pce-credentials', registration))
          if (answer !== null && answer.status !== 'ok') throw new Error(`${name}: ${JSON.stringify(answer)}`)
          isAcknowledged = answer !== null
        },
        async check(t: Test) {
          const statuses: Json[] = await Promise.all(
            replicas.replicas.map((_, at) => callTool(at, token, 'check-pce-credentials-status')),
          )
          const isThere = statuses.every(({ registered, label }) => registered === true && label === name)
          const isNowhere = statuses.every(({ registered }) => registered === false)
          if (!isThere && (isAcknowledged || !isNowhere)) t.fail(`${name}: ${JSON.stringify(statuses)}`)
          return isThere ? 'registered' : 'not registered'
        },
      }
    }
    if (operation === 'redeem') {
      const change = await changes.confirmOne(index, name)
      return {
        async run() {
          await changes.redeem(index, change)
          // Whoever lost the answer tries elsewhere, while the first replica is dead or dying.
          await changes.redeem((index + 1) % replicas.replicas.length, change)
        },
        check: (t: Test) => changes.judge(t, change),
      }
    }
    const args = await changes.draft(name)
    let minted: string | null = null
    let body: unknown
    return {
      async run() {
        const asked = await answerOf(callTool(index, admin, 'provision-policy', args))
        body = asked?.confirm.body
        const answer = body === undefined ? null : await answerOf(confirm(index, admin, body).then(({ json }) => json))
        minted = answer?.confirm_token ?? null
      },
      async check(t: Test) {
        body ??= (await callTool(null, admin, 'provision-policy', args)).confirm.body
        // What was shown may have died with the replica, but never in the middle.
        const token = minted ?? (await confirm(null, admin, body)).json.confirm_token
        if (typeof token !== 'string') t.fail(`${name}: nothing minted`)
        const change: Change = { args, token, outcomes: [] }
        const outcome = await changes.redeem(null, change)
        if (outcome !== 'ran')
          t.fail(`${name}: ${minted === null ? 'minted anew' : 'acknowledged'}, and then ${outcome}`)
        await changes.judge(t, change)
        return 'minted'
      },
    }
  }
})
