/** A call that needs confirmation waits for a person: one yes, of somebody who may, lets exactly what was shown run once (D143 to D146). */
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { createTokens } from '../../plugins/confirm/tokens.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { ALL, FROM, GROUP_OF, type Json, startApproving } from './bench.js'

const eventsOf = (entries: readonly object[]) =>
  entries.filter((entry) => !('outcome' in entry)).map((entry) => (entry as Json).approval)

t.test('asked, pending, approved by the one who asked, run once; then it is asked anew', async (t) => {
  const bench = await startApproving(t)
  const href = await bench.draft('web access')
  const asked = await bench.call('ann', ALL, { hrefs: [href] })
  partial(t, asked, {
    error: 'confirm_required',
    reason: 'missing',
    params_hash: /^[0-9a-f]{64}$/,
    summary: /^Makes a pending change active/,
    approval_id: /^[\w-]{43}$/,
    approval_url: `https://mcp.example.test/approve/${asked.approval_id}`,
    expires_at: new Date(bench.clock.now + 900_000).toISOString(),
    hint: /the person you work for/,
    confirm: undefined,
  })
  const { approval_id: id } = asked
  partial(t, await bench.call('ann', ALL, { hrefs: [href] }), {
    error: 'approval_pending',
    approval_id: id,
    approval_url: asked.approval_url,
    expires_at: asked.expires_at,
    summary: asked.summary,
  })
  t.equal(bench.provisioned(), 0)

  const ann = bench.person('ann')
  partial(t, await bench.desk.waitingFor(ann), { total: 1, approvals: [{ request: { id }, state: 'pending' }] })
  const { won, approval } = await bench.decide(id, 'approved', ann, ' two\nlines \u202e')
  t.equal(won, true)
  partial(t, approval, { state: 'approved', decision: { verdict: 'approved', note: 'two lines' } })
  partial(t, await bench.call('ann', ALL, { hrefs: [href] }), { version: Number, provisioned_hrefs: [href] })
  t.equal(bench.provisioned(), 1)
  partial(t, await bench.desk.find(id), { state: 'used' })
  partial(t, await bench.desk.waitingFor(ann), { total: 0, approvals: [] })

  const entries = bench.entries(id)
  t.same(eventsOf(entries), ['asked', 'used', 'approved'])
  partial(
    t,
    entries.find(({ approval: event }) => event === 'approved'),
    {
      decision: 'allowed',
      route: '/approve',
      sub: 'ann',
      role: 'admin',
      note: 'two lines',
      request_id: 'page-1',
      client: 'browser/1',
      client_address: '192.0.2.7',
      asked_by: undefined,
    },
  )
  partial(
    t,
    entries.find(({ outcome }) => outcome === 'success'),
    {
      approval: 'used',
      approved_by: { sub: 'ann' },
      tool: ALL,
    },
  )
  await bench.draft('more')
  const again = await bench.call('ann', ALL, { hrefs: [href] })
  partial(t, again, { error: 'confirm_required', reason: 'missing' })
})

t.test('denied: the call says so with the note, until it would do something else', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.decide(id, 'denied', bench.person('ann'), 'not on a Friday')
  const denied = {
    error: 'approval_denied',
    approval_id: id,
    note: 'not on a Friday',
    denied_until: new Date(bench.clock.now + 900_000).toISOString(),
  }
  partial(t, await bench.call('ann', ALL), denied)
  partial(t, await bench.call('ann', ALL), denied)
  await bench.draft('two')
  const anew = await bench.call('ann', ALL)
  partial(t, anew, { error: 'confirm_required', reason: 'stale' })
  t.not(anew.approval_id, id)
  t.equal(bench.provisioned(), 0)
  partial(
    t,
    bench.entries(id).find(({ approval }) => approval === 'denied'),
    {
      decision: 'denied',
      reason: 'approval_denied',
      note: 'not on a Friday',
    },
  )
})

t.test('expired: nobody can decide any more, the call is asked anew, the audit log has one entry', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  bench.clock.now += 900_000
  await t.rejects(bench.decide(id, 'approved', bench.person('ann')), { code: 'approval_expired' })
  partial(t, await bench.desk.find(id), { state: 'expired' })
  await Promise.all([bench.sweep(), bench.sweep()])
  await bench.sweep()
  partial(
    t,
    bench.entries(id).filter(({ approval }) => approval === 'expired'),
    [{ decision: 'denied', reason: 'approval_expired', sub: 'ann', tool: ALL }],
  )
  const anew = await bench.call('ann', ALL)
  partial(t, anew, { error: 'confirm_required', reason: 'expired' })
  t.not(anew.approval_id, id)

  await bench.decide(anew.approval_id, 'approved', bench.person('ann'))
  bench.clock.now += 900_000
  partial(t, await bench.call('ann', ALL), { error: 'confirm_required', reason: 'expired' }, 'too late to be used')
  const ends = () => bench.entries(anew.approval_id).filter(({ approval }) => approval === 'expired').length
  await bench.sweep()
  t.equal(ends(), 0, 'a call that came in time may still be at work')
  bench.clock.now += 3_600_000
  await bench.sweep()
  t.equal(ends(), 1)
  t.equal(bench.provisioned(), 0)
})

t.test('what has changed since it was shown is void and asked anew; the old approval runs nothing ever', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.decide(id, 'approved', bench.person('ann'))
  await bench.draft('two')
  const anew = await bench.call('ann', ALL)
  partial(t, anew, { error: 'confirm_required', reason: 'stale', changes_total: 2 })
  partial(t, await bench.desk.find(id), { state: 'void', decision: { verdict: 'approved' } })
  t.same(eventsOf(bench.entries(id)), ['asked', 'void', 'approved'])
  partial(t, await bench.call('ann', ALL), { error: 'approval_pending', approval_id: anew.approval_id })
  t.equal(bench.provisioned(), 0)
})

t.test('who approved must still be allowed to, under the mapping of the day; so must who asks', async (t) => {
  const bench = await startApproving(t, { method: 'two-person' })
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.decide(id, 'approved', bench.person('bob'))
  const groups = { reader: [GROUP_OF.reader], operator: [GROUP_OF.operator], admin: ['g-chiefs'] }
  const later = await startApproving(t, { after: bench, roles: { groups, otherwise: null } })
  const token = await bench.service.tokenOf('ann', null, { groups: ['g-chiefs'] })
  partial(t, await later.service.call(token, ALL), { error: 'confirm_required', reason: 'stale' })
  partial(t, await later.desk.find(id), { state: 'void' })
  partial(t, await later.call('ann', ALL), { error: 'forbidden_no_role' })
  t.equal(bench.provisioned(), 0)
})

let pair: ReturnType<typeof startPair> | undefined
async function startPair() {
  const bench = await startApproving(t)
  return [bench, await startApproving(t, { after: bench })] as const
}
/** Two processes with one state, for the cases in which both are asked at a time. */
const twoProcesses = () => (pair ??= startPair())

t.test(
  'what cannot be shown for want of a place is not asked: the call is busy, and says when to try again',
  async (t) => {
    const ends = { providers: ['ams'], consumers: ['ams'] }
    const rule = { ...ends, ingress_services: [{ port: 443, proto: 'tcp' }] }
    const CALLS = {
      [ALL]: {},
      'create-rule': { ruleset_name: 'Payments', ...rule },
      'create-ruleset': { name: 'Shop', scopes: [['app=payments']], rules: [rule] },
      'create-iplist': { name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] },
      'ringfence-batch': { apps: [{ app_name: 'payments', env_name: 'prod' }] },
    }
    const bench = await startApproving(t, {
      confirm: { tools: Object.keys(CALLS) },
      threads: {
        worker: pathToFileURL(compiled('programs/worker.ts')),
        // A place that is never free: each of the calls finds all taken.
        heavy: { max: 0, perCaller: 1, queue: 0, queuePerCaller: 1, memoryMb: 512 },
      },
    })
    for (const [name, args] of Object.entries(CALLS)) {
      const answer = await bench.call('ann', name, args)
      t.same(Object.keys(answer), ['error', 'message', 'hint', 'request_id', 'retry_after_seconds'], name)
      partial(t, answer, { error: 'busy', retry_after_seconds: 60 }, name)
    }
    t.same(
      bench.service.audit.map(({ tool, decision, reason, approval_id }) => [tool, decision, reason, approval_id]),
      Object.keys(CALLS).map((name) => [name, 'denied', 'busy', undefined]),
    )
    partial(t, await bench.desk.waitingFor(bench.person('ann')), { total: 0 })
  },
)

t.test('six questions at a time are one', async (t) => {
  const [bench, other] = await twoProcesses()
  await bench.draft('one')
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, at) => (at % 2 === 0 ? bench : other).call('ann', ALL)),
  )
  t.equal(new Set(answers.map(({ approval_id: id }) => id as string)).size, 1)
  t.equal(answers.filter(({ error }) => error === 'confirm_required').length, 1)
  partial(t, await bench.desk.waitingFor(bench.person('ann')), { total: 1 })
})

t.test('two tabs: one decision wins, and both are told which', async (t) => {
  const [bench, other] = await twoProcesses()
  for (const name of ['first', 'second', 'third']) {
    await bench.draft(name)
    const { approval_id: id } = await bench.call('ann', ALL)
    const ann = bench.person('ann')
    const told = await Promise.all([
      bench.decide(id, 'approved', ann),
      other.decide(id, 'denied', ann),
      bench.decide(id, 'denied', ann),
      other.decide(id, 'approved', ann),
    ])
    const winner = told.find(({ won }) => won)!.approval.state
    t.equal(told.filter(({ won }) => won).length, 1)
    t.same([...new Set(told.map(({ approval }) => approval.state))], [winner])
    partial(t, await other.desk.find(id), { state: winner })
    const late = await bench.decide(id, winner === 'approved' ? 'denied' : 'approved', ann)
    partial(t, late, { won: false, approval: { state: winner } })
  }
})

t.test('eight repeats at a time after one approval run one', async (t) => {
  const [bench, other] = await twoProcesses()
  await bench.draft('repeated')
  const before = bench.provisioned()
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.decide(id, 'approved', bench.person('ann'))
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, at) => (at % 2 === 0 ? bench : other).call('ann', ALL)),
  )
  t.equal(answers.filter(({ version }) => version !== undefined).length, 1)
  t.equal(bench.provisioned() - before, 1)
  const refused = new Set(answers.filter(({ version }) => version === undefined).map(({ error }) => error))
  refused.delete('confirm_token_replay')
  refused.delete('confirm_required')
  refused.delete('approval_pending')
  t.same([...refused], [], 'the others were told that they did not run')
})

t.test('whoever can only write to the state approves nothing', async (t) => {
  const bench = await startApproving(t)
  const { rows } = bench
  await bench.draft('one')
  const ask = async () => (await bench.call('ann', ALL)).approval_id as string
  const spare = await bench.call('ann', ALL, { change_description: 'another' })
  await bench.decide(spare.approval_id, 'approved', bench.person('ann'))
  const given = (await rows.get(spare.approval_id))!

  const madeUp = JSON.stringify({ verdict: 'approved', by: bench.person('ann'), at: bench.clock.now })
  const [code] = given.decision!.split('.')
  for (const decision of [madeUp, `${'0'.repeat(64)}.${madeUp}`, `${code}.${madeUp}`, given.decision!]) {
    const id = await ask()
    t.equal(await rows.decide(id, decision), true)
    const anew = await bench.call('ann', ALL)
    partial(t, anew, { error: 'confirm_required', reason: 'missing' }, 'as if there were none')
    t.not(anew.approval_id, id)
    t.equal(await bench.desk.find(id), null)
  }

  const id = await ask()
  const row = (await rows.get(id))!
  await rows.removeAll(row.key.owner)
  // The approved request and its yes, under the address and in the place of the other call.
  await rows.open({ ...given, key: row.key })
  await rows.decide(given.id, given.decision!)
  partial(t, await bench.call('ann', ALL), { error: 'confirm_required' }, 'moved to another call')
  await rows.removeAll(row.key.owner)
  await rows.open({ ...given, id, key: row.key })
  await rows.decide(id, given.decision!)
  partial(t, await bench.call('ann', ALL), { error: 'confirm_required' }, 'under another id')
  await rows.removeAll(row.key.owner)
  await rows.open({ ...row, request: row.request.replace('"ann"', '"bob"') })
  partial(t, await bench.call('ann', ALL), { error: 'confirm_required' }, 'an altered request')
  t.equal(bench.provisioned(), 0)
})

t.test('a confirm token counts for nothing, and none is issued', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const asked = await bench.call('ann', ALL)
  const token = await bench.service.tokenOf('ann')
  const minted = await bench.service.confirm(token, { tool: ALL, params_hash: asked.params_hash })
  t.equal(minted.statusCode, 403)
  partial(t, minted.json(), { error: 'approval_required', hint: /approval_url/, params_hash: asked.params_hash })

  const { state } = bench.composed
  const confirmations = createTokens({
    config: bench.service.config.mode === 'shared' ? bench.service.config.confirm : (null as never),
    audience: `https://mcp.example.test#${await state.notes.get('confirm_tokens')}`,
    usedTokens: state.usedTokens,
    challenges: state.challenges,
    now: () => bench.clock.now,
  })
  const request = (await bench.desk.find(asked.approval_id))!.request
  const { owner, tool, paramsHash, pce, boundTo } = request
  const call = { owner, tool, paramsHash, ...(pce !== undefined && { pce }) }
  await confirmations.ask(call, boundTo)
  const { token: forged } = await confirmations.mint(call)
  partial(t, await bench.call('ann', ALL, {}, { confirm_token: forged }), { error: 'approval_pending' })
  partial(t, await bench.call('ann', ALL, { _meta: { confirm_token: forged } }), { error: 'approval_pending' })
  t.equal(bench.provisioned(), 0)
})

t.test('an admin sees the oldest questions of everybody, however many others one person asks', async (t) => {
  const bench = await startApproving(t, { confirm: { tools: ['create-label'] } })
  const ask = async (sub: string, value: string) => {
    bench.clock.now += 1000
    const { approval_id: id } = await bench.call(sub, 'create-label', { key: 'app', value }, undefined, 'operator')
    return id as string
  }
  const olgas: string[] = []
  for (let n = 0; n < 12; n++) olgas.push(await ask('olga', `of olga ${n}`))
  const ottos = await ask('otto', 'of otto')
  const listed = async (...who: Parameters<typeof bench.person>) => {
    const { total, approvals } = await bench.desk.waitingFor(bench.person(...who))
    return [total, approvals.map(({ request }) => request.id)]
  }
  t.same(await listed('adam'), [13, [...olgas.slice(0, 10), ottos]])
  t.same(await listed('olga', 'operator'), [12, olgas])
})

t.test('page: whoever asks decides, or an admin for them; nobody else learns of it', async (t) => {
  const bench = await startApproving(t, { confirm: { tools: ['create-label'] } })
  const args = { key: 'app', value: 'reissue' }
  const asked = await bench.call('olga', 'create-label', args, undefined, 'operator')
  const { approval_id: id } = asked
  partial(t, asked, { error: 'confirm_required', approval_id: String })
  const { request } = (await bench.desk.find(id))!
  const [olga, admin] = [bench.person('olga', 'operator'), bench.person('bob')]
  const others = [bench.person('otto', 'operator'), bench.person('rita', 'reader'), bench.person('nora', null)]
  t.equal(bench.desk.partOf(request, olga), 'asker')
  t.equal(bench.desk.partOf(request, admin), 'admin')
  t.equal(bench.desk.partOf(request, bench.person('olga', 'reader')), 'watching', 'her role allows the tool no more')
  t.equal(bench.desk.partOf(request, { ...olga, iss: 'https://other.example' }), 'nobody')
  for (const other of others) {
    t.equal(bench.desk.partOf(request, other), 'nobody')
    await t.rejects(bench.decide(id, 'approved', other), { code: 'not_found' })
    partial(t, await bench.desk.waitingFor(other), { total: 0, approvals: [] })
  }
  await t.rejects(bench.decide(id, 'approved', bench.person('olga', 'reader')), { code: 'forbidden' })
  await t.rejects(bench.decide('A'.repeat(43), 'approved', admin), { code: 'not_found' })
  partial(t, await bench.desk.waitingFor(admin), { total: 1, approvals: [{ request: { id } }] })
  partial(t, request.shown, {
    summary: String,
    objects: [
      {
        kind: 'request',
        name: /^POST .*\/labels$/,
        change: 'create',
        fields: [
          { path: 'key', after: 'app' },
          { path: 'value', after: 'reissue' },
        ],
      },
    ],
    objects_total: 1,
  })
  await bench.decide(id, 'approved', admin)
  partial(t, await bench.call('olga', 'create-label', args, undefined, 'operator'), {
    error: undefined,
    label: { value: 'reissue' },
  })
  partial(
    t,
    bench.entries(id).find(({ approval }) => approval === 'approved'),
    {
      sub: 'bob',
      asked_by: { sub: 'olga' },
    },
  )
})

t.test('two-person: an admin other than whoever asks', async (t) => {
  const bench = await startApproving(t, { method: 'two-person' })
  await bench.draft('one')
  const asked = await bench.call('ann', ALL)
  const { approval_id: id } = asked
  partial(t, asked, { hint: /an admin other than the person you work for/ })
  const { request } = (await bench.desk.find(id))!
  t.equal(bench.desk.partOf(request, bench.person('ann')), 'watching')
  await t.rejects(bench.decide(id, 'approved', bench.person('ann')), { code: 'forbidden' })
  await t.rejects(bench.decide(id, 'approved', bench.person('olga', 'operator')), { code: 'not_found' })
  partial(t, await bench.call('ann', ALL), { error: 'approval_pending' })
  await bench.decide(id, 'approved', bench.person('bob'))
  partial(t, await bench.call('bob', ALL), { error: 'confirm_required' }, 'the approval is for the call of ann')
  partial(t, await bench.call('ann', ALL), { version: Number })
  t.equal(bench.provisioned(), 1)
})

t.test('after a restart, and at another replica, between all steps', async (t) => {
  const first = await startApproving(t)
  await first.draft('one')
  const { approval_id: id } = await first.call('ann', ALL)
  await first.service.app.close()
  const second = await startApproving(t, { after: first })
  partial(t, await second.call('ann', ALL), { error: 'approval_pending', approval_id: id })
  await second.service.app.close()
  const third = await startApproving(t, { after: first })
  await third.decide(id, 'approved', third.person('ann'))
  await third.service.app.close()
  const fourth = await startApproving(t, { after: first })
  partial(t, await fourth.call('ann', ALL), { version: Number })
  await fourth.service.app.close()
  const fifth = await startApproving(t, { after: first })
  partial(t, await fifth.call('ann', ALL), { error: 'confirm_required', reason: 'missing' })
  t.equal(first.provisioned(), 1)
})

t.test(
  'a run that the PCE fails has used its approval: the answer says what happened, and the call asks anew',
  async (t) => {
    const path = /\/sec_policy$/
    const body = [{ token: 'forbidden', message: 'No, said the PCE' }]
    const failures = [
      [
        { kind: 'status', status: 403, body },
        { error: 'pce_error', http_status: 403, pce_message: 'No, said the PCE' },
      ],
      [{ kind: 'status', status: 503 }, { error: 'outcome_unknown' }],
      [{ kind: 'commit-then-drop' }, { error: 'outcome_unknown' }],
    ] as const
    for (const [fault, told] of failures) {
      const bench = await startApproving(t)
      await bench.draft('one')
      const { approval_id: id } = await bench.call('ann', ALL)
      await bench.decide(id, 'approved', bench.person('ann'))
      const version = bench.simulator.state.policyVersion
      bench.simulator.faults.add({ ...fault, method: 'POST', path, times: 1 })
      partial(t, await bench.call('ann', ALL), told)
      partial(t, await bench.desk.find(id), { state: 'used' })
      partial(
        t,
        bench.entries(id).find(({ phase }) => phase === 'outcome'),
        { outcome: 'error', reason: told.error, approval: 'used' },
      )
      const after = bench.simulator.state.policyVersion
      t.equal(after - version, fault.kind === 'commit-then-drop' ? 1 : 0)

      const again = await bench.call('ann', ALL)
      partial(t, again, { error: 'confirm_required', reason: 'missing', approval_id: String })
      t.not(again.approval_id, id)
      partial(t, await bench.call('ann', ALL), { error: 'approval_pending', approval_id: again.approval_id })
      t.equal(bench.simulator.state.policyVersion, after)
      t.equal(bench.provisioned(), 1, 'the PCE was told once')
    }
  },
)

t.test('what the audit log cannot take is not given', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  bench.auditStream.destroy(new Error('ENOSPC'))
  await t.rejects(bench.decide(id, 'approved', bench.person('ann')), { code: 'audit_unavailable' })
  partial(t, await bench.desk.find(id), { state: 'pending', decision: null })
  partial(t, await bench.call('ann', ALL), { error: 'approval_pending' })
})

t.test('a store that does not answer refuses the call and the decision', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.composed.state.close()
  const refused = { code: 'confirm_unavailable' }
  await t.rejects(bench.desk.find(id), refused)
  await t.rejects(bench.desk.waitingFor(bench.person('ann')), refused)
  await t.rejects(bench.decide(id, 'approved', bench.person('ann')), refused)
})

t.test('what was shown is written once for each person; those who wait are woken', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  const { request } = (await bench.desk.find(id))!
  for (const sub of ['ann', 'bob', 'ann']) await bench.desk.noteShown(request, bench.person(sub), FROM)
  partial(
    t,
    bench.entries(id).filter(({ approval }) => approval === 'shown'),
    [
      { sub: 'ann', role: 'admin', asked_by: undefined },
      { sub: 'bob', role: 'admin', asked_by: { sub: 'ann' } },
    ],
  )
  const { watch } = bench.composed.approvals!
  const waits = watch.awaitDecision(id, AbortSignal.timeout(60_000))
  await bench.decide(id, 'denied', bench.person('ann'))
  await waits
  await watch.awaitDecision(id, AbortSignal.timeout(60_000))
  await watch.awaitDecision('unknown', AbortSignal.timeout(60_000))
  const gone = new AbortController()
  await bench.draft('two')
  const anew = await bench.call('ann', ALL)
  const left = watch.awaitDecision(anew.approval_id, gone.signal)
  gone.abort()
  await left
  t.pass('each has come to its end')
})
