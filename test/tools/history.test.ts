/** Policy versions, the draft and who changed what, on a history made by hand: the whole right answer of each tool of the toolset. */
import t, { type Test } from 'tap'
import type { PceClient } from '../../pce-client/index.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { connect, startBench, type Bench, type Json } from './harness.js'

const DAY = 86_400_000
const FIRST = Date.parse('2026-06-01T08:00:00Z')
const SET = '/orgs/1/sec_policy/draft/rule_sets/1'
const RULE = `${SET}/sec_rules/1`
const LIST = '/orgs/1/sec_policy/draft/ip_lists/2'
const ADA = 'admin@example.com'

const ESTATE = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=test' },
    'shop-1': { ip: '10.0.0.3', labels: 'app=shop env=prod' },
  },
  ipLists: { Branches: ['203.0.113.0/24'] },
  ruleSets: [
    {
      name: 'Pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'iplist:Branches', to: 'ams', services: [{ port: 443, proto: 6 }] }],
    },
    { name: 'Pay test', scope: 'app=pay env=test' },
    {
      name: 'Shop',
      scope: 'app=shop env=prod',
      allow: [{ from: 'app=pay', to: 'ams', services: [{ port: 8443, proto: 6 }], extra: true }],
    },
  ],
}

interface History extends Bench {
  /** Another person. */
  bob: PceClient
  bobName: string
  at: (day: number) => string
  /** The href of the rule set that version 3 creates and version 5 deletes. */
  fleeting: string
}

/**
 * 1: the estate. 2 (day 1, Ada): the list grows. 3 (day 2, Bob): the rule also from anywhere on 8080, and a new rule set. 4 (day 3, Ada): the list is as
 * in 1. 5 (day 4, Bob): the new rule set goes. Then, on day 5, the draft of Pay gets a description.
 */
async function startHistory(t: Test, options: object = {}): Promise<History> {
  let day = 0
  const time = () => FIRST + day * DAY
  const bench = await startBench(t, { estate: handMade(ESTATE), now: time, users: [{ role: 'owner' }], ...options })
  const { pce, simulator } = bench
  const bob = connect({ orgId: 1, credentials: simulator.keys[0]! }, simulator.url)
  t.teardown(() => bob.close())
  const provision = (by: PceClient, message: string) =>
    by.provisionPolicyChanges(message, simulator.state.pendingHrefs())
  day = 1
  await pce.ipLists.update(LIST, { ip_ranges: [{ from_ip: '203.0.0.0/16' }] })
  await provision(pce, 'More branches')
  day = 2
  await bob.rules.update(RULE, {
    ingress_services: [
      { port: 443, proto: 6 },
      { port: 8080, proto: 6 },
    ],
  })
  const { href: fleeting } = await bob.ruleSets.create({ name: 'Fleeting', scopes: [[labelOf(bench, 'app=pay')]] })
  await provision(bob, 'CHG-7: open 8080')
  day = 3
  await pce.ipLists.update(LIST, { ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
  await provision(pce, 'Branches as before')
  day = 4
  await bob.ruleSets.delete(fleeting)
  await provision(bob, 'chg-8')
  day = 5
  await pce.ruleSets.update(SET, { description: 'in doubt' })
  bench.writes()
  const [, user] = (await pce.users.getAll()) as { username?: string }[]
  return { ...bench, bob, bobName: user!.username!, at: (of) => new Date(FIRST + of * DAY).toISOString(), fleeting }
}

function labelOf({ simulator }: Bench, text: string) {
  const labels = simulator.state.find('/orgs/1/labels') as unknown as { href: string; key: string; value: string }[]
  return { label: { href: labels.find(({ key, value }) => `${key}=${value}` === text)!.href } }
}

const TCP = (port: number) => ({ port, proto: 6 })

t.test('list-policy-versions', async (t) => {
  const { ok, fails, at, bobName, simulator } = await startHistory(t)
  const TOOL = 'list-policy-versions'

  await t.test('answers every version, newest first', async (t) => {
    simulator.clearRequests()
    const answer = await ok(TOOL)
    const counts = (ruleSets: number) => ({ services: 1, rule_sets: ruleSets, ip_lists: 2, firewall_settings: 1 })
    const version = (number: number, day: number, by: string, message: string, affected: number, ruleSets: number) => ({
      version: number,
      href: `/orgs/1/sec_policy/${number}`,
      created_at: at(day),
      created_by: by,
      commit_message: message,
      workloads_affected: affected,
      object_counts: counts(ruleSets),
    })
    t.same(answer.versions, [
      { ...version(5, 4, bobName, 'chg-8', 0, 3), in_force: true },
      version(4, 3, ADA, 'Branches as before', 1, 3 + 1),
      version(3, 2, bobName, 'CHG-7: open 8080', 1, 3 + 1),
      version(2, 1, ADA, 'More branches', 1, 3),
      { ...version(1, 0, ADA, 'Initial policy', 0, 3), created_at: '2026-01-10T09:00:00.000Z' },
    ])
    partial(t, answer, { newest: 5, oldest: 1, total_count: 5, pce_total: 5, truncated: false })
    t.equal(simulator.requests.length, 3, 'the list and two authors')
  })

  await t.test('filters and pages', async (t) => {
    const numbers = async (args: object) => (await ok(TOOL, args)).versions.map(({ version }: Json) => version)
    t.same(await numbers({ author: bobName }), [5, 3])
    t.same(await numbers({ author: '/users/1' }), [4, 2, 1])
    t.same(await numbers({ text: 'chg-' }), [5, 3])
    t.same(await numbers({ since: '2026-06-03', until: '2026-06-04' }), [4, 3], 'both days whole')
    t.same(await numbers({ since: at(2), until: at(3) }), [4, 3], 'both instants with it')
    t.same(await numbers({ since: '2026-06-03', author: ADA, text: 'BEFORE' }), [4])
    const first = await ok(TOOL, { max_results: 2 })
    partial(t, first, { total_count: 5, truncated: true })
    const second = await ok(TOOL, { max_results: 2, cursor: first.next_cursor })
    t.same(
      second.versions.map(({ version }: Json) => version),
      [3, 2],
    )
    await fails(TOOL, { max_results: 2, text: 'x', cursor: first.next_cursor }, 'invalid_argument')
  })

  await t.test('says why there is nothing, and refuses what is no time', async (t) => {
    partial(t, await ok(TOOL, { author: 'admin@example.co' }), {
      total_count: 0,
      note: 'None of these versions is by "admin@example.co"; the most similar name among them is "admin@example.com".',
    })
    partial(t, await fails(TOOL, { since: 'yesterday' }, 'invalid_argument'), { argument: 'since' })
    partial(t, await fails(TOOL, { since: '2026-06-03', until: '2026-06-02' }, 'invalid_argument'), {
      argument: 'since',
    })
  })

  await t.test('a list that the PCE cuts is asked for whole, and one that stays cut says so', async (t) => {
    const cut = { path: /sec_policy$/, headers: { 'x-total-count': '9' } } as const
    simulator.faults.add({ ...cut, kind: 'headers', times: 1 })
    simulator.clearRequests()
    t.notOk('note' in (await ok(TOOL)))
    t.match(simulator.requests[1]?.path, /sec_policy$/)
    simulator.faults.add({ ...cut, kind: 'headers', times: 2 })
    partial(t, await ok(TOOL), { total_count: 5, pce_total: 9, note: 'The PCE lists 5 of its 9 versions.' })
    simulator.faults.add({ ...cut, kind: 'status', status: 200, times: 1, body: { versions: [] } })
    await fails(TOOL, {}, 'invalid_response')
  })
})

t.test('compare-policy-versions', async (t) => {
  const { ok, fails, at, bobName, pce, simulator, fleeting } = await startHistory(t)
  const TOOL = 'compare-policy-versions'
  const ranges = (from_ip: string) => [{ from_ip }]

  await t.test('answers what changed, field by field and rule by rule, the worst first', async (t) => {
    const answer = await ok(TOOL, { from: 1, to: 3 })
    t.same(
      answer.changes.map(({ updated_by: _by, ...change }: Json) => ({
        ...change,
        ...(change.rules && { rules: change.rules.map(({ updated_by: _own, ...rule }: Json) => rule) }),
      })),
      [
        {
          href: SET,
          type: 'rule_sets',
          name: 'Pay',
          effect: 'widening',
          updated_at: at(2),
          change: 'updated',
          fields: [],
          rules: [
            {
              href: RULE,
              rule_type: 'allow',
              change: 'changed',
              effect: 'widening',
              rule: 'Branches to all workloads, 443/tcp',
              fields: [{ field: 'ingress_services', before: [], after: [TCP(8080)], same: 1 }],
            },
          ],
        },
        {
          href: LIST,
          type: 'ip_lists',
          name: 'Branches',
          effect: 'widening',
          used_by: { rules: 1, in: ['Pay'] },
          updated_at: at(1),
          change: 'updated',
          fields: [{ field: 'ip_ranges', before: ranges('203.0.113.0/24'), after: ranges('203.0.0.0/16') }],
        },
        {
          href: fleeting,
          type: 'rule_sets',
          name: 'Fleeting',
          effect: 'neutral',
          updated_at: at(2),
          change: 'created',
          fields: [{ field: 'scopes', after: [['app=pay']] }],
          rules: [],
        },
      ],
    )
    partial(t, answer, {
      total_changes: 3,
      created_count: 1,
      updated_count: 2,
      deleted_count: 0,
      from: { is: '1', commit_message: 'Initial policy' },
      to: { is: '3', created_by: bobName, created_at: at(2) },
      summary: '3 objects changed from version 1 to version 3. 2 of these may permit more traffic than in version 1.',
      meanings: { widening: 'may permit more traffic than in version 1 and never less' },
    })
    t.equal(answer.changes[0].updated_by.name, bobName)
  })

  await t.test('what went and came back between two versions is no change', async (t) => {
    const whole = await ok(TOOL, { from: 1 })
    partial(t, whole, { total_changes: 1, to: { is: '5', in_force: true }, changes: [{ href: SET }] })
    partial(t, await ok(TOOL, { from: 2, to: 4, resource_type: 'ip_lists' }), {
      total_changes: 1,
      total_unfiltered: 3,
      changes: [{ href: LIST, effect: 'narrowing', fields: [{ before: ranges('203.0.0.0/16') }] }],
    })
    partial(t, await ok(TOOL, { from: 3, to: 4, resource_type: 'services' }), {
      total_changes: 0,
      summary: 'Nothing of type services differs; 1 other object does.',
    })
  })

  await t.test('compares with the draft in both directions', async (t) => {
    const fields = (before: unknown, after: unknown) => [{ field: 'description', before, after }]
    partial(t, await ok(TOOL, { from: 'active', to: 'draft' }), {
      total_changes: 1,
      from: { is: '5' },
      to: { is: 'draft' },
      summary:
        '1 object changed from the active policy (version 5) to the draft. It does not change what is permitted.',
      changes: [{ href: SET, effect: 'neutral', fields: fields(null, 'in doubt') }],
    })
    partial(t, await ok(TOOL, { from: 'draft', to: 5 }), { changes: [{ fields: fields('in doubt', null) }] })
    await pce.rules.delete(RULE)
    const [added] = (await ok(TOOL, { from: 'draft', to: 5 })).changes
    partial(
      t,
      added.rules,
      [{ href: RULE, change: 'added', effect: 'widening' }],
      'a rule that is marked is not in the draft',
    )
    const [removed] = (await ok(TOOL, { from: 5, to: 'draft' })).changes
    partial(t, removed.rules, [{ href: RULE, change: 'removed', effect: 'narrowing' }])
    t.equal(removed.rules.length, 1)
  })

  await t.test('shows one object, by href or exact name in either version, or what one user edited', async (t) => {
    const names = async (args: object) =>
      (await ok(TOOL, { from: 1, to: 3, ...args })).changes.map(({ name }: Json) => name)
    t.same(await names({ href: SET.replace('/draft/', '/2/') }), ['Pay'])
    t.same(await names({ href: RULE }), ['Pay'], 'a rule is its rule set')
    t.same(await names({ name: 'Branches' }), ['Branches'])
    t.same(await names({ author: ADA, resource_type: 'ip_lists' }), ['Branches'])
    t.same(await names({ author: '/users/1', name: 'Branches' }), ['Branches'])
    partial(t, await ok(TOOL, { from: 1, to: 3, author: 'Nobody' }), {
      total_changes: 0,
      total_unfiltered: 3,
      summary: /^None of these differences is by "Nobody"; they are by /,
    })
    partial(t, await fails(TOOL, { from: 1, to: 3, name: 'Branch' }, 'not_found'), {
      name: 'Branch',
      near_names: ['Branches'],
    })
    const gone = '/orgs/1/sec_policy/draft/ip_lists/4711'
    partial(t, await fails(TOOL, { from: 1, to: 3, href: gone }, 'not_found'), { href: gone })
  })

  await t.test('a cursor is of its two versions', async (t) => {
    const first = await ok(TOOL, { from: 1, to: 3, max_results: 1 })
    partial(t, first, { truncated: true, summary: /^1 of 3 objects changed/ })
    const next = { from: 1, to: 3, max_results: 2, cursor: first.next_cursor }
    t.same(
      (await ok(TOOL, next)).changes.map(({ href }: Json) => href),
      [LIST, fleeting],
    )
    await fails(TOOL, { ...next, to: 4 }, 'invalid_argument')
    await fails(TOOL, { ...next, from: 2 }, 'invalid_argument')
  })

  await t.test('refuses a version that is none, and two that are the same', async (t) => {
    partial(t, await fails(TOOL, { from: 9 }, 'not_found'), { version: 9, oldest: 1, newest: 5 })
    await fails(TOOL, { from: 5 }, 'invalid_argument')
    const word = await fails(TOOL, { from: 'newest' }, 'invalid_argument')
    t.equal(word.message, 'from "newest" is not valid: use draft, active or the number of a version.')
    partial(t, await fails(TOOL, { from: 1, to: '0' }, 'invalid_argument'), { argument: 'to' })
    const none = await fails(TOOL, { from: 0 }, 'invalid_argument')
    t.equal(none.message, 'from "0" is not valid: use draft, active or the number of a version.')
    t.same(await ok(TOOL, { from: '1', to: 'Draft' }), await ok(TOOL, { from: 1, to: 'draft' }), 'as text, too')
    await fails(TOOL, {}, 'invalid_argument')
  })

  await t.test('what the draft is about to delete is not in it', async (t) => {
    const gone = '/orgs/1/sec_policy/draft/rule_sets/2'
    await pce.ruleSets.delete(gone)
    partial(t, await ok(TOOL, { from: 'active', to: 'draft' }), {
      deleted_count: 1,
      changes: [{ change: 'updated' }, { href: gone, change: 'deleted' }],
    })
  })

  await t.test('a part of the policy that cannot be read is an error', async () => {
    simulator.faults.add({ kind: 'status', path: /sec_policy\/1\/ip_lists/, status: 403, times: 1, body: [] })
    await fails(TOOL, { from: 1 }, 'pce_error')
  })

  await t.test('a version that is listed and cannot be read is an error, and not empty', async (t) => {
    for (const type of ['rule_sets', 'virtual_services']) {
      const gone = { kind: 'status', path: new RegExp(`sec_policy/1/${type}`), status: 404, body: [] } as const
      simulator.faults.add({ ...gone, times: 1 })
      partial(t, await fails(TOOL, { from: 1 }, 'not_found'), {
        version: 1,
        type,
        message: `The PCE has no ${type.replace('_', ' ')} of version 1 (404): this version of the policy cannot be read.`,
      })
    }
  })

  await t.test('a kind that the PCE does not know is empty', async (t) => {
    simulator.faults.add({ kind: 'status', path: /virtual_servers/, status: 404, times: 9, body: [] })
    partial(t, await ok(TOOL, { from: 1 }), { total_changes: 1 })
    simulator.faults.clear()
  })
})

t.test('restore-policy-version', async (t) => {
  const TOOL = 'restore-policy-version'
  const history = await startHistory(t)
  const { ok, fails, simulator, pce, writes } = history
  const pending = () => simulator.state.pendingHrefs()

  await t.test('refuses while the draft has changes that are not named, exactly', async (t) => {
    partial(t, await fails(TOOL, { version: 1 }, 'pending_changes'), {
      argument: 'drop_pending',
      pending: [{ href: SET, update_type: 'update', name: 'Pay' }],
      pending_total: 1,
    })
    partial(t, await fails(TOOL, { version: 1, drop_pending: [SET, LIST] }, 'not_pending'), { not_pending: [LIST] })
    const wrong = { version: 1, drop_pending: ['/orgs/1/labels/1'] }
    partial(t, await fails(TOOL, wrong, 'invalid_argument'), {
      argument: 'drop_pending',
      invalid: ['/orgs/1/labels/1'],
    })
    partial(t, await fails(TOOL, { version: 7 }, 'not_found'), { oldest: 1, newest: 5 })
    await fails(TOOL, { version: 1, drop_pending: [] }, 'invalid_argument')
    t.same(writes(), [])
  })

  await t.test('a dry run says what the draft would then change, and writes nothing', async (t) => {
    const answer = await ok(TOOL, { version: 2, drop_pending: [SET], dry_run: true })
    const base = '/orgs/1/sec_policy'
    t.same(answer.requests, [
      { method: 'PUT', path: `${base}/delete`, body: { change_subset: { rule_sets: [{ href: SET }] } } },
      { method: 'POST', path: `${base}/2/restore`, body: {} },
    ])
    partial(t, answer, {
      dry_run: true,
      message: 'Would make the draft what version 2 was: 2 pending changes, after dropping what is pending now (1).',
      in_force: 5,
      version: { version: 2, commit_message: 'More branches' },
      summary:
        /^2 objects would change once provisioned\. 1 of these may permit more traffic than today\. 1 of these may permit less\./,
      changes_total: 2,
      changes: [
        { href: SET, change: 'updated', effect: 'narrowing', rules: [{ href: RULE, fields: [{ after: [TCP(443)] }] }] },
        { href: LIST, change: 'updated', effect: 'widening' },
      ],
      dropped: [{ href: SET, update_type: 'update' }],
    })
    t.same(writes(), [])
    t.same(pending(), [SET])
  })

  await t.test('a version that cannot be read changes nothing', async (t) => {
    simulator.faults.add({ kind: 'status', path: /sec_policy\/2\/rule_sets/, status: 404, times: 1, body: [] })
    partial(t, await fails(TOOL, { version: 2, drop_pending: [SET] }, 'not_found'), { version: 2, type: 'rule_sets' })
    t.same(writes(), [])
    t.same(pending(), [SET])
  })

  await t.test('restores into the draft and nothing else', async (t) => {
    const answer = await ok(TOOL, { version: 3, drop_pending: [SET] })
    partial(t, answer, {
      message:
        'The draft is what version 3 was: 2 pending changes. Nothing was provisioned. 1 pending change dropped before.',
      verified: true,
      pending_total: 2,
      changes_total: 2,
      changes: [
        { href: LIST, effect: 'widening' },
        { href: history.fleeting, change: 'created', effect: 'neutral' },
      ],
    })
    t.same(
      writes().map(({ method, path }) => `${method} ${path.replace('/api/v2/orgs/1/sec_policy', '')}`),
      ['PUT /delete', 'POST /3/restore'],
    )
    t.same(pending().toSorted(), [LIST, history.fleeting].toSorted())
    t.equal(simulator.state.policyVersion, 5)
    partial(t, await ok('compare-policy-versions', { from: 3, to: 'draft' }), { total_changes: 0 })
  })

  await t.test('the version in force needs no restoring', async (t) => {
    const answer = await ok(TOOL, { version: 5, drop_pending: pending() })
    partial(t, answer, { verified: true, pending_total: 0, changes_total: 0 })
    t.equal(writes().length, 1, 'what was pending is dropped, nothing else')
    partial(t, await ok(TOOL, { version: 5 }), { status: 'no_changes' })
    t.same(writes(), [])
  })

  await t.test('says what is lost where the PCE refuses the restoration', async (t) => {
    await pce.ruleSets.update(SET, { description: 'again' })
    writes()
    simulator.faults.add({
      kind: 'status',
      path: /restore$/,
      status: 406,
      times: 1,
      body: [{ token: 'no', message: 'no' }],
    })
    partial(t, await fails(TOOL, { version: 1, drop_pending: [SET] }, 'pce_error'), {
      token: 'no',
      dropped_hrefs: [SET],
      restored: false,
      hint: 'Nothing was restored. 1 pending change had been dropped before.',
    })
    t.same(pending(), [])
    await pce.ruleSets.update(SET, { description: 'again' })
    simulator.faults.add({ kind: 'status', path: /sec_policy\/delete$/, status: 406, times: 1, body: [] })
    partial(t, await fails(TOOL, { version: 1, drop_pending: [SET] }, 'pce_error'), { restored: false })
    t.same(pending(), [SET], 'nothing is restored over what could not be dropped')
  })

  await t.test('says what is known where the answer to the drop is lost', async (t) => {
    const drop = { version: 1, drop_pending: [SET] }
    writes()
    simulator.faults.add({ kind: 'reset', path: /sec_policy\/delete$/, times: 1 })
    partial(t, await fails(TOOL, drop, 'outcome_unknown'), {
      restored: false,
      read_back: { state: 'unchanged', still_pending: [SET] },
      hint: /nothing was discarded so far\. Nothing was restored\.$/,
    })
    simulator.faults.add({ kind: 'commit-then-drop', path: /sec_policy\/delete$/, times: 1 })
    const blind = { kind: 'status', method: 'GET', path: /sec_policy\/pending/, status: 403, body: [] } as const
    simulator.faults.add({ ...blind, skip: 3, times: 1 })
    const answer = await fails(TOOL, drop, 'outcome_unknown')
    t.same([answer.restored, answer.read_back], [false, { state: 'unreadable' }], 'no list of what was not read')
    t.same(pending(), [])
    t.notOk(writes().some(({ path }) => path.endsWith('/restore')))
  })

  await t.test('an answer that is lost is looked after', async (t) => {
    await pce.discardPendingPolicyChanges()
    simulator.faults.add({ kind: 'commit-then-drop', path: /restore$/, times: 1 })
    partial(t, await ok(TOOL, { version: 2 }), { verified: true })
    await pce.discardPendingPolicyChanges()
    simulator.faults.add({ kind: 'reset', path: /restore$/, times: 1 })
    partial(t, await fails(TOOL, { version: 2 }, 'outcome_unknown'), {
      read_back: { state: 'unchanged', pending_total: 0 },
    })
  })

  await t.test('what cannot be read back is done all the same', async (t) => {
    await pce.discardPendingPolicyChanges()
    simulator.faults.add({ kind: 'status', path: /sec_policy\/draft\/services/, status: 403, times: 1, body: [] })
    const answer = await ok(TOOL, { version: 2 })
    partial(t, answer, { message: /could not be read back/, warnings: [/^Read back failed/, /have no versions/] })
    t.equal(answer.verified, false)
    t.same(pending().length, 2)

    await pce.discardPendingPolicyChanges()
    simulator.faults.add({ kind: 'status', path: /restore$/, method: 'POST', status: 204, times: 1 })
    partial(t, await ok(TOOL, { version: 2 }), {
      message: /^The PCE accepted restoring version 2 into the draft: .* Read back, the draft is not that version\.$/,
      verified: false,
    })

    await pce.discardPendingPolicyChanges()
    simulator.faults.add({ kind: 'status', path: /sec_policy\/draft\/services/, status: 404, times: 1, body: [] })
    const [unread] = (await ok(TOOL, { version: 2 })).warnings
    t.equal(
      unread,
      'Read back failed: The PCE has no services of the draft policy (404): this version of the policy cannot be read.',
    )
    t.same(pending().length, 2, 'the sentence does not deny what was restored')
  })
})

t.test('what somebody edits while a restoration is planned is not dropped', async (t) => {
  let passed = 0
  const { fails, pce, simulator, writes } = await startHistory(t, { now: () => FIRST + (passed += 1000) })
  const look = pce.getPendingPolicyChanges.bind(pce)
  let looks = 0
  pce.getPendingPolicyChanges = async (...args) => {
    looks += 1
    if (looks === 2) {
      await pce.ruleSets.update(SET, { description: 'meanwhile' })
      writes()
    }
    return look(...args)
  }
  const args = { version: 1, drop_pending: [SET] }
  const { message } = await fails('restore-policy-version', args, 'pending_changes')
  t.match(message, /^Somebody edited the draft or provisioned while it was read\. Nothing was changed/)
  t.same(writes(), [])
  t.same(simulator.state.pendingHrefs(), [SET])

  await t.test('and nothing is restored where a drop was accepted and not done', async (t) => {
    pce.getPendingPolicyChanges = look
    simulator.faults.add({ kind: 'status', path: /sec_policy\/delete$/, status: 204, times: 1, body: undefined })
    const answer = await fails('restore-policy-version', args, 'pending_changes')
    t.match(answer.message, /^The PCE accepted dropping the pending changes, and 1 change of 1 stayed\. Nothing was/)
    t.same(answer.dropped_hrefs, [])
    t.notOk(writes().some(({ path }) => path.endsWith('/restore')))
  })
})

t.test('what somebody edits while others are discarded is told', async (t) => {
  let passed = 0
  const { ok, pce } = await startHistory(t, { now: () => FIRST + (passed += 1000) })
  const shop = '/orgs/1/sec_policy/draft/rule_sets/3'
  await pce.ruleSets.update(shop, { description: 'pending' })
  const discard = pce.bulkDeletePolicyObjects.bind(pce)
  pce.bulkDeletePolicyObjects = async (...args) => {
    await pce.ruleSets.update(shop, { description: 'meanwhile' })
    return discard(...args)
  }
  const { warnings } = await ok('discard-draft-changes', { hrefs: [SET] })
  t.same(warnings, ['Meanwhile, not named by this call, these pending changes went or were edited: "Shop".'])
})

t.test('discard-draft-changes', async (t) => {
  const TOOL = 'discard-draft-changes'
  const { ok, fails, simulator, pce, writes } = await startHistory(t)
  const pending = () => simulator.state.pendingHrefs()
  const listOf = async (name: string) =>
    (await pce.ipLists.create({ name, ip_ranges: [{ from_ip: '192.0.2.0/24' }] })).href
  const fresh = await listOf('Fresh')
  const used = await listOf('Used')
  const consumers = [{ ip_list: { href: used } }]
  await pce.rules.update(RULE, { consumers })
  writes()

  await t.test('never everything by omission', async (t) => {
    await fails(TOOL, {}, 'missing_identifier')
    await fails(TOOL, { all: false }, 'missing_identifier')
    await fails(TOOL, { all: true, hrefs: [SET] }, 'conflicting_identifiers')
    await fails(TOOL, { hrefs: [] }, 'invalid_argument')
    partial(t, await fails(TOOL, { hrefs: [fresh, LIST] }, 'not_pending'), { not_pending: [LIST], pending_total: 3 })
    await fails(TOOL, { hrefs: ['/orgs/2/sec_policy/draft/rule_sets/1'] }, 'invalid_argument')
    t.same(writes(), [])
  })

  await t.test('names what would be left without it', async (t) => {
    partial(t, await fails(TOOL, { hrefs: [used] }, 'dependencies_required'), {
      message: 'Other pending changes need these: 1 more pending object would have to go too. Nothing was discarded.',
      required: [{ href: SET, type: 'rule_sets', required_by: [used] }],
    })
    const dry = await ok(TOOL, { hrefs: [used], include_dependencies: true, dry_run: true })
    t.same(dry.dependencies_included, [{ href: SET, type: 'rule_sets', required_by: [used] }])
    t.same(dry.requests, [
      {
        method: 'PUT',
        path: '/orgs/1/sec_policy/delete',
        body: { change_subset: { ip_lists: [{ href: used }], rule_sets: [{ href: SET }] } },
      },
    ])
    t.equal(dry.losses_total, 2)
    t.same(writes(), [])
  })

  const WHOLE =
    'A rule of "Pay" was named, but a rule set is discarded whole: 1 pending rule, and what else is pending of it.'

  await t.test('says that the rule set of a rule goes whole, in a dry run as well', async (t) => {
    t.same((await ok(TOOL, { hrefs: [RULE], dry_run: true })).warnings, [WHOLE])
    t.notOk('warnings' in (await ok(TOOL, { hrefs: [RULE, SET], dry_run: true })))
    t.same(writes(), [])
  })

  await t.test('discards what is named, tells what is lost field by field, and nothing else goes', async (t) => {
    const answer = await ok(TOOL, { hrefs: [RULE] })
    partial(t, answer, {
      message: 'Discarded 1 pending change; 2 others still pending.',
      discarded_hrefs: [SET],
      remaining_total: 2,
      losses: [
        {
          href: SET,
          name: 'Pay',
          update_type: 'update',
          fields: [{ field: 'description', draft: 'in doubt' }],
          rules: [
            { href: RULE, change: 'changed', fields: [{ field: 'consumers', draft: [{ ip_list: { name: 'Used' } }] }] },
          ],
        },
      ],
    })
    t.same(answer.warnings, [WHOLE])
    t.same(pending().toSorted(), [fresh, used].toSorted())
    t.equal(writes().length, 1)
  })

  await t.test('says that a deletion stays which what is discarded goes back to stand in the way of', async (t) => {
    await pce.rules.update(RULE, { consumers: [{ actors: 'ams' }] })
    await pce.provisionPolicyChanges('free', [SET])
    await pce.rules.update(RULE, { consumers: [{ ip_list: { href: LIST } }] })
    await pce.provisionPolicyChanges('bound', [SET])
    await pce.rules.update(RULE, { consumers: [{ actors: 'ams' }] })
    simulator.faults.add({
      kind: 'status',
      method: 'GET',
      path: /sec_policy\/pending/,
      status: 200,
      times: 1,
      body: {
        rule_sets: [{ href: SET, update_type: 'update', name: 'Pay' }],
        ip_lists: [{ href: LIST, update_type: 'delete', name: 'Branches' }],
      },
    })
    partial(t, await ok(TOOL, { hrefs: [SET], dry_run: true }), {
      warnings: ['The deletion of "Branches" stays pending, though "Pay" would use it again: discard it too.'],
    })
    await pce.put('/sec_policy/delete', { json: { change_subset: { rule_sets: [{ href: SET }] } } })
    writes()
  })

  await t.test('all: everything, by name, so that what is added meanwhile stays', async (t) => {
    await pce.ruleSets.delete('/orgs/1/sec_policy/draft/rule_sets/2')
    const answer = await ok(TOOL, { all: true })
    partial(t, answer, { message: 'Discarded 3 pending changes; nothing is pending any more.', remaining_total: 0 })
    t.same(answer.discarded_hrefs.toSorted(), [fresh, used, '/orgs/1/sec_policy/draft/rule_sets/2'].toSorted())
    const [write] = writes().filter(({ method }) => method === 'PUT')
    t.match(write?.path, /sec_policy\/delete$/)
    t.equal(Object.keys((write?.body as { change_subset: object }).change_subset).length, 2)
    partial(t, await ok(TOOL, { all: true }), { status: 'no_changes' })
  })

  await t.test('what the PCE keeps pending, or somebody else takes away, is told', async (t) => {
    const kept = await listOf('Kept')
    simulator.faults.add({ kind: 'status', method: 'PUT', path: /sec_policy\/delete$/, status: 204, times: 1 })
    partial(t, await ok(TOOL, { hrefs: [kept] }), {
      message: 'Discarded 0 pending changes of 1; 1 of these still pending.',
      discarded_hrefs: [],
      verified: false,
      still_pending: [{ href: kept }],
      warnings: ['The PCE accepted the call; still pending nevertheless: 1 change.'],
    })
    const other = await listOf('Other')
    simulator.faults.add({
      kind: 'status',
      method: 'PUT',
      path: /sec_policy\/delete$/,
      status: 204,
      times: 1,
    })
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending/, skip: 2, status: 200, times: 1, body: {} })
    partial(t, await ok(TOOL, { hrefs: [kept] }), {
      warnings: [/^Meanwhile, not named by this call, these pending changes went or were edited: "Other"\.$/],
    })
    t.ok(pending().includes(other))
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending/, skip: 2, status: 403, times: 1, body: [] })
    partial(t, await ok(TOOL, { hrefs: [other] }), {
      message: 'The PCE accepted discarding 1 pending change; whether they are gone could not be read back.',
      verified: false,
      warnings: [/^Read back failed/],
    })
    await listOf('Other one')
  })

  await t.test('an answer that is lost is looked after', async (t) => {
    const [lost] = pending() as [string]
    simulator.faults.add({ kind: 'commit-then-drop', path: /sec_policy\/delete$/, times: 1 })
    partial(t, await ok(TOOL, { hrefs: [lost] }), { discarded_hrefs: [lost] })
    const [left] = pending() as [string]
    simulator.faults.add({ kind: 'reset', path: /sec_policy\/delete$/, times: 1 })
    partial(t, await fails(TOOL, { hrefs: [left] }, 'outcome_unknown'), {
      read_back: { state: 'unchanged', still_pending: [left] },
    })
  })
})

t.test('who-changed', async (t) => {
  const TOOL = 'who-changed'
  const history = await startHistory(t)
  const { ok, fails, at, bobName, pce, simulator, fleeting } = history
  /** Who did what, of each change, the newest first. */
  const lines = (answer: Json) =>
    answer.changes.map(({ by, what, version, parts }: Json) =>
      [by, what, ...(version === undefined ? [] : [version]), ...parts.map(({ type }: Json) => type)].join(' '),
    )

  await t.test('answers edits and provisionings of an object, with before and after', async (t) => {
    const answer = await ok(TOOL, { kind: 'rule_set', name: 'Pay' })
    t.same(lines(answer), [
      `${ADA} rule_set.update rule_set`,
      `${bobName} provisioned 3 rule_set sec_rule`,
      `${bobName} sec_rule.update sec_rule`,
    ])
    partial(t, answer, {
      what: 'the rule set "Pay"',
      summary: `3 changes of the rule set "Pay" from ${at(2)} to ${at(5)}, by "${bobName}", "${ADA}"; 1 of them is a provisioning. The last: update of rule set by "${ADA}".`,
      by: { [ADA]: 1, [bobName]: 2 },
      events: { complete: true, kept_days: 30 },
      versions: { searched: 5, in_time: 5, total: 5, complete: true },
      total_count: 3,
      truncated: false,
    })
    t.same(answer.changes[0].parts, [
      {
        href: SET,
        type: 'rule_set',
        name: 'Pay',
        change: 'update',
        fields: [{ field: 'description', before: null, after: 'in doubt' }],
      },
    ])
    partial(t, answer.changes[1], {
      at: at(2),
      commit_message: 'CHG-7: open 8080',
      href: '/orgs/1/sec_policy/3',
      parts: [
        { href: SET, fields: [] },
        {
          href: RULE,
          change: 'update',
          fields: [],
          note: 'Shown in the edits that it made active: ingress_services.',
        },
      ],
    })
    const added = [{ field: 'ingress_services', added: [TCP(8080)] }]
    partial(t, answer.changes[2].parts, [{ href: RULE, fields: added }])
    t.same((await ok(TOOL, { href: SET.replace('draft', '4') })).changes, answer.changes, 'in any version of its href')
  })

  await t.test('of one rule only that rule', async (t) => {
    const answer = await ok(TOOL, { href: RULE })
    t.same(lines(answer), [`${bobName} provisioned 3 sec_rule`, `${bobName} sec_rule.update sec_rule`])
  })

  await t.test('a version tells itself what no edit of the answer tells', async (t) => {
    const event = {
      href: '/orgs/1/events/b',
      event_type: 'sec_rule.update',
      timestamp: at(2),
      severity: 'info',
      status: 'success',
      created_by: { user: { href: '/users/1', username: ADA } },
      resource_changes: [
        {
          resource: { sec_rule: { href: RULE } },
          change_type: 'update',
          changes: {
            ingress_services: { created: [TCP(9090)] },
            updated_at: { before: at(1), after: at(2) },
            updated_by: { before: null, after: { href: '/users/1' } },
            update_type: { before: null, after: 'update' },
          },
        },
      ],
    }
    const fields = [{ field: 'ingress_services', before: [TCP(443)], after: [TCP(443), TCP(8080)] }]
    for (const body of [[], [event]]) {
      simulator.faults.add({ kind: 'status', path: /\/events$/, status: 200, times: 1, body })
      const [version, ...edits] = (await ok(TOOL, { href: RULE })).changes
      t.same(
        version.parts.map((part: Json) => [part.fields, part.note]),
        [[fields, undefined]],
      )
      t.same(
        edits.map(({ by, parts: [part] }: Json) => [by, part.fields]),
        body.map(() => [ADA, [{ field: 'ingress_services', added: [TCP(9090)] }]]),
        'who and when is said once, by the entry',
      )
    }
  })

  await t.test('a span, pages, and a list whose ranges went and came back', async (t) => {
    const answer = await ok(TOOL, { kind: 'ip_list', name: 'Branches', until: at(2) })
    t.same(lines(answer), [`${ADA} provisioned 2 ip_list`, `${ADA} ip_list.update ip_list`])
    const [first, second] = [await ok(TOOL, { href: LIST, max_results: 3 }), { href: LIST, max_results: 3 }]
    partial(t, first, { total_count: 4, truncated: true })
    const last = await ok(TOOL, { ...second, cursor: first.next_cursor })
    t.same(lines(last), [`${ADA} ip_list.update ip_list`])
    await fails(TOOL, { href: SET, cursor: first.next_cursor }, 'invalid_argument')
  })

  await t.test('what is gone is found by the name that it had', async (t) => {
    const found = [
      `${bobName} provisioned 5 rule_set`,
      `${bobName} rule_set.delete rule_set`,
      `${bobName} provisioned 3 rule_set`,
      `${bobName} rule_set.create rule_set`,
    ]
    const answer = await ok(TOOL, { kind: 'rule_set', name: 'Fleeting' })
    t.same(lines(answer), found)
    t.match(answer.covers, /^Nothing has this name now/)
    partial(t, answer.changes[0].parts, [{ href: fleeting, change: 'delete' }])
    t.same(lines(await ok(TOOL, { href: fleeting })), found)
    partial(t, await fails(TOOL, { kind: 'rule_set', name: 'Fleetin' }, 'not_found'), { kind: 'rule_sets' })
    await fails(TOOL, { kind: 'label', name: 'app=none' }, 'not_found')
  })

  await t.test('of an application its labels, workloads, rule sets and rules elsewhere', async (t) => {
    await pce.workloads.update((await pce.workloads.getAll()).find(({ name }) => name === 'pay-1')!.href, {
      description: 'x',
    })
    await pce.ruleSets.update('/orgs/1/sec_policy/draft/rule_sets/2', { description: 'of another environment' })
    await pce.rules.update('/orgs/1/sec_policy/draft/rule_sets/3/sec_rules/2', { enabled: false })
    await pce.ruleSets.update('/orgs/1/sec_policy/draft/rule_sets/3', { description: 'not about pay' })
    const answer = await ok(TOOL, { application: 'pay|prod' })
    t.same(lines(answer).slice(0, 2).toSorted(), [`${ADA} sec_rule.update sec_rule`, `${ADA} workload.update workload`])
    t.same(lines(answer).slice(2), [
      `${ADA} rule_set.update rule_set`,
      `${bobName} provisioned 5 rule_set`,
      `${bobName} provisioned 3 rule_set sec_rule`,
      `${bobName} sec_rule.update sec_rule`,
    ])
    t.match(answer.covers, /2 labels, 1 workload, 1 rule set of its scope, and 1 rule elsewhere/)
    await fails(TOOL, { application: 'pay|nowhere' }, 'not_found')
    const pay = (await pce.labels.getAll()).find(({ value }) => value === 'pay')!
    const { href } = await pce.ruleSets.create({
      name: 'All but pay',
      scopes: [[{ label: { href: pay.href }, exclusion: true }]],
    })
    const after = await ok(TOOL, { application: 'pay|prod' })
    t.equal(after.covers, answer.covers, 'what excludes it is not of its scope')
    await pce.ruleSets.delete(href)
  })

  await t.test('of what an event tells whole, the fields that differ', async (t) => {
    const [workload] = (await pce.workloads.getAll()) as Json[]
    const agent = (mode: string, extra: object) => ({
      href: '/orgs/1/agents/1',
      config: { mode, log_traffic: true, ...extra },
      status: { uid: '0', errors: [] },
    })
    const changes = {
      agent: { before: agent('idle', {}), after: agent('full', { level: 'low' }) },
      network: { before: { href: '/orgs/1/networks/1' }, after: { href: '/orgs/1/networks/2' } },
      labels: { before: [{ href: '/orgs/1/labels/1' }], after: [] },
      ven: { before: null, after: { status: 'active' } },
    }
    const event = {
      href: '/orgs/1/events/a',
      event_type: 'workloads.bulk_update',
      timestamp: '2026-06-14T09:00:00Z',
      severity: 'info',
      status: 'success',
      created_by: { user: { href: '/users/1', username: ADA } },
      resource_changes: [{ resource: { workload: { href: workload.href } }, change_type: 'update', changes }],
    }
    simulator.faults.add({ kind: 'status', path: /\/events$/, status: 200, times: 1, body: [event] })
    const answer = await ok(TOOL, { href: workload.href, since: '2026-06-14' })
    t.match(answer.summary, / The last: bulk update of workloads by /)
    t.same(answer.changes[0].parts[0].fields, [
      { field: 'agent.config.mode', before: 'idle', after: 'full' },
      { field: 'agent.config.level', before: null, after: 'low' },
      { field: 'network', ...changes.network },
      { field: 'labels', before: [{ key: 'app', value: 'pay', href: '/orgs/1/labels/1' }], after: [] },
      { field: 'ven', ...changes.ven },
    ])
  })

  await t.test('failed calls changed nothing, and are counted', async (t) => {
    await pce.ipLists.update(LIST, { ip_ranges: [{ from_ip: 'nonsense' }] }).catch(() => undefined)
    partial(t, await ok(TOOL, { href: LIST }), { failed_attempts: 1, total_count: 4 })
  })

  await t.test('says exactly one thing of what is meant', async (t) => {
    await fails(TOOL, {}, 'missing_identifier')
    partial(t, await fails(TOOL, { name: 'Pay' }, 'missing_identifier'), {
      argument: 'kind',
      message: /^Say of what kind "Pay" is: kind is one of rule_set, /,
    })
    await fails(TOOL, { href: SET, name: 'Pay', kind: 'rule_set' }, 'conflicting_identifiers')
    await fails(TOOL, { href: SET, application: 'pay|prod' }, 'conflicting_identifiers')
    await fails(TOOL, { href: '/orgs/2/sec_policy/draft/rule_sets/1' }, 'invalid_href')
    await fails(TOOL, { href: 'Pay' }, 'invalid_href')
  })

  await t.test('states how far it saw: events that are out of reach, and those that are gone', async (t) => {
    const { notes } = await ok(TOOL, { href: SET })
    t.same(notes, [
      'The PCE keeps events for 30 days: of the time before 2026-05-16T12:00:00.000Z only versions are known.',
    ])
    t.same((await ok(TOOL, { href: SET, since: at(1) })).notes, [])
    // A PCE that answers one event at a time, and always says that there are more.
    const event = (minute: number) => ({
      href: `/orgs/1/events/${minute}`,
      event_type: 'rule_set.update',
      timestamp: `2026-06-05T09:${String(59 - minute).padStart(2, '0')}:00Z`,
      severity: 'info',
      status: 'success',
      created_by: { user: { href: '/users/1', username: ADA } },
      resource_changes: [{ resource: { rule_set: { href: SET, name: 'Pay' } }, change_type: 'update', changes: {} }],
    })
    for (let n = 0; n < 5; n++)
      simulator.faults.add({
        kind: 'status',
        path: /\/events$/,
        status: 200,
        times: 1,
        body: Array.from({ length: 10_000 }, (_, at) => ({
          ...event(n),
          href: `/orgs/1/events/${n}-${at}`,
          resource_changes: at === 0 ? event(n).resource_changes : [],
        })),
      })
    const answer = await ok(TOOL, { href: SET })
    partial(t, answer, {
      total_count: 6,
      events: { searched: 50_000, complete: false, from: '2026-06-05T09:55:00Z' },
      notes: ['Only the newest 50000 events were searched, back to 2026-06-05T09:55:00Z: go on with until.'],
    })
  })
})
