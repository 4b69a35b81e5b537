/**
 * Calls that wait for a person, at replicas that share one state on either engine: each step at another one that has just been started, and
 * replicas that are killed (SIGKILL) at each step of question, page, decision and run. Nothing runs twice, and no approval is lost that
 * was shown as given.
 */
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import type { Test } from 'tap'
import { composeAuthenticated } from '../../programs/composition/compose-authenticated.js'
import { readConfig } from '../../config/index.js'
import type { AskedApproval } from '../../schemas/approvals.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools } from '../../tools/index.js'
import { GROUP_OF } from '../edge/support/authenticated-world.js'
import type { Json } from '../edge/support/call-tool.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { partial } from '../partial.js'
import { createApprover } from './approver.js'
import { answerOf, countChanges } from './confirmed-changes.js'
import { killAt, statements, STEPS } from './kill-at.js'
import { startReplicas } from './replicas.js'
import type { Postgres } from './start-postgres.js'

const REPEATS = 100
const SEVERAL_HOURS = 20 * 3600
const TOOL = 'provision-policy'
/**
 * Page: session, limits, request. Decision: the same, the request once more, the write, and what stands then. One more than there are, so that
 * a replica dies with the answer just sent; from the end, so that few rounds reach that and the write.
 */
const DECIDING = statements(10).reverse()
const ROLES = ['asking', 'deciding', 'running'] as const

/** `postgres`: where the state is; without it in one SQLite file. */
async function start(t: Test, postgres: Postgres | undefined) {
  const idp = await startIdentityProvider(t, {
    people: { admin: { groups: [GROUP_OF.admin] } },
    tokenSeconds: SEVERAL_HOURS,
  })
  const { clientId, clientSecret } = idp.allowRedirects([])
  const byPerson = {
    MCP_APPROVAL: 'page',
    MCP_OAUTH_CLIENT_ID: clientId,
    MCP_OAUTH_CLIENT_SECRET: clientSecret,
    MCP_APPROVAL_TTL_SECONDS: '86400',
  }
  const replicas = await startReplicas(t, {
    postgres,
    world: { idp },
    // Nobody is to wait so long for a connection that it is refused for that.
    env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '0', ...(postgres && { MCP_STATE_POOL_SIZE: '20' }), ...byPerson },
  })
  const { world, database } = replicas
  const publicUrl = world.env.MCP_PUBLIC_URL!
  idp.allowRedirects([`${publicUrl}/setup/callback`])
  const env = {
    ...world.env,
    ...byPerson,
    ...(database && { MCP_KEYSTORE_PATH: undefined, MCP_STATE_URL: database.url }),
  }
  const config = readConfig('http', env, { host: '127.0.0.1', port: 0 }) as PerUserConfig
  const auditStream = new PassThrough().resume()
  const composed = await composeAuthenticated(config, {
    tools: catalogueOf(tools),
    log: pino({ level: 'silent' }),
    auditStream,
  })
  t.teardown(() => composed.close())
  const { accessToken: admin } = await idp.tokensFor('admin', { resource: publicUrl })
  await replicas.callTool(null, admin, 'register-pce-credentials', world.pce.registration)
  const { desk } = composed.approvals!
  const by = { iss: config.oauth.issuer, sub: 'admin', groups: [GROUP_OF.admin], hasGroupsOverage: false }
  const targetOf = (replica: number) => replicas.replicas[replica]!.target
  return {
    replicas,
    changes: countChanges(replicas, admin),
    call: (replica: number | null, args: object): Promise<Json> =>
      answerOf(replicas.callTool(replica, admin, TOOL, args)),
    /** In the process of the test. */
    decide: async (id: string): Promise<AskedApproval> =>
      (await desk.decide(id, { verdict: 'approved', by }, { requestId: 'page' })).approval,
    find: (id: string) => desk.find(id),
    stateOf: async (id: string) => (await desk.find(id))?.state,
    approver: () => createApprover({ publicUrl, targetOf }, idp, 'admin'),
    /** What the replicas have written about a request. */
    entriesOf: (id: string) => replicas.auditEntries().filter(({ approval_id: of }) => of === id),
  }
}

type Service = Awaited<ReturnType<typeof start>>

/** `startEngine`: none for one SQLite file. */
export function proveApprovals(t: Test, kills: number, startEngine: (t: Test) => Promise<Postgres | undefined>): void {
  t.test(`of ${REPEATS} repeats at once over three replicas after one approval one runs`, async (t) => {
    const { changes, call, decide, stateOf } = await start(t, await startEngine(t))
    const args = await changes.draft('repeated by everybody')
    const asked = await call(0, args)
    await decide(asked.approval_id)
    const answers = await Promise.all(Array.from({ length: REPEATS }, (_, n) => call(n % 4 === 3 ? null : n % 4, args)))
    t.equal(answers.filter(({ version }) => typeof version === 'number').length, 1)
    t.equal(changes.timesAtPce('repeated by everybody'), 1)
    t.equal(await stateOf(asked.approval_id), 'used')
  })

  t.test('each step at another replica that has just been started: one run', async (t) =>
    proveRestarts(t, await start(t, await startEngine(t))),
  )

  t.test(`runs nothing twice and loses no approval when killed ${kills} times`, async (t) =>
    proveKills(t, await start(t, await startEngine(t)), kills),
  )
}

async function proveRestarts(t: Test, { replicas, changes, call, approver, entriesOf }: Service): Promise<void> {
  const args = await changes.draft('from step to step')
  const person = approver()
  let running = replicas.replicas
  let steps = 0
  /** The replica whose turn it is: a process that has just been started, and the only one. */
  async function next(): Promise<number> {
    const codes = await Promise.all(running.map((replica) => replica.stop()))
    t.ok(
      codes.every((code) => code === 0),
      codes.join(),
    )
    const turn = steps++ % replicas.replicas.length
    running = [replicas.replicas[turn]!]
    await running[0]!.start()
    return turn
  }
  const asked = await call(await next(), args)
  partial(t, asked, { error: 'confirm_required', approval_id: String })
  const id: string = asked.approval_id
  partial(t, await call(await next(), args), { error: 'approval_pending', approval_id: id })
  const back = await person.beginLogin(await next(), id)
  const landed = await person.finishLogin(await next(), back)
  t.match(landed.body, /from step to step[^]*Approve this call/, 'the login leads back to the request')
  const page = (await person.look(await next(), id))!
  partial(t, page, { status: 200 })
  const answer = (await person.press(await next(), page, id, 'approve'))!
  partial(t, { status: answer.status, to: answer.headers.get('location') }, { status: 303, to: `/approve/${id}` })
  t.match((await person.look(await next(), id))!.body, /Approved by[^]*may run once/)
  t.equal(changes.timesAtPce('from step to step'), 0)
  partial(t, await call(await next(), args), { version: Number })
  t.equal(changes.timesAtPce('from step to step'), 1)
  t.match((await person.look(await next(), id))!.body, /Approved and used/)
  partial(t, await call(await next(), args), { approval_id: undefined, version: undefined, error: String })
  t.equal(changes.timesAtPce('from step to step'), 1)
  t.same(
    entriesOf(id)
      .filter(({ phase, approval }) => phase === 'decision' && approval !== 'shown')
      .map(({ approval }) => approval)
      .sort(),
    ['approved', 'asked', 'used'],
  )
}

/** One change of a round, with what becomes of it while its replica is killed and what must hold once that is back. */
interface Victim {
  step: (round: number) => (typeof STEPS)[number]
  usualMs?: () => number
  run: () => Promise<void>
  /** What it came to. */
  check: () => Promise<string>
}

async function proveKills(t: Test, service: Service, kills: number): Promise<void> {
  const { replicas, changes, call, decide, find, stateOf, approver, entriesOf } = service
  const count = replicas.replicas.length
  const tally: Record<string, number> = {}
  const note = (what: string) => (tally[what] = (tally[what] ?? 0) + 1)
  const ran = (answer: Json) => typeof answer?.version === 'number'
  /** How long a page and a decision have taken of late. */
  let decidingMs = 100
  const stepOfCall = (round: number) => STEPS[round % STEPS.length]!

  async function runOnce(name: string, args: object): Promise<void> {
    if (!ran(await call(null, args))) t.fail(`${name}: did not run once it was approved`)
    if (ran(await call(null, args))) t.fail(`${name}: ran again`)
    if (changes.timesAtPce(name) !== 1) t.fail(`${name}: ${changes.timesAtPce(name)} times at the PCE`)
  }

  async function asking(replica: number, name: string): Promise<Victim> {
    const args = await changes.draft(name)
    return {
      step: stepOfCall,
      async run() {
        for (const at of [replica, (replica + 1) % count]) if (ran(await call(at, args))) t.fail(`${name}: ran unasked`)
      },
      async check() {
        if (changes.timesAtPce(name) !== 0) t.fail(`${name}: ran unasked`)
        const asked = await call(null, args)
        if (!['confirm_required', 'approval_pending'].includes(asked.error)) t.fail(`${name}: ${JSON.stringify(asked)}`)
        await decide(asked.approval_id)
        await runOnce(name, args)
        return 'asked, and ran'
      },
    }
  }

  async function deciding(replica: number, name: string): Promise<Victim> {
    const args = await changes.draft(name)
    const { approval_id: id } = (await call(replica, args)) as { approval_id: string }
    const person = approver()
    const next = (replica + 1) % count
    await person.finishLogin(next, await person.beginLogin(replica, id))
    let told: number | null = null
    async function press(at: number): Promise<number | null> {
      const begun = performance.now()
      const page = await person.look(at, id)
      if (page === null) return null
      if (page.status !== 200) t.fail(`${name}: the page is ${page.status}`)
      const answer = await person.press(at, page, id, 'approve')
      if (answer !== null && answer.status !== 303) t.fail(`${name}: the decision is answered ${answer.status}`)
      if (answer !== null) decidingMs = performance.now() - begun
      return answer?.status ?? null
    }
    return {
      step: (round) => DECIDING[round % DECIDING.length]!,
      // Others are at work as well meanwhile.
      usualMs: () => 3 * decidingMs,
      run: async () => void (told = await press(replica)),
      async check() {
        const found = await find(id)
        const isGiven = found?.state === 'approved' && found.decision?.by.sub === 'admin'
        const isOpen = found?.state === 'pending' && found.decision === null
        if (!isGiven && !isOpen) t.fail(`${name}: half a decision: ${JSON.stringify(found)}`)
        if (told === 303 && !isGiven) t.fail(`${name}: shown as given, and ${found?.state}`)
        const isAudited = entriesOf(id).some(({ approval, sub }) => approval === 'approved' && sub === 'admin')
        if (isGiven && !isAudited) t.fail(`${name}: given, and not in the audit log`)
        const page = await person.look(next, id)
        if (!(isGiven ? /Approved by/ : /Approve this call/).test(page!.body)) t.fail(`${name}: ${page!.body}`)
        if (isOpen && (await press(next)) !== 303) t.fail(`${name}: cannot be decided any more`)
        await runOnce(name, args)
        if ((await stateOf(id)) !== 'used') t.fail(`${name}: ran, and its approval is ${await stateOf(id)}`)
        return `decided, ${told === null ? 'no answer' : 'answered'}: ${isGiven ? 'given' : 'not given'}`
      },
    }
  }

  async function running(replica: number, name: string): Promise<Victim> {
    const args = await changes.draft(name)
    const { approval_id: id } = (await call(replica, args)) as { approval_id: string }
    const given = await decide(id)
    if (given.state !== 'approved') t.fail(`${name}: ${given.state}`)
    const outcomes: string[] = []
    return {
      step: stepOfCall,
      async run() {
        for (const at of [replica, (replica + 1) % count]) {
          const answer = await call(at, args)
          outcomes.push(answer === null ? 'no answer' : ran(answer) ? 'ran' : String(answer.error))
        }
      },
      async check() {
        const before = changes.timesAtPce(name)
        const told = outcomes.filter((outcome) => outcome === 'ran').length
        if (told > 1 || before > 1 || told > before) t.fail(`${name}: ${outcomes.join()}, ${before} times at the PCE`)
        const state = await stateOf(id)
        if (state !== 'used' && state !== 'approved') t.fail(`${name}: an approval that was given is ${state}`)
        if (before === 1 && state !== 'used') t.fail(`${name}: ran, and its approval is ${state}`)
        // Used before the first write: where the replica died in between, it did not run and is asked anew.
        const late = await call(null, args)
        if (state === 'approved' && !ran(late)) t.fail(`${name}: lost: ${JSON.stringify(late)}`)
        if (state === 'used' && late.error === undefined) t.fail(`${name}: ran again`)
        if (changes.timesAtPce(name) > 1) t.fail(`${name}: twice at the PCE`)
        return before === 1 ? 'ran' : state === 'used' ? 'used, did not run' : 'still approved, and ran'
      },
    }
  }

  const prepare = { asking, deciding, running }
  for (let killed = 0, round = 0; killed < kills; round++) {
    const victims = await Promise.all(
      replicas.replicas.map(async (_, index) => {
        const role = ROLES[(round + index) % ROLES.length]!
        return { role, index, ...(await prepare[role](index, `round ${round}, replica ${index}`)) }
      }),
    )
    await Promise.all(
      victims.map(async ({ role, index, step, run, usualMs }) => {
        const isReached = await killAt(replicas, index, step(round), run, usualMs?.())
        note(`${role} ${isReached ? 'killed' : 'done before'}`)
        killed++
      }),
    )
    await Promise.all(replicas.replicas.map((replica) => replica.start()))
    for (const { check } of victims) note(await check())
  }
  console.error(JSON.stringify(tally))
  const used = replicas.auditEntries().filter(({ decision, approval }) => decision === 'allowed' && approval === 'used')
  t.equal(new Set(used.map(({ approval_id: id }) => id)).size, used.length, 'no approval let two calls run')
}
