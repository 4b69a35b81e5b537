/** What a receiver is told of: the events of a whole service, over HTTPS, with its approvals, scopes and audit log. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { composeAuthenticated } from '../../programs/composition/compose-authenticated.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { SharedConfig } from '../../schemas/config.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools } from '../../tools/index.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { GROUP_OF, type Json, NO_WAITS, startService } from '../contract/authenticated-service.js'
import { type Receiver, SECRET, startReceiver, status } from './receiver.js'

const SCOPES = { groups: { [GROUP_OF.admin]: { scopes: '*' }, [GROUP_OF.operator]: { scopes: [{ app: 'payments' }] } } }

interface Telling {
  post?: (receiver: Receiver) => ReturnType<Receiver['post']>
  names?: boolean
  approves?: boolean
  guardrails?: SharedConfig['guardrails']
}

/** A process of the service whose notifications go to the receiver, and a call of a person at it. */
async function startTelling(t: Test, { names = false, approves = true, guardrails, post }: Telling = {}) {
  const receiver = await startReceiver(t)
  const clock = { now: Date.now() }
  const folder = mkdtempSync(join(tmpdir(), 'telling-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const scopesPath = join(folder, 'scopes.json')
  writeFileSync(scopesPath, JSON.stringify(SCOPES))
  const service = await startService(t, { mode: 'shared' })
  const approval = { method: 'two-person', ttlSeconds: 900, maxAgeSeconds: 0 } as const
  const config: SharedConfig = {
    ...(service.config as SharedConfig),
    statePath: join(folder, 'state.db'),
    scopesPath,
    confirm: { hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, ...(approves && { approval }) },
    notify: { url: receiver.url, secret: SECRET, names },
    replicaId: 'mcp-1',
    ...(guardrails && { guardrails }),
  }
  delete config.database
  const auditStream = new PassThrough()
  auditStream.resume()
  const composed = await composeAuthenticated(config, {
    tools: catalogueOf(tools),
    log: pino({ level: 'silent' }),
    auditStream,
    now: () => clock.now,
    pceTimers: NO_WAITS,
    post: post?.(receiver) ?? receiver.post(),
  })
  t.teardown(() => composed.close())
  const { dispatch } = createDispatcher(composed.dispatcher)
  const person = (sub: string, role: Role = 'admin'): Identity => ({
    iss: config.oauth.issuer,
    sub,
    groups: [GROUP_OF[role]],
    hasGroupsOverage: false,
  })
  let calls = 0
  const call = async (identity: Identity, name: string, args: object): Promise<Json> => {
    const { signal } = new AbortController()
    const context = await composed.openContext(identity, {})
    const requestId = `r-${++calls}`
    const sent = { name, arguments: args as Record<string, unknown>, requestId, sender: { signal }, progress: () => {} }
    const answer: Json = await dispatch(sent, context)
    return answer.ok ? answer.value : answer.error
  }
  const notifier = composed.notifier!
  /** Everything that has been sent since the last time. */
  const told = async () => {
    await notifier.tick()
    await notifier.tick()
    const received = receiver.received.splice(0)
    t.ok(received.every(({ isSigned }) => isSigned))
    return received
  }
  return { receiver, clock, composed, config, person, call, told, auditStream }
}

const RULES = {
  scopes: [['app=payments', 'env=prod']],
  rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }],
}

/** A draft and the question whether to provision it, which ann asks. */
async function ask({ call, person }: Awaited<ReturnType<typeof startTelling>>, name: string) {
  const { ruleset } = await call(person('ann'), 'create-ruleset', { name, ...RULES })
  const args = { hrefs: [ruleset.href] }
  const { details } = await call(person('ann'), 'provision-policy', args)
  return { id: details.approval_id as string, args }
}

const FROM = { requestId: 'page-1' }

t.test('an approval waits, is given, is used', async (t) => {
  const world = await startTelling(t)
  const { composed, person, told, config, call } = world
  const { id, args } = await ask(world, 'secret project')
  const [waiting, ...none]: Json[] = await told()
  t.same(none, [], 'and the draft, which nobody has to approve, is not told')
  const { oauth, http } = config
  const facts = {
    server: http.publicUrl,
    replica: 'mcp-1',
    tool: 'provision-policy',
    approval_id: id,
    approval_url: `${http.publicUrl}/approve/${id}`,
  }
  const ann = { iss: oauth.issuer, sub: 'ann' }
  const bob = { iss: oauth.issuer, sub: 'bob' }
  t.equal(waiting?.type, 'approval.waiting')
  const { pce_host: pceHost, ...data } = waiting.data
  t.match(pceHost, /^127\.0\.0\.1:\d+$/)
  t.same(data, {
    ...facts,
    text: 'provision-policy of ann waits for approval.',
    reason: 'confirm_required',
    person: ann,
    expires_at: new Date(world.clock.now + 900_000).toISOString(),
    request_id: 'r-2',
  })
  await composed.approvals!.desk.noteShown((await composed.approvals!.desk.find(id))!.request, person('bob'), FROM)
  await composed.approvals!.desk.decide(id, { verdict: 'approved', by: person('bob'), note: 'secret project' }, FROM)
  const [given, ...others] = await told()
  t.same(others, [], 'a page that was looked at is not told')
  t.same(
    [given?.type, given?.data],
    [
      'approval.given',
      {
        ...facts,
        text: 'bob approved provision-policy of ann.',
        person: bob,
        asked_by: ann,
        request_id: 'page-1',
      },
    ],
  )
  t.type((await call(person('ann'), 'provision-policy', args)).version, 'number')
  const [used, ...more] = await told()
  t.same(more, [], 'told once, although the outcome of the call has the same facts')
  t.same(
    [used?.type, used?.data.text, used?.data.approved_by, used?.data.person],
    ['approval.used', 'provision-policy of ann runs, approved by bob.', bob, ann],
  )
  t.notMatch(JSON.stringify([waiting, given, used]), /secret project/)
})

t.test('denied, expired without anybody asking, and void', async (t) => {
  const world = await startTelling(t)
  const { composed, person, told, call, clock } = world
  const denied = await ask(world, 'one')
  await composed.approvals!.desk.decide(denied.id, { verdict: 'denied', by: person('bob') }, FROM)
  const ids = (all: Json[]) => all.map(({ type, data }) => `${type} ${data.approval_id}`)
  t.same(ids(await told()), [`approval.waiting ${denied.id}`, `approval.denied ${denied.id}`])
  const stale = await ask(world, 'two')
  await composed.approvals!.desk.decide(stale.id, { verdict: 'approved', by: person('bob') }, FROM)
  clock.now += 1000
  await call(person('ann'), 'update-ruleset', { href: stale.args.hrefs[0], description: 'changed' })
  const again = await call(person('ann'), 'provision-policy', stale.args)
  t.same(ids(await told()), [
    `approval.waiting ${stale.id}`,
    `approval.given ${stale.id}`,
    `approval.void ${stale.id}`,
    `approval.waiting ${again.details.approval_id}`,
  ])
  clock.now += 901_000
  await composed.approvals!.sweep()
  t.same(ids(await told()), [`approval.expired ${again.details.approval_id}`])
})

t.test('a request that an admin revokes at /approve, before its decision and after it', async (t) => {
  const world = await startTelling(t)
  const { composed, person, told, config } = world
  const { desk } = composed.approvals!
  for (const isGiven of [false, true]) {
    const { id } = await ask(world, `revoked ${isGiven}`)
    if (isGiven) await desk.decide(id, { verdict: 'approved', by: person('bob') }, FROM)
    await desk.revoke(id, person('adam'), FROM)
    const messages = await told()
    t.same(
      messages.map(({ type }) => type),
      ['approval.waiting', ...(isGiven ? ['approval.given'] : []), 'approval.revoked'],
    )
    const { iss } = person('adam')
    const { text, person: by, asked_by: askedBy, approval_url: url } = messages.at(-1)!.data
    t.same(
      { text, by, askedBy, url },
      {
        text: 'adam revoked the approval of provision-policy of ann, or the request for it.',
        by: { iss, sub: 'adam' },
        askedBy: { iss, sub: 'ann' },
        url: `${config.http.publicUrl}/approve/${id}`,
      },
    )
  }
})

t.test('a call waits for no receiver, whatever becomes of it', async (t) => {
  const open: ServerResponse[] = []
  const faults: Record<string, (receiver: Receiver) => unknown> = {
    'takes the message and hangs': (receiver) => (receiver.answer = (answer) => void open.push(answer)),
    'answers 500': (receiver) => (receiver.answer = status(500)),
    'refuses connections': (receiver) => receiver.stop(),
  }
  for (const [fault, begin] of Object.entries(faults)) {
    const world = await startTelling(t, { post: (receiver) => receiver.post({ timeoutMs: 600_000 }) })
    const { receiver, composed, told, person, call, clock } = world
    await begin(receiver)
    const { id, args } = await ask(world, fault)
    const sending = composed.notifier!.tick()
    if (fault.includes('hangs')) while (open.length === 0) await nextTurn()
    await composed.approvals!.desk.decide(id, { verdict: 'approved', by: person('bob') }, FROM)
    t.type((await call(person('ann'), 'provision-policy', args)).version, 'number', `the receiver ${fault}`)
    for (const answer of open.splice(0)) {
      t.equal(answer.destroyed, false, 'it still hangs')
      answer.destroy()
    }
    await sending
    receiver.received.length = 0
    receiver.answer = status(204)
    await receiver.start()
    clock.now += 60_000
    t.same(
      (await told()).map(({ type }) => type).sort(),
      ['approval.given', 'approval.used', 'approval.waiting'],
      'and everything comes afterwards, once',
    )
  }
})

t.test('names of objects, notes and scopes are told only if asked for', async (t) => {
  for (const names of [false, true]) {
    const world = await startTelling(t, { names })
    const { composed, person, told, call } = world
    const { id } = await ask(world, 'secret project')
    await composed.approvals!.desk.decide(id, { verdict: 'denied', by: person('bob'), note: 'not on Friday' }, FROM)
    const outside = { name: 'x', ...RULES, scopes: [['app=ordering']] }
    t.equal((await call(person('otto', 'operator'), 'create-ruleset', outside)).code, 'out_of_scope')
    const [waiting, denied, refused, ...none]: Json[] = await told()
    t.same(none, [])
    t.equal(/secret project/.test(waiting?.data.summary ?? ''), names)
    t.equal(denied?.data.note, names ? 'not on Friday' : undefined)
    t.equal(refused?.type, 'refused.out_of_scope')
    t.equal(refused.data.text, 'create-ruleset of otto was refused: out_of_scope.')
    t.same([refused.data.tool, refused.data.person.sub], ['create-ruleset', 'otto'])
    t.same(refused.data.scopes, names ? ['app=payments'] : undefined)
    t.equal(refused.data.outside?.kind, names ? 'rule_sets' : undefined)
  }
})

t.test('a guardrail refuses: told, and what it found only if asked for', async (t) => {
  for (const names of [false, true]) {
    const guardrails = { protectedLabels: [{ key: 'app', value: 'payments' }] }
    const { call, person, told } = await startTelling(t, { names, guardrails })
    t.equal((await call(person('ann'), 'create-ruleset', { name: 'x', ...RULES })).code, 'protected')
    const [refused, ...none]: Json[] = await told()
    t.same(none, [])
    t.equal(refused?.type, 'refused.protected')
    t.equal(refused?.data.text, 'create-ruleset of ann was refused: protected.')
    t.equal(refused?.data.guardrail?.kind, names ? 'rule_sets' : undefined)
  }
})

t.test('refused for any other reason, and allowed: nobody is told', async (t) => {
  const { call, person, told } = await startTelling(t, { approves: false })
  t.equal((await call(person('rita', 'reader'), 'create-ruleset', { name: 'x', ...RULES })).code, 'forbidden')
  t.equal((await call(person('ann'), 'create-ruleset', { nonsense: 1 })).code, 'invalid_argument')
  t.equal(
    (await call(person('ann'), 'provision-policy', { hrefs: ['/orgs/1/sec_policy/draft/rule_sets/9'] })).code,
    'confirm_required',
  )
  t.type((await call(person('ann'), 'create-ruleset', { name: 'x', ...RULES })).ruleset?.href, 'string')
  t.same(await told(), [])
})

t.test('an audit log that cannot be written is told, although it is the source of all else', async (t) => {
  const { call, person, told, auditStream } = await startTelling(t)
  auditStream.destroy(new Error('the pipe is gone'))
  await new Promise((done) => setImmediate(done))
  t.equal((await call(person('ann'), 'create-ruleset', { name: 'x', ...RULES })).code, 'audit_unavailable')
  const received = await told()
  t.same(new Set(received.map(({ type }) => type)), new Set(['audit.failed']))
  t.equal(received[0]?.data.replica, 'mcp-1')
})
