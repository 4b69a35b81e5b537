/**
 * `revoke-user` while a person has 50 calls under way at three replicas: whatever was confirmed or approved before, no further change of theirs
 * reaches the PCE, nothing that they had begun counts anywhere, and other people notice nothing.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { entriesOf, GROUP_OF } from '../edge/support/authenticated-world.js'
import type { Json } from '../edge/support/call-tool.js'
import { startProgram } from '../edge/support/start-program.js'
import { found, within } from '../edge/support/within.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import type { Person } from '../identity/vendors.js'
import { messagesOf } from '../log-lines.js'
import { partial } from '../partial.js'
import { createApprover } from './approver.js'
import { startReplicas } from './replicas.js'
import { stateEngine } from './state-engine.js'

const TOOL = 'provision-policy'
const COUNT = 3
const IN_FLIGHT = 50
const REDEMPTIONS = 9
const WRITES = 17
/** Of whom nothing is revoked. */
const BOBS = { redemptions: 3, writes: 3, reads: 3 }

/** How somebody consents to a call: with a token, or on a page. */
type Way = 'token' | 'page'

async function start(t: Test, way: Way) {
  const people: Record<string, Person> = Object.fromEntries(
    ['alice', 'bob', 'adam'].map((login) => [login, { groups: [GROUP_OF.admin] }]),
  )
  const idp = await startIdentityProvider(t, { people })
  const { clientId, clientSecret } = idp.allowRedirects([])
  const replicas = await startReplicas(t, {
    postgres: await stateEngine(t),
    count: COUNT,
    world: { idp, pce: { pollsUntilDone: 1, retryAfter: 0 } },
    env: {
      MCP_MAX_IN_FLIGHT_PER_CALLER: '0',
      MCP_STATE_POOL_SIZE: '20',
      MCP_OAUTH_CLIENT_ID: clientId,
      MCP_OAUTH_CLIENT_SECRET: clientSecret,
      ...(way === 'page' && { MCP_APPROVAL: 'page' }),
    },
  })
  const { world, database, callTool, confirm } = replicas
  const publicUrl = world.env.MCP_PUBLIC_URL!
  idp.allowRedirects([`${publicUrl}/setup/callback`])
  const newToken = async (login: string) => (await idp.tokensFor(login, { resource: publicUrl })).accessToken
  const tokens = { alice: await newToken('alice'), bob: await newToken('bob') }
  for (const token of Object.values(tokens))
    partial(t, await callTool(0, token, 'register-pce-credentials', world.pce.registration), { status: 'ok' })
  const visit = (login: string) =>
    createApprover({ publicUrl, targetOf: (replica) => replicas.replicas[replica]!.target }, idp, login)
  const adam = visit('adam')
  let hasLoggedIn = false

  /** What approves a call on its page, at the replica. */
  async function approve(replica: number, id: string): Promise<number> {
    if (!hasLoggedIn) await adam.finishLogin(replica, await adam.beginLogin(replica, id))
    hasLoggedIn = true
    const page = (await adam.look(replica, id))!
    return (await adam.press(replica, page, id, 'approve'))!.status
  }

  return {
    ...replicas,
    idp,
    people,
    tokens,
    newToken,
    visit,
    adam,
    /** Asks for a call whose draft nobody else touches; its arguments, and the question. */
    async ask(replica: number, who: keyof typeof tokens, name: string) {
      const draft = { name: `draft ${name}`, ip_ranges: [{ from_ip: '10.0.0.0/8' }] }
      const { href } = await callTool(replica, tokens[who], 'create-iplist', draft)
      const args = { hrefs: [href as string], change_description: name }
      const question = await callTool(replica, tokens[who], TOOL, args)
      partial(t, question, { error: 'confirm_required' })
      return { args, question }
    },
    /** Has consent for what was asked; the `_meta` with which it runs. */
    async consent(replica: number, who: keyof typeof tokens, question: Json): Promise<object> {
      if (way === 'page') {
        t.equal(await approve(replica, question.approval_id), 303)
        return {}
      }
      const { json } = await confirm(replica, tokens[who], question.confirm.body)
      t.type(json.confirm_token, 'string')
      return { confirm_token: json.confirm_token }
    },
    async revoke(...more: string[]) {
      const args = ['revoke-user', '--iss', world.oauth.issuer, '--sub', 'alice', ...more]
      const state = database && { MCP_KEYSTORE_PATH: undefined, MCP_STATE_URL: database.url }
      const env = { ...world.env, ...state, MCP_AUDIT_LOG_PATH: join(world.folder, 'command.audit') }
      const { code, stderr } = await within(startProgram(t, { args, env }).ended, 'revoke-user ends')
      t.equal(code, 0, stderr)
      return messagesOf(stderr)[0]!
    },
    /** The changes of a person that have reached the PCE since the last time, in order; each has the name in it. */
    arrived(who: string): string[] {
      const names = world.pce.simulator.requests.flatMap(({ method, path, body }) => {
        const { value, update_description: name = value } = (body ?? {}) as Record<string, string>
        return method === 'POST' && /\/(labels|sec_policy)$/.test(path) && name!.startsWith(who) ? [name!] : []
      })
      return names.sort()
    },
  }
}

type Service = Awaited<ReturnType<typeof start>>
type Call = () => Promise<Json>

/** The calls of a person, which are made one after the other, at the replicas in turn; none runs yet. */
async function prepare(service: Service, who: 'alice' | 'bob', counts: typeof BOBS) {
  const { callTool, tokens, ask, consent } = service
  const redemptions: Call[] = []
  for (let n = 0; n < counts.redemptions; n++) {
    const { args, question } = await ask(n % COUNT, who, `${who} provisions ${n}`)
    const meta = await consent(n % COUNT, who, question)
    redemptions.push(() => callTool(n % COUNT, tokens[who], TOOL, args, { meta }))
  }
  const times = (count: number, make: (n: number) => Promise<Json>): Call[] =>
    Array.from({ length: count }, (_, n) => () => make(n))
  const label = (n: number) => ({ key: 'app', value: `${who} labels ${n}` })
  return {
    redemptions,
    writes: times(counts.writes, (n) => callTool(n % COUNT, tokens[who], 'create-label', label(n))),
    reads: times(counts.reads, (n) => callTool(n % COUNT, tokens[who], 'get-labels')),
  }
}

async function prove(t: Test, way: Way): Promise<void> {
  const service = await start(t, way)
  const { world, tokens, callTool, confirm, ask, consent, revoke, visit } = service
  const each = [...Array(COUNT).keys()]
  const counts = { redemptions: REDEMPTIONS, writes: WRITES, reads: IN_FLIGHT - REDEMPTIONS - WRITES }
  const mine = await prepare(service, 'alice', counts)
  const his = await prepare(service, 'bob', BOBS)
  const asked = []
  for (const at of each) asked.push(await ask(at, 'alice', `alice asks ${at}`))
  const confirmed = []
  for (const at of each) {
    const { args, question } = await ask(at, 'alice', `alice has consent ${at}`)
    confirmed.push({ args, meta: await consent(at, 'alice', question), id: question.approval_id as string })
  }
  const atHer = visit('alice')
  const { id: hers } = confirmed[0]!
  if (way === 'page') {
    await atHer.finishLogin(0, await atHer.beginLogin(0, hers))
    for (const at of each) t.match((await atHer.look(at, hers))!.body, /Log out/, `her session counts at replica ${at}`)
  }

  // What reads waits; what writes waits for what it reads before.
  const held = world.pce.hold(({ method, path }) =>
    method === 'GET' ? path.endsWith('/labels') : path.endsWith('/sec_policy/impact'),
  )
  const underWay = () =>
    service.replicas
      // The last line may be half written.
      .flatMap(({ auditPath }) => entriesOf(readFileSync(auditPath, 'utf8').replace(/[^\n]*$/, '')))
      .reduce((sum, { phase }) => sum + (phase === 'decision' ? 1 : phase === 'outcome' ? -1 : 0), 0)
  const idle = underWay()
  let count = 0
  /** Begins the calls one after the other, each once the one before it is admitted; their answers. */
  async function begin(calls: readonly Call[]): Promise<() => Promise<Json[]>> {
    const answers: Promise<Json>[] = []
    for (const call of calls) {
      const answer = call()
      answer.catch(() => {})
      answers.push(answer)
      count++
      await found(() => underWay() - idle === count, `call ${count} is under way`)
    }
    return () => Promise.all(answers)
  }
  const [redeemed, written, read] = [await begin(mine.redemptions), await begin(mine.writes), await begin(mine.reads)]
  t.equal(count, IN_FLIGHT)
  const others = await begin(Object.values(his).flat())
  t.match(await revoke(), /^The access of 'alice' of .* is revoked until /)
  held.release()

  const ended = { error: 'unauthorized', reason: 'access revoked' }
  for (const answer of [...(await redeemed()), ...(await written())]) partial(t, answer, ended)
  for (const answer of await read()) t.equal(answer.error, undefined, 'what only reads comes to its end')
  for (const answer of await others()) t.equal(answer.error, undefined, 'calls of others go on')
  t.same(service.arrived('alice'), [])
  t.same(service.arrived('bob'), [...each.map((n) => `bob labels ${n}`), ...each.map((n) => `bob provisions ${n}`)])

  for (const at of each) {
    await t.rejects(callTool(at, tokens.alice, 'get-labels'), /HTTP 401.*access revoked/)
    const body = asked[at]!.question.confirm?.body ?? {}
    partial(t, await confirm(at, tokens.alice, body), { status: 401, json: { reason: 'access revoked' } })
    t.equal((await callTool(at, tokens.bob, 'get-labels')).error, undefined)
    if (way === 'token') continue
    const page = (await atHer.look(at, hers))!
    t.notMatch(page.body, /Log out/, `her session is over at replica ${at}`)
    const ids: string[] = [asked[at]!.question.approval_id, confirmed[at]!.id]
    for (const id of ids) t.equal((await service.adam.look(at, id))!.status, 404, 'there is nothing left to decide')
  }
  await t.rejects(callTool(0, await service.newToken('alice'), 'get-labels'), /HTTP 401.*access revoked/)

  // From here on she may come back: with a token of later, and with nothing of before.
  await revoke('--until', 'now')
  const over = Math.floor(Date.now() / 1000) + 1
  await found(() => Date.now() / 1000 > over, 'the second of the revocation is over')
  // Clocks may differ by half a minute, so a token of now could be from before.
  service.people.alice!.claims = { iat: over + 30 }
  const later = await service.newToken('alice')
  for (const at of each) {
    const { args, meta } = confirmed[at]!
    const refused = await callTool(at, later, TOOL, args, { meta })
    t.equal(refused.error, 'confirm_required', 'what was consented to before does not count')
    if (way === 'token') {
      t.equal(refused.reason, 'expired')
      const old = await confirm(at, later, asked[at]!.question.confirm.body)
      t.equal(old.json.error, 'confirm_required', 'and what was shown before is shown anew')
    } else t.not(refused.approval_id, confirmed[at]!.id)
  }
  t.same(service.arrived('alice'), [])
}

for (const way of ['token', 'page'] as const) t.test(`50 calls, consent by ${way}`, (t) => prove(t, way))
