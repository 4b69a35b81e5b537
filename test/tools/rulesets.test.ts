/** get-rulesets and create-ruleset: what is shown, what is resolved, what is refused before anything is written. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { benchOf, startBench, type Bench, type Json, withoutModes } from './harness.js'

const ANY = 'Any (0.0.0.0/0 and ::/0)'
const HTTPS = { port: 443, proto: 'tcp' }
const rule = (more: object = {}) => ({ providers: ['ams'], consumers: ['ams'], ingress_services: [HTTPS], ...more })

async function labelHref(bench: Bench, key: string, value: string): Promise<string> {
  return (await bench.pce.labels.getAll()).find((label) => label.key === key && label.value === value)!.href
}

t.test('get-rulesets', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench
  const stored = await bench.pce.ruleSets.getAll()

  await t.test('shows every rule with href, ends by type and name, and services by name', async (t) => {
    const { rulesets } = await bench.ok('get-rulesets', { name: 'web-shop | prod', detail_level: 'full' })
    t.equal(rulesets.length, 1)
    const [shown] = rulesets
    partial(t, shown.scopes, [
      [
        { key: 'app', value: 'web-shop', href: /labels/ },
        { key: 'env', value: 'prod' },
      ],
    ])
    t.same([...new Set(shown.rules.map((one: Json) => one.rule_type))], ['allow', 'deny'])
    for (const one of shown.rules) {
      partial(t, one, { href: /\/(sec_rules|deny_rules)\/\d+$/, unscoped_consumers: Boolean, enabled: true })
      for (const end of [...one.providers, ...one.consumers]) {
        t.type(end.type, 'string')
        if (end.type === 'label') partial(t, end, { href: /labels/, key: /./, value: /./ })
        if (end.type === 'ip_list') partial(t, end, { href: /ip_lists/, name: /./ })
      }
      for (const service of one.ingress_services)
        partial(t, service, 'href' in service ? { name: /./ } : { port: Number, proto: Number })
    }
    t.ok(shown.rules.some((one: Json) => one.rule_type === 'deny' && !('resolve_labels_as' in one)))
  })

  await t.test('writes ends, scopes and services as callers do, so that they can be sent again', async (t) => {
    const own = await startBench(t, { workloads: 40, flows: 0 })
    await own.ok('create-iplist', { name: 'Vendors', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
    const group = { name: 'Edge' }
    await own.pce.labelGroups.create({ ...group, key: 'role', labels: [] })
    const [workload] = await own.pce.workloads.getAll()
    const rule = {
      providers: ['ams', 'iplist:Vendors', ' !env=prod'],
      consumers: ['!labelgroup:Edge', 'role=web', `labelgroup:${group.name}`, workload!.href],
      ingress_services: [{ port: 443, proto: 6 }, 'SSH'],
    }
    await own.ok('create-ruleset', { name: 'Of short forms', scopes: [['app=ordering', 'env=prod']], rules: [rule] })
    const { rulesets } = await own.ok('get-rulesets', { name: 'Of short forms' })
    t.same(rulesets[0].scopes, [['app=ordering', 'env=prod']])
    const [shown] = rulesets[0].rules
    t.same(shown.providers, ['ams', 'iplist:Vendors', '!env=prod'])
    t.same(shown.consumers, [
      '!labelgroup:Edge',
      'role=web',
      `labelgroup:${group.name}`,
      { type: 'workload', href: workload!.href, name: workload!.name ?? workload!.hostname },
    ])
    t.same(shown.ingress_services, [{ port: 443, proto: 6 }, 'SSH'])
    const { providers, consumers, ingress_services } = shown
    await own.ok('create-ruleset', {
      name: 'The same again',
      scopes: rulesets[0].scopes,
      rules: [{ providers, consumers, ingress_services }],
    })
    const again = await own.ok('get-rulesets', { name: 'The same again' })
    t.same({ ...again.rulesets[0].rules[0], href: '' }, { ...shown, href: '' })

    const body = { name: 'Twice', service_ports: [{ port: 7, proto: 6 }] }
    const [twin] = [await own.pce.services.create(body), await own.pce.services.create(body)]
    const twice = [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ href: twin.href }] }]
    await own.ok('create-ruleset', { name: 'A shared name', scopes: [[]], rules: twice })
    const { rulesets: shared } = await own.ok('get-rulesets', { name: 'A shared name' })
    t.same(shared[0].rules[0].ingress_services, [{ href: twin.href, name: 'Twice' }])
  })

  await t.test('filters by scope labels as one AND group of hrefs', async (t) => {
    simulator.clearRequests()
    const { rulesets } = await bench.ok('get-rulesets', { labels: 'app=web-shop' })
    t.same(
      rulesets.map((one: Json) => one.name),
      ['web-shop | prod'],
    )
    const { query } = simulator.requests.find(({ path }) => path.endsWith('/rule_sets'))!
    t.equal(query.labels, JSON.stringify([[await labelHref(bench, 'app', 'web-shop')]]))
    await bench.fails('get-rulesets', { labels: 'app=web' }, 'unresolved_label_filter')
  })

  await t.test('finds rules by an end, a service or an href, over all rule sets and both kinds of rules', async (t) => {
    const own = await startBench(t, { workloads: 40, flows: 0 })
    const rdp = { port: 3389, proto: 'tcp' }
    await own.ok('create-iplist', { name: 'Vendors', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
    await own.ok('create-service', { name: 'Remote desktop', service_ports: [rdp] })
    await own.ok('create-service', { name: 'High ports', service_ports: [{ port: 3000, to_port: 4000, proto: 'tcp' }] })
    const make = async (name: string, rules: object[]) =>
      (await own.ok('create-ruleset', { name, scopes: [['app=payments', 'env=prod']], rules })).ruleset
    const one = await make('find one', [
      rule({ consumers: ['iplist:Vendors'], ingress_services: [{ service: 'Remote desktop' }] }),
      rule({ ingress_services: [rdp] }),
      rule({ consumers: ['iplist:Vendors'], rule_type: 'deny', ingress_services: [HTTPS] }),
    ])
    const two = await make('find two', [
      rule({ providers: ['app=crm'], ingress_services: [{ service: 'High ports' }] }),
      rule({ providers: [{ key: 'app', value: 'crm', exclusion: true }] }),
    ])
    await own.ok('create-ruleset', { name: 'find bare', scopes: [['app=payments', 'env=prod']] })
    const all = (await own.ok('get-rulesets', {})).total_count
    /** `set: rules by their place`, and the counts that the answer states. */
    const find = async (args: object): Promise<string[]> => {
      const { rulesets, total_count: count, pce_total: total, truncated } = await own.ok('get-rulesets', args)
      t.same([count, total, truncated], [rulesets.length, all, false], 'every rule set was looked at')
      return rulesets.map((shown: Json) => {
        const made = [one, two].find(({ href }) => href === shown.href)
        const places = shown.rules.map(({ href }: Json) => made?.rules.findIndex((each: Json) => each.href === href))
        t.equal(shown.rules_matching, shown.rules.length)
        if (made !== undefined) t.equal(shown.rules_total, made.rules.length)
        return `${shown.name}: ${places.join(' ')}`
      })
    }
    t.same(await find({ actor: 'iplist:Vendors' }), ['find one: 0 2'])
    const { ip_lists: lists } = await own.ok('get-iplists', { name: 'Vendors' })
    t.same(await find({ actor: lists[0].href.replace('draft', 'active') }), ['find one: 0 2'], 'in either version')
    const crm = (await find({ actor: 'app=crm' })).filter((text) => text.startsWith('find'))
    t.same(crm, ['find two: 0 1'], 'as a provider, excluded or not')
    const paid = (await find({ actor: 'app=payments' })).filter((text) => text.startsWith('find'))
    t.same(paid, ['find one: 0 1 2', 'find two: 0 1', 'find bare: '], 'the scope names it for every rule, or for none')
    t.same(await find({ actor: 'app=payments', service: 'Remote desktop' }), ['find one: 0'])
    t.same(await find({ service: 'Remote desktop' }), ['find one: 0'], 'by its exact name')
    t.same(await find({ actor: 'iplist:Vendors', service: 'Remote desktop' }), ['find one: 0'], 'of one rule')
    t.same(await find({ actor: 'app=crm', service: { service: 'Remote desktop' } }), [], 'not of two rules')
    const covered = (await find({ service: rdp })).filter((text) => text.startsWith('find'))
    t.same(covered, ['find one: 0 1', 'find two: 0'], 'whatever covers the port')

    const found = await own.ok('get-rulesets', { href: one.href })
    t.same(
      [found.rulesets.length, found.rulesets[0].rules.length, 'rules_matching' in found.rulesets[0], found.total_count],
      [1, 3, false, 1],
    )
    const single = await own.ok('get-rulesets', { href: one.rules[2].href })
    t.same(
      single.rulesets.map((set: Json) => [set.name, set.rules_total, set.rules.map(({ href }: Json) => href)]),
      [['find one', 3, [one.rules[2].href]]],
      'a rule by its href, with its rule set',
    )
    await own.fails('get-rulesets', { href: one.href, name: 'find' }, 'conflicting_identifiers')
    await own.fails('get-rulesets', { href: '/orgs/1/labels/1' }, 'invalid_href')
    await own.fails('get-rulesets', { href: `${one.href}99` }, 'not_found')
    partial(t, await own.fails('get-rulesets', { actor: 'iplist:Vendor' }, 'not_found'), { near_names: ['Vendors'] })
    const bare = await own.fails('get-rulesets', { actor: 'crm' }, 'invalid_actor')
    t.equal(bare.message, '"crm" cannot be used in actor. Write key=value: "app=crm".')
    const far = await own.fails('get-rulesets', { service: 'Remote Desktop' }, 'invalid_argument')
    partial(t, far, { argument: 'service', reason: 'not_found', near_names: ['Remote desktop'] })
    await own.fails('get-rulesets', { service: { port: 3389 } }, 'invalid_argument')
  })

  await t.test('says how labels are resolved only where it is not the usual', async (t) => {
    const { rulesets } = await bench.ok('get-rulesets', {})
    const rules = rulesets.flatMap((one: Json) => one.rules)
    t.ok(rules.length > 20)
    t.notOk(rules.some((one: Json) => 'resolve_labels_as' in one))
    const { href } = await bench.pce.ruleSets.create({ name: 'virtual', scopes: [[]] })
    const resolve_labels_as = { providers: ['virtual_services'], consumers: ['workloads'] }
    const ends = { providers: [{ actors: 'ams' as const }], consumers: [{ actors: 'ams' as const }] }
    const parts = { enabled: true, ingress_services: [{ port: 1, proto: 6 }], resolve_labels_as }
    await bench.pce.rules.create({ ...ends, ...parts }, href)
    t.same((await bench.ok('get-rulesets', { href })).rulesets[0].rules[0].resolve_labels_as, resolve_labels_as)
    await bench.pce.ruleSets.delete(href)
  })

  await t.test('applies enabled to all rule sets, not one page', async (t) => {
    const disabled = await bench.ok('get-rulesets', { enabled: false, max_results: 1 })
    t.same(
      disabled.rulesets.map((one: Json) => one.name),
      stored.filter((one) => !one.enabled).map(({ name }) => name),
    )
    partial(t, disabled, { total_count: 1, pce_total: stored.length, truncated: false })
  })

  await t.test('following the cursor returns every rule set once, by count and by bytes', async (t) => {
    const small = await startBench(t, { budget: 6000 })
    for (const [at, args] of [
      [bench, { max_results: 3 }],
      [bench, {}],
      [small, {}],
    ] as const) {
      const seen: Json[] = []
      let cursor: string | undefined
      do {
        const page: Json = await at.ok('get-rulesets', { ...args, ...(cursor !== undefined && { cursor }) })
        seen.push(...page.rulesets)
        cursor = page.next_cursor
        if (at === small) t.ok(Buffer.byteLength(JSON.stringify(page)) <= 6000)
      } while (cursor !== undefined)
      t.same(
        seen.map(({ href }) => href),
        stored.map(({ href }) => href),
      )
    }
  })

  await t.test('continues a rule set larger than an answer in the next one, rule by rule', async (t) => {
    const rules = Array.from({ length: 40 }, (_, index) => rule({ description: `number ${index}` }))
    const small = await startBench(t, { budget: 6000 })
    const { ruleset } = await small.ok('create-ruleset', { name: 'wide', scopes: [['app=payments']], rules })
    const parts: Json[] = []
    let cursor: string | undefined
    do {
      const page: Json = await small.ok('get-rulesets', { name: 'wide', ...(cursor !== undefined && { cursor }) })
      t.ok(Buffer.byteLength(JSON.stringify(page)) <= 6000)
      t.equal(page.rulesets.length, 1)
      t.equal(page.rulesets[0].rules_total, 40)
      t.equal(page.rulesets[0].rules_from ?? 0, parts.length)
      parts.push(...page.rulesets[0].rules)
      cursor = page.next_cursor
    } while (cursor !== undefined)
    t.same(
      parts.map(({ href }) => href),
      ruleset.rules.map((one: Json) => one.href),
    )
  })

  await t.test('never takes the rest of a deleted rule set from the next one', async (t) => {
    const rules = Array.from({ length: 40 }, (_, index) => rule({ description: `number ${index}` }))
    const small = await startBench(t, { budget: 6000 })
    const wide = await small.ok('create-ruleset', { name: 'two: wide', scopes: [['app=payments']], rules })
    await small.ok('create-ruleset', { name: 'two: next', scopes: [['app=payments']], rules: rules.slice(0, 3) })
    const first = await small.ok('get-rulesets', { name: 'two:' })
    await small.pce.ruleSets.delete(wide.ruleset.href)
    const second = await small.ok('get-rulesets', { name: 'two:', cursor: first.next_cursor })
    partial(t, second.rulesets, [{ name: 'two: next', rules_total: 3 }])
    t.equal(second.rulesets[0].rules.length, 3)
  })

  await t.test('marks draft changes on the rule set and on the rule', async (t) => {
    const target = stored.find(({ name }) => name === 'crm | prod')!
    await bench.pce.rules.update(target.rules![0]!.href, { enabled: false })
    const { rulesets } = await bench.ok('get-rulesets', { name: 'crm | prod' })
    partial(t, rulesets[0], {
      update_type: 'update',
      rules: [
        { update_type: 'update', enabled: false },
        { update_type: undefined, enabled: true },
      ],
    })
  })

  await t.test('shows the name of a label this server just created', async (t) => {
    await bench.ok('get-workloads', { labels: 'app=payments' })
    const { label } = await bench.ok('create-label', { key: 'app', value: 'just-made' })
    const { href } = await bench.pce.ruleSets.create({ name: 'uses it', scopes: [[]] })
    await bench.pce.rules.create(
      {
        enabled: true,
        providers: [{ label: { href: label.href } }],
        consumers: [{ actors: 'ams' }],
        ingress_services: [{ port: 1, proto: 6 }],
        resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
      },
      href,
    )
    const { rulesets } = await bench.ok('get-rulesets', { name: 'uses it' })
    t.same(rulesets[0].rules[0].providers, ['app=just-made'])
  })

  await t.test('fetches deny rules that are not embedded; a failure is reported and hides nothing', async (t) => {
    const sets = Array.from({ length: 12 }, (_, index) => ({
      href: `/orgs/1/sec_policy/draft/rule_sets/${index + 1}`,
      name: `set ${index + 1}`,
      enabled: true,
      scopes: [[]],
      rules: [],
    }))
    let inFlight = 0
    let most = 0
    const server = await startServer(t, ({ path }): Reply => {
      const id = /rule_sets\/(\d+)\/deny_rules/.exec(path)?.[1]
      if (id === undefined) return { body: path.includes('/rule_sets') ? sets : [], headers: { 'x-total-count': '12' } }
      if (id === '5') return { status: 403, body: [{ token: 'forbidden', message: 'No' }] }
      inFlight++
      most = Math.max(most, inFlight)
      queueMicrotask(() => inFlight--)
      const override = {
        href: `${sets[Number(id) - 1]!.href}/deny_rules/1`,
        enabled: true,
        override: true,
        providers: [{ actors: 'ams' }],
        consumers: [{ actors: 'ams' }],
        ingress_services: [{ port: 23, proto: 6 }],
      }
      return { body: id === '7' ? [override] : [], headers: { 'x-total-count': id === '7' ? '1' : '0' } }
    })
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const { rulesets } = await scripted.ok('get-rulesets')
    t.equal(server.requests().filter((line) => line.includes('deny_rules')).length, 12)
    partial(t, rulesets[4], { deny_rules_error: /403/, rules: [] })
    partial(t, rulesets[6].rules, [{ rule_type: 'override_deny' }])
    t.equal(rulesets.filter((one: Json) => 'deny_rules_error' in one).length, 1)
  })
})

t.test('create-ruleset', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench
  const nothingWritten = (t: Test, why: string) => t.same(bench.writes(), [], `${why}: nothing written`)

  await t.test(
    'writes exactly what was requested: scope, intra-scope, extra-scope, deny and override deny',
    async (t) => {
      bench.writes()
      const { ruleset, ...rest } = await bench.ok('create-ruleset', {
        name: 'complete',
        description: 'all kinds',
        scopes: [['app=pay', { key: 'env', value: 'prod' }], [await labelHref(bench, 'app', 'payments')]],
        rules: [
          rule({ description: 'inside' }),
          rule({
            consumers: [{ key: 'app', value: 'crm' }, 'env=prod'],
            unscoped_consumers: true,
            ingress_services: ['S-HTTP', { port: 8000, to_port: 8010, proto: 17 }],
          }),
          rule({
            consumers: [`iplist:${ANY}`],
            unscoped_consumers: true,
            rule_type: 'deny',
            ingress_services: { service: 'Telnet' },
          }),
          rule({
            consumers: [`iplist:Internet`],
            unscoped_consumers: true,
            rule_type: 'override_deny',
            ingress_services: 'RDP',
          }),
        ],
      })
      t.same(Object.keys(rest), ['message', 'warnings'])
      t.same(
        withoutModes(rest.warnings).map((text) => text.slice(0, 49)),
        [2, 3].map((rule) => `Rule ${rule}: The consumers are any address in effect: `),
      )
      const href = ruleset.href
      const writes = bench.writes()
      t.same(
        writes.map(({ method, path }) => `${method} ${path.replace('/api/v2', '')}`),
        [
          'POST /orgs/1/sec_policy/draft/rule_sets',
          `POST ${href}/sec_rules`,
          `POST ${href}/sec_rules`,
          `POST ${href}/deny_rules`,
          `POST ${href}/deny_rules`,
        ],
      )
      const [set, inside, outside, deny, override] = writes.map(({ body }) => body as Json)
      t.same(
        set.scopes.map((scope: Json[]) => scope.length),
        [2, 1],
      )
      t.equal(set.scopes[0][0].label.href, await labelHref(bench, 'app', 'pay'), 'pay, not payments')
      t.same(Object.keys(set.scopes[0][0]), ['label'])
      t.same(Object.keys(set.scopes[0][0].label), ['href'])
      partial(t, inside, {
        enabled: true,
        description: 'inside',
        providers: [{ actors: 'ams' }],
        ingress_services: [{ port: 443, proto: 6 }],
        unscoped_consumers: false,
        resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
      })
      t.equal(outside.unscoped_consumers, true)
      t.same(outside.ingress_services[1], { port: 8000, to_port: 8010, proto: 17 })
      partial(t, simulator.state.find(outside.ingress_services[0].href), { name: 'S-HTTP' }, 'not S-HTTPS')
      for (const [body, flag] of [
        [deny, false],
        [override, true],
      ] as const) {
        t.equal(body.override, flag)
        t.notOk('resolve_labels_as' in body)
      }
      partial(t, simulator.state.find(deny.consumers[0].ip_list.href), { name: ANY })
      partial(t, ruleset.rules, [
        { rule_type: 'allow', unscoped_consumers: false, ingress_services: [{ port: 443, proto: 6 }] },
        {
          rule_type: 'allow',
          consumers: ['app=crm', /^env=/],
          ingress_services: [{ name: 'S-HTTP' }, {}],
        },
        { rule_type: 'deny', consumers: [{ type: 'ip_list', name: ANY }], ingress_services: [{ name: 'Telnet' }] },
        { rule_type: 'override_deny', ingress_services: [{ name: 'RDP' }] },
      ])
      t.notOk(ruleset.rules.some((one: Json) => 'differences' in one))
      const { rulesets } = await bench.ok('get-rulesets', { name: 'complete' })
      t.same(
        rulesets[0].rules.map((one: Json) => one.href),
        ruleset.rules.map((one: Json) => one.href),
        'and get-rulesets finds them',
      )
    },
  )

  await t.test('a taken name is already_exists with its href; part of one is free', async (t) => {
    bench.writes()
    const error = await bench.fails('create-ruleset', { name: 'complete', scopes: [[]] }, 'already_exists')
    partial(t, error.existing_ruleset, { href: /rule_sets/, name: 'complete' })
    nothingWritten(t, 'taken')
    await bench.ok('create-ruleset', { name: 'complet', scopes: [['app=pay']] })
    const doomed = (await bench.pce.ruleSets.getAll()).find(({ name }) => name === 'catalog | prod')!
    await bench.pce.ruleSets.delete(doomed.href)
    partial(t, await bench.fails('create-ruleset', { name: doomed.name, scopes: [[]] }, 'already_exists'), {
      message: /deletion is pending/,
    })
  })

  await t.test('an empty scope means everything, and it says so', async (t) => {
    for (const [name, scopes] of [
      ['everything', []],
      ['everything too', [[]]],
    ] as const) {
      const { ruleset, warnings } = await bench.ok('create-ruleset', { name, scopes })
      partial(t, simulator.state.find(ruleset.href), { scopes: [[]] })
      partial(t, warnings, [/all workloads/])
    }
    await bench.fails('create-ruleset', { name: 'x' }, 'invalid_argument')
  })

  await t.test('a mistake in the last rule writes nothing of the first', async (t) => {
    bench.writes()
    const cases: [string, Json, Json][] = [
      [
        'label_not_found',
        rule({ providers: ['app=payment'] }),
        { label: 'app=payment', rule_index: 1, side: 'providers' },
      ],
      ['label_not_found', rule({ consumers: [{ href: '/orgs/1/labels/99999' }] }), { side: 'consumers' }],
      ['invalid_actor', rule({ providers: ['everyone'] }), { actor: 'everyone', rule_index: 1 }],
      ['invalid_actor', rule({ providers: ['/orgs/1/sec_policy/draft/services/1'] }), {}],
      [
        'invalid_actor',
        rule({ providers: [{ href: '/orgs/1/sec_policy/draft/ip_lists/1', exclusion: true }] }),
        { message: /excluded/ },
      ],
      [
        'not_found',
        rule({ consumers: ['iplist:Corporate'] }),
        { near_names: ['Corporate networks'], rule_index: 1, side: 'consumers' },
      ],
      [
        'not_found',
        rule({ consumers: ['iplist:Branch'] }),
        { near_names: ['Branch offices', 'Branch offices - guest Wi-Fi'] },
      ],
      ['not_found', rule({ consumers: ['/orgs/1/sec_policy/draft/ip_lists/9999'] }), {}],
      ['invalid_href', rule({ consumers: ['/orgs/2/sec_policy/draft/ip_lists/1'] }), { message: /organisation 2/ }],
      ['invalid_actor', rule({ consumers: ['/orgs/1/../../settings'] }), {}],
      ['invalid_argument', rule({ providers: [] }), {}],
      ['invalid_argument', rule({ provider: ['ams'] }), { message: /providers/ }],
      ['invalid_argument', rule({ rule_type: 'block' }), {}],
      ['invalid_ingress_services', rule({ ingress_services: [] }), { rule_index: 1, message: /All Services/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ port: 443 }] }), { rule_index: 1, message: /proto/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ proto: 'tcp' }] }), { message: /port is missing/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ port: 70000, proto: 6 }] }), { message: /65535/ }],
      [
        'invalid_ingress_services',
        rule({ ingress_services: [{ port: 20, to_port: 10, proto: 6 }] }),
        { message: /below/ },
      ],
      ['invalid_ingress_services', rule({ ingress_services: [{ port: 0, proto: 6 }] }), { message: /All Services/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ port: 1, proto: 'icmp' }] }), { message: /tcp or udp/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ port: 1, proto: 'xyz' }] }), { message: /xyz/ }],
      [
        'invalid_ingress_services',
        rule({ ingress_services: [{ port: 443, proto: 6, service: 'HTTPS' }] }),
        { message: /exactly one/ },
      ],
      ['invalid_ingress_services', rule({ ingress_services: [{}] }), { message: /exactly one/ }],
      ['invalid_ingress_services', rule({ ingress_services: 'HTTPs' }), { near_names: ['HTTPS'], reason: 'not_found' }],
      [
        'invalid_ingress_services',
        rule({ ingress_services: [{ href: '/orgs/1/sec_policy/draft/services/9999' }] }),
        { reason: 'not_found' },
      ],
      ['invalid_ingress_services', rule({ ingress_services: [{ ports: 443 }] }), { message: /"ports" is not a field/ }],
      ['invalid_ingress_services', rule({ ingress_services: { service: 443 } }), { message: /wrong type/ }],
      ['invalid_ingress_services', rule({ ingress_services: [{ service: 'HTTPS', name: 'HTTPS' }] }), {}],
      ['invalid_actor', rule({ consumers: [{ key: 'app', value: 'pay', scope: 'all' }] }), { message: /exclusion/ }],
      ['invalid_actor', rule({ consumers: [{ key: 'app', value: 'pay', exclusion: 'yes' }] }), { rule_index: 1 }],
      ['invalid_egress_services', rule({ egress_services: ['HTTPS'] }), { rule_index: 1, message: /Windows/ }],
      ['egress_service_in_ingress', rule({ ingress_services: ['Windows Update client'] }), { rule_index: 1 }],
      [
        'process_qualified_deny_unsupported',
        rule({ ingress_services: ['IIS worker'], rule_type: 'deny' }),
        { rule_index: 1, services: [{ name: 'IIS worker' }] },
      ],
      [
        'process_qualified_deny_unsupported',
        rule({ ingress_services: ['Print spooler'], rule_type: 'override_deny' }),
        {},
      ],
      ['process_qualified_deny_unsupported', rule({ egress_services: 'Windows Update client', rule_type: 'deny' }), {}],
    ]
    for (const [code, second, details] of cases) {
      const error = await bench.fails(
        'create-ruleset',
        { name: 'never', scopes: [['app=pay']], rules: [rule(), second] },
        code,
      )
      for (const [name, expected] of Object.entries(details)) {
        if (name === 'near_names')
          t.same(error.near_names.slice(0, (expected as string[]).length), expected, JSON.stringify(second))
        else partial(t, error[name], expected, `${name} of ${JSON.stringify(second)}`)
      }
    }
    nothingWritten(t, 'any of these')
    await bench.ok('create-ruleset', { name: 'never', scopes: [['app=pay']] })
  })

  await t.test('a scope takes only labels, one per key', async (t) => {
    bench.writes()
    for (const bad of [
      'ams',
      'iplist:Internet',
      'payments',
      '/orgs/1/workloads/x',
      { href: '/orgs/1/sec_policy/draft/ip_lists/1' },
      { key: 'app', value: 'pay', exclude: true },
    ]) {
      t.same((await bench.fails('create-ruleset', { name: 'y', scopes: [[bad]] }, 'invalid_scope_label')).received, bad)
    }
    partial(
      t,
      await bench.fails('create-ruleset', { name: 'y', scopes: [['app=pay', 'app=crm']] }, 'invalid_scope_label'),
      { message: /twice/ },
    )
    t.equal(
      (await bench.fails('create-ruleset', { name: 'y', scopes: [['app=Pay']] }, 'label_not_found')).valid_values[0],
      'pay',
    )
    nothingWritten(t, 'bad scopes')
  })

  await t.test(
    'services sharing a name are ambiguous by name but not by href; label groups and workloads can be named',
    async (t) => {
      const body = { name: 'Twin', service_ports: [{ port: 9999, proto: 6 }] }
      const [one, two] = [await bench.pce.services.create(body), await bench.pce.services.create(body)]
      const error = await bench.fails(
        'create-ruleset',
        { name: 'twins', scopes: [[]], rules: [rule({ ingress_services: 'Twin' })] },
        'ambiguous_name',
      )
      partial(t, error, { rule_index: 0, candidates: [{ href: one.href }, { href: two.href }] })
      const group = await bench.pce.labelGroups.create({
        name: 'Internal',
        key: 'env',
        labels: [{ href: await labelHref(bench, 'env', 'dev') }],
      })
      const answer = await bench.ok('create-ruleset', {
        name: 'twins',
        scopes: [['app=pay', 'labelgroup:Internal']],
        rules: [
          rule({
            ingress_services: [{ href: two.href.replace('/draft/', '/active/') }],
            consumers: ['labelgroup:Internal', group.href, 'workload:payments-prod-web-01'],
          }),
          rule({ consumers: [{ key: 'env', value: 'dev', exclusion: true }] }),
        ],
      })
      partial(t, answer.ruleset.rules[0], {
        ingress_services: [{ href: two.href, name: 'Twin' }],
        consumers: [
          { type: 'label_group', name: 'Internal' },
          { type: 'label_group' },
          { type: 'workload', name: 'payments-prod-web-01' },
        ],
      })
      t.same(answer.ruleset.rules[1].consumers, ['!env=dev'])
      t.notOk('differences' in answer.ruleset)
    },
  )

  await t.test('an egress service warns about every consumer that cannot check it', async (t) => {
    const egress = rule({ egress_services: [{ service: 'Windows Update client' }] })
    const widening = async (name: string, scopes: Json, more: object) =>
      (await bench.ok('create-ruleset', { name, scopes, rules: [{ ...egress, ...more }] })).ruleset.rules[0]
        .policy_widening_warning
    // A Windows host without a VEN checks nothing.
    const bare = { name: 'bare-windows', os_id: 'win-x86_64-server', labels: ['app=payments', 'env=prod'] }
    const known = await bench.pce.labels.getAll()
    const labels = bare.labels.map((text) => ({
      href: known.find(({ key, value }) => `${key}=${value}` === text)?.href,
    }))
    await bench.pce.workloads.create({ ...bare, labels })
    const pods = await bench.pce.kubernetesWorkloads.getAll()
    const workloads: Json[] = [...(await bench.pce.workloads.getAll()), ...pods]
    const bears = (workload: Json, value: string) =>
      (workload.labels ?? []).some((label: Json) => label.value === value)
    const unable = (workload: Json) => workload.managed === false || !String(workload.os_id).startsWith('win')

    const inScope = workloads.filter((one) => bears(one, 'payments') && bears(one, 'prod') && unable(one))
    t.ok(inScope.length > 0)
    const warning = await widening('w1', [['app=payments', 'env=prod']], {})
    partial(t, warning, {
      warning: 'process_qualifier_ignored_on_non_windows',
      services: ['Windows Update client'],
      non_windows_consumer_count: inScope.length,
    })
    t.ok(warning.examples.length <= 5)
    const anywhere = workloads.filter(
      (one) => (bears(one, 'crm') || bears(one, 'pay')) && bears(one, 'prod') && unable(one),
    )
    t.equal(
      (
        await widening('w2', [['app=payments']], {
          consumers: ['app=crm', 'app=pay', 'env=prod'],
          unscoped_consumers: true,
        })
      )?.non_windows_consumer_count ?? 0,
      anywhere.length,
      'same key ORed, keys ANDed, outside the scope',
    )
    t.equal(
      (await widening('w3', [['app=payments']], { unscoped_consumers: true })).non_windows_consumer_count,
      workloads.filter(unable).length,
    )
    const windows = workloads.find((one) => !unable(one))!
    t.equal(
      await widening('w4', [['app=payments']], { consumers: [windows.href], unscoped_consumers: true }),
      undefined,
    )
    t.equal(
      await widening('w6', [['app=payments']], { consumers: ['app=ordering'] }),
      undefined,
      'inside the scope of another application there is nobody',
    )
    partial(t, await widening('w5', [['app=payments']], { consumers: ['iplist:Internet'], unscoped_consumers: true }), {
      non_windows_consumer_count: 0,
      message: /IP list/,
    })
  })

  await t.test('a dry run resolves everything, shows every request, and writes nothing', async (t) => {
    bench.writes()
    const {
      requests,
      dry_run: dry,
      warnings,
    } = await bench.ok('create-ruleset', {
      name: 'planned',
      scopes: [['app=payments', 'env=prod']],
      rules: [rule(), rule({ rule_type: 'deny' }), rule({ egress_services: 'Windows Update client' })],
      dry_run: true,
    })
    t.equal(dry, true)
    t.same(
      requests.map(({ method, path }: Json) => `${method} ${path}`),
      [
        'POST /orgs/1/sec_policy/draft/rule_sets',
        'POST /orgs/1/sec_policy/draft/rule_sets/{id of planned}/sec_rules',
        'POST /orgs/1/sec_policy/draft/rule_sets/{id of planned}/deny_rules',
        'POST /orgs/1/sec_policy/draft/rule_sets/{id of planned}/sec_rules',
      ],
    )
    partial(t, withoutModes(warnings), [
      /^Rule 0: .* of the rule set "complete" decides all of this already/,
      /^Rule 1: It blocks nothing: the allow rule .* of the rule set "complete" decides all of it/,
      /^Rule 2: .* of the rule set "w1" is the same rule/,
      /^Rule 2: 7 consumers without a Windows VEN match this rule by port alone/,
    ])
    await bench.fails('create-ruleset', { name: 'planned', scopes: [['app=nope']], dry_run: true }, 'label_not_found')
    nothingWritten(t, 'dry')
  })

  await t.test('a refused rule rolls the whole rule set back', async (t) => {
    simulator.faults.add({
      kind: 'status',
      path: /\/deny_rules$/,
      method: 'POST',
      times: 1,
      status: 406,
      body: [{ token: 'nope', message: 'Nope' }],
    })
    bench.writes()
    const error = await bench.fails(
      'create-ruleset',
      { name: 'undone', scopes: [['app=pay']], rules: [rule(), rule({ rule_type: 'deny' })] },
      'pce_error',
    )
    partial(t, error, { rolled_back: true, token: 'nope', pce_message: 'Nope', http_status: 406 })
    t.same(
      bench.writes().map(({ method }) => method),
      ['POST', 'POST', 'POST', 'DELETE'],
    )
    t.equal(
      (await bench.pce.ruleSets.getAll()).some(({ name }) => name === 'undone'),
      false,
    )
  })

  await t.test('a rule whose answer is lost is rolled back with its rule set', async (t) => {
    for (const kind of ['commit-then-drop', 'status', 'truncate', 'html'] as const) {
      simulator.faults.add({ kind, path: /\/sec_rules$/, method: 'POST', times: 1, status: 503 })
      partial(
        t,
        await bench.fails(
          'create-ruleset',
          { name: 'lost rule', scopes: [['app=pay']], rules: [rule()] },
          'outcome_unknown',
        ),
        { rolled_back: true },
      )
      t.equal(
        (await bench.pce.ruleSets.getAll()).some(({ name }) => name === 'lost rule'),
        false,
      )
    }
  })

  await t.test('lists what cannot be rolled back', async (t) => {
    simulator.faults.add(
      {
        kind: 'status',
        path: /\/sec_rules$/,
        method: 'POST',
        times: 1,
        skip: 1,
        status: 406,
        body: [{ token: 'nope', message: 'Nope' }],
      },
      { kind: 'status', path: /\/rule_sets\/\d+$/, method: 'DELETE', times: 1, status: 403 },
    )
    const error = await bench.fails(
      'create-ruleset',
      { name: 'stuck', scopes: [['app=pay']], rules: [rule(), rule()] },
      'pce_error',
    )
    partial(t, error, { partial: true, token: 'nope', written: [{ href: /rule_sets\/\d+$/ }, { href: /sec_rules/ }] })
    partial(t, simulator.state.find(error.written[0].href), { name: 'stuck' })
  })

  await t.test('a rule set whose own answer is lost is outcome_unknown, and was sent once', async (t) => {
    bench.writes()
    simulator.faults.add({ kind: 'commit-then-drop', path: /\/rule_sets$/, method: 'POST', times: 1 })
    const error = await bench.fails(
      'create-ruleset',
      { name: 'perhaps', scopes: [['app=pay']], rules: [rule()] },
      'outcome_unknown',
    )
    t.notOk('rolled_back' in error)
    t.equal(bench.writes().length, 1)
    await bench.fails('create-ruleset', { name: 'perhaps', scopes: [['app=pay']] }, 'already_exists')
  })

  await t.test('waits out a 429 in between', async (t) => {
    simulator.faults.add({ kind: 'retry-after', path: /\/sec_rules$/, method: 'POST', times: 2, retryAfter: 1 })
    partial(t, await bench.ok('create-ruleset', { name: 'patient', scopes: [['app=pay']], rules: [rule()] }), {
      ruleset: { rules: [{}] },
    })
  })

  await t.test('a name taken in between is already_exists', async (t) => {
    simulator.faults.add({ kind: 'slow', path: /\/rule_sets$/, method: 'POST', times: 1, delayMs: 2000 })
    bench.writes()
    const refused = bench.fails('create-ruleset', { name: 'raced', scopes: [['app=pay']] }, 'already_exists')
    while (simulator.requests.at(-1)?.method !== 'POST') await new Promise(setImmediate)
    const { href } = await bench.pce.ruleSets.create({ name: 'raced', scopes: [[]] })
    partial(t, await refused, { existing_ruleset: { href } })
  })

  await t.test('reports field by field what the PCE stored differently', async (t) => {
    const set = { href: '/orgs/1/sec_policy/draft/rule_sets/1', name: 'altered', scopes: [[]], enabled: true }
    const kept = {
      href: `${set.href}/sec_rules/1`,
      enabled: false,
      providers: [{ actors: 'ams' }, { label: { href: '/orgs/1/labels/1' } }],
      consumers: [],
      ingress_services: [{ port: 443, proto: 6 }],
      unscoped_consumers: false,
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    }
    const server = await startServer(t, ({ method, path }): Reply => {
      if (method === 'POST')
        return {
          status: 201,
          body: path.endsWith('sec_rules') ? { ...kept, href: `${set.href}/sec_rules/${path.length}` } : set,
        }
      if (path.startsWith(set.href))
        return {
          body: {
            ...set,
            rules: [{ ...kept, href: `${set.href}/sec_rules/${`${set.href}/sec_rules`.length}` }],
            deny_rules: [],
          },
        }
      return { body: [], headers: { 'x-total-count': '0' } }
    })
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const { ruleset } = await scripted.ok('create-ruleset', { name: 'altered', scopes: [[]], rules: [rule()] })
    t.same(ruleset.rules[0].differences.map((one: Json) => one.field).sort(), ['consumers', 'enabled', 'providers'])
  })
})
