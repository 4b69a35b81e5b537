/** What narrows or widens a rule besides its ends and services is shown wherever the rule is, and no write loses it. */
import t, { type Test } from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import { AMS, handMade, ipTablesRule } from './hand-made.js'
import { contains } from '../partial.js'
import { startBench, type Json } from './harness.js'
import { lossesOf } from './losses.js'

const WEB = { port: 443, proto: 6 }
const GROUPS = '/orgs/1/security_principals'
const FINANCE = { href: `${GROUPS}/S-1-5-21` }
const UNKNOWN_GROUP = { href: `${GROUPS}/S-1-5-22` }
const NO_CONDITIONS = {
  network_type: 'brn',
  machine_auth: false,
  sec_connect: false,
  stateless: false,
  use_workload_subnets: [],
  consuming_security_principals: [],
  log_flow: false,
}

/** The fields of each rule beside its ends, and how the short form names them. */
const RULES: [fields: object, conditions: string[]][] = [
  [NO_CONDITIONS, []],
  [{ network_type: null, machine_auth: null, consuming_security_principals: null, use_workload_subnets: null }, []],
  [{ consuming_security_principals: [FINANCE, UNKNOWN_GROUP] }, [`only users of Finance or ${UNKNOWN_GROUP.href}`]],
  [{ network_type: 'non_brn' }, ['only on networks other than the corporate one (non_brn)']],
  [{ network_type: 'all' }, ['on all networks']],
  [{ network_type: 'guest' }, ['network_type: "guest"']],
  [{ machine_auth: true }, ['only authenticated machines (machine_auth)']],
  [{ sec_connect: true }, ['only encrypted connections (sec_connect)']],
  [{ stateless: true, log_flow: true }, ['stateless']],
  [
    { use_workload_subnets: ['providers', 'consumers'] },
    ['whole subnets of its providers and consumers (use_workload_subnets)'],
  ],
  [{ all_ips_except_for_in_consumers: true }, ['all addresses except those in consumers']],
  [{ posture: { level: 3 } }, ['posture: {"level":3}']],
]

/** An estate whose rules are alike except for their conditions. */
function estateOf(fields: readonly object[], more: object = {}): Estate {
  const estate = handMade({
    hosts: {
      'web-1': { ip: '10.0.0.1', labels: 'role=web', mode: 'full' },
      'db-1': { ip: '10.0.0.2', labels: 'role=db', mode: 'full' },
    },
    ruleSets: [
      { name: 'Mixed', scope: '', allow: fields.map(() => ({ from: 'role=web', to: 'role=db', services: [WEB] })) },
    ],
  })
  const [set] = estate.ruleSets
  return {
    ...estate,
    ruleSets: [{ ...set!, ...more, rules: set!.rules!.map((rule, at) => ({ ...rule, ...fields[at] })) }],
  } as Estate
}

async function benchWith(t: Test, fields: readonly object[], more: object = {}) {
  const bench = await startBench(t, { estate: estateOf(fields, more) })
  await bench.pce.securityPrincipals.bulkCreate([{ sid: 'S-1-5-21', name: 'Finance' }])
  bench.writes()
  return bench
}

/** The line of a rule with these conditions. */
const lineOf = (conditions: readonly string[]) => ['role=web to role=db, 443/tcp', ...conditions].join('; ')

t.test('the short form names each condition that is not the default, and the full form has its field', async (t) => {
  const bench = await benchWith(
    t,
    RULES.map(([fields]) => fields),
  )
  const [brief] = (await bench.ok('get-rulesets')).rulesets
  t.same(
    brief.rules.map((rule: Json) => rule.conditions ?? []),
    RULES.map(([, conditions]) => conditions),
  )
  const [full] = (await bench.ok('get-rulesets', { detail_level: 'full' })).rulesets
  const isShown = ([field, value]: [string, unknown]) =>
    value !== null && value !== false && value !== 'brn' && !(Array.isArray(value) && value.length === 0) && field
  t.same(
    full.rules.map(({ rule_type: _t, href: _h, enabled: _e, description: _d, ...rule }: Json) => {
      const { consumers: _c, providers: _p, ingress_services: _i, unscoped_consumers: _u, ...conditions } = rule
      return conditions
    }),
    RULES.map(([fields]) => {
      const shown = Object.fromEntries(Object.entries(fields).filter(isShown))
      const groups = [{ name: 'Finance', ...FINANCE }, UNKNOWN_GROUP]
      return 'consuming_security_principals' in shown ? { consuming_security_principals: groups } : shown
    }),
  )
  const found = (await bench.ok('find-rules', {})).rules
  t.same(
    found.map(({ rule }: Json) => rule),
    RULES.map(([, conditions]) => lineOf(conditions)),
  )
})

t.test('rules that differ in a condition are never equal', async (t) => {
  const fields = RULES.map(([one]) => one)
  const bench = await benchWith(t, fields)
  const { findings } = await bench.ok('find-redundant-rules')
  // Both without conditions are equal. They also cover the one for users, and with the one for other networks that for all.
  t.same(
    findings.map(({ kind, rule, by }: Json) => [kind, rule, ...by.map((one: Json) => one.rule)]),
    [
      ['duplicate', lineOf([]), lineOf([])],
      ['covered', lineOf(RULES[2]![1]), lineOf([])],
      ['covered', lineOf(RULES[4]![1]), lineOf([]), lineOf(RULES[3]![1])],
    ],
  )
  for (const [one, conditions] of RULES.slice(2).filter(([, [condition]]) => condition !== 'on all networks')) {
    const own = await benchWith(t, [one])
    const flow = { source: 'web-1', destination: 'db-1', port: 443, proto: 'tcp' }
    const { active, rules } = await own.ok('explain-flow', flow)
    const isWider = 'use_workload_subnets' in one
    t.equal(active.verdict, isWider ? 'allowed' : 'uncertain', lineOf(conditions))
    t.same(
      rules.map(({ rule }: Json) => rule),
      [lineOf(conditions)],
    )
    const [{ href }] = (await own.ok('get-rulesets')).rulesets
    const ends = { providers: ['role=db'], consumers: ['role=web'], ingress_services: [{ port: 443, proto: 'tcp' }] }
    const added = await own.ok('create-rule', { ruleset_href: href, ...ends, dry_run: true })
    t.notOk('warnings' in added, `a rule without it is no repetition: ${conditions[0]}`)
  }
})

t.test('a change of other fields neither sends nor loses a condition', async (t) => {
  const fields = {
    ...NO_CONDITIONS,
    consuming_security_principals: [FINANCE],
    network_type: 'all',
    machine_auth: true,
    use_workload_subnets: ['consumers'],
  }
  const bench = await benchWith(t, [fields])
  const [set] = (await bench.ok('get-rulesets')).rulesets
  const [{ href }] = set.rules
  const conditions = [
    'only users of Finance',
    'on all networks',
    'only authenticated machines (machine_auth)',
    'whole subnets of its consumers (use_workload_subnets)',
  ]
  const { rule } = await bench.ok('update-sec-rule', { href, consumers: ['ams'], description: 'Wider' })
  t.same(rule.conditions, conditions)
  await bench.ok('update-ruleset', { name: 'Mixed', new_name: 'Renamed', scopes: [['role=db']] })
  t.same(
    bench.writes().map(({ body }) => Object.keys(body as object).sort()),
    [
      ['consumers', 'description'],
      ['name', 'scopes'],
    ],
  )
  const [after] = (await bench.ok('get-rulesets')).rulesets
  t.same(after.rules[0].conditions, conditions)
  const { changes } = await bench.ok('compare-draft-active')
  t.same(
    changes.updated[0].rules.map((one: Json) => one.rule),
    [lineOf(conditions)],
    'the changed rule is named with its conditions',
  )
  await bench.ok('discard-draft-changes', { hrefs: [set.href] })
  const [back] = (await bench.ok('get-rulesets')).rulesets
  t.same([back.name, back.rules[0].conditions], ['Mixed', conditions])
})

t.test('a deny rule keeps its network when it changes', async (t) => {
  const bench = await benchWith(t, [NO_CONDITIONS])
  const [set] = (await bench.ok('get-rulesets')).rulesets
  const { href } = await bench.pce.denyRules.create(
    {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ actors: 'ams' }],
      ingress_services: [WEB],
      network_type: 'non_brn',
    },
    set.href,
  )
  const { rule } = await bench.ok('update-deny-rule', { href, enabled: false })
  t.same(rule.conditions, ['only on networks other than the corporate one (non_brn)'])
})

t.test('types and codes of ICMP, excluded actors and whole dimensions are shown', async (t) => {
  const bench = await benchWith(t, [
    {
      ingress_services: [
        { proto: 1, icmp_type: 8, icmp_code: 0 },
        { proto: 1, icmp_type: 3, icmp_code: null },
      ],
    },
    { consumers: [{ label_dimension: 'role' }], providers: [{ actors: 'ams', exclusion: true }] },
    {
      consumers: [
        { actors: null, label: null, workload: null, ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } },
      ],
    },
  ])
  const [{ rules }] = (await bench.ok('get-rulesets')).rulesets
  t.same(rules[0].ingress_services, [
    { proto: 1, icmp_type: 8, icmp_code: 0 },
    { proto: 1, icmp_type: 3 },
  ])
  t.same(rules[1].consumers, [{ type: 'label_dimension', key: 'role' }])
  t.same(rules[1].providers, [{ type: 'ams', exclusion: true }])
  t.same(rules[2].consumers, ['iplist:Any (0.0.0.0/0 and ::/0)'])
  const lines = (await bench.ok('find-rules', {})).rules.map(({ rule }: Json) => rule)
  t.same(lines, [
    'role=web to role=db, icmp type 8 code 0 + icmp type 3',
    'role to not all workloads, 443/tcp',
    'Any (0.0.0.0/0 and ::/0) to role=db, 443/tcp',
  ])
})

t.test('rules in the words of iptables are counted, and judged nowhere', async (t) => {
  const table = (id: number, actors: object[], enabled = true) => ({
    ...ipTablesRule('-j ACCEPT', id),
    enabled,
    description: null,
    actors,
  })
  const db = { workload: { href: '/orgs/1/workloads/00000000-0000-4000-8000-000000000002' } }
  const bench = await benchWith(t, [NO_CONDITIONS], {
    ip_tables_rules: [table(1, [db]), table(2, [db], false)],
  })
  const [set] = (await bench.ok('get-rulesets')).rulesets
  t.same(set.ip_tables_rules, { total: 2, enabled: 1, note: 'In the syntax of iptables: not shown, not judged.' })
  t.same((await bench.ok('find-rules', {})).not_read, ['2 rules in the words of iptables are not searched.'])
  const searched = await bench.ok('find-rules', { actor: 'role=db' })
  t.same(
    [searched.found_by, searched.not_read],
    ['rule_search', ['Rules in the words of iptables are not searched, and how many there are is not known.']],
  )
  const flow = { source: 'web-1', port: 443, proto: 'tcp' }
  const about = /iptables/
  const {
    not_judged: concerned,
    assumes,
    active,
    destination,
  } = await bench.ok('explain-flow', { ...flow, destination: 'db-1' })
  t.same(assumes, ['P19'])
  t.equal(active.verdict, 'uncertain')
  contains(t, active.why, 'rules in the words of iptables decide')
  contains(t, destination.does, 'it may have it allowed or')
  t.ok(
    concerned.some((text: string) => about.test(text)),
    'they are for its destination',
  )
  const { not_judged: elsewhere = [], ...other } = await bench.ok('explain-flow', { ...flow, destination: '192.0.2.7' })
  t.notOk('assumes' in other, 'the fact about them is named only where they are')
  t.not(other.active.verdict, 'uncertain')
  t.notOk(
    elsewhere.some((text: string) => about.test(text)),
    'they are for neither end',
  )
})

t.test('what another mode would cut is not known at an end with rules in the words of iptables', async (t) => {
  const plain = handMade({
    hosts: {
      'web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
      'db-1': { ip: '10.0.0.2', labels: 'app=crm env=prod' },
    },
    flows: [{ from: 'web-1', to: 'db-1', connections: 7 }],
    ruleSets: [{ name: 'crm', scope: 'app=crm env=prod' }],
  })
  const ask = async (ip_tables_rules: object[]) => {
    const estate = { ...plain, ruleSets: [{ ...plain.ruleSets[0]!, ip_tables_rules }] } as Estate
    const bench = await startBench(t, { estate })
    const { message } = await bench.ok('preview-enforcement-change', {
      enforcement_mode: 'full',
      app_name: 'crm',
      env_name: 'prod',
    })
    return /\d+ connections would be cut and \d+ possibly/.exec(message as string)?.[0]
  }
  const table = ipTablesRule('-j ACCEPT')
  t.equal(await ask([]), '7 connections would be cut and 0 possibly')
  t.equal(await ask([table]), '0 connections would be cut and 7 possibly')
  t.equal(await ask([{ ...table, enabled: false }]), '7 connections would be cut and 0 possibly')
})

t.test('what a ringfence would cut is not known at an end with rules in the words of iptables', async (t) => {
  const plain = (mode: EnforcementMode) =>
    handMade({
      hosts: {
        'db-1': { ip: '10.0.0.1', labels: 'app=crm env=prod role=db', mode },
        'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod' },
        'bare-1': { ip: '10.0.0.3', labels: 'env=prod' },
      },
      flows: ['web-1', 'bare-1'].map((from) => ({ from, to: 'db-1' })),
      ruleSets: [{ name: 'crm', scope: 'app=crm env=prod', allow: [{ from: 'app=pay', to: 'ams', extra: true }] }],
      labels: ['role=web'],
    })
  const ask = async (mode: EnforcementMode, role: string | null, args: object = {}) => {
    const estate = plain(mode)
    const actors = role === null ? [AMS] : [{ label: { href: estate.labels.find((one) => one.value === role)!.href } }]
    const ruleSets = [{ ...estate.ruleSets[0]!, ip_tables_rules: [{ ...ipTablesRule('-j ACCEPT'), actors }] }]
    const bench = await startBench(t, { estate: { ...estate, ruleSets } as unknown as Estate })
    const app = { app_name: 'crm', env_name: 'prod', dry_run: true }
    const plan = await bench.ok('create-ringfence', { ...app, ...args })
    return lossesOf(plan).map(({ source, effect }) => `${source}: ${effect}`)
  }
  const OPEN = ['bare-1: possibly_cut', 'pay (prod): possibly_cut']
  t.same((await ask('visibility_only', null)).toSorted(), OPEN, 'also where the ringfence has a rule')
  t.same((await ask('visibility_only', 'db')).toSorted(), OPEN, 'those for the labels of the destination')
  t.same(await ask('visibility_only', 'web'), ['bare-1: cut'], 'those for other workloads change nothing')
  t.same((await ask('full', null)).toSorted(), OPEN, 'in full mode they may come first today already')
  t.same((await ask('selective', null, { selective: true })).toSorted(), OPEN, 'and so they may in selective mode')
})

t.test('what passes an end with rules in the words of iptables is undecided', async (t) => {
  const host = (at: number, labels: string) => ({ ip: `10.0.0.${at}`, labels })
  const plain = handMade({
    hosts: { 'pay-1': host(1, 'app=pay env=prod'), 'crm-1': host(2, 'app=crm env=prod') },
    flows: [{ from: 'crm-1', to: 'pay-1', port: 22 }],
    labels: ['app=spare'],
    ruleSets: [
      { name: 'all', scope: 'env=prod', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'crm', scope: 'app=crm env=prod', allow: [{ from: 'ams', to: 'ams' }] },
    ],
  })
  const table = (id: number, more: object = {}) => ({ ...ipTablesRule('-j ACCEPT', id), ...more })
  const ask = async (...tables: (object[] | null)[]) => {
    const ruleSets = plain.ruleSets.map((set, at) => ({ ...set, ip_tables_rules: tables[at] }))
    const bench = await startBench(t, { estate: { ...plain, ruleSets } as Estate })
    const app = { app_name: 'pay', env_name: 'prod' }
    const ringfence = await bench.ok('create-ringfence', { ...app, dry_run: true })
    const batch = await bench.ok('ringfence-batch', { apps: [app], dry_run: true })
    const { findings, ...compliance } = await bench.ok('compliance-check', { framework: 'pci-dss', ...app })
    const readiness = await bench.ok('enforcement-readiness', app)
    const coverage = await bench.ok('get-policy-coverage-report', app)
    const texts = {
      readiness: readiness.recommendations,
      coverage: [coverage.recommendation],
      ringfence: ringfence.warnings,
      batch: batch.warnings ?? batch.results,
      compliance: findings.map(({ detail }: Json) => detail),
    }
    const said = Object.entries(texts).flatMap(([tool, list]) => {
      const found = JSON.stringify(list).match(
        /\d* ?[Rr]ules? in the words of iptables (?:is|are) not judged|undecided because of rules in the words of iptables/g,
      )
      return found === null ? [] : [`${tool}: ${[...new Set(found)].sort().join(', ')}`]
    })
    const assumed = { readiness, coverage, ringfence, batch: batch.results[0].result, compliance }
    t.same(
      Object.entries(assumed).flatMap(([tool, { assumes = [] }]) => (assumes.includes('P19') ? [tool] : [])),
      said.length === 0 ? [] : Object.keys(assumed),
      'the fact about them is named where they are counted, or leave a row undecided',
    )
    return said
  }
  const UNDECIDED = 'undecided because of rules in the words of iptables'
  const two = '2 rules in the words of iptables are not judged'
  t.same(await ask([table(1), table(2), table(3, { enabled: false })], null), [
    `readiness: ${two}, ${UNDECIDED}`,
    `coverage: ${UNDECIDED}`,
    `ringfence: ${two}`,
    'batch: Rules in the words of iptables are not judged',
    `compliance: ${two}, ${UNDECIDED}`,
  ])
  const there = ['readiness', 'coverage', 'compliance'].map((tool) => `${tool}: ${UNDECIDED}`)
  t.same(await ask([], [table(1)]), there, 'those of another application, at the other end, are not counted')
  const crm = { label: { href: plain.labels.find(({ value }) => value === 'crm')!.href } }
  t.same(await ask([table(1, { actors: [crm] })], []), there, 'nor those for workloads with other labels')
  const elsewhere = { label: { href: plain.labels.find(({ value }) => value === 'spare')!.href } }
  t.same(await ask([table(1, { actors: [elsewhere] })], []), [], 'those for neither end leave nothing undecided')
})

t.test('a rule that is open to some users only is not said to be open to everybody', async (t) => {
  const plain = handMade({
    hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' } },
    ruleSets: [{ name: 'pay', scope: 'app=pay env=prod', allow: [{ from: 'any', to: 'ams', extra: true }] }],
  })
  const ask = async (fields: object) => {
    const [set] = plain.ruleSets
    const rules = set!.rules!.map((rule) => ({ ...rule, ...fields }))
    const bench = await startBench(t, { estate: { ...plain, ruleSets: [{ ...set!, rules }] } as Estate })
    const { findings } = await bench.ok('compliance-check', { framework: 'pci-dss', app_name: 'pay', env_name: 'prod' })
    const { status, detail } = findings.find((one: Json) => one.id === 'PCI-7.1')
    return `${status}: ${detail}`
  }
  const everybody = 'FAIL: 1 rule opening every service to any address.'
  t.equal(await ask(NO_CONDITIONS), everybody)
  t.equal(await ask({ stateless: true, network_type: 'all', log_flow: true }), everybody)
  const limited = 'WARNING: 1 rule as open, but for certain users, machines or networks only.'
  t.equal(await ask({ consuming_security_principals: [FINANCE] }), limited)
  t.equal(await ask({ network_type: 'non_brn' }), limited)
  t.equal(await ask({ posture: 'healthy' }), limited)
})
