/**
 * A standby takes over while calls are running, and the address with it: nothing runs twice, nothing acknowledged is lost, no call hangs. The
 * standby is a synchronous one, as docs/operations.md asks for.
 */
import t from 'tap'
import { partial } from '../partial.js'
import { within } from '../edge/support/within.js'
import { underLoad, UNAVAILABLE } from './load.js'
import { pageStatements } from './page-statements.js'
import { allNotice, allReady, startReplicas } from './replicas.js'
import { startPostgres, startStandby } from './start-postgres.js'

/** As the page has them. */
const STATEMENTS = pageStatements().find(([first]) => first!.startsWith('ALTER SYSTEM'))!

const show = (what: string, tally: object) => console.error(`${what}: ${JSON.stringify(tally)}`)

t.test('the primary dies, and the address is there before its successor is', async (t) => {
  const primary = await startPostgres(t)
  const standby = await startStandby(t, primary, STATEMENTS)
  const replicas = await startReplicas(t, { postgres: primary })
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      await primary.kill9()
      for (const { proxy } of replicas.replicas) proxy.switchTo(standby)
      // It answers, but stands by.
      await allNotice(t, replicas)
      await standby.promote()
      await allReady(replicas)
    },
    { allowed: UNAVAILABLE },
  )
  show('died', tally)
})

t.test('the primary hangs, and comes back when another one is', async (t) => {
  const primary = await startPostgres(t)
  const standby = await startStandby(t, primary, STATEMENTS)
  const replicas = await startReplicas(t, { postgres: primary })
  const tally = await underLoad(
    t,
    replicas,
    async (more) => {
      primary.pause()
      await standby.promote()
      for (const { proxy } of replicas.replicas) proxy.switchTo(standby)
      await more()
      // It does what it was told before, and nobody hears of it.
      primary.resume()
      await more()
    },
    { allowed: UNAVAILABLE },
  )
  show('hung', tally)
})

t.test('without its standby nothing is acknowledged, and no call hangs', async (t) => {
  const primary = await startPostgres(t)
  const standby = await startStandby(t, primary, STATEMENTS)
  const replicas = await startReplicas(t, { postgres: primary, count: 1 })
  const { world, callTool } = replicas
  const register = async (sub: string) =>
    within(callTool(0, await world.tokenOf(sub), 'register-pce-credentials', world.pce.registration), 'an answer')
  partial(t, await register('ann'), { status: 'ok' })
  await standby.stop('immediate')
  partial(t, await register('bob'), { error: 'keystore_unavailable' })
  await allNotice(t, replicas)
  await standby.start()
  await allReady(replicas)
  partial(t, await register('bob'), { status: 'ok' })
})
