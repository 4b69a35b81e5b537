/**
 * Guardrails that two persons may override, where people approve calls on a page (D293, D294): whose approvals count, for
 * what, and what holds when the call is repeated and when its requests are sent.
 */
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import type { FreezeWindow, GuardrailsConfig } from '../../schemas/guardrails.js'
import { defineTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { ALL, type BenchOptions, GROUP_OF, type Json, startApproving } from '../approval/bench.js'
import { partial } from '../partial.js'
import { estate, PROTECTED } from './guarded-service.js'

const MINUTE = 60_000
const LABEL = 'label-workloads'
const MODES = 'set-enforcement-mode'
const TWO = { workloads: ['web1', 'web2'], set: ['env=dev'] }

/** A freeze of these minutes from now on. */
const freeze = (from: number, to: number): FreezeWindow => {
  const minute = Math.floor(Date.now() / MINUTE)
  return { is: 'single', text: `from ${from} to ${to}`, zone: 'UTC', from: minute + from, to: minute + to }
}
const endOf = ({ to }: FreezeWindow) => new Date((to as number) * MINUTE).toISOString()

const start = (t: Test, guardrails: GuardrailsConfig, more: Partial<BenchOptions> = {}) =>
  startApproving(t, { estate: { estate: estate() }, guardrails, ...more })
type Bench = Awaited<ReturnType<typeof start>>

/** Drafts a change that waits for a provisioning. */
const draft = (bench: Bench) => bench.call('ann', 'update-ruleset', { name: 'Shop', description: 'x' })

const written = ({ simulator }: Pick<Bench, 'simulator'>) =>
  simulator.requests.filter(({ method, path }) => method === 'PUT' && /\/workloads\//.test(path)).length
const events = (bench: Bench, id: string) =>
  bench
    .entries(id)
    .filter(({ phase }) => phase === 'decision')
    .map(({ approval, sub }) => [approval, sub])

t.test('more workloads than allowed: two admins other than the caller, then it runs once', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const [ann, bob, carol] = ['ann', 'bob', 'carol'].map((sub) => bench.person(sub)) as [never, never, never]
  const asked = await bench.call('ann', LABEL, TWO)
  const guardrail = {
    guardrail: 'too_many_workloads',
    message: 'This affects 2 workloads, and at most 1 may be affected at a time. Two people have to approve it.',
    needs_two_persons: true,
    workloads_affected: 2,
    max_workloads_affected: 1,
  }
  partial(t, asked, {
    error: 'confirm_required',
    message: /^Two people have to approve this call/,
    guardrails: [guardrail],
    approvals_given: 0,
    approvals_needed: 2,
    hint: /two admins other than the person you work for/,
  })
  const { approval_id: id } = asked
  const { request } = (await bench.desk.find(id))!
  t.equal(bench.desk.partOf(request, ann), 'watching', 'although MCP_APPROVAL is page')
  await t.rejects(bench.decide(id, 'approved', ann), { code: 'forbidden' })
  await t.rejects(bench.decide(id, 'approved', bench.person('olga', 'operator')), { code: 'not_found' })

  partial(t, await bench.decide(id, 'approved', bob, 'fine'), {
    won: true,
    approval: { state: 'pending', decision: null, first: { by: { sub: 'bob' }, note: 'fine' } },
  })
  partial(t, await bench.call('ann', LABEL, TWO), {
    error: 'approval_pending',
    message: /^One of the two people/,
    approvals_given: 1,
  })
  partial(t, await bench.decide(id, 'approved', bob), { won: false, approval: { state: 'pending' } })
  partial(t, await bench.desk.waitingFor(carol), { total: 1, approvals: [{ first: { by: { sub: 'bob' } } }] })
  t.equal(written(bench), 0)

  partial(t, await bench.decide(id, 'approved', carol), { won: true, approval: { state: 'approved' } })
  partial(t, await bench.call('ann', LABEL, TWO), { error: undefined, outcomes: { updated: 2 } })
  t.equal(written(bench), 1)
  t.same(events(bench, id), [
    ['asked', 'ann'],
    ['used', 'ann'],
    ['approved_first', 'bob'],
    ['approved', 'carol'],
  ])
  const overrides = [guardrail]
  partial(
    t,
    bench.entries(id).find(({ outcome }) => outcome === 'success'),
    {
      approved_by: { sub: 'carol' },
      first_approved_by: { sub: 'bob' },
      overrides,
    },
  )
  partial(
    t,
    bench.entries(id).find(({ approval }) => approval === 'approved'),
    {
      first_approved_by: { sub: 'bob' },
      asked_by: { sub: 'ann' },
      overrides,
    },
  )
})

t.test('a dry run asks nobody, and says what two people would have to approve', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  partial(t, await bench.call('ann', LABEL, { ...TWO, dry_run: true }), {
    error: undefined,
    dry_run: true,
    guardrails: [{ guardrail: 'too_many_workloads', needs_two_persons: true, workloads_affected: 2 }],
  })
  const one = { workloads: ['web1'], set: ['env=dev'] }
  partial(t, await bench.call('ann', LABEL, { ...one, dry_run: true }), {
    guardrails: [
      {
        message: 'This affects 1 workload; at most 1 may be affected at a time.',
        needs_two_persons: false,
      },
    ],
  })
  partial(t, await bench.call('ann', LABEL, one), { error: undefined, guardrails: undefined })
})

t.test('a denial of either ends it, also of the one who has approved', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const [bob, carol] = [bench.person('bob'), bench.person('carol')]
  for (const [set, isApproved, deny] of [
    ['env=dev', false, bob],
    ['role=db', true, bob],
    ['app=ad', true, carol],
  ] as const) {
    const args = { ...TWO, set: [set] }
    const { approval_id: id } = await bench.call('ann', LABEL, args)
    if (isApproved) await bench.decide(id, 'approved', bob)
    partial(t, await bench.decide(id, 'denied', deny, 'no'), { won: true, approval: { state: 'denied' } })
    partial(t, await bench.decide(id, 'approved', carol), { won: false, approval: { state: 'denied' } })
    partial(t, await bench.call('ann', LABEL, args), { error: 'approval_denied', note: 'no' })
  }
  t.equal(written(bench), 0)
})

t.test(
  'at the same time at two replicas: two people are two, one is one, and a denial wins or loses whole',
  async (t) => {
    const bench = await start(t, { maxWorkloads: 1 })
    const other = await startApproving(t, { after: bench, guardrails: { maxWorkloads: 1 } })
    const [bob, carol] = [bench.person('bob'), bench.person('carol')]
    for (let round = 0; round < 4; round++) {
      const args = { ...TWO, set: [round % 2 === 0 ? 'env=dev' : 'env=prod'] }
      const before = written(bench)
      const { approval_id: id } = await bench.call('ann', LABEL, args)
      const same = await Promise.all([bench.decide(id, 'approved', bob), other.decide(id, 'approved', bob)])
      t.equal(same.filter(({ won }) => won).length, 1)
      partial(t, await other.desk.find(id), { state: 'pending', first: { by: { sub: 'bob' } } })
      await bench.decide(id, 'approved', carol)
      const runs = await Promise.all([bench.call('ann', LABEL, args), other.call('ann', LABEL, args)])
      t.equal(runs.filter(({ error }) => error === undefined).length, 1)
      t.equal(written(bench) - before, 1)
    }
    for (const set of ['role=db', 'role=dc', 'app=ad']) {
      const { approval_id: id } = await bench.call('ann', LABEL, { ...TWO, set: [set] })
      const both = await Promise.all([bench.decide(id, 'approved', bob), other.decide(id, 'approved', carol)])
      t.same(
        both.map(({ won }) => won),
        [true, true],
      )
      const found = (await bench.desk.find(id))!
      t.equal(found.state, 'approved')
      t.same([found.first!.by.sub, found.decision!.by.sub].sort(), ['bob', 'carol'])
    }
  },
)

t.test('whoever can only write to the state makes no second approval of the first one', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const { approval_id: id } = await bench.call('ann', LABEL, TWO)
  await bench.decide(id, 'approved', bench.person('bob'))
  const { firstDecision } = (await bench.rows.get(id))!
  t.equal(await bench.rows.decide(id, firstDecision!), true)
  partial(t, await bench.desk.find(id), { state: 'void' })
  const anew = await bench.call('ann', LABEL, TWO)
  partial(t, anew, { error: 'confirm_required', reason: 'stale' })
  await bench.decide(anew.approval_id, 'denied', bench.person('carol'))
  const denial = (await bench.rows.get(anew.approval_id))!.decision!
  await bench.rows.removeAll((await bench.rows.get(anew.approval_id))!.key.owner)
  const { approval_id: third } = await bench.call('ann', LABEL, TWO)
  await bench.rows.approveFirst(third, denial)
  t.equal(await bench.desk.find(third), null, 'a decision about another request')
  t.equal(written(bench), 0)
})

t.test('both must still be allowed to approve when the call is repeated', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const { approval_id: id } = await bench.call('ann', LABEL, TWO)
  await bench.decide(id, 'approved', bench.person('bob'))
  await bench.decide(id, 'approved', { ...bench.person('carol'), groups: [GROUP_OF.admin, 'g-chiefs'] })
  const groups = { reader: [GROUP_OF.reader], operator: [GROUP_OF.operator], admin: ['g-chiefs'] }
  const roles = { groups, otherwise: null }
  const later = await startApproving(t, { after: bench, roles, guardrails: { maxWorkloads: 1 } })
  const token = await bench.service.tokenOf('ann', null, { groups: ['g-chiefs'] })
  partial(t, await later.service.call(token, LABEL, TWO), { error: 'confirm_required', reason: 'stale' })
  partial(t, await later.desk.find(id), { state: 'void' })
  t.equal(written(bench), 0)
})

t.test('nobody approves for somebody whose access was revoked since', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const { approval_id: id } = await bench.call('ann', LABEL, TWO)
  for (const sub of ['bob', 'carol']) await bench.decide(id, 'approved', bench.person(sub))
  const { iss, sub } = bench.person('bob')
  const now = bench.clock.now
  await bench.composed.state.revocations.set({ iss, sub }, { until: now + 1, at: now, by: 'root' })
  bench.clock.now += MINUTE
  partial(t, await bench.call('ann', LABEL, TWO), { error: 'confirm_required', reason: 'stale' })
  t.equal(written(bench), 0)
})

t.test('what is protected has no override', async (t) => {
  const bench = await start(t, { ...PROTECTED, maxWorkloads: 1 })
  const answer = await bench.call('ann', LABEL, { ...TWO, workloads: ['dc1', 'web1'] })
  partial(t, answer, { error: 'protected', approval_id: undefined })
})

t.test('one of two in time is not enough', async (t) => {
  const bench = await start(t, { maxWorkloads: 1 })
  const { approval_id: id } = await bench.call('ann', LABEL, TWO)
  await bench.decide(id, 'approved', bench.person('bob'))
  bench.clock.now += 900_000
  await t.rejects(bench.decide(id, 'approved', bench.person('carol')), { code: 'approval_expired' })
  await bench.sweep()
  partial(
    t,
    bench.entries(id).find(({ approval }) => approval === 'expired'),
    { reason: 'approval_expired' },
  )
  const anew = await bench.call('ann', LABEL, TWO)
  partial(t, anew, { error: 'confirm_required', reason: 'expired', approvals_given: 0 })
  for (const sub of ['bob', 'carol']) await bench.decide(anew.approval_id, 'approved', bench.person(sub))
  bench.clock.now += 900_000
  partial(
    t,
    await bench.call('ann', LABEL, TWO),
    { error: 'confirm_required', reason: 'expired' },
    'nor are two too late',
  )
  t.equal(written(bench), 0)
})

t.test('a limit that becomes lower after one approved takes two, a higher one takes no more', async (t) => {
  const modes = { workloads: ['web1', 'web2'], enforcement_mode: 'full' }
  const bench = await start(t, { maxWorkloads: 2 })
  const asked = await bench.call('ann', MODES, modes)
  partial(t, asked, { error: 'confirm_required', approvals_needed: undefined })
  await bench.decide(asked.approval_id, 'approved', bench.person('bob'))
  const lower = await startApproving(t, { after: bench, guardrails: { maxWorkloads: 1 } })
  const anew = await lower.call('ann', MODES, modes)
  partial(t, anew, { error: 'confirm_required', reason: 'stale', approvals_needed: 2, approvals_given: 0 })
  t.not(anew.approval_id, asked.approval_id)
  t.equal(written(bench), 0)
  for (const sub of ['bob', 'carol']) await lower.decide(anew.approval_id, 'approved', lower.person(sub))
  const higher = await startApproving(t, { after: bench, guardrails: { maxWorkloads: 9 } })
  partial(t, await higher.call('ann', MODES, modes), { error: undefined })
  t.equal(written(bench), 1)
})

t.test('a freeze is overridden by two for one call, where the operator allows it', async (t) => {
  const window = freeze(-10, 60)
  const bench = await start(t, { freezes: [window], freezeOverride: true })
  const overrides = [{ guardrail: 'frozen', window: window.text, frozen_until: endOf(window), needs_two_persons: true }]
  const asked = await bench.call('ann', LABEL, TWO)
  partial(t, asked, { error: 'confirm_required', guardrails: overrides })
  await t.rejects(bench.decide(asked.approval_id, 'approved', bench.person('ann')), { code: 'forbidden' })
  await bench.decide(asked.approval_id, 'approved', bench.person('bob'))
  partial(
    t,
    await bench.call('ann', LABEL, TWO),
    { error: 'approval_pending', approvals_given: 1 },
    'one is not enough',
  )
  t.equal(written(bench), 0)
  await bench.decide(asked.approval_id, 'approved', bench.person('carol'))
  const other = { workloads: ['web1'], set: ['role=db'] }
  partial(t, await bench.call('ann', LABEL, other), { error: 'confirm_required' }, 'only the call that was approved')
  partial(t, await bench.call('ann', LABEL, TWO), { error: undefined, outcomes: { updated: 2 } })
  t.equal(written(bench), 1)
  partial(
    t,
    bench.entries(asked.approval_id).find(({ outcome }) => outcome === 'success'),
    {
      approved_by: { sub: 'carol' },
      first_approved_by: { sub: 'bob' },
      overrides,
    },
  )
  await draft(bench)
  partial(t, await bench.call('ann', ALL), { error: 'confirm_required', approvals_needed: 2 })
  const off = await start(t, { freezes: [window] })
  partial(t, await off.call('ann', LABEL, TWO), { error: 'frozen', guardrails: undefined })
})

t.test('a freeze that begins between the approval of one and the redemption', async (t) => {
  const window = freeze(10, 60)
  for (const freezeOverride of [undefined, true] as const) {
    const bench = await start(t, { freezes: [window], ...(freezeOverride && { freezeOverride }) })
    await draft(bench)
    const asked = await bench.call('ann', ALL)
    t.equal(asked.approvals_needed, undefined)
    await bench.decide(asked.approval_id, 'approved', bench.person('ann'))
    const waits = await bench.call('ann', ALL, { change_description: 'another' })
    bench.clock.now += 11 * MINUTE
    const answer = await bench.call('ann', ALL)
    if (freezeOverride === undefined) t.equal(answer.error, 'frozen')
    else {
      partial(t, answer, { error: 'confirm_required', reason: 'stale', approvals_needed: 2, approvals_given: 0 })
      t.not(answer.approval_id, asked.approval_id)
      const anew = await bench.call('ann', ALL, { change_description: 'another' })
      partial(t, anew, { error: 'confirm_required', reason: 'stale', approvals_needed: 2 })
      partial(t, await bench.desk.find(waits.approval_id), { state: 'void' }, 'it waited for one')
    }
    t.equal(bench.provisioned(), 0)
  }
})

t.test('two have approved the call in one freeze, not in the next one', async (t) => {
  const guardrails = { freezes: [freeze(-10, 4), freeze(8, 60)], freezeOverride: true as const }
  const bench = await start(t, guardrails)
  const asked = await bench.call('ann', LABEL, TWO)
  for (const sub of ['bob', 'carol']) await bench.decide(asked.approval_id, 'approved', bench.person(sub))
  bench.clock.now += 9 * MINUTE
  partial(t, await bench.call('ann', LABEL, TWO), { error: 'confirm_required', reason: 'stale', approvals_needed: 2 })
  t.equal(written(bench), 0)
})

t.test('when it is sent, a request is let through as far as the call is approved, and no other one', async (t) => {
  const href = (id: number) => `/orgs/1/workloads/00000000-0000-4000-8000-00000000000${id}`
  /** Plans a request for the workloads of `planned`, and sends one for those of `sent`. */
  const forgetful = defineTool({
    name: LABEL,
    summary: 'Plans less than it sends.',
    effect: 'write',
    scope: 'objects',
    toolset: 'hygiene',
    roles: ['admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: Type.Object({ planned: Type.Array(Type.Integer()), sent: Type.Array(Type.Integer()) }),
    output: Type.Object({}),
    example: { planned: [], sent: [] },
    preview: () => Promise.resolve({ summary: 'Plans.', boundTo: 'always' }),
    plan: ({ planned }) => Promise.resolve(planned.length === 0 ? [] : [bulk(planned)]),
    async handler({ sent }, { pce }) {
      const { path, body } = bulk(sent)
      await pce.put(path, { includeOrg: false, json: body as never })
      return {}
    },
  })
  const bulk = (ids: readonly number[]) => ({
    method: 'PUT',
    path: '/orgs/1/workloads/bulk_update',
    body: ids.map((id) => ({ href: href(id), labels: [] })),
  })
  const others = tools.filter(({ name }) => name !== LABEL)
  const bench = await start(
    t,
    { freezes: [freeze(-10, 60)], freezeOverride: true, maxWorkloads: 1 },
    { tools: [...others, forgetful] },
  )
  const run = async (planned: number[], sent: number[]): Promise<Json> => {
    const asked = await bench.call('ann', LABEL, { planned, sent })
    if (asked.error !== 'confirm_required') return asked
    for (const sub of ['bob', 'carol']) await bench.decide(asked.approval_id, 'approved', bench.person(sub))
    return bench.call('ann', LABEL, { planned, sent })
  }
  t.equal((await run([], [2])).error, 'frozen', 'a call that nobody approved')
  t.equal((await run([2], [2, 3])).error, 'too_many_workloads', 'one that was approved for fewer')
  t.equal(written(bench), 0)
  t.equal((await run([2, 3], [2, 3])).error, undefined)
  t.equal(written(bench), 1)
})
