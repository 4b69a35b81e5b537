/**
 * Processes that share a state file and are killed (SIGKILL) in the middle of confirmed changes and registrations, again and again. The
 * promises: no token runs twice, what was acknowledged is not lost, a used token stays used, every change was announced in the audit log
 * before, and every line of that log can be read. `EDGE_KILLS=300 npm test -- --timeout=3600 test/edge/kill.edge.ts` for a long
 * run.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { createCaller } from '../pce-simulator/call-pce.js'
import { createWorld, type World } from './support/authenticated-world.js'
import { callTool, confirm, type Json } from './support/call-tool.js'
import type { Target } from './support/send-request.js'

const ROUNDS = Number(process.env.EDGE_KILLS ?? 6)
const NAMES = ['a', 'b'] as const
const TOKENS_PER_ROUND = 3
const PEOPLE_PER_ROUND = 4
/** Each registers anew every few rounds, so that nobody does more than five times a minute. */
const ROTORS = 12
/** Both are killed in every so many rounds, one of them in the others. */
const BOTH_EVERY = 4

interface Confirmed {
  args: { hrefs: string[]; change_description: string }
  token: string
  /** What the calls with this token have come to; null where the process died. */
  outcomes: (string | null)[]
}

type Serving = Awaited<ReturnType<World['serve']>>

t.test(`loses nothing when killed ${ROUNDS} times`, { timeout: 60_000 + ROUNDS * 20_000 }, async (t) => {
  const world = await createWorld(t)
  const { pce } = world
  const askPce = createCaller(pce.simulator)
  // Outlives the longest run.
  const admin = await world.tokenOf('admin', 'admin', { exp: Math.floor(Date.now() / 1000) + 20 * 3600 })
  const start = (name: string) =>
    world.serve({ env: { MCP_AUDIT_LOG_PATH: auditOf(world, name), MCP_LOG_LEVEL: 'silent' } })
  const serving: Record<string, Serving> = { a: await start('a'), b: await start('b') }
  const targets = () => NAMES.map((name) => serving[name]!.target)
  const either = () => targets()[Math.floor(Math.random() * NAMES.length)]!
  partial(t, await callTool(either(), admin, 'register-pce-credentials', pce.registration), { status: 'ok' })

  /** By description, how often the PCE made it active; with the request ids. */
  const provisioned = new Map<string, string[]>()
  const collect = () => {
    for (const { method, path, body, headers } of pce.simulator.requests.splice(0)) {
      if (method !== 'POST' || !path.endsWith('/sec_policy')) continue
      const description = (body as { update_description: string }).update_description
      provisioned.set(description, [...(provisioned.get(description) ?? []), String(headers['x-request-id'])])
    }
  }
  const tally = { ran: 0, lost: 0, unused: 0, registered: 0, removed: 0, unanswered: 0 }
  const rotors = new Map<string, { sent: number; acknowledged: number }>()
  let batchMs = 500

  for (let round = 0; round < ROUNDS; round++) {
    const confirmed = await Promise.all(
      Array.from({ length: TOKENS_PER_ROUND }, (_, n) => confirmOne(`round ${round}, change ${n}`)),
    )
    const leaver = `leaver-${round}`
    await register(leaver, 'to be removed')

    const begun = performance.now()
    const batch = [
      ...confirmed.flatMap((one) => targets().map((target) => redeem(target, one))),
      ...Array.from({ length: PEOPLE_PER_ROUND }, (_, n) => registerNew(`person-${round}-${n}`)),
      registerAgain(`rotor-${round % ROTORS}`),
      removeOne(leaver),
    ]
    const done = Promise.all(batch)
    const victims = round % BOTH_EVERY === 0 ? NAMES : [NAMES[round % 2]!]
    await new Promise((resolve) => setTimeout(resolve, Math.random() * batchMs))
    await Promise.all(victims.map((name) => serving[name]!.stop('SIGKILL')))
    const results = await done
    batchMs = batchMs * 0.8 + Math.min(2000, performance.now() - begun) * 0.2
    await Promise.all(victims.map(async (name) => (serving[name] = await start(name))))

    for (const one of confirmed) await judge(t, one)
    for (const check of results) await check(t)
  }
  collect()
  t.equal(
    [...provisioned.values()].flat().length,
    pce.simulator.state.policyVersion - 1,
    'nobody else made anything active',
  )

  for (const { stop } of Object.values(serving)) t.equal((await stop()).code, 0)
  const entries = NAMES.flatMap((name) => world.auditEntries(auditOf(world, name)))
  const allowed = entries.filter(
    ({ phase, decision, tool, route }) =>
      phase === 'decision' && decision === 'allowed' && tool === 'provision-policy' && route === '/mcp',
  )
  const announced = new Set(allowed.map(({ request_id: id }) => id))
  t.ok(
    [...provisioned.values()].flat().every((id) => announced.has(id)),
    'every change was in the audit log before',
  )
  t.equal(new Set(allowed.map(({ confirm_jti: jti }) => jti)).size, allowed.length, 'no token was let through twice')
  t.comment(JSON.stringify({ rounds: ROUNDS, ...tally, auditEntries: entries.length }))

  /** A draft of its own, and a token to make it active. */
  async function confirmOne(description: string): Promise<Confirmed> {
    const { body, status } = await askPce('POST', `/orgs/${pce.simulator.orgId}/sec_policy/draft/ip_lists`, {
      name: description,
      ip_ranges: [{ from_ip: '10.0.0.0/8' }],
    })
    if (status !== 201) throw new Error(`no draft: ${JSON.stringify(body)}`)
    const args = { hrefs: [(body as { href: string }).href], change_description: description }
    const asked = await callTool(either(), admin, 'provision-policy', args)
    const { json } = await confirm(either(), admin, asked.confirm.body)
    return { args, token: json.confirm_token, outcomes: [] }
  }

  async function redeem(target: Target, { args, token, outcomes }: Confirmed) {
    const answer = await orDead(callTool(target, admin, 'provision-policy', args, { meta: { confirm_token: token } }))
    outcomes.push(answer === null ? null : typeof answer.version === 'number' ? 'ran' : answer.error)
    return () => Promise.resolve()
  }

  /** What has become of one token: at the PCE, and for whoever comes with it later. */
  async function judge(t: Test, one: Confirmed) {
    const description = one.args.change_description
    const timesAt = () => (collect(), provisioned.get(description)?.length ?? 0)
    const before = timesAt()
    const seen = one.outcomes.map(String).join()
    if (before > 1) t.fail(`${description}: the PCE was told ${before} times`)
    if (one.outcomes.some((outcome) => !['ran', 'confirm_token_replay', null].includes(outcome)))
      t.fail(`${description}: ${seen}`)
    const ran = one.outcomes.filter((outcome) => outcome === 'ran').length
    if (ran > 1 || (ran === 1 && before !== 1)) t.fail(`${description}: ${seen}, ${before} at the PCE`)

    await redeem(either(), one)
    const late = one.outcomes.at(-1)
    const isUsed = before === 1 || one.outcomes.slice(0, -1).includes('confirm_token_replay')
    if (isUsed && late !== 'confirm_token_replay') t.fail(`${description}: used, and then ${late}`)
    if (!isUsed && late !== 'ran' && late !== 'confirm_token_replay') t.fail(`${description}: unused, and then ${late}`)
    const answers = await Promise.all(
      targets().map((target) =>
        callTool(target, admin, 'provision-policy', one.args, { meta: { confirm_token: one.token } }),
      ),
    )
    if (answers.some(({ error }) => error !== 'confirm_token_replay')) t.fail(`${description}: taken once more`)
    const after = timesAt()
    if (after > 1 || (late === 'ran' && after !== 1)) t.fail(`${description}: in the end ${after} times at the PCE`)
    tally[after === 0 ? 'lost' : late === 'ran' ? 'unused' : 'ran']++
  }

  async function register(sub: string, label: string): Promise<boolean> {
    const registration = { ...pce.registration, label }
    const answer = await orDead(callTool(either(), await world.tokenOf(sub), 'register-pce-credentials', registration))
    if (answer === null) tally.unanswered++
    else if (answer.status !== 'ok') throw new Error(`${sub}: ${JSON.stringify(answer)}`)
    return answer !== null
  }

  async function statusOf(sub: string): Promise<Json[]> {
    const token = await world.tokenOf(sub)
    return Promise.all(targets().map((target) => callTool(target, token, 'check-pce-credentials-status')))
  }

  async function registerNew(sub: string) {
    const isAcknowledged = await register(sub, sub)
    return async (t: Test) => {
      const statuses = await statusOf(sub)
      const isThere = statuses.every(({ registered, label }) => registered === true && label === sub)
      const isNowhere = statuses.every(({ registered }) => registered === false)
      if (!(isThere || (!isAcknowledged && isNowhere))) t.fail(`${sub}: ${JSON.stringify(statuses)}`)
      if (isThere) tally.registered++
    }
  }

  async function registerAgain(sub: string) {
    const rotor = rotors.get(sub) ?? { sent: 0, acknowledged: 0 }
    rotors.set(sub, rotor)
    const number = ++rotor.sent
    if (await register(sub, String(number))) rotor.acknowledged = number
    return async (t: Test) => {
      const [first, second] = await statusOf(sub)
      const stored = Number(first.label ?? 0)
      if (first.label !== second.label || stored < rotor.acknowledged || stored > rotor.sent)
        t.fail(`${sub}: ${stored} is stored, ${rotor.acknowledged} was acknowledged, ${rotor.sent} sent`)
    }
  }

  async function removeOne(sub: string) {
    const token = await world.tokenOf(sub)
    const answer = await orDead(callTool(either(), token, 'delete-pce-credentials'))
    return async (t: Test) => {
      const statuses = await statusOf(sub)
      const isGone = statuses.every(({ registered }) => registered === false)
      const isWhole = statuses.every(({ registered, label }) => registered === true && label === 'to be removed')
      if (!(isGone || (answer === null && isWhole))) t.fail(`${sub}: ${JSON.stringify(statuses)}`)
      if (isGone) tally.removed++
    }
  }
})

const auditOf = ({ folder }: World, name: string) => join(folder, `${name}.audit`)

/** The answer, or null where the process died before it was whole. */
async function orDead(call: Promise<Json>): Promise<Json> {
  try {
    return await call
  } catch (error) {
    if (/ECONNRESET|ECONNREFUSED|EPIPE|socket hang up|aborted/.test(String(error))) return null
    throw error
  }
}
