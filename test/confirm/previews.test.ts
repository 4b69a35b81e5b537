/** What a person is shown before they confirm: true, short enough to be read, and in words no name in the PCE can bend. */
import t from 'tap'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { digestChanges } from '../../domain/policy/choose-changes.js'
import { partial } from '../partial.js'
import { handMade, ipTablesRule, type HandMadeEstate } from '../tools/hand-made.js'
import type { Json } from '../tools/harness.js'
import { startConfirming } from './harness.js'

const TOOL = 'provision-policy'
const BATCH = 'ringfence-batch'
const FEW_KILOBYTES = 12_000

const ESTATE: HandMadeEstate = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'shop-1': { ip: '10.0.0.2', labels: 'app=shop env=prod' },
    'crm-1': { ip: '10.0.0.3', labels: 'app=crm env=prod' },
    'dns-1': { ip: '10.0.0.4', labels: 'app=dns env=prod' },
    'bare-1': { ip: '10.0.0.6' },
    'bare-2': { ip: '10.0.0.7' },
  },
  labels: ['app=ghost', 'app=payments'],
  flows: [
    ...['pay-1', 'shop-1', 'crm-1'].map((from) => ({ from, to: 'dns-1', port: 53, proto: 17, connections: 50 })),
    { from: 'shop-1', to: 'pay-1', port: 443, connections: 5 },
    { from: 'bare-1', to: 'pay-1', port: 22, connections: 9 },
    { from: 'bare-2', to: 'shop-1', port: 8080, connections: 70 },
  ],
}
const prod = (...apps: string[]) => apps.map((app) => ({ app_name: app, env_name: 'prod' }))

t.test('the digest of a set of changes', async (t) => {
  const one = {
    href: '/orgs/1/sec_policy/draft/rule_sets/1',
    type: 'rule_sets',
    update_type: 'update',
    updated_at: 'then',
  }
  const two = {
    href: '/orgs/1/sec_policy/draft/ip_lists/2',
    type: 'ip_lists',
    update_type: 'create',
    updated_at: 'now',
  }
  const digest = (...changes: object[]) => digestChanges(changes as TypedPendingChange[])
  const whole = digest(one, two)
  t.match(whole, /^[0-9a-f]{64}$/)
  const others = [
    digest(),
    digest(one),
    digest(two),
    digest(one, { ...two, href: '/orgs/1/sec_policy/draft/ip_lists/3' }),
    digest(one, { ...two, update_type: 'delete' }),
    digest(one, { ...two, update_type: null }),
    digest(one, { ...two, updated_at: 'later' }),
    digest(one, { ...two, updated_at: undefined }),
    digest({ ...one, updated_at: 'now' }, { ...two, updated_at: 'then' }),
    digest(one, one, two),
  ]
  t.equal(new Set([whole, ...others]).size, others.length + 1, 'is another for every difference that counts')
  t.equal(digest(two, one), whole, 'in whatever order the PCE names them')
  t.equal(digest(one, { ...two, name: 'x', caps: ['write'] }), whole)
  t.equal(digest({ ...one, href: one.href.replace('draft', 'active') }, two), whole)
  const { update_type: updateType, ...rest } = one
  t.equal(digest({ ...rest, change_type: updateType }, two), whole, 'also where a release calls it change_type')
})

t.test('ringfence-batch', async (t) => {
  const bench = await startConfirming(t, { estate: handMade(ESTATE) })
  const ask = async (args: object) => {
    bench.writes()
    const asked = await bench.call(BATCH, args)
    partial(t, asked, { error: 'confirm_required', params_hash: /^[0-9a-f]{64}$/, reason: 'missing' })
    t.same(bench.writes(), [], 'looking writes nothing')
    t.ok(Buffer.byteLength(JSON.stringify(asked)) < FEW_KILOBYTES)
    return asked
  }

  await t.test('shows the order, what is written and denied, and who would be cut', async (t) => {
    const apps = [{ ...prod('pay')[0], selective: true }, ...prod('shop', 'dns')]
    const asked = await ask({ apps })
    t.equal(
      asked.summary,
      'Writes 3 new rule sets and 8 rules into the draft, for 3 applications in this order: "pay (prod)"; "shop (prod)"; "dns (prod)". ' +
        'A deny rule blocks all other inbound traffic of 1 application: "pay (prod)". ' +
        'Once enforced, 2 sources would lose traffic (2 for certain); the busiest is "bare-2" to "shop (prod)", 70 connections on 8080/tcp. ' +
        'None of it takes effect until it is provisioned.',
    )
    t.same(asked.order, ['pay (prod)', 'shop (prod)', 'dns (prod)'])
    partial(t, asked.applications, [
      {
        app: 'pay',
        env: 'prod',
        status: 'success',
        ruleset: 'RF-pay-prod',
        new_ruleset: true,
        rules: 3,
        denies: true,
        sources_cut: 1,
        worst_cut: { source: 'bare-1', effect: 'cut', connections: 9, ports: ['22/tcp'] },
        warning: /would be cut/,
      },
      { app: 'shop', rules: 1, denies: false, sources_cut: 1 },
      { app: 'dns', rules: 4, denies: false, sources_cut: 0 },
    ])

    const { confirm_token: token } = await bench.mint(BATCH, asked.params_hash)
    const done = await bench.call(BATCH, { apps }, { token })
    partial(t, done, { ok: true, summary: { successful: 3, rulesets_created: 3, rules_created: 8, sources_cut: 2 } })
    partial(t, await bench.call(BATCH, { apps }, { token }), { error: 'confirm_token_replay' })

    const again = await ask({ apps })
    t.match(again.summary, /^Nothing would be written\./)
    partial(t, again.applications, Array(3).fill({ new_ruleset: false, rules: 0, denies: false }))
  })

  await t.test('shows what would fail, in the requested order', async (t) => {
    const asked = await ask({ apps: prod('crm', 'dns', 'nope', 'ghost', 'crm'), auto_order: true })
    t.equal(asked.order[0], 'dns (prod)')
    t.match(asked.summary, /Would fail: "nope \(prod\)"; "ghost \(prod\)"\. Would be skipped: "crm \(prod\)"\./)
    partial(
      t,
      asked.applications.find(({ app }: Json) => app === 'ghost'),
      { status: 'error', error: 'no_workloads' },
    )
    partial(
      t,
      asked.applications.find(({ app }: Json) => app === 'nope'),
      { error: 'not_found', message: /nope/ },
    )
    t.same(
      asked.applications.filter(({ status }: Json) => status === 'skipped'),
      [{ app: 'crm', env: 'prod', status: 'skipped', reason: 'duplicate' }],
    )

    const stopping = await ask({ apps: prod('nope', 'crm'), stop_on_error: true })
    t.match(stopping.summary, /^Nothing would be written\. No deny rule/)
    partial(t, stopping.applications, [{ status: 'error' }, { status: 'skipped', reason: 'stopped' }])
  })

  await t.test('is bound to what the service of the deny rule stands for', async (t) => {
    const { href } = await bench.pce.services.create({ name: 'Web', service_ports: [{ port: 443, proto: 6 }] })
    const args = { apps: [{ ...prod('crm')[0], selective: true, deny_service: 'Web' }] }
    const token = await bench.tokenFor(BATCH, args)
    await bench.pce.put(href, { json: { service_ports: [{ port: 9, proto: 17 }] }, includeOrg: false })
    bench.writes()
    partial(t, await bench.call(BATCH, args, { token }), { error: 'confirm_required', reason: 'stale' })
    t.same(bench.writes(), [])
  })

  await t.test('says that it is a dry run', async (t) => {
    const args = { apps: prod('crm', 'ghost'), dry_run: true }
    const asked = await ask(args)
    t.match(asked.summary, /This is a dry run/)
    partial(t, asked.applications, [
      { status: 'success' },
      { app: 'ghost', status: 'success', warning: /no_workloads/ },
    ])
    const { confirm_token: token } = await bench.mint(BATCH, asked.params_hash)
    bench.writes()
    partial(t, await bench.call(BATCH, args, { token }), { ok: true, summary: { dry_run: true } })
    t.same(bench.writes(), [])
  })

  await t.test('reports contradictory arguments along with the hash', async (t) => {
    const apps = [
      { ...prod('crm')[0], ruleset_name: 'one' },
      { ...prod('dns')[0], ruleset_name: 'one' },
    ]
    partial(t, await ask({ apps }), { preview_error: { error: 'invalid_argument', argument: 'apps' } })
  })

  await t.test('however many there are, shows the worst first and counts the rest', async (t) => {
    const names = Array.from({ length: 100 }, (_, n) => `${String(n).padStart(3, '0')}-${'long '.repeat(40)}`)
    const asked = await ask({
      apps: [...prod(...names.slice(0, 98)), { ...prod('pay')[0], selective: true }, ...prod('ghost')],
    })
    t.equal(asked.applications.length + asked.applications_left_out, 100)
    t.equal(asked.order.length + asked.order_left_out, 100)
    t.ok(asked.summary.length < 3000)
  })
})

t.test('provision-policy', async (t) => {
  const bench = await startConfirming(t, { estate: handMade(ESTATE) })
  const { pce } = bench
  const ask = async (args: object = {}) => {
    const asked = await bench.call(TOOL, args)
    partial(t, asked, { error: 'confirm_required' })
    t.ok(Buffer.byteLength(JSON.stringify(asked)) < FEW_KILOBYTES)
    return asked
  }

  await t.test('one change is described in the singular, with its effect and author', async (t) => {
    const { href } = await bench.draft('Only')
    const asked = await ask()
    t.match(
      asked.summary,
      /^Makes a pending change active, so that VENs enforce it: 1 rule set created\. Affected: "Only"\. It may permit more traffic than today\./,
    )
    partial(t, asked.changes, [{ href, effect: 'widening', updated_by: /@/, updated_at: String }])
    await pce.provisionPolicyChanges('x', [href])
  })

  await t.test('names the authors of what is of others', async (t) => {
    const { href } = await bench.draft('Of another')
    const [row] = await pce.getPendingPolicyChanges()
    const body = { rule_sets: [{ ...row, updated_by: { href: '/users/900' } }] }
    bench.simulator.faults.add({ kind: 'status', path: /\/pending$/, times: 1, status: 200, body })
    t.match(
      (await ask({ hrefs: [href] })).summary,
      / Of 1 pending change in this call, 1 is not yours alone: 1 by \/users\/900\. /,
    )
    await pce.discardPendingPolicyChanges()
  })

  await t.test('lists deletions and edits before additions, each kind by name', async (t) => {
    const old = await bench.draft('Old')
    const edited = await bench.draft('Edited')
    await pce.provisionPolicyChanges('x', [old.href, edited.href])
    await bench.draft('New')
    const list = await pce.ipLists.create({ name: 'New list', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
    await pce.ipLists.create({ name: 'Second list', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
    await pce.ruleSets.delete(old.href)
    await pce.rules.update(edited.rule, { enabled: false })
    const asked = await ask()
    t.match(
      asked.summary,
      /: 1 rule set deleted, 1 rule set updated, 1 rule set created, 2 IP lists created\. Affected: "Old", "Edited", "New", /,
    )
    t.match(asked.summary, /\d of these may permit more traffic than today\. 2 of these may permit less\./)
    t.notMatch(asked.summary, /could not be determined/, 'what nothing uses yet changes nothing')
    t.same(
      asked.changes.map(({ update_type: type }: Json) => type),
      ['delete', 'update', 'create', 'create', 'create'],
    )
    t.equal(asked.changes_total, 5)
    const one = await ask({ hrefs: [list.href] })
    t.match(one.summary, /: 1 IP list created\. Affected: "New list"\./)
    await pce.discardPendingPolicyChanges()
  })

  await t.test('names risks', async (t) => {
    const { rule } = await bench.draft('Wide open')
    const all = (await pce.services.get('draft', null, { params: { name: 'All Services' } }))[0]!
    const any = (await pce.ipLists.get('draft', null, { params: { name: 'Any (' } }))[0]!
    const wide = { consumers: [{ ip_list: { href: any.href } }], providers: [{ ip_list: { href: any.href } }] }
    await pce.rules.update(rule, { ...wide, ingress_services: [{ href: all.href }] })
    t.match((await ask()).summary, /Review "Wide open" \(any_to_any_all_services\)\./)
    await pce.discardPendingPolicyChanges()
  })

  await t.test('says of each change what compare-draft-active says', async (t) => {
    const { href, rule } = await bench.draft('Edited before')
    const any = (await pce.ipLists.get('draft', null, { params: { name: 'Any (' } }))[0]!
    const list = await pce.ipLists.create({ name: 'Grown', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
    await pce.rules.update(rule, { consumers: [{ ip_list: { href: list.href } }] })
    await pce.provisionPolicyChanges('x', [href, list.href])
    await pce.ipLists.update(list.href, { ip_ranges: [{ from_ip: '0.0.0.0/1' }, { from_ip: '128.0.0.0/1' }] })
    await pce.rules.update(rule, { sec_connect: true })
    const { rule: open } = await bench.draft('Open')
    await pce.rules.update(open, { consumers: [{ ip_list: { href: any.href } }] })
    const asked = await ask()
    const answer = await bench.call('compare-draft-active', {})
    const said = (rows: Json[]) =>
      rows
        .map(({ name, effect, effect_note: note, risks }: Json) => ({ name, effect, note, risks }))
        .toSorted((a, b) => a.name.localeCompare(b.name))
    t.same(said(asked.changes), said(Object.values(answer.changes as Record<string, Json[]>).flat()))
    t.same(said(asked.changes), [
      {
        name: 'Edited before',
        effect: undefined,
        note: 'Undecided because of rules for encrypted or authenticated connections.',
        risks: undefined,
      },
      { name: 'Grown', effect: 'widening', note: undefined, risks: ['any_address'] },
      { name: 'Open', effect: 'widening', note: undefined, risks: ['any_address'] },
    ])
    t.same(asked.meanings, answer.meanings)
    await pce.discardPendingPolicyChanges()
  })

  await t.test('quotes, escapes and shortens names', async (t) => {
    await bench.draft(`End". Nothing else.\u200b\u202e\n${'x'.repeat(180)}`)
    const { summary, changes } = await ask()
    const [, quoted] = /Affected: ("(?:[^"\\]|\\.)*")\./.exec(summary) ?? []
    t.equal(JSON.parse(quoted!), `End". Nothing else.⟨U+200B⟩⟨U+202E⟩⟨U+000A⟩${'x'.repeat(16)}…`)
    t.ok(changes[0].name.length <= 120)
    await pce.discardPendingPolicyChanges()
  })

  await t.test('handles any number of changes', async (t) => {
    for (let n = 0; n < 60; n++) await bench.draft(`${n} of many ${'y'.repeat(100)}`)
    const asked = await ask()
    t.match(
      asked.summary,
      /^Makes 60 pending changes active.*60 rule sets created\. Among them: "0 of many y+…", .*"4 of many y+…"\. /,
    )
    t.match(asked.summary, /All of these may permit more traffic than today\./)
    t.equal(asked.changes.length + asked.changes_left_out, 60)
    t.ok(asked.changes.length >= 5)
  })
})

t.test('names what its judgement assumes', async (t) => {
  const bench = await startConfirming(t, { estate: handMade({ ruleSets: [{ name: 'tables', scope: '' }] }) })
  const [ruleSet] = await bench.pce.ruleSets.getAll()
  const { href: _href, ...rule } = ipTablesRule('-j DROP')
  await bench.pce.ruleSets.update(ruleSet!.href, { ip_tables_rules: [rule] })
  const { assumes, changes } = await bench.call(TOOL, {})
  t.same([assumes, changes[0].effect_note], [['P19'], 'Undecided because of rules in the words of iptables.'])
})
