/**
 * Calls that wait for a person, at three replicas that are killed (SIGKILL) at each step of the question and of the run: nothing runs twice, and
 * no approval is lost that was told as given. The page of the person is a desk on the same state, in the process of the test.
 * `REPLICA_KILLS=200 npm test -- --timeout=3600 test/postgres/approvals.edge.ts` for a long run; `REPLICA_STATE=file` for one file.
 */
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { composeAuthenticated } from '../../composition/compose-authenticated.js'
import { readConfig } from '../../config.js'
import type { AskedApproval } from '../../schemas/approvals.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { tools } from '../../tools/index.js'
import { GROUP_OF } from '../edge/support/authenticated-world.js'
import type { Json } from '../edge/support/call-tool.js'
import { answerOf, countChanges } from './confirmed-changes.js'
import { killAt, STEPS } from './kill-at.js'
import { startReplicas } from './replicas.js'
import { stateEngine } from './state-engine.js'

const KILLS = Number(process.env.REPLICA_KILLS ?? 26)
const REPEATS = 100
const SEVERAL_HOURS = 20 * 3600
const TOOL = 'provision-policy'
const BY_PERSON = { MCP_APPROVAL: 'page', MCP_OAUTH_CLIENT_ID: 'pages', MCP_APPROVAL_TTL_SECONDS: '86400' }

async function start(t: Parameters<typeof startReplicas>[0]) {
  const replicas = await startReplicas(t, {
    postgres: await stateEngine(t),
    env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '0', ...BY_PERSON },
  })
  const { world, database } = replicas
  const env = {
    ...world.env,
    ...BY_PERSON,
    ...(database && { MCP_KEYSTORE_PATH: undefined, MCP_STATE_URL: database.url }),
  }
  const config = readConfig('http', env, { host: '127.0.0.1', port: 0 }) as PerUserConfig
  const auditStream = new PassThrough().resume()
  const composed = await composeAuthenticated(config, { tools, log: pino({ level: 'silent' }), auditStream })
  t.teardown(() => composed.close())
  const exp = Math.floor(Date.now() / 1000) + SEVERAL_HOURS
  const admin = await world.tokenOf('admin', 'admin', { exp })
  await replicas.callTool(null, admin, 'register-pce-credentials', world.pce.registration)
  const { desk } = composed.approvals!
  const by = { iss: config.oauth.issuer, sub: 'admin', groups: [GROUP_OF.admin], hasGroupsOverage: false }
  return {
    replicas,
    changes: countChanges(replicas, admin),
    call: (replica: number | null, args: object): Promise<Json> =>
      answerOf(replicas.callTool(replica, admin, TOOL, args)),
    decide: async (id: string): Promise<AskedApproval> =>
      (await desk.decide(id, { verdict: 'approved', by }, { requestId: 'page' })).approval,
    stateOf: async (id: string) => (await desk.find(id))?.state,
  }
}

t.test(`of ${REPEATS} repeats at once over three replicas after one approval one runs`, async (t) => {
  const { changes, call, decide, stateOf } = await start(t)
  const args = await changes.draft('repeated by everybody')
  const asked = await call(0, args)
  await decide(asked.approval_id)
  const answers = await Promise.all(Array.from({ length: REPEATS }, (_, n) => call(n % 4 === 3 ? null : n % 4, args)))
  t.equal(answers.filter(({ version }) => typeof version === 'number').length, 1)
  t.equal(changes.timesAtPce('repeated by everybody'), 1)
  t.equal(await stateOf(asked.approval_id), 'used')
})

t.test(
  `runs nothing twice and loses no approval when killed ${KILLS} times`,
  { timeout: 120_000 + KILLS * 10_000 },
  async (t) => {
    const { replicas, changes, call, decide, stateOf } = await start(t)
    const count = replicas.replicas.length
    const tally: Record<string, number> = {}
    const note = (what: string) => (tally[what] = (tally[what] ?? 0) + 1)

    for (let kills = 0, round = 0; kills < KILLS; round++) {
      const step = STEPS[round % STEPS.length]!
      const names = replicas.replicas.map((_, index) => `round ${round}, replica ${index}`)
      // One replica dies while it asks, the others while they run what was approved.
      const prepared = await Promise.all(
        names.map(async (name, index) => {
          const args = await changes.draft(name)
          const isAsking = (round + index) % count === 0
          if (isAsking) return { args, id: undefined }
          const { approval_id: id } = await call(index, args)
          const given = await decide(id)
          if (given.state !== 'approved') t.fail(`${name}: ${given.state}`)
          return { args, id: id as string }
        }),
      )
      const outcomes: string[][] = names.map(() => [])
      const run = async (replica: number, n: number) => {
        const answer = await call(replica, prepared[n]!.args)
        outcomes[n]!.push(
          answer === null ? 'no answer' : typeof answer.version === 'number' ? 'ran' : String(answer.error),
        )
      }
      await Promise.all(
        names.map(async (_, n) => {
          const isReached = await killAt(replicas, n, step, async () => {
            await run(n, n)
            await run((n + 1) % count, n)
          })
          note(`${prepared[n]!.id === undefined ? 'asking' : 'running'} ${isReached ? 'killed' : 'done before'}`)
          kills++
        }),
      )
      await Promise.all(replicas.replicas.map((replica) => replica.start()))

      for (const [n, name] of names.entries()) {
        const { args, id } = prepared[n]!
        const seen = outcomes[n]!
        const before = changes.timesAtPce(name)
        const told = seen.filter((outcome) => outcome === 'ran').length
        if (told > 1 || before > 1 || told > before) t.fail(`${name}: ${seen.join()}, ${before} times at the PCE`)
        if (id === undefined) {
          if (before !== 0) t.fail(`${name}: ran unasked`)
          const asked = await call(null, args)
          if (!['confirm_required', 'approval_pending'].includes(asked.error))
            t.fail(`${name}: ${JSON.stringify(asked)}`)
          await decide(asked.approval_id)
          if (typeof (await call(null, args)).version !== 'number') t.fail(`${name}: did not run once it was approved`)
          note('asked, and ran')
        } else {
          const state = await stateOf(id)
          if (state !== 'used' && state !== 'approved') t.fail(`${name}: an approval that was given is ${state}`)
          if (before === 1 && state !== 'used') t.fail(`${name}: ran, and its approval is ${state}`)
          // Used before the first write: where the replica died in between, it did not run and is asked anew.
          const late = await call(null, args)
          if (state === 'approved' && typeof late.version !== 'number') t.fail(`${name}: lost: ${JSON.stringify(late)}`)
          if (state === 'used' && late.error === undefined) t.fail(`${name}: ran again`)
          note(before === 1 ? 'ran' : state === 'used' ? 'used, did not run' : 'still approved, and ran')
        }
        if (changes.timesAtPce(name) > 1) t.fail(`${name}: twice at the PCE`)
      }
    }
    console.error(JSON.stringify(tally))
    const used = replicas
      .auditEntries()
      .filter(({ decision, approval }) => decision === 'allowed' && approval === 'used')
    t.equal(new Set(used.map(({ approval_id: id }) => id)).size, used.length, 'no approval let two calls run')
  },
)
