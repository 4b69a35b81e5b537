/** compare-draft-active: what waits for provisioning, field by field and rule by rule, and what it does to permitted traffic. */
import t from 'tap'
import { partial } from '../partial.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'compare-draft-active'
const ANY = '/orgs/1/sec_policy/draft/ip_lists/1'
type Rows = Record<string, Json>

interface Stage extends Bench {
  readonly label: (key: string, value: string) => { label: { href: string } }
  ids: Record<string, string>
}

/** Objects of every kind, provisioned, and rules that use some of them: what the changes below are changes of. */
async function setTheStage(bench: Bench): Promise<Stage> {
  const { pce } = bench
  const labels = await pce.labels.getAll()
  const label = (key: string, value: string) => {
    return { label: { href: labels.find((one) => one.key === key && one.value === value)!.href } }
  }
  const ids: Record<string, string> = {}
  const list = async (name: string) => {
    ids[name] = (await pce.ipLists.create({ name, ip_ranges: [{ from_ip: '203.0.113.0/24' }] })).href
    return { ip_list: { href: ids[name] } }
  }
  const service = async (name: string, ports: number[]) => {
    const service_ports = ports.map((port) => ({ port, proto: 6 }))
    ids[name] = (await pce.services.create({ name, service_ports })).href
    return { href: ids[name] }
  }
  const group = async (name: string, values: string[], more: object = {}) => {
    const members = values.map((value) => label('env', value).label)
    ids[name] = (await pce.labelGroups.create({ name, key: 'env', labels: members, ...more })).href
    return { label_group: { href: ids[name] } }
  }
  const boundary = async (name: string, consumers: object[], enabled = true) => {
    const body = {
      name,
      enabled,
      providers: [{ actors: 'ams' }],
      consumers,
      ingress_services: [{ port: 23, proto: 6 }],
    }
    ids[name] = (await pce.enforcementBoundaries.create(body)).href
  }
  const ruleSet = async (name: string, scopes: object[][], more: object = {}) => {
    ids[name] = (await pce.ruleSets.create({ name, scopes, ...more })).href
    return ids[name]
  }
  const rule = async (name: string, parent: string, body: object = {}) => {
    const usual = {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [label('role', 'web')],
      ingress_services: [{ port: 443, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    }
    ids[name] = (await pce.rules.create({ ...usual, ...body }, parent)).href
  }
  const deny = async (name: string, parent: string, body: object = {}) => {
    const usual = {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [label('role', 'web')],
      ingress_services: [{ port: 23, proto: 6 }],
    }
    ids[name] = (await pce.denyRules.create({ ...usual, ...body }, parent)).href
  }
  const app = [label('app', 'payments'), label('env', 'prod')]

  const allowing = await ruleSet('allowing', [app])
  await rule('allow', allowing, { consumers: [label('role', 'web')] })
  await rule('allow listed', allowing, { consumers: [await list('allowed')] })
  await rule('allow mixed', allowing, {
    consumers: [await list('mixed')],
    ingress_services: [{ port: 8000, proto: 6 }],
  })
  await rule('allow served', allowing, { ingress_services: [await service('served', [80, 81])] })
  // Apart from the others: it holds all that they allow.
  await rule('allow but', await ruleSet('all but one', [app]), {
    consumers: [{ ...label('role', 'db'), exclusion: true }],
  })
  await rule('sleeping', allowing, { enabled: false, ingress_services: [{ port: 8443, proto: 6 }] })
  const denying = await ruleSet('denying', [app])
  await deny('deny', denying)
  await deny('deny listed', denying, { consumers: [await list('denied'), { ip_list: { href: ids.mixed! } }] })
  await deny('deny served', denying, { ingress_services: [await service('refused', [8080])] })
  await deny('sleeping deny', denying, { enabled: false })
  await deny('override', denying, { override: true, ingress_services: [{ port: 3389, proto: 6 }] })
  const mixed = await ruleSet('both kinds', [app])
  await rule('mixed allow', mixed)
  await deny('mixed deny', mixed)
  const off = await ruleSet('switched off', [app], { enabled: false })
  await rule('off allow', off)
  await ruleSet('hollow', [app])
  const grouped = await ruleSet('grouped', [[label('app', 'ordering'), await group('in a scope', ['test'])]])
  await rule('grouped allow', grouped)
  const outside = { ...(await group('outside a scope', ['test'])), exclusion: true }
  await rule('allow outside', await ruleSet('outside', [[label('app', 'ordering'), outside]]))
  const nested = await ruleSet('nested', [app])
  await group('inner', ['dev'])
  const outer = await group('outer', ['test'], { sub_groups: [{ href: ids.inner }] })
  await rule('nested allow', nested, { consumers: [outer], unscoped_consumers: true })
  await rule('all but a group', nested, { consumers: [{ ...(await group('shut out', ['test'])), exclusion: true }] })
  const everywhere = await ruleSet('any to any in a scope', [app])
  const allServices = { href: (await pce.services.getAll()).find(({ name }) => name === 'All Services')!.href }
  ids['All Services'] = allServices.href
  await rule('ringfence', everywhere, { consumers: [{ actors: 'ams' }], ingress_services: [allServices] })
  const tables = {
    enabled: true,
    actors: [{ actors: 'ams' }],
    ip_version: '4',
    statements: [{ table_name: 'filter', chain_name: 'INPUT', parameters: '-p tcp --dport 22 -j ACCEPT' }],
  }
  await ruleSet('tables', [app], { ip_tables_rules: [tables] })
  await boundary('boundary', [await list('bounded')])
  await boundary('sleeping boundary', [{ actors: 'ams' }], false)
  await list('unused')
  await service('spare', [9000])
  await group('unneeded', ['test'])
  ids['storefront.web-shop'] = (await pce.virtualServices.getAll()).find(
    ({ name }) => name === 'storefront.web-shop',
  )!.href
  await pce.provisionPolicyChanges('the stage', bench.simulator.state.pendingHrefs())
  return { ...bench, label, ids }
}

/** All described changes of an answer by name, with the group each stands in. */
const rowsOf = (answer: Json): Rows =>
  Object.fromEntries(
    Object.entries(answer.changes as Record<string, Json[]>).flatMap(([group, rows]) =>
      rows.map((row) => [row.name, { ...row, group }]),
    ),
  )

t.test('nothing pending is in_sync after one request', async (t) => {
  const bench = await startBench(t)
  bench.simulator.clearRequests()
  const answer = await bench.ok(TOOL)
  partial(t, answer, { status: 'in_sync', message: /Nothing is pending/, total_pending_changes: 0, truncated: false })
  t.same(answer.changes, {})
  t.equal(bench.simulator.requests.length, 1)
  await bench.fails(TOOL, { resource_type: 'labels' }, 'invalid_argument')
  await bench.fails(TOOL, { cursor: 'x' }, 'invalid_argument')
})

t.test('what a change does to permitted traffic', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids, label } = stage
  const [web, api, db] = ['web', 'api', 'db'].map((value) => label('role', value)) as [object, object, object]
  const [dev, prod, staging] = ['dev', 'prod', 'staging'].map((value) => label('env', value).label) as [
    object,
    object,
    object,
  ]
  const put = (name: string, json: object) => ({
    on: ownerOf(ids[name]!),
    change: () => pce.put(ids[name]!, { includeOrg: false, json }),
  })
  const remove = (name: string) => ({
    on: ownerOf(ids[name]!),
    change: () => pce.delete(ids[name]!, { includeOrg: false }),
  })
  const rule = (name: string, json: object) => ({ ...put(name, json), rule: name })
  const payments = [label('app', 'payments'), label('env', 'prod')]
  const ranges = (...from: string[]) => ({ ip_ranges: from.map((from_ip) => ({ from_ip })) })
  const ports = (...list: number[]) => ({ service_ports: list.map((port) => ({ port, proto: 6 })) })
  const newRule = {
    enabled: true,
    providers: [{ actors: 'ams' }],
    consumers: [web],
    ingress_services: [{ port: 1, proto: 6 }],
  }
  const resolved = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  const dc1 = label('loc', 'dc1')
  const fromAny = {
    ...newRule,
    ...resolved,
    consumers: [{ ip_list: { href: ANY } }],
    ingress_services: [{ href: ids['All Services'] }],
  }

  interface Change {
    /** The object that changes; undefined for one that `change` creates and returns. */
    on?: string
    change: () => Promise<unknown>
    /** The rule that changes, by its name. */
    rule?: string
  }
  /** Effect of the object, and where one rule is concerned, of that rule. */
  type Case = [title: string, effect: string | null, change: Change, risks?: string[]]
  const cases: Case[] = [
    // Allow rules.
    [
      'an allow rule is added',
      'widening',
      { on: ids.allowing, change: () => pce.rules.create({ ...newRule, ...resolved }, ids.allowing) },
    ],
    ['an allow rule is removed', 'narrowing', { ...remove('allow'), rule: 'allow' }],
    ['an allow rule is disabled', 'narrowing', rule('allow', { enabled: false })],
    ['an allow rule is enabled', 'widening', rule('sleeping', { enabled: true })],
    ['a disabled allow rule changes', 'neutral', rule('sleeping', { consumers: [{ actors: 'ams' }] })],
    [
      'a disabled allow rule is added',
      'neutral',
      { on: ids.allowing, change: () => pce.rules.create({ ...newRule, ...resolved, enabled: false }, ids.allowing) },
    ],
    ['a disabled allow rule is removed', 'neutral', { ...remove('sleeping'), rule: 'sleeping' }],
    ['an allow rule has another description', 'neutral', rule('allow', { description: 'why' })],
    ['a label of the same key is added', 'widening', rule('allow', { consumers: [web, api] })],
    ['a label of another key is added', 'narrowing', rule('allow', { consumers: [web, { label: dev }] })],
    ['labels of the same and of another key are added', null, rule('allow', { consumers: [web, api, dc1] })],
    ['a label that no scope admits is added', 'narrowing', rule('allow', { consumers: [web, api, { label: dev }] })],
    ['a label is exchanged', null, rule('allow', { consumers: [api] })],
    [
      'an IP list is added',
      'widening',
      rule('allow', { consumers: [web, { ip_list: { href: ANY } }] }),
      ['any_address'],
    ],
    [
      'an IP list is added and a label key too',
      null,
      rule('allow', { consumers: [web, dc1, { ip_list: { href: ANY } }] }),
      ['any_address'],
    ],
    ['all workloads take the place of a label', 'widening', rule('allow', { consumers: [{ actors: 'ams' }] })],
    [
      'all workloads take the place of a label and of nothing else',
      null,
      rule('allow listed', { consumers: [{ actors: 'ams' }] }),
    ],
    ['an exclusion is added', 'narrowing', rule('allow', { consumers: [web, { ...dc1, exclusion: true }] })],
    [
      'what no scope admits is excluded',
      'neutral',
      rule('allow', { consumers: [web, { ...label('env', 'dev'), exclusion: true }] }),
    ],
    [
      'beside an exclusion the first label takes away',
      'narrowing',
      rule('allow but', { consumers: [{ ...db, exclusion: true }, { label: dev }] }),
    ],
    ['consumers everywhere', 'widening', rule('allow', { unscoped_consumers: true })],
    [
      'a port is added',
      'widening',
      rule('allow', {
        ingress_services: [
          { port: 443, proto: 6 },
          { port: 8080, proto: 6 },
        ],
      }),
    ],
    [
      'a port becomes a range',
      'widening',
      rule('allow', { ingress_services: [{ port: 400, to_port: 500, proto: 6 }] }),
    ],
    ['a port becomes one of another protocol', null, rule('allow', { ingress_services: [{ port: 443, proto: 17 }] })],
    ['a port becomes All Services', 'widening', rule('allow', { ingress_services: [{ href: ids['All Services'] }] })],
    ['All Services become a port', 'narrowing', rule('ringfence', { ingress_services: [{ port: 443, proto: 6 }] })],
    ['all networks', 'widening', rule('allow', { network_type: 'all' })],
    ['other networks', null, rule('allow', { network_type: 'non_brn' })],
    ['encryption', null, rule('allow', { sec_connect: true })],
    // Deny rules.
    [
      'a deny rule is added',
      'narrowing',
      { on: ids.denying, change: () => pce.denyRules.create(newRule, ids.denying) },
    ],
    ['a deny rule is removed', 'widening', { ...remove('deny'), rule: 'deny' }],
    ['a deny rule is disabled', 'widening', rule('deny', { enabled: false })],
    ['a deny rule concerns more', 'narrowing', rule('deny', { consumers: [web, api] })],
    ['a deny rule concerns less', 'widening', rule('deny', { consumers: [web, { label: dev }] })],
    ['a deny rule becomes an override', 'narrowing', rule('deny', { override: true }), ['override_deny']],
    [
      'a deny rule becomes an override of more',
      'narrowing',
      rule('deny', { override: true, consumers: [web, api] }),
      ['override_deny'],
    ],
    [
      'a deny rule becomes an override of less',
      null,
      rule('deny', { override: true, consumers: [web, dc1] }),
      ['override_deny'],
    ],
    ['an override becomes a deny rule', 'widening', rule('override', { override: false })],
    ['an override has another description', 'neutral', rule('override', { description: 'incident' })],
    ['a disabled deny rule becomes an override', 'neutral', rule('sleeping deny', { override: true })],
    [
      'a disabled deny rule becomes an enabled override',
      'narrowing',
      rule('sleeping deny', { override: true, enabled: true }),
      ['override_deny'],
    ],
    [
      'an override deny is added',
      'narrowing',
      { on: ids.allowing, change: () => pce.denyRules.create({ ...newRule, override: true }, ids.allowing) },
      ['override_deny'],
    ],
    [
      'an allow and a deny rule are added',
      null,
      {
        on: ids.allowing,
        async change() {
          await pce.rules.create({ ...newRule, ...resolved }, ids.allowing)
          await pce.denyRules.create({ ...newRule, ingress_services: [{ port: 2, proto: 6 }] }, ids.allowing)
        },
      },
    ],
    [
      'an allow rule is added with a deny rule that it beats',
      'widening',
      {
        on: ids.allowing,
        async change() {
          await pce.rules.create({ ...newRule, ...resolved }, ids.allowing)
          await pce.denyRules.create(newRule, ids.allowing)
        },
      },
    ],
    [
      'one allow rule goes and a deny rule comes',
      'narrowing',
      {
        on: ids.allowing,
        async change() {
          await remove('allow').change()
          await pce.denyRules.create(newRule, ids.allowing)
        },
      },
    ],
    // Rule sets.
    [
      'any to one application on All Services',
      'widening',
      { on: ids.allowing, change: () => pce.rules.create(fromAny, ids.allowing) },
      ['any_address'],
    ],
    [
      'any to any on All Services',
      'widening',
      {
        async change() {
          const open = await pce.ruleSets.create({ name: 'open', scopes: [[]] })
          await pce.rules.create(fromAny, open.href)
          return open
        },
      },
      ['any_to_any_all_services'],
    ],
    [
      'everything inside one application',
      'widening',
      {
        async change() {
          const fence = await pce.ruleSets.create({ name: 'fence', scopes: [payments] })
          await pce.rules.create({ ...fromAny, consumers: [{ actors: 'ams' }] }, fence.href)
          return fence
        },
      },
    ],
    [
      'all workloads to all workloads on All Services',
      'widening',
      put('any to any in a scope', { scopes: [payments, []] }),
      ['any_to_any_all_services'],
    ],
    [
      'a rule that another of its rule set covers is added',
      'neutral',
      {
        on: ids.allowing,
        change: () =>
          pce.rules.create({ ...newRule, ...resolved, ingress_services: [{ port: 443, proto: 6 }] }, ids.allowing),
      },
    ],
    ['a scope is added', 'widening', put('allowing', { scopes: [payments, [label('app', 'ordering')]] })],
    [
      'a scope loses a condition',
      'widening',
      put('allowing', { scopes: [[label('app', 'payments')]] }),
      ['scope_removed'],
    ],
    ['a scope gains a condition', 'narrowing', put('allowing', { scopes: [[...payments, label('loc', 'dc1')]] })],
    [
      'one of two scopes gains a condition',
      'widening',
      put('allowing', { scopes: [[...payments, dc1], payments, [label('app', 'ordering')]] }),
    ],
    ['a scope is emptied', 'widening', put('allowing', { scopes: [[]] }), ['scope_removed']],
    ['a scope is exchanged', null, put('allowing', { scopes: [[label('app', 'ordering')]] }), ['scope_removed']],
    [
      'the scope of deny rules is emptied',
      'narrowing',
      put('denying', { scopes: [[]] }),
      ['override_deny', 'scope_removed'],
    ],
    ['the scope of rules of both kinds is emptied', null, put('both kinds', { scopes: [[]] }), ['scope_removed']],
    ['the scope of a rule set without rules', 'neutral', put('hollow', { scopes: [[]] }), ['scope_removed']],
    [
      'the scope of an any to any rule is emptied',
      'widening',
      put('any to any in a scope', { scopes: [[]] }),
      ['any_to_any_all_services', 'scope_removed'],
    ],
    ['a rule set is disabled', 'narrowing', put('allowing', { enabled: false })],
    ['a rule set of deny rules is disabled', 'widening', put('denying', { enabled: false })],
    ['a rule set of both kinds is disabled', null, put('both kinds', { enabled: false })],
    ['a rule set is enabled', 'widening', put('switched off', { enabled: true })],
    ['a rule of a disabled rule set', 'neutral', rule('off allow', { consumers: [web, api] })],
    ['a rule set is renamed', 'neutral', put('hollow', { name: 'hollow', description: 'nothing in it' })],
    ['a rule set is deleted', 'narrowing', remove('allowing')],
    ['a rule set of deny rules is deleted', 'widening', remove('denying')],
    [
      'a rule set without rules is created',
      'neutral',
      { change: () => pce.ruleSets.create({ name: 'fresh', scopes: [payments] }) },
    ],
    ['a rule set in the words of iptables is disabled', null, put('tables', { enabled: false })],
    ['the scope of rules in the words of iptables', null, put('tables', { scopes: [[]] }), ['scope_removed']],
    ['a rule set with iptables has another description', 'neutral', put('tables', { description: 'old' })],
    // What rules point at.
    ['an IP list that allow rules use grows', 'widening', put('allowed', ranges('203.0.113.0/24', '198.51.100.0/24'))],
    ['an IP list that allow rules use is exchanged', null, put('allowed', ranges('198.51.100.0/24'))],
    ['an IP list that deny rules use grows', 'narrowing', put('denied', ranges('203.0.113.0/24', '198.51.100.0/24'))],
    ['an IP list that both use grows', null, put('mixed', ranges('203.0.113.0/24', '198.51.100.0/24'))],
    ['an IP list that nothing uses grows', 'neutral', put('unused', ranges('203.0.113.0/24', '198.51.100.0/24'))],
    ['an IP list that a boundary uses grows', 'narrowing', put('bounded', ranges('203.0.113.0/24', '198.51.100.0/24'))],
    [
      'an exception in an IP list',
      'narrowing',
      put('allowed', { ip_ranges: [{ from_ip: '203.0.113.0/24' }, { from_ip: '203.0.113.7', exclusion: true }] }),
    ],
    ['a domain name in an IP list', 'widening', put('allowed', { fqdns: [{ fqdn: '*.example.com' }] })],
    [
      'a range has another description',
      'neutral',
      put('allowed', { ip_ranges: [{ from_ip: '203.0.113.0/24', description: 'here' }] }),
    ],
    ['an IP list is split into what it was', 'neutral', put('allowed', ranges('203.0.113.0/25', '203.0.113.128/25'))],
    [
      'an IP list becomes everything in pieces',
      'widening',
      put('allowed', ranges('0.0.0.0/1', '128.0.0.0/1')),
      ['any_address'],
    ],
    [
      'an IP list of deny rules becomes everything in pieces',
      'narrowing',
      put('denied', ranges('0.0.0.0/1', '128.0.0.0/1')),
    ],
    ['an IP list has another description', 'neutral', put('allowed', { description: 'here' })],
    [
      'an IP list is created',
      'neutral',
      { change: () => pce.ipLists.create({ name: 'new list', ...ranges('198.51.100.0/24') }) },
    ],
    ['an IP list is deleted', 'neutral', remove('unused')],
    ['a service of an allow rule loses a port', 'narrowing', put('served', ports(80))],
    [
      'a service of an allow rule has its ports in another order',
      'neutral',
      put('served', { ...ports(81, 80), description: 'reordered' }),
    ],
    ['a service of a deny rule gains a port', 'narrowing', put('refused', ports(8080, 8081))],
    ['a service becomes another', null, put('served', ports(443))],
    ['a service that nothing uses', 'neutral', put('spare', ports(9000, 9001))],
    [
      'a label group in the scope of an allow rule grows',
      'widening',
      put('in a scope', { labels: [label('env', 'test').label, dev] }),
    ],
    ['a label group inside another', 'widening', put('inner', { labels: [dev, staging] })],
    ['a label group that is excluded', 'narrowing', put('shut out', { labels: [label('env', 'test').label, prod] })],
    [
      'a label group that a scope excludes',
      'narrowing',
      put('outside a scope', { labels: [label('env', 'test').label, dev] }),
    ],
    ['a label group that nothing uses', 'neutral', put('unneeded', { labels: [label('env', 'test').label, prod] })],
    ['a label group is emptied', null, put('in a scope', { labels: [] })],
    // Other kinds.
    [
      'a boundary is created',
      'narrowing',
      { change: () => pce.enforcementBoundaries.create({ name: 'new boundary', ...newRule }) },
    ],
    ['a boundary is deleted', 'widening', remove('boundary')],
    ['a boundary is disabled', 'widening', put('boundary', { enabled: false })],
    [
      'a boundary blocks another port too',
      'narrowing',
      put('boundary', { ingress_services: [{ port: 22, to_port: 23, proto: 6 }] }),
    ],
    [
      'a disabled boundary changes',
      'neutral',
      put('sleeping boundary', { ingress_services: [{ port: 22, proto: 6 }] }),
    ],
    ['a virtual service is described', 'neutral', put('storefront.web-shop', { description: 'the shop' })],
    ['a virtual service changes', null, put('storefront.web-shop', { ip_overrides: ['10.9.0.2'] })],
    [
      'a virtual service is created',
      null,
      {
        change: () =>
          pce.virtualServices.create({
            name: 'new service',
            service_ports: [{ port: 80, proto: 6 }],
            labels: [],
            apply_to: 'host_only',
          }),
      },
    ],
    [
      'firewall settings',
      null,
      {
        on: '/orgs/1/sec_policy/draft/firewall_settings',
        change: () =>
          pce.put('/orgs/1/sec_policy/draft/firewall_settings', {
            includeOrg: false,
            json: { ip_forwarding_enabled_scopes: [[]] },
          }),
      },
    ],
  ]

  for (const round of roundsOf(cases, ([, , { on }]) => on)) {
    await t.test(round.map(([title]) => title).join('; '), async (t) => {
      const hrefs: string[] = []
      for (const [, , { on, change }] of round) {
        const made = await change()
        hrefs.push(on ?? (made as { href: string }).href)
      }
      const answer = await stage.ok(TOOL, { detail_level: 'full' })
      const rows = Object.values(answer.changes as Record<string, Json[]>).flat()
      const said = round.map(([title, , { rule: name }], index) => {
        const { effect = null, risks = [], rules = [], ...row }: Json = rows.find(({ href }) => href === hrefs[index])
        const isOther = rules.some((one: Json) => one.effect !== 'neutral' && one.effect !== effect)
        return {
          title,
          effect,
          risks,
          error: row.diff_error,
          isExplained: typeof row.effect_note === (effect === null || isOther ? 'string' : 'undefined'),
          ofRule: name && rules.filter(({ href }: Json) => href === ids[name]).map((one: Json) => one.effect ?? null),
        }
      })
      const wanted = round.map(([title, effect, { rule: name }, risks = []]) => ({
        title,
        effect,
        risks,
        error: undefined,
        isExplained: true,
        ofRule: name && [effect],
      }))
      t.same(said, wanted)
      t.equal(rows.length, round.length)
      t.equal(answer.total_pending_changes, round.length)
      await pce.discardPendingPolicyChanges()
    })
  }
})

/** The href of a rule set for that of a rule in it; that of another object as it is. */
function ownerOf(href: string): string {
  return href.replace(/\/(?:sec_rules|deny_rules)\/.*$/, '')
}

/**
 * Cases that share a draft: each changes an object of its own, so that none changes what is said of another. A rule set and what its
 * rules refer to are never in the same draft.
 */
function roundsOf<Case>(cases: readonly Case[], objectOf: (one: Case) => string | undefined): Case[][] {
  const rounds: { isOfRules: boolean; objects: Set<string>; cases: Case[] }[] = []
  for (const one of cases) {
    const object = objectOf(one)
    const isOfRules = object === undefined || /\/rule_sets\//.test(object)
    const fits = rounds.find((round) => round.isOfRules === isOfRules && !round.objects.has(object ?? ''))
    const round = fits ?? { isOfRules, objects: new Set(), cases: [] }
    if (fits === undefined) rounds.push(round)
    round.objects.add(object ?? '')
    round.cases.push(one)
  }
  return rounds.map((round) => round.cases)
}

t.test('says what there is in place of an effect', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids, label } = stage
  const [web, api] = ['web', 'api'].map((value) => label('role', value))
  const put = (name: string, json: object) => pce.put(ids[name]!, { includeOrg: false, json })
  const said = async (name: string) => {
    const row = rowsOf(await stage.ok(TOOL, { detail_level: 'full' }))[name]
    await pce.discardPendingPolicyChanges()
    const { effect, effect_note: note, effect_by_rule_type: byType, scope_change: scope, used_by: used } = row
    return { effect, note, byType, scope, used, rules: row.rules?.map((rule: Json) => rule.effect ?? rule.effect_note) }
  }
  const none = { effect: undefined, byType: undefined, scope: undefined, used: undefined }
  const mixed = 'Mixed: it permits some traffic that is not permitted today, and stops some that is.'
  const apart = 'Mixed: allow and deny rules differ (effect_by_rule_type).'

  await put('both kinds', { scopes: [[]] })
  t.same(await said('both kinds'), {
    ...none,
    note: apart,
    byType: { allow: 'widening', deny: 'narrowing' },
    scope: 'wider',
    rules: [],
  })
  await put('both kinds', { scopes: [[label('app', 'payments'), label('env', 'prod'), label('loc', 'dc1')]] })
  t.same(await said('both kinds'), {
    ...none,
    note: apart,
    byType: { allow: 'narrowing', deny: 'widening' },
    scope: 'narrower',
    rules: [],
  })
  await put('both kinds', { scopes: [[label('app', 'ordering')]] })
  t.same(await said('both kinds'), { ...none, note: mixed, scope: 'different', rules: [] })
  await put('both kinds', { scopes: [[label('env', 'prod'), label('app', 'payments')]], description: 'the same' })
  t.same(await said('both kinds'), { ...none, effect: 'neutral', note: undefined, rules: [] })

  await put('mixed', { ip_ranges: [{ from_ip: '203.0.113.0/24' }, { from_ip: '198.51.100.0/24' }] })
  t.same(await said('mixed'), {
    ...none,
    note: apart,
    byType: { allow: 'widening', deny: 'narrowing' },
    used: { rules: 2, in: ['allowing', 'denying'] },
    rules: undefined,
  })
  await put('allow', { consumers: [api] })
  t.same(await said('allowing'), { ...none, note: mixed, rules: [mixed] })
  await put('allow', { sec_connect: true })
  const encrypted = 'Undecided because of rules for encrypted or authenticated connections.'
  t.same(await said('allowing'), { ...none, note: encrypted, rules: [encrypted] })
  await put('allow', { sec_connect: true })
  await pce.provisionPolicyChanges('encrypted', [ids.allowing!])
  await put('allow', { consumers: [web, api] })
  t.same(await said('allowing'), { ...none, effect: 'widening', note: undefined, rules: ['widening'] }, 'as before')
})

t.test('what a change does is told by all rules of an object together, and of each rule alone', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids } = stage
  await pce.delete(ids.allow!, { includeOrg: false })
  const again = { enabled: true, providers: [{ actors: 'ams' }], ingress_services: [{ port: 443, proto: 6 }] }
  const resolved = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  await pce.rules.create({ ...again, ...resolved, consumers: [stage.label('role', 'web')] }, ids.allowing)
  const answer = await stage.ok(TOOL)
  t.equal(answer.summary, '1 change. It does not change what is permitted.')
  const { allowing } = rowsOf(answer)
  t.equal(allowing.effect, 'neutral')
  t.equal(
    allowing.effect_note,
    'Of all its rules together; the effect of each rule is of that rule alone.',
    'which explains what looks like a contradiction',
  )
  t.same(allowing.rules.map(({ change, effect }: Json) => `${change} ${effect}`).toSorted(), [
    'added widening',
    'removed narrowing',
  ])
})

t.test('a draft of several changes: the words explained, the worst first', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids, label } = stage
  const put = (name: string, json: object) => pce.put(ids[name]!, { includeOrg: false, json })
  await put('hollow', { description: 'still empty' })
  await put('served', { service_ports: [{ port: 80, proto: 6 }] })
  await put('allowed', { ip_ranges: [{ from_ip: '0.0.0.0/1' }, { from_ip: '128.0.0.0/1' }] })
  await put('deny', { override: true })
  await put('mixed allow', { consumers: [label('role', 'api')] })
  const answer = await stage.ok(TOOL)
  t.equal(
    answer.summary,
    '5 changes. 1 of these may permit more traffic than today. 2 of these may permit less. ' +
      '1 of these permits some traffic more and some less. Review "denying" (override_deny); "allowed" (any_address).',
  )
  t.same(answer.meanings, {
    widening: 'may permit more traffic than today and never less',
    narrowing: 'may permit less traffic than today and never more',
    neutral: 'permits exactly what is permitted today',
    override_deny: 'an override deny rule blocks more: no allow rule outweighs it',
    any_address: 'an allow rule names at least half of all IPv4 addresses, or the IPv6 internet',
  })
  const updated = answer.changes.updated as Json[]
  t.same(updated.map(({ name }) => name).slice(0, 2), ['denying', 'allowed'])
  t.equal(updated.at(-1).name, 'hollow')
  t.same(
    updated[0].rules.map(({ rule, risks }: Json) => [rule, risks]),
    [['role=web to all workloads, 23/tcp', ['override_deny']]],
  )
  t.same(updated[1].used_by, { rules: 1, in: ['allowing'] })
})

t.test('objects and rules that change in the same draft', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids } = stage
  const put = (name: string, json: object) => pce.put(ids[name]!, { includeOrg: false, json })
  const usual = { enabled: true, providers: [{ actors: 'ams' }], ingress_services: [{ port: 7, proto: 6 }] }
  const resolved = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  await put('unused', { ip_ranges: [{ from_ip: '0.0.0.0/0' }] })
  await pce.rules.create({ ...usual, ...resolved, consumers: [{ ip_list: { href: ids.unused! } }] }, ids.allowing)
  const { unused, allowing } = rowsOf(await stage.ok(TOOL))
  t.same([unused.effect, unused.risks, unused.used_by], ['widening', ['any_address'], { rules: 1, in: ['allowing'] }])
  t.same([allowing.effect, allowing.risks], ['widening', ['any_address']])
  await pce.discardPendingPolicyChanges()

  const outside = await pce.ipLists.create({ name: 'outside', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  await put('allow listed', { consumers: [{ ip_list: { href: ids.allowed! } }, { ip_list: { href: outside.href } }] })
  const both = rowsOf(await stage.ok(TOOL))
  t.same([both.outside.effect, both.allowing.effect], ['neutral', 'widening'])
  await put('allowed', { ip_ranges: [{ from_ip: '203.0.113.0/24' }, { from_ip: '198.51.100.0/24' }] })
  t.equal(rowsOf(await stage.ok(TOOL)).allowing.effect, 'widening', 'provisioned without the list it is')
})

t.test('rules and objects beyond labels, addresses and ports', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, label } = stage
  const put = (href: string, json: object) => pce.put(href, { includeOrg: false, json })
  const create = async (name: string, fields: object) => (await pce.services.create({ name, ...fields })).href
  const server = { process_name: 'C:\\server.exe', port: 8443, proto: 6 }
  const windows = await create('windows', { windows_services: [server] })
  const ping = await create('ping', { service_ports: [{ proto: 1, icmp_type: 8 }] })
  const resolved = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  const usual = { enabled: true, providers: [{ actors: 'ams' }], consumers: [label('role', 'web')], ...resolved }
  const holder = (await pce.ruleSets.create({ name: 'beyond', scopes: [[]] })).href
  const rule = async (fields: object) => (await pce.rules.create({ ...usual, ...fields }, holder)).href
  const served = await rule({ ingress_services: [{ href: windows }] })
  await rule({ ingress_services: [{ href: ping }] })
  const named = await pce.ipLists.create({ name: 'named', fqdns: [{ fqdn: 'www.example.com' }] })
  await rule({ consumers: [{ ip_list: { href: named.href } }], ingress_services: [{ port: 9, proto: 6 }] })
  await pce.provisionPolicyChanges('beyond', stage.simulator.state.pendingHrefs())

  const ranges = (...list: object[]) => ({ ip_ranges: list })
  const cases: [title: string, href: string, fields: object, effect: string | undefined, risks?: string[]][] = [
    ['another process too', windows, { windows_services: [server, { ...server, process_name: 'b.exe' }] }, 'widening'],
    ['any process', windows, { windows_services: [{ port: 8443, proto: 6 }] }, 'widening'],
    ['another process', windows, { windows_services: [{ ...server, process_name: 'b.exe' }] }, undefined],
    ['the port of any process', served, { ingress_services: [{ port: 8443, proto: 6 }] }, 'widening'],
    ['one code of a type', ping, { service_ports: [{ proto: 1, icmp_type: 8, icmp_code: 0 }] }, 'narrowing'],
    ['all of ICMP', ping, { service_ports: [{ proto: 1 }] }, 'widening'],
    ['all of IPv4', named.href, ranges({ from_ip: '0.0.0.0', to_ip: '255.255.255.255' }), 'widening', ['any_address']],
    ['the IPv6 internet', named.href, ranges({ from_ip: '2000::/3' }), 'widening', ['any_address']],
    ['private addresses', named.href, ranges({ from_ip: '10.0.0.0/8' }), 'widening'],
    ['a pattern over the name', named.href, { fqdns: [{ fqdn: '*.example.com' }] }, 'widening'],
    ['the name in another case', named.href, { fqdns: [{ fqdn: 'WWW.example.com' }] }, 'neutral'],
    [
      'virtual services as well',
      served,
      { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads', 'virtual_services'] } },
      'widening',
    ],
  ]
  for (const [title, href, fields, effect, risks] of cases) {
    await put(href, fields)
    const [row] = Object.values((await stage.ok(TOOL)).changes as Record<string, Json[]>).flat()
    t.same([row.effect, row.risks], [effect, risks], title)
    await pce.discardPendingPolicyChanges()
  }
})

t.test('judges an object against the rules in force and those of the draft', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids } = stage
  await pce.delete(ids['allow listed']!, { includeOrg: false })
  await pce.put(ids.allowed!, {
    includeOrg: false,
    json: { ip_ranges: [{ from_ip: '198.51.0.0/16' }, { from_ip: '203.0.113.0/24' }] },
  })
  t.equal(rowsOf(await stage.ok(TOOL)).allowed.effect, 'widening', 'the rule that goes is in force until then')
})

t.test('shows each kind of change', async (t) => {
  const bench = await setTheStage(await startBench(t))
  const { pce, ids, simulator, label } = bench
  const list = await pce.ipLists.create({ name: 'partner', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  await pce.put(ids.allow!, { includeOrg: false, json: { consumers: [label('role', 'api')], description: 'api only' } })
  await pce.delete(ids.sleeping!, { includeOrg: false })
  await pce.delete(ids.denying!, { includeOrg: false })
  const answer = await bench.ok(TOOL)
  partial(t, answer, {
    total_pending_changes: 3,
    total_unfiltered: 3,
    filter: 'all',
    created_count: 1,
    updated_count: 1,
    deleted_count: 1,
    truncated: false,
  })
  t.notOk('status' in answer)
  t.same(answer.updated_by, { href: '/users/1', name: 'admin@example.com' })
  const { partner, allowing, denying } = rowsOf(answer)

  partial(t, partner, {
    group: 'created',
    href: list.href,
    type: 'ip_lists',
    updated_at: /^2026-06-15T/,
    fields: [{ field: 'ip_ranges', draft: [{ from_ip: '198.51.100.0/24' }] }],
  })
  partial(t, allowing, { group: 'updated', href: ids.allowing })
  t.same(allowing.fields, [])
  t.same(
    allowing.rules.map(({ href, change, rule_type: type }: Json) => [href, change, type]),
    [
      [ids.allow, 'changed', 'allow'],
      [ids.sleeping, 'removed', 'allow'],
    ],
    'changed rules alone, one by one',
  )
  const whole = rowsOf(await bench.ok(TOOL, { detail_level: 'full' })).allowing
  for (const one of [whole, whole.rules[0]])
    partial(t, one, {
      updated_by: { href: '/users/1', name: 'admin@example.com' },
      updated_at: /^2026-06-15T/,
    })
  partial(t, whole.rules[0].fields, [
    {
      field: 'consumers',
      draft: [{ label: { key: 'role', value: 'api' } }],
      active: [{ label: { key: 'role', value: 'web' } }],
    },
    { field: 'description', draft: 'api only' },
  ])
  partial(t, allowing.rules[0], {
    fields: [
      { field: 'consumers', draft: ['role=api'], active: ['role=web'] },
      { field: 'description', draft: 'api only' },
    ],
  })
  partial(t, denying, {
    group: 'deleted',
    fields: [
      {
        field: 'scopes',
        active: [['app=payments', 'env=prod']],
      },
    ],
  })
  t.same(
    denying.rules.map(({ change, rule_type: type }: Json) => `${change} ${type}`),
    [...Array.from({ length: 3 }, () => 'removed deny'), 'removed override_deny', 'removed deny'],
    'what did nothing last',
  )

  await t.test('filters by type, even one with nothing pending', async (t) => {
    const lists = await bench.ok(TOOL, { resource_type: 'ip_lists' })
    partial(t, lists, {
      total_pending_changes: 1,
      total_unfiltered: 3,
      created_count: 1,
      updated_count: 0,
      filter: 'ip_lists',
    })
    t.same(Object.keys(rowsOf(lists)), ['partner'])
    const none = await bench.ok(TOOL, { resource_type: 'services' })
    partial(t, none, { total_pending_changes: 0, total_unfiltered: 3, message: /type services/ })
    t.notOk('status' in none, 'other things are not in sync')
    t.notMatch(none.message, /are the same/)
  })

  await t.test('understands a plain list of pending changes, and change_type', async (t) => {
    const list = (await pce.getPendingPolicyChanges()).map(({ type: _type, update_type: change_type, ...change }) => ({
      ...change,
      change_type,
    }))
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending$/, status: 200, times: 1, body: list })
    t.same(await bench.ok(TOOL), answer)
  })

  await t.test('an unknown update type is shown as other', async (t) => {
    const changes = { rule_sets: [{ href: ids.allowing, name: 'allowing', update_type: 'restore' }] }
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending$/, status: 200, times: 1, body: changes })
    const other = await bench.ok(TOOL)
    partial(t, other, { total_pending_changes: 1, created_count: 0, updated_count: 0, deleted_count: 0 })
    partial(t, other.changes.other, [{ name: 'allowing', rules: [{ change: 'changed' }, { change: 'removed' }] }])
  })

  await t.test('an older release keeps deny rules separate', async (t) => {
    const { deny_rules: _embedded, update_type: _deleted, ...bare } = simulator.state.find(ids.denying!)!
    const active = ids.denying!.replace('/draft/', '/active/')
    simulator.faults.add({
      kind: 'status',
      path: new RegExp(`${active}$`),
      status: 200,
      times: 1,
      body: { ...bare, href: active },
    })
    t.same(rowsOf(await bench.ok(TOOL)).denying, denying)
  })

  await t.test('reports a version that cannot be read and counts the change', async (t) => {
    for (const version of ['draft', 'active']) {
      const path = new RegExp(`/${version}/rule_sets/${ids.allowing!.split('/').at(-1)}$`)
      const body = [{ token: 'forbidden_error', message: 'Not\u202e yours' }]
      simulator.faults.add({ kind: 'status', path, status: 403, times: 1, body })
      const partly = await bench.ok(TOOL)
      partial(t, partly, { total_pending_changes: 3, updated_count: 1 })
      const row = rowsOf(partly).allowing
      partial(t, row, { group: 'updated', diff_error: /403.*Not⟨U\+202E⟩ yours/ })
      for (const missing of ['fields', 'rules', 'effect', 'risks']) t.notOk(missing in row, `${missing} is left open`)
      partial(t, rowsOf(partly).partner, { effect: 'neutral' })
    }
    const path = new RegExp(`/active/rule_sets/${ids.allowing!.split('/').at(-1)}$`)
    simulator.faults.add({ kind: 'status', path, status: 200, times: 1, body: [] })
    partial(t, rowsOf(await bench.ok(TOOL)).allowing, { diff_error: /no object/ })
  })

  await t.test('deny rules that cannot be read leave the difference undecided too', async (t) => {
    const id = ids.denying!.split('/').at(-1)
    const { deny_rules: _embedded, ...bare } = simulator.state.find(ids.denying!)!
    simulator.faults.add(
      {
        kind: 'status',
        path: new RegExp(`/active/rule_sets/${id}$`),
        status: 200,
        times: 1,
        body: { ...bare, href: ids.denying!.replace('/draft/', '/active/') },
      },
      { kind: 'status', path: new RegExp(`/active/rule_sets/${id}/deny_rules$`), status: 403, times: 9 },
    )
    partial(t, rowsOf(await bench.ok(TOOL)).denying, { diff_error: /403/, effect: undefined })
    simulator.faults.clear()
  })

  await t.test('the effect is undecided if the uses of an object cannot be read', async (t) => {
    await pce.put(ids.allowed!, {
      includeOrg: false,
      json: { ip_ranges: [{ from_ip: '203.0.113.0/24' }, { from_ip: '198.51.0.0/16' }] },
    })
    t.equal(rowsOf(await bench.ok(TOOL)).allowed.effect, 'widening')
    simulator.faults.add({ kind: 'status', path: /\/active\/enforcement_boundaries$/, status: 403, times: 1 })
    const { allowed } = rowsOf(await bench.ok(TOOL))
    t.notOk('effect' in allowed)
    partial(t, allowed.fields, [{ field: 'ip_ranges' }])
    simulator.faults.add({ kind: 'status', path: /\/(?:draft|active)\/enforcement_boundaries$/, status: 404, times: 2 })
    t.equal(rowsOf(await bench.ok(TOOL)).allowed.effect, 'widening', 'a release without boundaries has none')
  })

  await t.test('an author who may not be read stays an href', async (t) => {
    simulator.faults.add({ kind: 'status', path: /\/users\/1$/, status: 403, times: 1 })
    t.same((await bench.ok(TOOL)).updated_by, { href: '/users/1' })
  })

  await t.test('fails if the list of pending changes cannot be read', async () => {
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending$/, status: 403, times: 1 })
    await bench.fails(TOOL, {}, 'pce_error')
  })
})

t.test('references compare by target, not by name', async (t) => {
  const stage = await setTheStage(await startBench(t))
  const { pce, ids, simulator } = stage
  const href = ids.allowing!
  await pce.put(href, { includeOrg: false, json: { description: 'new' } })
  const { rules, ...draft } = simulator.state.find(href)! as Json
  const renamed = rules.map((rule: Json) => ({
    ...rule,
    consumers: rule.consumers.map((actor: Json) =>
      actor.ip_list
        ? { ip_list: { ...actor.ip_list, name: 'as it will be called' } }
        : { ...actor, exclusion: actor.exclusion ?? false },
    ),
  }))
  simulator.faults.add({
    kind: 'status',
    path: new RegExp(`${href}$`),
    status: 200,
    times: 1,
    body: { ...draft, rules: renamed },
  })
  const { allowing } = rowsOf(await stage.ok(TOOL))
  t.same(allowing.rules, [])
  t.same(allowing.fields, [{ field: 'description', draft: 'new', active: null }])
  t.equal(allowing.effect, 'neutral')
})

t.test('hostile names and texts are escaped and clipped', async (t) => {
  const bench = await startBench(t)
  const { pce } = bench
  const name = 'safe\u202e name\u200b'
  await pce.ipLists.create({
    name,
    description: `read\u0000 this\n${'x'.repeat(3000)}`,
    ip_ranges: [{ from_ip: '198.51.100.1' }],
  })
  const answer = await bench.ok(TOOL)
  const row = rowsOf(answer)['safe⟨U+202E⟩ name⟨U+200B⟩']
  t.ok(row, 'the name with what hides in it')
  const { draft } = row.fields.find(({ field }: Json) => field === 'description')
  t.equal(draft, `read⟨U+0000⟩ this⟨U+000A⟩${'x'.repeat(974)}…`)
})

t.test('many changes', async (t) => {
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const lists = (await pce.ipLists.getAll()).slice(1)
  for (let n = 0; n < 30; n++)
    await pce.ipLists.create({ name: `list ${n}`, ip_ranges: [{ from_ip: `198.51.100.${n}` }] })
  for (const { href } of lists) await pce.ipLists.update(href, { description: 'changed' })

  await t.test('every change appears once across pages, with a fixed number of requests each', async (t) => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      simulator.clearRequests()
      const answer = await bench.ok(TOOL, { max_results: 7, cursor })
      t.equal(answer.total_pending_changes, 30 + lists.length)
      t.equal(answer.created_count, 30, 'counts are of all changes, not of the page')
      const rows = Object.values(answer.changes as Record<string, Json[]>).flat()
      t.ok(rows.length <= 7)
      const reads = simulator.requests.filter(({ path }) => /\/(?:draft|active)\/ip_lists\/\d+$/.test(path))
      t.equal(
        reads.length,
        rows.length + answer.changes.updated.length,
        'one read of a new object, two of a changed one',
      )
      t.ok(simulator.requests.length - reads.length <= 4, 'and a handful beside them')
      t.ok(simulator.requests.every(({ method }) => method === 'GET'))
      seen.push(...rows.map(({ href }) => href))
      t.equal(answer.truncated, answer.next_cursor !== undefined)
      cursor = answer.next_cursor
    } while (cursor !== undefined)
    t.same(seen.toSorted(), simulator.state.pendingHrefs().toSorted())
  })

  await t.test('a change that disappears between pages does not skip another', async (t) => {
    const first = await bench.ok(TOOL, { max_results: 10 })
    const shown = Object.values(first.changes as Record<string, Json[]>)
      .flat()
      .map(({ href }) => href)
    const last = simulator.state
      .pendingHrefs()
      .filter((href) => shown.includes(href))
      .at(-1)!
    await pce.bulkDeletePolicyObjects([last])
    const rest = await bench.ok(TOOL, { cursor: first.next_cursor })
    const after = Object.values(rest.changes as Record<string, Json[]>)
      .flat()
      .map(({ href }) => href)
    t.same([...shown, ...after].filter((href) => href !== last).toSorted(), simulator.state.pendingHrefs().toSorted())
    await bench.fails(TOOL, { cursor: first.next_cursor, resource_type: 'services' }, 'invalid_argument')
  })

  await t.test('an answer stays within its budget and continues where it stopped', async (t) => {
    const small = await startBench(t, { budget: 4_000 })
    for (let n = 0; n < 20; n++)
      await small.pce.ipLists.create({ name: `list ${n}`, ip_ranges: [{ from_ip: `198.51.100.${n}` }] })
    const seen: string[] = []
    let [cursor, pages] = [undefined as string | undefined, 0]
    do {
      const answer = await small.ok(TOOL, { cursor })
      t.ok(Buffer.byteLength(JSON.stringify(answer)) <= 4_000)
      seen.push(
        ...Object.values(answer.changes as Record<string, Json[]>)
          .flat()
          .map(({ href }) => href),
      )
      ;[cursor, pages] = [answer.next_cursor, pages + 1]
    } while (cursor !== undefined)
    t.ok(pages > 1)
    t.same(seen.toSorted(), small.simulator.state.pendingHrefs().toSorted())
  })

  await t.test('no answer reads more objects than it could show', async (t) => {
    const body = {
      ip_lists: Array.from({ length: 400 }, (_, n) => ({
        href: `/orgs/1/sec_policy/draft/ip_lists/${n + 90_000}`,
        update_type: 'create',
      })),
    }
    simulator.faults.add({ kind: 'status', path: /sec_policy\/pending$/, status: 200, times: 1, body })
    simulator.clearRequests()
    const answer = await bench.ok(TOOL, { max_results: 10_000 })
    t.ok(simulator.requests.length <= 260, `${simulator.requests.length} requests`)
    t.equal(answer.truncated, true)
    partial(t, answer.changes.created[0], { diff_error: /404/ })
  })

  await t.test('at most four reads run at once', async (t) => {
    const client = bench.pce
    const get = client.get.bind(client)
    let [now, most] = [0, 0]
    client.get = async (...args) => {
      most = Math.max(most, ++now)
      return await get(...args).finally(() => now--)
    }
    await bench.ok(TOOL)
    t.equal(most, 4)
  })
})

t.test('a change larger than an answer shows as much of the difference as fits and says so', async (t) => {
  const bench = await startBench(t, { budget: 10_000 })
  const { pce } = bench
  const range = (n: number) => ({ from_ip: `10.${n >> 8}.${n & 255}.0/24`, description: 'a network of many' })
  const list = await pce.ipLists.create({ name: 'long', ip_ranges: Array.from({ length: 2000 }, (_, n) => range(n)) })
  await pce.provisionPolicyChanges('long', [list.href])
  // Written in another way, an item is the same.
  const rewritten = Array.from({ length: 2001 }, (_, n) => ({ exclusion: false, ...range(n + 1) }))
  await pce.ipLists.update(list.href, { ip_ranges: rewritten })
  const long = await bench.ok(TOOL, { detail_level: 'full' })
  t.ok(Buffer.byteLength(JSON.stringify(long)) <= 10_000)
  partial(t, rowsOf(long).long, { omitted: /items that differ\.$/, effect: 'neutral' })
  partial(t, rowsOf(long).long.fields, [
    {
      field: 'ip_ranges',
      draft: [range(2000), range(2001)].map(({ from_ip }) => ({ from_ip })),
      active: [{ from_ip: range(0).from_ip }],
    },
  ])
  await pce.provisionPolicyChanges('long', [list.href])

  const rules = Array.from({ length: 60 }, (_, n) => ({
    providers: ['ams'],
    consumers: ['ams'],
    ingress_services: [{ port: n + 1, proto: 'tcp' }],
    ...(n === 59 && { rule_type: 'override_deny' }),
  }))
  await bench.ok('create-ruleset', { name: 'wide', scopes: [['app=payments', 'env=prod']], rules })
  await pce.ipLists.create({ name: 'next to it', ip_ranges: [{ from_ip: '198.51.100.1' }] })
  const first = await bench.ok(TOOL)
  t.ok(Buffer.byteLength(JSON.stringify(first)) <= 10_000)
  const { wide } = rowsOf(first)
  partial(t, wide, { risks: ['override_deny'], omitted: / of 60 rules are shown/ })
  t.notOk('effect' in wide, 'effect and risks are those of all rules, whether shown or not')
  t.equal(wide.rules.length, Number(/(\d+) of 60/.exec(wide.omitted)![1]))
  const next = first.truncated ? await bench.ok(TOOL, { cursor: first.next_cursor }) : { changes: {} }
  t.same(
    [...Object.keys(rowsOf(first)), ...Object.keys(rowsOf(next))],
    ['next to it', 'wide'].toSorted(byPending(bench)),
  )
})

/** The order in which the PCE lists what is pending. */
function byPending({ simulator }: Bench) {
  const names = simulator.state.pendingHrefs().map((href) => simulator.state.find(href)?.name as string)
  return (a: string, b: string) => names.indexOf(a) - names.indexOf(b)
}
