/** provision-policy: what becomes active, what is refused before it does, and what the answer says. */
import t from 'tap'
import { partial } from '../partial.js'
import { startTwisted } from './twisted.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

const TOOL = 'provision-policy'
const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }

async function draft(bench: Bench, name: string): Promise<{ href: string; rule: string }> {
  const { ruleset } = await bench.ok('create-ruleset', { name, scopes: [['app=payments', 'env=prod']], rules: [rule] })
  bench.writes()
  return { href: ruleset.href, rule: ruleset.rules[0].href }
}

t.test('provision-policy', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench
  const version = () => simulator.state.policyVersion

  await t.test('nothing pending is no_changes, and nothing is sent', async (t) => {
    bench.writes()
    const before = version()
    partial(t, await bench.ok(TOOL), { status: 'no_changes', message: /Nothing is pending/ })
    t.same(bench.writes(), [])
    t.equal(version(), before)
  })

  await t.test('refuses all invalid hrefs together, before any request', async (t) => {
    simulator.clearRequests()
    const bad = [
      '/orgs/1/labels/1',
      '/orgs/2/sec_policy/draft/rule_sets/1',
      '/orgs/1/sec_policy/57/rule_sets/1',
      '/orgs/1/sec_policy/draft/rule_sets',
      '/orgs/1/sec_policy/draft/../rule_sets/1',
      'rule_sets/1',
      '/orgs/1/sec_policy/draft/rule_sets/1?x',
      '/orgs/1/sec_policy/draft/services/1/sec_rules/2',
    ]
    t.same(
      (await bench.fails(TOOL, { hrefs: ['/orgs/1/sec_policy/draft/rule_sets/2', ...bad] }, 'invalid_argument'))
        .invalid,
      bad,
    )
    await bench.fails(TOOL, { hrefs: [] }, 'invalid_argument')
    await bench.fails(TOOL, { href: 'x' }, 'invalid_argument')
    t.equal(simulator.requests.length, 0)
  })

  await t.test('an object without a pending change is not_pending, listing those with one', async (t) => {
    const { href } = await draft(bench, 'waiting')
    const error = await bench.fails(TOOL, { hrefs: ['/orgs/1/sec_policy/draft/rule_sets/2', href] }, 'not_pending')
    t.same(error.not_pending, ['/orgs/1/sec_policy/draft/rule_sets/2'])
    partial(t, error.pending, [{ href, type: 'rule_sets', name: 'waiting', update_type: 'create' }])
    t.same(bench.writes(), [])
  })

  await t.test('maps a rule to its rule set and an active href to its draft, each once', async (t) => {
    const chosen = await draft(bench, 'chosen')
    const active = chosen.href.replace('/draft/', '/active/')
    const answer = await bench.ok(TOOL, {
      hrefs: [chosen.rule, active, chosen.href, chosen.rule.replace('/draft/', '/active/')],
      change_description: 'just this',
    })
    t.same(
      bench.writes().map(({ path, body }) => [path, body]),
      [
        [
          '/api/v2/orgs/1/sec_policy',
          { update_description: 'just this', change_subset: { rule_sets: [{ href: chosen.href }] } },
        ],
      ],
    )
    partial(t, answer, {
      version: version(),
      href: `/orgs/1/sec_policy/${version()}`,
      change_description: 'just this',
      commit_message: 'just this',
      provisioned_hrefs: [chosen.href],
      object_counts: { rule_sets: Number },
      impact: { num_managed_workloads: Number },
    })
    t.type(answer.workloads_affected, 'number')
    partial(t, simulator.state.find(active), { name: 'chosen' })
    t.same(simulator.state.pendingHrefs().length, 1, 'the other change still waits')
  })

  await t.test('a dry run reads everything and changes nothing', async (t) => {
    const before = version()
    const answer = await bench.ok(TOOL, { dry_run: true })
    partial(t, answer, {
      dry_run: true,
      requests: [{ method: 'POST', path: '/orgs/1/sec_policy', body: { update_description: 'Provisioned via MCP' } }],
      impact: {},
    })
    t.notOk('provisioned_hrefs' in answer)
    t.same(bench.writes(), [])
    t.equal(version(), before)
  })

  await t.test('changes that do not fit the answer are still provisioned, and it says so', async (t) => {
    const small = await startBench(t, { budget: 3_000 })
    for (let n = 0; n < 25; n++) await draft(small, `one of many ${n}`)
    for (const args of [{ dry_run: true }, {}]) {
      const answer = await small.ok(TOOL, args)
      t.ok(Buffer.byteLength(JSON.stringify(answer)) <= 3_000)
      partial(t, answer.warnings, [
        `changes lists ${answer.changes.length} of 25; the list of hrefs is complete, and a call with hrefs is about these alone.`,
      ])
      const hrefs = answer.provisioned_hrefs ?? answer.requests[0].body.change_subset.rule_sets
      t.equal(hrefs.length, 25)
    }
  })

  await t.test('without hrefs provisions everything pending, of any kind', async (t) => {
    const list = await bench.pce.ipLists.create({ name: 'New partner', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
    await bench.pce.ipLists.update('/orgs/1/sec_policy/draft/ip_lists/2', { description: 'changed' })
    const gone = (await bench.pce.ruleSets.getAll()).find(({ name }) => name === 'Legacy migration')!
    await bench.pce.ruleSets.delete(gone.href)
    const answer = await bench.ok(TOOL)
    const expected = [list.href, '/orgs/1/sec_policy/draft/ip_lists/2', gone.href]
    t.ok(expected.every((href) => answer.provisioned_hrefs.includes(href)))
    t.same(simulator.state.pendingHrefs(), [])
    t.equal(simulator.state.find(gone.href), undefined)
    t.equal(answer.commit_message, 'Provisioned via MCP')
    partial(t, await bench.ok(TOOL), { status: 'no_changes' })
  })

  await t.test('refuses a rule set that needs another pending object, names it, and does not commit', async (t) => {
    const list = await bench.pce.ipLists.create({ name: 'Needed', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
    const { ruleset } = await bench.ok('create-ruleset', {
      name: 'needy',
      scopes: [['app=payments']],
      rules: [{ ...rule, consumers: ['iplist:Needed'], unscoped_consumers: true }],
    })
    bench.writes()
    const before = version()
    const error = await bench.fails(TOOL, { hrefs: [ruleset.href] }, 'dependencies_required')
    t.same(error.required, [{ href: list.href, type: 'ip_lists', required_by: [ruleset.href] }])
    t.match(error.hint, /include_dependencies/)
    await bench.fails(TOOL, { hrefs: [ruleset.href], include_dependencies: false }, 'dependencies_required')
    await bench.fails(TOOL, { hrefs: [ruleset.href], dry_run: true }, 'dependencies_required')
    t.same(bench.writes(), [])
    t.equal(version(), before)
    partial(t, await bench.ok(TOOL, { hrefs: [ruleset.href, list.href] }), { version: before + 1 })
  })

  await t.test('include_dependencies adds what is needed and says what and why', async (t) => {
    const list = await bench.pce.ipLists.create({ name: 'Along', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
    const apart = await bench.pce.ipLists.create({ name: 'Apart', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
    const { ruleset } = await bench.ok('create-ruleset', {
      name: 'with company',
      scopes: [['app=payments']],
      rules: [{ ...rule, consumers: ['iplist:Along'], unscoped_consumers: true }],
    })
    const args = { hrefs: [ruleset.href], include_dependencies: true }
    const along = [{ href: list.href, type: 'ip_lists', required_by: [ruleset.href] }]
    bench.writes()
    const dry = await bench.ok(TOOL, { ...args, dry_run: true })
    t.same(dry.dependencies_included, along)
    const subset = { rule_sets: [{ href: ruleset.href }], ip_lists: [{ href: list.href }] }
    t.same(dry.requests[0].body.change_subset, subset)
    t.same(bench.writes(), [])

    const before = version()
    const answer = await bench.ok(TOOL, args)
    partial(t, answer, { version: before + 1, provisioned_hrefs: [ruleset.href, list.href], message: /2 objects/ })
    t.same(answer.dependencies_included, along)
    partial(t, answer.changes, [{ name: 'with company' }, { name: 'Along', type: 'ip_lists', update_type: 'create' }])
    partial(
      t,
      bench.writes().map(({ body }) => body),
      [{ change_subset: subset }],
    )
    t.ok(simulator.state.pendingHrefs().includes(apart.href), 'and nothing else')
    const alone = await bench.ok(TOOL, { hrefs: [apart.href], include_dependencies: true })
    t.notOk('dependencies_included' in alone)
  })

  await t.test('asks until the PCE names no further dependency', async (t) => {
    const inner = await bench.pce.labelGroups.create({ name: 'inner', key: 'env', labels: [] })
    const outer = await bench.pce.labelGroups.create({ name: 'outer', key: 'env', sub_groups: [{ href: inner.href }] })
    const { ruleset } = await bench.ok('create-ruleset', { name: 'deep', scopes: [['labelgroup:outer']], rules: [] })
    const body = [
      { dependency: { label_groups: { href: outer.href } }, required_by: { rule_sets: [{ href: ruleset.href }] } },
    ]
    simulator.faults.add({ kind: 'status', path: /dependencies$/, times: 1, status: 200, body })
    const answer = await bench.ok(TOOL, { hrefs: [ruleset.href], include_dependencies: true })
    t.same(answer.dependencies_included, [
      { href: outer.href, type: 'label_groups', required_by: [ruleset.href] },
      { href: inner.href, type: 'label_groups', required_by: [outer.href] },
    ])
    t.same(answer.provisioned_hrefs.toSorted(), [ruleset.href, outer.href, inner.href].toSorted())
  })

  await t.test('stops asking a PCE that always names another dependency', async (t) => {
    const { href } = await draft(bench, 'bottomless')
    for (let n = 0; n < 30; n++) {
      const dependency = { ip_lists: { href: `/orgs/1/sec_policy/draft/ip_lists/${n + 9000}` } }
      const body = [{ dependency, required_by: { rule_sets: [{ href }] } }]
      simulator.faults.add({ kind: 'status', path: /dependencies$/, times: 1, status: 200, body })
    }
    simulator.clearRequests()
    await bench.fails(TOOL, { hrefs: [href], include_dependencies: true }, 'dependencies_required')
    t.ok(simulator.requests.length < 30)
    t.notOk(simulator.requests.some(({ path }) => path.endsWith('/sec_policy')))
    simulator.faults.clear()
  })

  await t.test('an unknown impact or a version that cannot be read back is a warning', async (t) => {
    const { href } = await draft(bench, 'murky')
    simulator.faults.add(
      { kind: 'status', path: '/orgs/1/sec_policy/impact', times: 10, status: 404 },
      { kind: 'status', path: /\/sec_policy\/\d+$/, method: 'GET', times: 10, status: 404 },
    )
    const answer = await bench.ok(TOOL, { hrefs: [href] })
    simulator.faults.clear()
    partial(t, answer, { version: version(), warnings: [/how many workloads/, /read back/], provisioned_hrefs: [href] })
  })

  await t.test('stops if dependencies cannot be read', async (t) => {
    const { href } = await draft(bench, 'unsure')
    simulator.faults.add({
      kind: 'status',
      path: /dependencies$/,
      times: 1,
      status: 403,
      body: [{ token: 'forbidden', message: 'No' }],
    })
    partial(t, await bench.fails(TOOL, { hrefs: [href] }, 'pce_error'), { http_status: 403, token: 'forbidden' })
    t.same(bench.writes(), [])
  })

  await t.test("quotes the PCE's refusal; a lost answer is outcome_unknown, sent once", async (t) => {
    const { href } = await draft(bench, 'refused')
    simulator.faults.add({
      kind: 'status',
      path: /\/sec_policy$/,
      method: 'POST',
      times: 1,
      status: 406,
      body: [{ token: 'commit_failed', message: 'Not now' }],
    })
    partial(t, await bench.fails(TOOL, { hrefs: [href] }, 'pce_error'), {
      token: 'commit_failed',
      pce_message: 'Not now',
    })
    bench.writes()
    simulator.faults.add({ kind: 'commit-then-drop', path: /\/sec_policy$/, method: 'POST', times: 1 })
    await bench.fails(TOOL, { hrefs: [href] }, 'outcome_unknown')
    t.equal(bench.writes().length, 1)
    await bench.fails(TOOL, { hrefs: [href] }, 'not_pending')
  })
})

t.test('a story: draft, provision, and the same question answered differently', async (t) => {
  const bench = await startBench(t)
  const ask = async () =>
    await bench.ok('get-traffic-flows-summary', {
      ...WEEK,
      include_destinations: ['app=payments', 'env=prod'],
      sections: ['app_to_app'],
    })
  const permitted = ({ app_to_app: rows }: Json) =>
    rows.find((row: Json) => row.from === 'ordering (prod)').policy as string
  t.equal(permitted(await ask()), 'potentially_blocked')
  await bench.ok('create-ruleset', {
    name: 'payments for ordering',
    scopes: [['app=payments', 'env=prod']],
    rules: [
      {
        providers: ['ams'],
        consumers: ['app=ordering', 'env=prod'],
        ingress_services: 'All Services',
        unscoped_consumers: true,
      },
    ],
  })
  t.equal(permitted(await ask()), 'potentially_blocked', 'a draft changes nothing')
  await bench.ok(TOOL, { change_description: 'let ordering in' })
  t.equal(permitted(await ask()), 'allowed')
})

t.test('two counts of workloads that differ are told apart', async (t) => {
  const bench = await startTwisted(t, { workloads: 40, flows: 0 })
  const provision = async (expected: number) => {
    await bench.pce.ipLists.create({ name: `list ${expected}`, ip_ranges: [{ from_ip: '192.0.2.1' }] })
    bench.twist(({ path }, { status, body }) =>
      path.endsWith('/impact')
        ? { status, body: JSON.stringify({ ...(JSON.parse(body) as Json), num_managed_workloads: expected }) }
        : undefined,
    )
    const { warnings, workloads_affected: affected } = await bench.ok('provision-policy')
    return [affected, warnings]
  }
  const [affected] = await provision(25)
  t.same(await provision(affected as number), [affected, undefined])
  t.same(await provision(26), [
    affected,
    [
      `The PCE expected 26 managed workloads to be affected (impact), and counted ${affected as number} right afterwards (workloads_affected): it may still be counting.`,
    ],
  ])
})

t.test('what is claimed to be active was read back, or is marked as not verified', async (t) => {
  const bench = await startTwisted(t, { workloads: 40, flows: 0 })
  const { href } = await draft(bench, 'claimed')
  const isPost = ({ method, path }: { method: string; path: string }) =>
    method === 'POST' && path.endsWith('/sec_policy')
  // A PCE that accepts the call and does nothing.
  const body = { href: '/orgs/1/sec_policy/57', version: 57 }
  bench.simulator.faults.add({ kind: 'status', path: /\/sec_policy$/, method: 'POST', times: 1, status: 201, body })
  const answer = await bench.ok(TOOL, { hrefs: [href] })
  t.equal(answer.message, 'The PCE accepted provisioning 1 object as policy version 57, but 1 is pending as before.')
  t.same([answer.provisioned_hrefs, answer.verified], [[], false])
  t.ok(
    answer.warnings.includes('The PCE accepted the call; pending as before nevertheless, and not active: "claimed".'),
  )

  let isSent = false
  bench.twist((request) => {
    isSent ||= isPost(request)
    return isSent && request.path.endsWith('/pending') ? { status: 403, body: '[]' } : undefined
  })
  const unread = await bench.ok(TOOL, { hrefs: [href] })
  t.same([unread.provisioned_hrefs, unread.verified], [[href], false])
  t.ok(
    unread.warnings.includes('What is still pending could not be read back: that all of it is active is not verified.'),
  )
  bench.twist(() => undefined)
  const list = await bench.pce.ipLists.create({ name: 'verified', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  t.equal((await bench.ok(TOOL, { hrefs: [list.href] })).verified, true)
})
