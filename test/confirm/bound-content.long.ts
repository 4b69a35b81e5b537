/** What a yes is bound to for tools that are shown as requests: the objects behind the hrefs, as they were read (D232). */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import type { Json } from '../tools/harness.js'
import { renderChange } from '../../plugins/pages/approve/render-change.js'
import { startApproving } from '../approval/bench.js'
import { startConfirming } from './harness.js'

const CONFIRMED = [
  'create-rule',
  'update-sec-rule',
  'update-ruleset',
  'delete-ruleset',
  'update-workload',
  'label-workloads',
  'update-iplist',
]
const ALL = { enabled: true, providers: [{ actors: 'ams' }], consumers: [{ actors: 'ams' }] }
const DENIED = { ...ALL, ingress_services: [{ port: 22, proto: 6 }] }
const EVERYTHING = {
  ...ALL,
  ingress_services: [{ port: 1, to_port: 65535, proto: 6 }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
}
const ESTATE = handMade({
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'old-1': { ip: '10.0.0.9', managed: false },
    ...Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`n-${n}`, { ip: `10.0.1.${n}`, labels: 'app=pay' }])),
  },
  labels: ['app=shop', 'app=crm'],
  ipLists: { Partners: ['203.0.113.0/24'] },
  services: { Web: { service_ports: [{ port: 443, proto: 6 }] } },
  ruleSets: [{ name: 'Payments', scope: 'env=prod', allow: [{ from: 'app=pay', to: 'ams', services: ['Web'] }] }],
})

t.test('what stands behind the hrefs of a request', async (t) => {
  const confirmed = tools.map((tool) => (CONFIRMED.includes(tool.name) ? { ...tool, requiresConfirm: true } : tool))
  const bench = await startConfirming(t, { estate: ESTATE, tools: confirmed })
  const { pce } = bench
  const labelOf = async (value: string) => (await pce.labels.get('draft', null, { params: { value } }))[0]!.href
  const [pay, shop, crm] = [await labelOf('pay'), await labelOf('shop'), await labelOf('crm')]
  const inner = await pce.labelGroups.create({ name: 'Inner', key: 'app', labels: [{ href: shop }] })
  await pce.labelGroups.create({
    name: 'Outer',
    key: 'app',
    labels: [{ href: crm }],
    sub_groups: [{ href: inner.href }],
  })
  const virtual = await pce.virtualServices.create({ name: 'Front', service_ports: [{ port: 8080, proto: 6 }] })
  const hrefOf = async (kind: 'ipLists' | 'services' | 'ruleSets' | 'workloads', name: string) =>
    (await pce[kind].get('draft', null, { params: { name } }))[0]!.href
  const [partners, web, set, old] = [
    await hrefOf('ipLists', 'Partners'),
    await hrefOf('services', 'Web'),
    await hrefOf('ruleSets', 'Payments'),
    await hrefOf('workloads', 'old-1'),
  ]
  const ruleHref = `${set}/sec_rules/1`
  const rule = (provider: string) => ({
    name: 'create-rule',
    args: {
      ruleset_name: 'Payments',
      providers: [provider],
      consumers: ['app=pay'],
      ingress_services: [{ service: 'Web' }],
    },
  })
  const put = (href: string, json: object) => pce.put(href, { json, includeOrg: false })

  const CASES: Record<string, { name: string; args: object; change: () => Promise<unknown> }> = {
    "a label's value": { ...rule(crm), change: () => put(crm, { value: 'crm-2' }) },
    "a list's addresses": {
      ...rule('iplist:Partners'),
      change: () => put(partners, { ip_ranges: [{ from_ip: '0.0.0.0/0' }] }),
    },
    "a service's ports": {
      ...rule('ams'),
      change: () =>
        put(web, {
          service_ports: [
            { port: 443, proto: 6 },
            { port: 22, proto: 6 },
          ],
        }),
    },
    'a label group': {
      ...rule('labelgroup:Outer'),
      change: () => put(inner.href, { name: 'Inner, renamed' }),
    },
    'what a label group inside a label group contains': {
      ...rule('labelgroup:Outer'),
      change: () => put(inner.href, { labels: [{ href: shop }, { href: pay }] }),
    },
    'a virtual service': {
      ...rule(virtual.href),
      change: () => put(virtual.href, { service_ports: [{ port: 22, proto: 6 }] }),
    },
    'the addresses of a workload without a VEN': {
      ...rule('workload:old-1'),
      change: () => put(old, { interfaces: [{ name: 'eth0', address: '10.9.9.9' }] }),
    },
    'one more of many workloads': {
      name: 'label-workloads',
      args: { selection: { labels: ['app=pay'] }, set: ['app=crm-2'], max_matches: 100 },
      change: () => put(old, { labels: [{ href: pay }] }),
    },
    "a rule set's scopes": { ...rule('ams'), change: () => put(set, { scopes: [[]] }) },
    'another side of a changed rule': {
      name: 'update-sec-rule',
      args: { href: ruleHref, enabled: false },
      change: () => put(ruleHref, { consumers: [{ actors: 'ams' }] }),
    },
    'the name of a changed workload': {
      name: 'update-workload',
      args: { href: old, description: 'Moved' },
      change: () => put(old, { name: 'core-switch' }),
    },
    'one more rule of a rule set whose scopes are changed': {
      name: 'update-ruleset',
      args: { name: 'Payments', scopes: [['app=pay']] },
      change: () => pce.rules.create(EVERYTHING as Json, set),
    },
    'a deny rule of a rule set that is switched off': {
      name: 'update-ruleset',
      args: { name: 'Payments', enabled: false },
      change: () => pce.denyRules.create(DENIED as Json, set),
    },
    'a rule of a deleted rule set': {
      name: 'delete-ruleset',
      args: { href: set },
      change: () => put(ruleHref, { providers: [{ label: { href: crm } }] }),
    },
  }
  await t.test('the question names it, with its content', async (t) => {
    const asked = await bench.call('create-rule', rule('labelgroup:Outer').args)
    t.match(asked.summary, / It refers to label group "Outer", label "app: pay", service "Web"\.$/)
    t.same(
      asked.refers_to.map(({ kind, name, content = '' }: Json) => `${kind} ${name} ${content}`.trim()),
      [
        `rule set Payments {"ip_tables_rules":[],"enabled":true,"scopes":[[{"label":{"key":"env","value":"prod","href":"/orgs/1/labels/2"}}]]}`,
        `label group Outer {"key":"app","labels":[{"key":"app","value":"crm","href":"${crm}"}],"sub_groups":[{"name":"Inner","href":"${inner.href}"}]}`,
        'label app: pay',
        'service Web {"service_ports":[{"port":443,"proto":6}]}',
        'label env: prod',
        'label app: crm',
        `label group Inner {"key":"app","labels":[{"key":"app","value":"shop","href":"${shop}"}],"sub_groups":[]}`,
        'label app: shop',
      ],
    )
  })

  await t.test('what is too large is not read, and the question says so', async (t) => {
    const { name, args } = rule('iplist:Partners')
    const body = { href: partners, name: 'Partners', description: 'x'.repeat(32 * 1024 * 1024) }
    bench.simulator.faults.add({
      kind: 'status',
      method: 'GET',
      path: /\/ip_lists\/2$/,
      times: 100,
      status: 200,
      body,
    })
    const asked = await bench.call(name, args)
    partial(t, asked, {
      warnings: [
        '1 object that the requests refer to is too large to be read here, so what is behind the href is not known and a change after the decision is not noticed: look at it in the PCE before you decide.',
      ],
    })
    t.same(
      asked.refers_to.filter(({ content }: Json) => /too large/.test(content)),
      [{ kind: 'IP list', href: partners, content: 'is too large to be read here' }],
    )
    bench.simulator.faults.clear()
  })

  await t.test('what is too long to be shown is bound all the same', async (t) => {
    const { name, args: common } = rule('iplist:Partners')
    const args = { ...common, consumers: ['app=shop'] }
    const ranges = Array.from({ length: 60_000 }, (_, at) => ({
      from_ip: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
      description: 'x'.repeat(120),
    }))
    const answerWith = (list: object) => {
      bench.simulator.faults.clear()
      const body = { href: partners, name: 'Partners', ...list }
      bench.simulator.faults.add({
        kind: 'status',
        method: 'GET',
        path: /\/ip_lists\/2$/,
        times: 100,
        status: 200,
        body,
      })
    }
    answerWith({ ip_ranges: ranges, updated_at: '2026-01-01T00:00:00Z' })
    const asked = await bench.call(name, args)
    partial(t, asked, {
      warnings: [
        '1 object that the requests refer to is too long to be shown: look at what is behind the href in the PCE before you decide. A change after the decision is noticed.',
      ],
    })
    t.same(
      asked.refers_to.filter(({ name }: Json) => name === 'Partners'),
      [{ kind: 'IP list', name: 'Partners', href: partners, content: 'is too long to be shown' }],
    )
    const { confirm_token: token } = await bench.confirm(asked)
    for (const changed of [
      { ip_ranges: [...ranges.slice(0, -1), { from_ip: '0.0.0.0/0' }] },
      { ip_ranges: ranges, fqdns: [{ fqdn: '*.example.com' }] },
    ]) {
      answerWith(changed)
      bench.writes()
      partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' })
      t.same(bench.writes(), [])
    }
    answerWith({ updated_at: '2026-02-02T00:00:00Z', ip_ranges: ranges })
    partial(t, await bench.call(name, args, { token }), { ok: true }, 'order of fields and times are no content')
    bench.simulator.faults.clear()
  })

  await t.test('so is a rule set of which the rules count', async (t) => {
    const [name, args] = ['update-ruleset', { name: 'Payments', enabled: false }]
    const allow = { href: ruleHref, ...ALL, description: 'x'.repeat(1000), ingress_services: [{ port: 443, proto: 6 }] }
    const answerWith = (last: object) => {
      bench.simulator.faults.clear()
      // There are more rules than hrefs are collected, and only the last rule names the service Web.
      const rules = Array.from({ length: 10_100 }, (_, at) => ({ ...allow, href: `${set}/sec_rules/${at + 1}` }))
      const body = {
        href: set,
        name: 'Payments',
        enabled: true,
        scopes: [[]],
        rules: [...rules, { ...allow, ingress_services: [{ href: web }], ...last }],
      }
      bench.simulator.faults.add({
        kind: 'status',
        method: 'GET',
        path: /\/rule_sets\/1$/,
        times: 100,
        status: 200,
        body,
      })
    }
    answerWith({})
    const asked = await bench.call(name, args)
    t.same(
      asked.refers_to.map(({ kind, name, content = '' }: Json) => `${kind} ${name} ${content}`.trim()),
      ['rule set Payments is too long to be shown', 'service Web {"service_ports":[{"port":443,"proto":6}]}'],
    )
    const { confirm_token: token } = await bench.confirm(asked)
    answerWith({ consumers: [{ label: { href: crm } }] })
    partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' })
    answerWith({})
    const deny = await pce.denyRules.create(DENIED as Json, set)
    partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' }, 'a deny rule')
    await pce.denyRules.delete(deny)
    bench.simulator.faults.clear()
  })

  await t.test('so are deny rules that are too long, which are another list', async (t) => {
    const [name, args] = ['update-ruleset', { name: 'Payments', enabled: false }]
    const deny = { ...DENIED, description: 'x'.repeat(1000) }
    const answerWith = (last: object) => {
      bench.simulator.faults.clear()
      const rules = Array.from({ length: 9000 }, (_, at) => ({ ...deny, href: `${set}/deny_rules/${at + 1}` }))
      const body = [...rules, { ...deny, ...last, href: `${set}/deny_rules/9001` }]
      const [common, own] = [
        { kind: 'status', method: 'GET', times: 100, status: 200 } as const,
        { href: set, name: 'Payments' },
      ]
      bench.simulator.faults.add({
        ...common,
        path: /\/rule_sets\/1$/,
        body: { ...own, enabled: true, scopes: [[]], rules: [] },
      })
      bench.simulator.faults.add({
        kind: 'status',
        method: 'GET',
        path: /\/deny_rules$/,
        times: 100,
        status: 200,
        body,
      })
    }
    answerWith({})
    const asked = await bench.call(name, args)
    t.equal(asked.refers_to[0].content, 'is too long to be shown')
    const { confirm_token: token } = await bench.confirm(asked)
    answerWith({ enabled: false })
    partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' })
    bench.simulator.faults.clear()
  })

  await t.test('what could not be read is said, and is asked anew once it can be read', async (t) => {
    const { name, args } = rule('iplist:Partners')
    const refuse = (times: number) => {
      bench.simulator.faults.clear()
      bench.simulator.faults.add({
        kind: 'status',
        method: 'GET',
        path: /\/ip_lists\/2$/,
        times,
        status: 403,
        body: [],
      })
    }
    refuse(100)
    const asked = await bench.call(name, args)
    partial(t, asked, {
      warnings: [
        '1 object that the requests refer to could not be read, so what is behind the href is not known and a change after the decision is not noticed: look at it in the PCE before you decide.',
      ],
    })
    t.same(
      asked.refers_to.filter(({ content }: Json) => content === 'could not be read').map(({ href }: Json) => href),
      [partners],
    )
    const { confirm_token: token } = await bench.confirm(asked)
    bench.simulator.faults.clear()
    const again = await bench.call(name, args, { token })
    partial(t, again, { reason: 'stale', warnings: undefined })
    refuse(100)
    const { confirm_token: readable } = await bench.confirm(again)
    const unread = await bench.call(name, args, { token: readable })
    partial(t, unread, { reason: 'stale' })
    const { confirm_token: last } = await bench.confirm(unread)
    partial(t, await bench.call(name, args, { token: last }), { ok: true })
    bench.simulator.faults.clear()
  })

  await t.test('what is only shown is not looked up again where the yes is redeemed', async (t) => {
    const queries = () =>
      bench.simulator.requests.filter(({ method, path }) => method === 'POST' && path.includes('/async_queries')).length
    const [name, args] = ['update-sec-rule', { href: ruleHref, enabled: false }]
    bench.writes()
    const token = await bench.tokenFor(name, args)
    t.ok(queries() > 0, 'the question says what traffic would be cut')
    bench.writes()
    partial(t, await bench.call(name, args, { token }), { ok: true })
    t.equal(queries(), 0)
    await put(ruleHref, { enabled: true })
  })

  for (const [what, { name, args, change }] of Object.entries(CASES))
    await t.test(`${what}: changed after the yes, the call is asked anew; unchanged, it runs`, async (t) => {
      const token = await bench.tokenFor(name, args)
      await change()
      bench.writes()
      const again = await bench.call(name, args, { token })
      partial(t, again, { error: 'confirm_required', reason: 'stale' })
      t.same(bench.writes(), [], 'nothing ran')
      const { confirm_token: second } = await bench.confirm(again)
      partial(t, await bench.call(name, args, { token: second }), { ok: true })
      t.equal(bench.writes().length, 1)
    })
})

t.test('the addresses of a workload without a VEN that is too long to be shown', async (t) => {
  const estate = handMade({
    hosts: { 'old-1': { ip: '10.0.0.9', managed: false } },
    labels: ['app=pay'],
    ruleSets: [{ name: 'Payments', scope: 'app=pay', allow: [] }],
  })
  const confirmed = tools.map((tool) => (tool.name === 'create-rule' ? { ...tool, requiresConfirm: true } : tool))
  const bench = await startConfirming(t, { estate, tools: confirmed })
  const [old] = await bench.pce.workloads.get('draft', null, { params: { name: 'old-1' } })
  const long = { description: 'x'.repeat(5 * 1024 * 1024), os_detail: 'x'.repeat(5 * 1024 * 1024) }
  const answerWith = (address: string) => {
    bench.simulator.faults.clear()
    const body = { ...old!, ...long, interfaces: [{ name: 'eth0', address }] }
    bench.simulator.faults.add({
      kind: 'status',
      method: 'GET',
      path: /\/workloads\/[\w-]+$/,
      times: 9,
      status: 200,
      body,
    })
  }
  const args = {
    ruleset_name: 'Payments',
    providers: [old!.href],
    consumers: ['app=pay'],
    ingress_services: [{ port: 443, proto: 'tcp' }],
  }
  answerWith('10.0.0.9')
  const asked = await bench.call('create-rule', args)
  partial(
    t,
    asked.refers_to?.find(({ href }: Json) => href === old!.href),
    { content: 'is too long to be shown' },
  )
  const { confirm_token: token } = await bench.confirm(asked)
  answerWith('10.9.9.9')
  partial(t, await bench.call('create-rule', args, { token }), { error: 'confirm_required', reason: 'stale' })
})

t.test('a person sees it on the page, and their yes is bound to it as a token is', async (t) => {
  const bench = await startApproving(t, { confirm: { tools: ['update-sec-rule'] }, estate: { estate: ESTATE } })
  const [ann, href] = [bench.person('ann'), '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1']
  const call = () => bench.call('ann', 'update-sec-rule', { href, providers: ['iplist:Partners'] })
  const asked = await call()
  const { request } = (await bench.desk.find(asked.approval_id))!
  t.same(
    request.shown.referred!.map(({ kind, name, content }) => [kind, name, content?.ip_ranges]),
    [
      ['allow rule', undefined, undefined],
      ['rule set', 'Payments', undefined],
      ['IP list', 'Partners', [{ from_ip: '203.0.113.0/24' }]],
      ['label', 'app: pay', undefined],
      ['service', 'Web', undefined],
      ['label', 'env: prod', undefined],
    ],
  )
  const page = renderChange(request.shown)
  for (const words of ['<bdi>Web</bdi>', '203.0.113.0/24', '<bdi>app: pay</bdi>']) t.ok(page.includes(words), words)

  await bench.decide(asked.approval_id, 'approved', ann)
  const changed = await bench.call('ann', 'update-iplist', { name: 'Partners', ip_ranges: [{ from_ip: '0.0.0.0/0' }] })
  partial(t, changed, { updated_fields: ['ip_ranges'] })
  const again = await call()
  partial(t, again, { error: 'confirm_required', reason: 'stale' })
  partial(t, await bench.desk.find(asked.approval_id), { state: 'void' })
  await bench.decide(again.approval_id, 'approved', ann)
  partial(t, await call(), { updated_fields: ['providers'] })
})

t.test('the page with much behind the hrefs', async (t) => {
  const tools = ['update-sec-rule', 'update-iplist']
  const bench = await startApproving(t, { confirm: { tools }, estate: { estate: ESTATE } })
  const rangesOf = (size: number) =>
    Array.from({ length: size }, (_, at) => ({
      from_ip: `10.${at >> 8}.${at & 255}.1`,
      description: `${at} ${'x'.repeat(240)}`,
    }))
  const listOf = (name: string, size: number) =>
    bench.call('ann', 'create-iplist', { name, ip_ranges: rangesOf(size), fqdns: [] })
  for (const [name, size] of [
    ['Broad', 190],
    ['Broader', 190],
  ] as const)
    await listOf(name, size)
  const shownOf = async (name: string, args: object) => {
    const { approval_id: id } = await bench.call('ann', name, args)
    return (await bench.desk.find(id))!.request.shown
  }

  await t.test('a large list hides nothing of what comes after it', async (t) => {
    const href = '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1'
    const shown = await shownOf('update-sec-rule', { href, providers: ['iplist:Broad', 'iplist:Broader'] })
    t.same(
      shown.referred!.map(({ name, content, note }) => [name, content !== undefined, note]),
      [
        [undefined, true, undefined],
        ['Payments', true, undefined],
        ['Broad', true, undefined],
        ['Broader', false, 'What it contains is left out here: look at it in the PCE.'],
        ['app: pay', true, undefined],
        ['Web', true, undefined],
        ['env: prod', true, undefined],
      ],
    )
  })

  await t.test('the change itself comes first', async (t) => {
    const shown = await shownOf('update-iplist', { name: 'Broad', ip_ranges: rangesOf(550) })
    t.equal(shown.truncated, true)
    t.same(
      shown.objects.map(({ fields, note }) => [fields.map(({ path }) => path), note]),
      [[['ip_ranges'], undefined]],
    )
    t.same(
      shown.referred!.map(({ name, content, note }) => [name, content, note]),
      [['Broad', undefined, 'What it contains is left out here: look at it in the PCE.']],
    )
    t.match(renderChange(shown), /That does not hold for those that were not read/)
  })
})
