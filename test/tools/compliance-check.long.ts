/**
 * compliance-check against estates whose right verdicts are known in full. Each evaluator is shown what it passes, what it
 * objects to and what it cannot judge; expectations are typed out by hand.
 */
import t, { type Test } from 'tap'
import { FRAMEWORKS } from '../../domain/compliance/frameworks.js'
import { scoreVerdicts } from '../../domain/compliance/verdict.js'
import {
  handMade,
  type HandMadeEstate,
  type HandMadeFlow,
  type HandMadeHost,
  type HandMadeRule,
  type HandMadeRuleSet,
} from './hand-made.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { contains, partial } from '../partial.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { AS_GUIDED, benchOf, startBench, type Bench, type BenchOptions, type Json } from './harness.js'

const PAYMENTS = { app_name: 'payments', env_name: 'prod' }
const EVERY_UDP_PORT = [{ port: 0, to_port: 65535, proto: 17 }]
const tcp = (...ports: number[]) => ports.map((port) => ({ port, proto: 6 }))

/** payments (prod): two servers, complete labels. */
const server = (mode: HandMadeHost['mode'], ip = '10.0.0.1', role = 'web'): HandMadeHost => ({
  ip,
  labels: `app=payments env=prod role=${role} loc=eu`,
  ...(mode !== undefined && { mode }),
})
const CRM: HandMadeHost = { ip: '10.0.1.1', labels: 'app=crm env=prod role=web loc=eu', mode: 'full' }
const STRAY: HandMadeHost = { ip: '10.0.2.1', mode: 'full' }

/** Lets everyone talk to everyone, so that traffic is allowed by a rule. */
const OPEN: HandMadeRuleSet = {
  name: 'open',
  scope: '',
  allow: [
    { from: 'any', to: 'ams' },
    { from: 'ams', to: 'any' },
    { from: 'ams', to: 'ams' },
  ],
}
const RINGFENCE: HandMadeRuleSet = {
  name: 'RF-payments-prod',
  scope: 'app=payments env=prod',
  allow: [{ from: 'ams', to: 'ams' }],
}

async function start(t: Test, parts: HandMadeEstate, options: BenchOptions = {}): Promise<Bench> {
  return startBench(t, { estate: handMade(parts), ...options })
}

/** The findings by id. */
function byId(answer: Json): Record<string, Json> {
  return Object.fromEntries(answer.findings.map((finding: Json) => [finding.id, finding]))
}

async function judge(
  t: Test,
  parts: HandMadeEstate,
  framework: string,
  args: object = PAYMENTS,
): Promise<Record<string, Json>> {
  return byId(await (await start(t, parts)).ok('compliance-check', { framework, ...args }))
}

/** What the k-th of several estates is called where they share one simulator: its own payments, hosts and addresses. */
const nth = (text: string, k: number) => text.replaceAll('payments', `payments${k}`)

/**
 * Several small estates as one, for a simulator takes longer to start than to ask. Each has hosts and a payments of its own;
 * rule sets that do not mention payments are common to all.
 */
function together(cases: readonly HandMadeEstate[]): HandMadeEstate {
  const ruleSets = new Map<string, HandMadeRuleSet>()
  const all: Required<Pick<HandMadeEstate, 'hosts' | 'flows' | 'ipLists'>> = { hosts: {}, flows: [], ipLists: {} }
  for (const [k, { hosts = {}, flows = [], ipLists = {}, ruleSets: sets = [] }] of cases.entries()) {
    const nameOf = (name: string) => (Object.hasOwn(hosts, name) ? `${name}.${k}` : name)
    for (const [name, host] of Object.entries(hosts)) {
      const ip = host.ip.replace(/^10\.0\./, `10.${100 + k}.`).replace(/^2001:db8::/, `2001:db8:${k}::`)
      all.hosts[nameOf(name)] = { ...host, ip, ...(typeof host.labels === 'string' && { labels: nth(host.labels, k) }) }
    }
    all.flows.push(...flows.map((flow) => ({ ...flow, from: nameOf(flow.from), to: nameOf(flow.to) })))
    Object.assign(all.ipLists, ipLists)
    for (const set of sets) {
      const text = JSON.stringify(set)
      const own = text.includes('payments') ? (JSON.parse(nth(text, k)) as HandMadeRuleSet) : set
      const id = JSON.stringify(own)
      if (!ruleSets.has(id))
        ruleSets.set(id, { ...own, name: own.name.includes('payments') ? own.name : `${own.name} ${ruleSets.size}` })
    }
  }
  return { ...all, ruleSets: [...ruleSets.values()] }
}

/** The findings of each of several estates, by several frameworks taken together. Estates with the same common rule sets share. */
async function judgeAll(
  t: Test,
  cases: readonly HandMadeEstate[],
  frameworks: string | readonly string[],
  options: BenchOptions = {},
): Promise<Record<string, Json>[]> {
  const commonOf = ({ ruleSets = [] }: HandMadeEstate) =>
    JSON.stringify(ruleSets.filter((set) => !JSON.stringify(set).includes('payments')))
  const found = new Map<HandMadeEstate, Record<string, Json>>()
  for (const common of new Set(cases.map(commonOf))) {
    const group = cases.filter((one) => commonOf(one) === common)
    const bench = await start(t, together(group), options)
    for (const [k, one] of group.entries()) {
      const findings = {}
      for (const framework of [frameworks].flat()) {
        const scope = { app_name: `payments${k}`, env_name: 'prod' }
        Object.assign(findings, byId(await bench.ok('compliance-check', { framework, ...scope })))
      }
      found.set(one, findings)
    }
  }
  return cases.map((one) => found.get(one)!)
}

const statuses = (found: Record<string, Json>) =>
  Object.fromEntries(Object.entries(found).map(([id, { status }]) => [id, status]))

/** One connection into web on 443 from itself's neighbour, so that there is traffic without any risk in it. */
const INSIDE: HandMadeFlow = { from: 'db', to: 'web' }
const PAIR = (mode: HandMadeHost['mode']) => ({ web: server(mode), db: server(mode, '10.0.0.2', 'db') })

t.test('frameworks keep their check names, and each check has its own evaluator', async (t) => {
  const ids = Object.fromEntries(
    Object.entries(FRAMEWORKS).map(([id, { checks }]) => [id, checks.map((one) => one.id)]),
  )
  t.same(ids, {
    'pci-dss': ['PCI-1.3', 'PCI-1.4', 'PCI-2.1', 'PCI-6.1', 'PCI-7.1'],
    dora: ['DORA-9.2', 'DORA-9.3', 'DORA-8.1', 'DORA-10.1', 'DORA-25.1'],
    nist: ['AC-4', 'SC-7', 'CM-7', 'SI-4'],
    cis: ['CIS-9', 'CIS-12', 'CIS-13'],
    'iso-27001': ['A.8.22', 'A.8.20', 'A.5.9', 'A.8.26'],
    'swift-csp': ['SWIFT-1.1', 'SWIFT-1.4', 'SWIFT-2.1', 'SWIFT-5.1', 'SWIFT-6.4'],
    hipaa: ['164.312(a)', '164.312(b)', '164.312(e)', '164.308(a)(1)'],
    general: ['SEG-1', 'SEG-2', 'SEG-3', 'SEG-4'],
  })
  for (const [id, { checks }] of Object.entries(FRAMEWORKS)) {
    for (const part of ['name', 'description'] as const)
      t.equal(new Set(checks.map((check) => check[part])).size, checks.length, `${id}: ${part}s differ`)
    t.equal(new Set(checks.map(({ evaluate }) => evaluate.name)).size, checks.length, `${id}: no evaluator twice`)
  }
})

t.test('the checks of a framework change independently', async (t) => {
  const good = {
    hosts: { ...PAIR('full'), crm: CRM },
    flows: [INSIDE, { from: 'crm', to: 'web', connections: 5 }],
    ruleSets: [RINGFENCE, { name: 'in', scope: '', allow: [{ from: 'app=crm', to: 'app=payments' }] }],
  }
  const expected = { 'SEG-1': 'PASS', 'SEG-2': 'PASS', 'SEG-3': 'PASS', 'SEG-4': 'PASS' }
  const cases: [HandMadeEstate, object][] = [
    [good, {}],
    [{ ...good, ruleSets: good.ruleSets.slice(1) }, { 'SEG-1': 'FAIL' }],
    [{ ...good, hosts: { ...good.hosts, spare: server('idle', '10.0.0.3') } }, { 'SEG-2': 'FAIL' }],
    [{ ...good, flows: [...good.flows, { from: 'crm', to: 'db', port: 3389 }] }, { 'SEG-3': 'WARNING' }],
    [
      {
        ...good,
        hosts: { ...good.hosts, web: server('visibility_only') },
        flows: [...good.flows, { from: 'web', to: '10.7.7.7' }],
      },
      { 'SEG-2': 'WARNING', 'SEG-4': 'WARNING' },
    ],
  ]
  const all = await judgeAll(
    t,
    cases.map(([one]) => one),
    'general',
  )
  for (const [at, [, turned]] of cases.entries()) t.same(statuses(all[at]!), { ...expected, ...turned })
})

t.test('blocked attacks fail no check in any framework', async (t) => {
  const attacks = [21, 22, 23, 80, 445, 3389].flatMap((port) => [
    { from: '203.0.113.66', to: 'web', port, connections: 900 },
    { from: 'stray', to: 'db', port, connections: 900 },
    { from: 'web', to: '198.51.100.7', port, connections: 900 },
  ])
  const bench = await start(t, {
    hosts: { ...PAIR('full'), stray: STRAY, crm: CRM },
    flows: [...attacks, INSIDE, { from: 'crm', to: 'web' }],
    ruleSets: [
      RINGFENCE,
      { name: 'in', scope: '', allow: [{ from: 'app=crm', to: 'app=payments' }] },
      { name: 'EMERGENCY-ISOLATE-payments-prod', scope: 'app=payments env=prod' },
    ],
  })
  await bench.ok('create-label', { key: 'role', value: 'to-leave-an-event' })
  for (const framework of Object.keys(FRAMEWORKS)) {
    const answer = await bench.ok('compliance-check', { framework, ...PAYMENTS })
    const bad = answer.findings.filter(({ status }: Json) => status === 'FAIL' || status === 'WARNING')
    t.same(bad, [], framework)
    t.equal(answer.compliance_score, 100, `${framework}: score`)
  }
  const found = byId(await bench.ok('compliance-check', { framework: 'general', ...PAYMENTS }))
  t.equal(
    found['SEG-3'].evidence.counts.blocked,
    8,
    'blocked rows on 22, 23, 445 and 3389 from two sources are evidence',
  )
  t.equal(found['SEG-4'].evidence.counts.blocked, 18)
  t.match(found['SEG-4'].detail, /^100 %/)
})

t.test('policy coverage', async (t) => {
  /** So many inbound rows that no rule allows, and so many that one does. */
  const mixed = (allowed: number, open: number): HandMadeEstate => ({
    hosts: { web: server('visibility_only'), crm: { ...CRM, mode: 'visibility_only' } },
    flows: [
      ...Array.from({ length: allowed }, (_, at) => ({ from: 'crm', to: 'web', port: 1000 + at })),
      ...Array.from({ length: open }, (_, at) => ({ from: 'crm', to: 'web', port: 5000 + at, connections: 100 })),
    ],
    ruleSets: [
      {
        name: 'some',
        scope: '',
        allow: [{ from: 'app=crm', to: 'app=payments', services: [{ port: 1000, to_port: 1999, proto: 6 }] }],
      },
    ],
  })
  const cases: [number, number, string, string][] = [
    [9, 1, 'PASS', '90 %'],
    [17, 2, 'WARNING', '89.5 %'],
    [1, 1, 'WARNING', '50 %'],
    [9, 10, 'FAIL', '47.4 %'],
  ]
  const all = await judgeAll(
    t,
    cases.map(([allowed, open]) => mixed(allowed, open)),
    'nist',
  )
  for (const [at, [allowed, open, status, text]] of cases.entries()) {
    const finding = all[at]!['SC-7']
    t.equal(finding.status, status, `${allowed} : ${open}`)
    contains(t, finding.detail, text)
    partial(t, finding.evidence.counts, {
      allowed,
      potentially_blocked: open,
      blocked: 0,
      potentially_blocked_connections: open * 100,
    })
  }

  await t.test('traffic inside the application does not count', async (t) => {
    const { hosts, flows, ruleSets } = mixed(9, 1)
    const inside = Array.from({ length: 20 }, (_, at) => ({ from: 'db', to: 'web', port: 7000 + at }))
    const found = await judge(
      t,
      {
        hosts: { ...hosts, db: server('visibility_only', '10.0.0.2') },
        flows: [...flows!, ...inside],
        ruleSets: ruleSets!,
      },
      'general',
    )
    t.equal(found['SEG-4'].status, 'PASS')
    partial(t, found['SEG-4'].evidence.counts, { allowed: 9, potentially_blocked: 1, inside_one_application: 20 })
  })
  await t.test('blocked traffic alone counts as decided', async (t) => {
    const found = await judge(t, { hosts: PAIR('full'), flows: [{ from: '10.9.9.9', to: 'web' }] }, 'general')
    t.equal(found['SEG-4'].status, 'PASS')
  })
  await t.test('no traffic with a policy decision', async (t) => {
    t.equal((await judge(t, { hosts: PAIR('full') }, 'general'))['SEG-4'].status, 'NOT_ASSESSED')
    t.equal(
      (await judge(t, { hosts: PAIR('full'), flows: [INSIDE] }, 'general'))['SEG-4'].status,
      'NOT_ASSESSED',
      'inside only',
    )
    const unjudged = await judge(t, { hosts: PAIR('idle'), flows: [{ from: '10.9.9.9', to: 'web' }] }, 'general')
    t.equal(unjudged['SEG-4'].status, 'NOT_ASSESSED', 'idle')
    t.equal(unjudged['SEG-4'].evidence.counts.not_judged, 1)
  })
  await t.test('outbound traffic counts too, once', async (t) => {
    const hosts = { web: server('visibility_only'), crm: CRM }
    const found = await judge(
      t,
      {
        hosts,
        flows: [
          { from: 'web', to: '10.9.9.9' },
          { from: '10.9.9.9', to: 'web' },
        ],
      },
      'general',
    )
    partial(t, found['SEG-4'].evidence.counts, { allowed: 0, potentially_blocked: 2 })
  })
  await t.test('what passes by selective mode alone is not covered, whatever was recorded', async (t) => {
    const parts = { hosts: PAIR('selective'), flows: [{ from: '10.9.9.9', to: 'web' }] }
    const web = (services: HandMadeRule['services'] & object, more: object = {}) => [
      { ...RINGFENCE, allow: [{ from: 'any', to: 'ams', extra: true, services, ...more }] },
    ]
    const denying = (deny: HandMadeRule) => [{ ...RINGFENCE, deny: [deny] }]
    const crm = { ...CRM, mode: 'selective' as const }
    const fromCrm = [{ from: 'crm', to: 'web' }]
    const outOfCrm = { name: 'out', scope: '', allow: [{ from: 'app=crm', to: 'app=payments' }] }
    const cases: [string, HandMadeEstate, string][] = [
      ['no rule at all', parts, 'FAIL'],
      ['an allow rule for it', { ...parts, ruleSets: web(tcp(443)) }, 'PASS'],
      ['an allow rule for another port', { ...parts, ruleSets: web(tcp(22)) }, 'FAIL'],
      ['an allow rule for the same port of UDP', { ...parts, ruleSets: web([{ port: 443, proto: 17 }]) }, 'FAIL'],
      ['an allow rule that is disabled', { ...parts, ruleSets: web(tcp(443), { enabled: false }) }, 'FAIL'],
      [
        'an allow rule from workloads, where an address is the source',
        { ...parts, ruleSets: [{ ...RINGFENCE, allow: [{ from: 'ams', to: 'ams', extra: true }] }] },
        'FAIL',
      ],
      [
        'a deny rule on every port of UDP leaves TCP open',
        { ...parts, ruleSets: denying({ from: 'any', to: 'ams', extra: true, services: EVERY_UDP_PORT }) },
        'FAIL',
      ],
      [
        'from a workload, by a rule that both ends have',
        { hosts: { ...parts.hosts, crm }, flows: fromCrm, ruleSets: [outOfCrm] },
        'PASS',
      ],
      [
        'from a workload in selective mode, by a rule that the destination alone has',
        { hosts: { ...parts.hosts, crm }, flows: fromCrm, ruleSets: web(tcp(443)) },
        'FAIL',
      ],
      [
        'from a workload in full enforcement, which a rule has to let out',
        { hosts: { ...parts.hosts, crm: CRM }, flows: fromCrm, ruleSets: [outOfCrm] },
        'PASS',
      ],
    ]
    const all = await judgeAll(
      t,
      cases.map(([, one]) => one),
      'general',
      AS_GUIDED,
    )
    for (const [at, [what, , status]] of cases.entries()) {
      const { status: is, evidence } = all[at]!['SEG-4']
      t.equal(is, status, what)
      const { allowed, potentially_blocked: open } = evidence.counts
      t.same([allowed, open], status === 'PASS' ? [1, 0] : [0, 1], what)
    }
  })
  await t.test('between applications only', async (t) => {
    const hosts = { web: server('visibility_only'), crm: { ...CRM, mode: 'visibility_only' as const } }
    const allow = [{ from: 'app=crm', to: 'app=payments' }]
    const flows = [
      { from: 'crm', to: 'web' },
      { from: '10.9.9.9', to: 'web' },
      { from: '10.9.9.8', to: 'web' },
    ]
    const found = await judge(t, { hosts, flows, ruleSets: [{ name: 'in', scope: '', allow }] }, 'swift-csp')
    t.equal(found['SWIFT-2.1'].status, 'PASS')
    partial(t, found['SWIFT-2.1'].evidence.counts, { allowed: 1, potentially_blocked: 0 })
    const outside = await judge(t, { hosts, flows: flows.slice(1) }, 'swift-csp')
    t.equal(outside['SWIFT-2.1'].status, 'NOT_ASSESSED')
  })
})

t.test('enforcement', async (t) => {
  const cases: [string, HandMadeHost[], string, string][] = [
    ['all full', [server('full')], 'PASS', 'PASS'],
    ['all selective', [server('selective')], 'PASS', 'PASS'],
    ['one only reports', [server('full'), server('visibility_only', '10.0.0.2')], 'WARNING', 'WARNING'],
    ['all only report', [server('visibility_only')], 'WARNING', 'FAIL'],
    ['one is idle', [server('full'), server('idle', '10.0.0.2')], 'FAIL', 'FAIL'],
    [
      'unmanaged ones do not count',
      [server('full'), { ...server('idle', '10.0.0.2'), managed: false }],
      'PASS',
      'PASS',
    ],
    ['unmanaged only', [{ ...server('idle'), managed: false }], 'NOT_ASSESSED', 'NOT_ASSESSED'],
  ]
  const estates = cases.map(([, list]) => ({ hosts: Object.fromEntries(list.map((host, at) => [`h${at}`, host])) }))
  const all = await judgeAll(t, estates, ['general', 'nist'])
  for (const [at, [what, , stage, flow]] of cases.entries()) {
    t.equal(all[at]!['SEG-2'].status, stage, `${what}: stage`)
    t.equal(all[at]!['AC-4'].status, flow, `${what}: flow`)
  }
  const staging = { hosts: { web: { ip: '10.0.0.1', labels: 'app=payments env=staging' } } }
  const scope = { app_name: 'payments', env_name: 'staging' }
  const finding = (await judge(t, staging, 'general', scope))['SEG-2']
  t.equal(finding.status, 'PASS', 'a rollout outside production may still report only')
  partial(t, finding, {
    detail: '1 other workload not enforcing, only reporting.',
    evidence: { counts: { reporting_only: 1 }, workloads: ['web'] },
  })
  t.equal((await judge(t, staging, 'nist', scope))['AC-4'].status, 'FAIL', 'but controls no flow')
  const estate = { hosts: { ...staging.hosts, live: { ip: '10.0.0.2', labels: 'app=x env=Production' } } }
  t.equal((await judge(t, estate, 'general', {}))['SEG-2'].status, 'WARNING', 'each workload by its own environment')
})

t.test('ringfence', async (t) => {
  const hosts = PAIR('full')
  const active = async (
    t: Test,
    ruleSets: HandMadeRuleSet[],
    args: object = PAYMENTS,
    more: HandMadeEstate['hosts'] = {},
  ) => (await judge(t, { hosts: { ...hosts, ...more }, ruleSets, labels: ['app=pay'] }, 'cis', args))['CIS-12']
  t.equal((await active(t, [RINGFENCE])).status, 'PASS')
  const refused: [string, HandMadeRuleSet[], RegExp][] = [
    ['none', [], /"RF-payments0-prod": missing/],
    ['a longer name', [{ ...RINGFENCE, name: 'RF-payments-prod-2' }], /missing/],
    ['a shorter name', [{ ...RINGFENCE, name: 'RF-payments' }], /missing/],
    ['a wider scope', [{ ...RINGFENCE, scope: 'app=payments' }], /has a different scope/],
    ['a narrower scope', [{ ...RINGFENCE, scope: 'app=payments env=prod loc=eu' }], /has a different scope/],
    ['no rules', [{ name: 'RF-payments-prod', scope: RINGFENCE.scope }], /without an enabled rule/],
    [
      'rules that are off',
      [{ ...RINGFENCE, allow: [{ from: 'ams', to: 'ams', enabled: false }] }],
      /without an enabled rule/,
    ],
  ]
  const estates = refused.map(([, ruleSets]) => ({ hosts, ruleSets }))
  for (const [at, found] of (await judgeAll(t, estates, 'cis')).entries()) {
    const [what, , detail] = refused[at]!
    t.equal(found['CIS-12'].status, 'FAIL', what)
    partial(t, found['CIS-12'].detail, detail, what)
  }

  const bench = await start(t, { hosts })
  await bench.ok('create-ruleset', {
    name: 'RF-payments-prod',
    scopes: [['app=payments', 'env=prod']],
    rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ service: 'All Services' }] }],
  })
  const draft = byId(await bench.ok('compliance-check', PAYMENTS))['SEG-1']
  t.equal(draft.status, 'FAIL', 'a draft is not in force')
  contains(t, draft.detail, 'not provisioned')
  await bench.ok('provision-policy', {})
  t.equal(byId(await bench.ok('compliance-check', PAYMENTS))['SEG-1'].status, 'PASS', 'now it is')
  await bench.ok('update-ruleset', { name: 'RF-payments-prod', enabled: false })
  t.equal(
    byId(await bench.ok('compliance-check', PAYMENTS))['SEG-1'].status,
    'PASS',
    'a pending change is not in force either',
  )
  await bench.ok('provision-policy', {})
  const disabled = byId(await bench.ok('compliance-check', PAYMENTS))['SEG-1']
  t.equal(disabled.status, 'FAIL')
  contains(t, disabled.detail, 'disabled')

  const test = { test: { ip: '10.0.5.1', labels: 'app=payments env=test' } }
  const each = await active(t, [RINGFENCE], { app_name: 'payments' }, test)
  t.equal(each.status, 'WARNING', 'one of two environments')
  t.same(each.evidence.rule_sets, ['"RF-payments-test": missing', '"RF-payments-prod": in force'])
  const whole = await active(t, [RINGFENCE], {}, test)
  partial(t, whole, {
    status: 'INFO',
    detail: /^1 of 2 applications/,
    evidence: { counts: { rf_rule_sets: 1, ringfenced: 1 } },
  })
  t.equal((await active(t, [RINGFENCE], { env_name: 'prod' })).status, 'INFO')
  t.equal((await active(t, [], { app_name: 'pay' })).status, 'NOT_ASSESSED', 'an application without workloads')
})

t.test('label completeness and known dependencies', async (t) => {
  const full = (at: number): HandMadeHost => ({ ip: `10.0.0.${at}`, labels: 'app=payments env=prod role=web loc=eu' })
  const many = (complete: number, lacking: number) =>
    Object.fromEntries([
      ...Array.from({ length: complete }, (_, at) => [`good${at}`, full(at + 1)] as const),
      ...Array.from(
        { length: lacking },
        (_, at) => [`bad${at}`, { ip: `10.0.1.${at + 1}`, labels: 'app=payments env=prod role=db' }] as const,
      ),
    ])
  const inventory = async (hosts: HandMadeEstate['hosts'], args?: object) =>
    (await judge(t, { hosts: hosts!, labels: ['app=ghost'] }, 'iso-27001', args))['A.5.9']
  t.equal((await inventory(many(3, 0))).status, 'PASS')
  partial(t, await inventory(many(9, 1)), {
    status: 'WARNING',
    evidence: { counts: { without_loc: 1, without_role: 0 }, workloads: ['bad0'] },
  })
  partial(t, await inventory(many(8, 1)), { status: 'FAIL', evidence: { counts: { workloads: 9, incomplete: 1 } } })
  t.equal((await inventory(many(1, 0), { app_name: 'ghost' })).status, 'NOT_ASSESSED')
  const unmanaged = { ...many(1, 0), printer: { ip: '10.0.9.1', managed: false } }
  partial(
    t,
    await inventory(unmanaged, {}),
    { status: 'FAIL', evidence: { workloads: ['printer'] } },
    'machines without a VEN are assets too',
  )

  const hosts = { ...many(2, 0), crm: { ...CRM, mode: 'visibility_only' as const } }
  const known = Array.from({ length: 9 }, (_, at) => ({ from: 'crm', to: 'good0', port: 1000 + at }))
  const unknown = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ from: 'good0', to: '10.77.0.1', port: 2000 + at }))
  const all = await judgeAll(
    t,
    [
      { hosts, flows: [...known, ...unknown(1)] },
      { hosts, flows: [...known, ...unknown(2)] },
      { hosts, flows: [...known, ...unknown(10)] },
      { hosts },
      { hosts: many(1, 1) },
    ],
    'dora',
  )
  const [good, fair, poor, silent, incomplete] = all.map((found) => found['DORA-8.1'])
  t.equal(good.status, 'PASS', '90 %')
  t.equal(fair.status, 'WARNING')
  partial(t, poor, { status: 'FAIL', evidence: { counts: { rows: 19, unknown_ends: 10 } } })
  t.equal(silent.status, 'NOT_ASSESSED', 'complete labels say nothing of dependencies')
  t.equal(incomplete.status, 'FAIL', 'one demand that fails is enough')
})

t.test('immediate isolation', async (t) => {
  const emergency = { name: 'EMERGENCY-ISOLATE-payments-prod', scope: 'app=payments env=prod' }
  const override = { name: 'no way out', scope: '', override: [{ from: 'app=payments', to: 'any' }] }
  const mixed = { web: server('full'), db: server('visibility_only', '10.0.0.2') }
  const cases: [string, HandMadeEstate, string][] = [
    ['full', { hosts: PAIR('full') }, 'PASS'],
    ['selective', { hosts: PAIR('selective') }, 'PASS'],
    ['half enforced', { hosts: mixed }, 'WARNING'],
    ['half enforced, with an emergency rule set', { hosts: mixed, ruleSets: [emergency] }, 'PASS'],
    ['half enforced, with an override deny', { hosts: mixed, ruleSets: [override] }, 'PASS'],
    [
      'half enforced, with that of another application',
      { hosts: mixed, ruleSets: [{ ...override, override: [{ from: 'app=crm', to: 'any' }] }] },
      'WARNING',
    ],
    [
      'half enforced, with one scoped to another application',
      { hosts: mixed, ruleSets: [{ ...override, scope: 'app=crm', override: [{ from: 'ams', to: 'any' }] }] },
      'WARNING',
    ],
    [
      'half enforced, with one that is off',
      { hosts: mixed, ruleSets: [{ ...override, override: [{ from: 'app=payments', to: 'any', enabled: false }] }] },
      'WARNING',
    ],
    [
      'half enforced, with a plain deny',
      { hosts: mixed, ruleSets: [{ name: 'deny', scope: '', deny: [{ from: 'any', to: 'ams', extra: true }] }] },
      'WARNING',
    ],
    [
      'half enforced, with an emergency rule set of a longer name',
      { hosts: mixed, ruleSets: [{ ...emergency, name: `${emergency.name}-2` }] },
      'WARNING',
    ],
    ['prepared, but nothing enforces', { hosts: PAIR('visibility_only'), ruleSets: [emergency] }, 'WARNING'],
    ['neither', { hosts: PAIR('visibility_only') }, 'FAIL'],
    ['no managed workload', { hosts: { web: { ...server('full'), managed: false } } }, 'NOT_ASSESSED'],
  ]
  const all = await judgeAll(
    t,
    cases.map(([, parts]) => parts),
    'dora',
  )
  for (const [at, [what, , status]] of cases.entries()) {
    const finding = all[at]!['DORA-9.3']
    t.equal(finding.status, status, `${what}: ${finding.detail}`)
    t.equal(typeof finding.evidence.counts.enforcing, 'number', `${what}: evidence`)
  }
  const estate = await judge(t, { hosts: mixed, ruleSets: [emergency] }, 'dora', {})
  t.equal(estate['DORA-9.3'].status, 'WARNING', 'what is prepared for one application does not isolate an estate')
})

t.test('least privilege', async (t) => {
  const hosts = { ...PAIR('full'), crm: CRM }
  const rules = (...allow: NonNullable<HandMadeRuleSet['allow']>) => [
    { name: 'r', scope: 'app=payments env=prod', allow },
  ]
  const cases: [string, HandMadeRuleSet[], string][] = [
    ['everything from anybody', rules({ from: 'any', to: 'ams', extra: true }), 'FAIL'],
    [
      'every port from anybody',
      rules({ from: 'any', to: 'ams', services: [{ port: 0, to_port: 65535, proto: 6 }] }),
      'FAIL',
    ],
    ['everything from a list that covers all', rules({ from: 'iplist:Internet', to: 'ams' }), 'FAIL'],
    ['a service from anybody', rules({ from: 'any', to: 'ams', services: tcp(443) }), 'WARNING'],
    ['everything from all workloads', rules({ from: 'ams', to: 'ams', extra: true }), 'WARNING'],
    [
      'everything from all workloads, outside any scope',
      [{ name: 'r', scope: '', allow: [{ from: 'ams', to: 'app=payments' }] }],
      'WARNING',
    ],
    ['a service from all workloads', rules({ from: 'ams', to: 'ams', extra: true, services: tcp(443) }), 'PASS'],
    ['everything inside the application', rules({ from: 'ams', to: 'ams' }), 'PASS'],
    ['everything from one application', rules({ from: 'app=crm env=prod', to: 'ams', extra: true }), 'PASS'],
    ['everything from an office', rules({ from: 'iplist:Office', to: 'ams' }), 'PASS'],
    ['a wide rule that is off', rules({ from: 'any', to: 'ams', enabled: false }, { from: 'ams', to: 'ams' }), 'PASS'],
    [
      'a wide rule of another application',
      [{ name: 'r', scope: 'app=crm env=prod', allow: [{ from: 'any', to: 'ams' }] }],
      'NOT_ASSESSED',
    ],
    [
      'a wide rule to another application',
      [{ name: 'r', scope: '', allow: [{ from: 'any', to: 'app=crm' }] }],
      'NOT_ASSESSED',
    ],
    ['no rules', [], 'NOT_ASSESSED'],
  ]
  const ipLists = { Internet: ['0.0.0.0/0'], Office: ['10.0.0.0/8'] }
  const estates = cases.map(([, ruleSets]) => ({ hosts, ruleSets, ipLists }))
  const all = await judgeAll(t, estates, 'pci-dss')
  for (const [at, [what, , status]] of cases.entries()) {
    const finding = all[at]!['PCI-7.1']
    t.equal(finding.status, status, `${what}: ${finding.detail}`)
    const offends = status === 'FAIL' || status === 'WARNING'
    t.equal(finding.evidence.rules?.length ?? 0, offends ? 1 : 0, `${what}: the rule by href`)
  }
})

t.test('least privilege names the rules it could not decide', async (t) => {
  const rules = [{ name: 'r', scope: 'app=payments env=prod', allow: [{ from: 'any', to: 'ams', services: tcp(443) }] }]
  const bench = await start(t, { hosts: PAIR('full'), ruleSets: rules })
  const { href } = await bench.pce.services.create({ name: 'nginx', windows_services: [{ process_name: 'nginx.exe' }] })
  const [set] = await bench.pce.ruleSets.getAll('draft')
  await bench.pce.rules.update(set!.rules![0]!.href, { ingress_services: [{ href }] })
  await bench.pce.provisionPolicyChanges('programs', [set!.href, href])
  const finding = byId(await bench.ok('compliance-check', { framework: 'pci-dss', ...PAYMENTS }))['PCI-7.1']
  t.equal(finding.status, 'WARNING')
  t.equal(
    finding.detail,
    '1 rule opening some services to any address. 1 rule undecided because of rules for certain processes.',
  )
})

t.test('audit trail and monitored workloads', async (t) => {
  const bench = await start(t, { hosts: PAIR('full'), flows: [INSIDE] })
  const finding = async (framework: string, id: string) =>
    byId(await bench.ok('compliance-check', { framework, ...PAYMENTS }))[id]
  for (const [framework, id] of [
    ['swift-csp', 'SWIFT-6.4'],
    ['hipaa', '164.312(b)'],
    ['nist', 'SI-4'],
    ['dora', 'DORA-10.1'],
  ] as const) {
    const empty = await finding(framework, id)
    t.equal(empty.status, 'WARNING', `${id}: no event`)
    partial(t, empty.evidence.counts, { events: 0, syslog_destinations: 1, remote_destinations: 0 })
  }
  await bench.ok('create-label', { key: 'role', value: 'new' })
  await bench.fails('create-label', { key: 'role', value: 'new' }, 'already_exists')
  for (const [framework, id] of [
    ['swift-csp', 'SWIFT-6.4'],
    ['hipaa', '164.312(b)'],
    ['nist', 'SI-4'],
    ['dora', 'DORA-10.1'],
  ] as const)
    partial(t, await finding(framework, id), { status: 'PASS', evidence: { counts: { events: 1 } } }, id)
  bench.advance(40 * 86_400_000)
  t.equal((await finding('swift-csp', 'SWIFT-6.4')).status, 'WARNING', 'an event before the window is not of it')

  const offline = { web: server('full'), db: { ...server('full', '10.0.0.2'), online: false } }
  const watched = async (hosts: HandMadeEstate['hosts'], change = (_estate: ReturnType<typeof handMade>) => {}) => {
    const estate = handMade({ hosts: hosts!, flows: [] })
    change(estate)
    const one = await startBench(t, { estate })
    await one.ok('create-label', { key: 'role', value: 'new' })
    return byId(await one.ok('compliance-check', { framework: 'nist', ...PAYMENTS }))['SI-4']
  }
  partial(t, await watched(offline), { status: 'WARNING', evidence: { counts: { offline: 1 }, workloads: ['db'] } })
  t.equal((await watched({ db: offline.db })).status, 'FAIL')
  partial(
    t,
    await watched(PAIR('full'), ({ workloads }) => Object.assign(workloads[0]!, { visibility_level: 'flow_off' })),
    { status: 'WARNING', evidence: { counts: { not_reporting_flows: 1 }, workloads: ['web'] } },
  )
  t.equal(
    (await watched({ web: { ...server('full'), managed: false } })).status,
    'NOT_ASSESSED',
    'events alone do not watch machines',
  )
})

t.test('vulnerability scans', async (t) => {
  const bench = await start(t, { hosts: PAIR('full') })
  const scan = (id: string, body: object) =>
    bench.pce.put(`/orgs/1/vulnerability_reports/${id}`, {
      includeOrg: false,
      json: { name: id, report_type: 'qualys', ...body },
    })
  const pci = async () => byId(await bench.ok('compliance-check', { framework: 'pci-dss', ...PAYMENTS }))['PCI-6.1']
  const dora = async () => byId(await bench.ok('compliance-check', { framework: 'dora', ...PAYMENTS }))['DORA-25.1']
  t.equal((await pci()).status, 'NOT_ASSESSED')
  partial(t, await pci(), { detail: /no vulnerability report/ })
  t.equal((await dora()).status, 'NOT_ASSESSED')
  await scan('old', { exported_at: '2026-01-01T00:00:00Z', scanned_ips: ['10.0.0.1', '10.0.0.2'] })
  t.equal((await pci()).status, 'WARNING', 'long ago')
  partial(t, await dora(), { status: 'INFO', evidence: { counts: { reports: 1, recent_reports: 0 } } })
  await scan('vague', { exported_at: '2026-06-10T00:00:00Z' })
  t.equal((await pci()).status, 'INFO', 'of what, it does not say')
  await scan('other', { exported_at: '2026-06-10T00:00:00Z', scanned_ips: ['10.0.0.11'] })
  partial(t, await pci(), { status: 'FAIL', evidence: { counts: { not_scanned: 2 } } }, 'other machines')
  await scan('half', { exported_at: '2026-06-10T00:00:00Z', scanned_ips: ['10.0.0.1'] })
  partial(t, await pci(), { status: 'WARNING', evidence: { workloads: ['db'] } })
  await scan('rest', { exported_at: '2026-06-11T00:00:00Z', scanned_ips: ['10.0.0.2'] })
  t.equal((await pci()).status, 'PASS')
  t.equal((await dora()).status, 'INFO', 'a scan is one test of many')
})

t.test('a control with several requirements', async (t) => {
  const hosts = { ...PAIR('full'), crm: CRM }
  const risky = { from: '10.9.9.9', to: 'web', port: 22 }
  const cis = await judge(
    t,
    { hosts: { ...hosts, web: { ...server('full'), online: false } }, flows: [risky], ruleSets: [OPEN] },
    'cis',
  )
  partial(t, cis['CIS-13'], {
    status: 'FAIL',
    detail: /WARNING: 1 workload.*FAIL: 1 row/,
    evidence: { workloads: ['web'], counts: { offline: 1, allowed_from_unlabelled: 1 } },
  })
  t.match(cis['CIS-13'].looked_at, /report their flows.*inbound traffic on TCP/)
  const zone = await judge(t, { hosts, flows: [{ from: 'crm', to: 'web' }], ruleSets: [RINGFENCE, OPEN] }, 'swift-csp')
  t.equal(zone['SWIFT-1.1'].status, 'PASS')
  const unfenced = await judge(t, { hosts, flows: [{ from: 'crm', to: 'web' }], ruleSets: [OPEN] }, 'swift-csp')
  t.equal(unfenced['SWIFT-1.1'].status, 'FAIL', 'no ringfence')
  const entered = await judge(t, { hosts, flows: [risky], ruleSets: [RINGFENCE, OPEN] }, 'swift-csp')
  t.equal(entered['SWIFT-1.1'].status, 'FAIL', 'a ringfence, and a stranger inside')
  t.equal(
    (await judge(t, { hosts, ruleSets: [RINGFENCE] }, 'swift-csp'))['SWIFT-1.1'].status,
    'NOT_ASSESSED',
    'no traffic, no pass',
  )
  t.equal(zone['SWIFT-5.1'].status, 'FAIL', 'a rule too wide')
  const narrow = { name: 'in', scope: '', allow: [{ from: 'app=crm', to: 'app=payments', services: tcp(443, 22) }] }
  t.equal(
    (await judge(t, { hosts, flows: [{ from: 'crm', to: 'web' }], ruleSets: [narrow] }, 'swift-csp'))['SWIFT-5.1']
      .status,
    'PASS',
  )
  t.equal(
    (await judge(t, { hosts, flows: [{ from: 'crm', to: 'web', port: 22 }], ruleSets: [narrow] }, 'swift-csp'))[
      'SWIFT-5.1'
    ].status,
    'WARNING',
  )
})

t.test('the score counts what was judged and gives its formula', async (t) => {
  partial(t, scoreVerdicts(['PASS', 'PASS', 'WARNING', 'INFO', 'NOT_ASSESSED']), {
    compliance_score: 66.7,
    summary: { total_checks: 5, passed: 2, failed: 0, warnings: 1, info: 1, not_assessed: 1 },
  })
  t.equal(scoreVerdicts(['INFO', 'NOT_ASSESSED']).compliance_score, null)
  const bands = [
    [10, 0],
    [9, 1],
    [8, 2],
    [7, 3],
    [6, 4],
    [4, 6],
    [3, 7],
    [0, 1],
  ].map(
    ([passed, failed]) =>
      scoreVerdicts([...Array<'PASS'>(passed!).fill('PASS'), ...Array<'FAIL'>(failed!).fill('FAIL')]).recommendation,
  )
  t.same(
    bands.map((text) => bands.indexOf(text)),
    [0, 0, 2, 2, 4, 4, 6, 6],
    'bands from 90, 70, 40 and 0',
  )
  const advice = (...judged: Parameters<typeof scoreVerdicts>[0]) => scoreVerdicts(judged).recommendation
  t.match(advice('PASS', 'PASS'), /^Largely compliant (?!.*could be judged)/)
  t.match(advice('PASS', 'NOT_ASSESSED'), /^Largely compliant .* Only 1 of 2 checks could be judged\.$/)
  t.match(advice('FAIL', 'WARNING', 'INFO'), /^Serious gaps.* Only 2 of 3 checks could be judged\.$/)
  const few = /^Only 1 of 3 checks could be judged, too few/
  for (const one of ['PASS', 'FAIL', 'WARNING'] as const) {
    partial(t, advice(one, 'NOT_ASSESSED', 'INFO'), few)
    t.notMatch(advice(one, 'NOT_ASSESSED', 'INFO'), /compliant as|gaps:/i, 'no band')
  }
  t.match(advice('NOT_ASSESSED', 'INFO'), /^None of 2 checks could be judged/)

  const answer = await (await start(t, { hosts: PAIR('full') })).ok('compliance-check', PAYMENTS)
  partial(t, answer, {
    framework: 'General segmentation',
    scope: { app: 'payments', env: 'prod', lookback_days: 30 },
    compliance_score: 50,
    summary: { total_checks: 4, passed: 1, failed: 1, warnings: 0, info: 0, not_assessed: 2 },
    workloads_analyzed: 2,
    enforcement_modes: { full: 2 },
    window: { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' },
    flows_truncated: false,
    analysed: { rows: 0, row_limit: 200_000 },
  })
  contains(t, answer.score_formula, 'PASS / (PASS + FAIL + WARNING)')
  for (const { id, description, looked_at: looked, status, evidence } of answer.findings) {
    t.ok(description.length > 10 && looked.length > 10, `${id}: what it asks for and looked at`)
    if (['PASS', 'FAIL', 'WARNING'].includes(status)) t.ok(Object.keys(evidence.counts).length > 0, `${id}: evidence`)
  }
})

t.test('what is assessed: an application, an environment, or everything', async (t) => {
  const bench = await start(t, {
    hosts: {
      web: server('full'),
      test: { ip: '10.0.5.1', labels: 'app=payments env=test', mode: 'full' },
      pay: { ip: '10.0.6.1', labels: 'app=pay env=prod', mode: 'full' },
      stray: STRAY,
      other: { ...STRAY, ip: '10.0.2.2' },
    },
    flows: [
      { from: 'stray', to: 'other', port: 22 },
      { from: 'stray', to: 'web', port: 22, connections: 3 },
      { from: 'stray', to: 'test', port: 22 },
      { from: 'stray', to: 'pay', port: 22 },
      { from: 'test', to: 'web', port: 22 },
      { from: 'web', to: 'pay', port: 22 },
      { from: '10.9.9.9', to: '10.9.9.8', port: 22, direction: 'inbound' },
    ],
    ruleSets: [OPEN],
  })
  const ports = async (args: object) => {
    const answer = await bench.ok('compliance-check', args)
    const { 'SEG-3': risk, 'SEG-4': coverage } = byId(answer)
    const { counts } = risk.evidence
    return {
      ...answer.scope,
      rows: answer.analysed.rows,
      of: answer.workloads_analyzed,
      unlabelled: counts.allowed_from_unlabelled,
      others: counts.allowed_from_other_applications,
      crossing: coverage.evidence.counts.allowed,
    }
  }
  const scope = (app: string, env: string) => ({ app, env, lookback_days: 30 })
  t.same(await ports(PAYMENTS), { ...scope('payments', 'prod'), rows: 3, of: 1, unlabelled: 1, others: 1, crossing: 3 })
  t.same(
    await ports({ app_name: 'app=payments' }),
    { ...scope('payments', 'all'), rows: 4, of: 2, unlabelled: 2, others: 1, crossing: 4 },
    'the row between its environments comes in both answers and counts once',
  )
  t.same(await ports({ env_name: 'prod' }), {
    ...scope('all', 'prod'),
    rows: 4,
    of: 2,
    unlabelled: 2,
    others: 2,
    crossing: 4,
  })
  t.same(
    await ports({ app_name: 'pay' }),
    { ...scope('pay', 'all'), rows: 2, of: 1, unlabelled: 1, others: 1, crossing: 2 },
    'not payments',
  )
  t.same(
    await ports({}),
    { ...scope('all', 'all'), rows: 7, of: 5, unlabelled: 4, others: 2, crossing: 6 },
    'two unlabelled hosts are not one application; what concerns no workload is no risk of it',
  )
  const queries = bench.simulator.requests.filter(
    ({ method, path }) => method === 'POST' && path.endsWith('/async_queries'),
  )
  t.equal(queries.length, 2 + 2 + 2 + 2 + 1, 'inbound and outbound, or one for everything')
})

t.test('judges nothing for labels that nothing has', async (t) => {
  const bench = await start(t, {
    hosts: { web: server('full'), crm: CRM },
    flows: [{ from: 'crm', to: 'web' }],
    labels: ['app=ghost', 'env=limbo'],
  })
  await bench.ok('create-label', { key: 'role', value: 'to-leave-an-event' })
  t.equal(byId(await bench.ok('compliance-check', { framework: 'hipaa' }))['164.312(b)'].status, 'PASS', 'an event')
  const none = async (args: object, detail: string, workloads: number | null = 0) => {
    for (const framework of Object.keys(FRAMEWORKS)) {
      const answer = await bench.ok('compliance-check', { framework, ...args })
      const all = answer.findings.length
      partial(t, answer, {
        compliance_score: null,
        summary: { total_checks: all, passed: 0, failed: 0, warnings: 0, info: 0, not_assessed: all },
        workloads_analyzed: workloads,
        recommendation: /^None of \d checks could be judged/,
      })
      for (const finding of answer.findings) {
        partial(t, finding, { status: 'NOT_ASSESSED', detail })
        t.ok(finding.looked_at.length > 10)
      }
    }
  }
  const rest = 'and there is no traffic in the window.'
  await none({ app_name: 'ghost' }, `Nothing is known about "app=ghost": no workload has this label, ${rest}`)
  await none({ env_name: 'limbo' }, `Nothing is known about "env=limbo": no workload has this label, ${rest}`)
  const both = { app_name: 'payments', env_name: 'limbo' }
  await none(both, `Nothing is known about "app=payments" and "env=limbo": no workload has these labels, ${rest}`)
  bench.simulator.faults.add({ kind: 'status', status: 403, path: '/orgs/1/workloads', times: 99 })
  await none(
    { app_name: 'ghost' },
    `Nothing is known about "app=ghost": the workloads could not be read, ${rest}`,
    null,
  )
  const traffic = byId(await bench.ok('compliance-check', PAYMENTS))
  t.not(traffic['SEG-3'].status, 'NOT_ASSESSED', 'traffic alone is something to judge')
  bench.simulator.faults.clear()

  const quiet = await start(t, { hosts: { web: server('full') } })
  t.equal(byId(await quiet.ok('compliance-check', PAYMENTS))['SEG-2'].status, 'PASS', 'so is a workload alone')
  await bench.ok('create-label', { key: 'role', value: 'another' })
  const empty = await start(t, { labels: ['app=ghost'] })
  await empty.ok('create-label', { key: 'role', value: 'to-leave-an-event' })
  const estate = byId(await empty.ok('compliance-check', { framework: 'hipaa' }))
  t.equal(estate['164.312(b)'].status, 'PASS', 'an empty estate still keeps its events')
})

t.test('a row in both answers counts once, even without labels', async (t) => {
  const query = '/orgs/1/traffic_flows/async_queries/q1'
  const label = (key: string, value: string) => ({ href: `/orgs/1/labels/${value}`, key, value })
  const labels = [label('app', 'payments'), label('env', 'prod')]
  const web = { ip: '10.0.0.1', workload: { href: '/orgs/1/workloads/web', hostname: 'web', managed: true, labels } }
  // A virtual service: the PCE counts it to the application, and the row shows an address.
  const service = { ip: '10.0.9.9' }
  const row = {
    src: web,
    dst: service,
    service: { port: 443, proto: 6 },
    num_connections: 1,
    policy_decision: 'allowed',
    flow_direction: 'outbound',
  }
  const into = { ...row, src: { ip: '203.0.113.8' }, dst: web }
  const out = { ...row, dst: { ip: '203.0.113.7' } }
  let queries = 0
  const db = { ip: '10.0.0.2', workload: { ...web.workload, href: '/orgs/1/workloads/db' } }
  let answers: [inbound: Json[], outbound: Json[]] = [[row], [row, out]]
  const pce = await startServer(t, ({ method, path }): Reply => {
    if (method === 'POST') {
      queries += 1
      return { status: 202, body: { href: query, status: 'queued' } }
    }
    if (path === query)
      return { body: { href: query, status: 'completed', result: `${query}/download`, matches_count: 5 } }
    if (path.startsWith(query)) return { body: answers[(queries + 1) % 2] }
    const found = path.startsWith('/orgs/1/labels') ? labels : []
    return { body: found, headers: { 'x-total-count': String(found.length) } }
  })
  const simulator = await createPceSimulator({ workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  const bench = benchOf(t, simulator, `http://127.0.0.1:${pce.port}`)
  const once = { rows: 2, pce_flows: 2, unparseable: 0 }
  const checked = await bench.ok('compliance-check', { framework: 'nist', ...PAYMENTS })
  partial(t, checked.analysed, once)
  partial(t, byId(checked)['SC-7'].evidence.counts, { allowed: 0, potentially_blocked: 2 })
  const readiness = await bench.ok('enforcement-readiness', PAYMENTS)
  partial(t, readiness, { analysed: once, traffic_analysis: { total_flows: 2 } })
  partial(t, await bench.ok('get-policy-coverage-report', PAYMENTS), {
    analysed: once,
    total_flows: 2,
    inbound: { total_flows: 1 },
    outbound: { total_flows: 2 },
    intra: { total_flows: 1 },
  })
  t.notOk('raw_observations' in checked.analysed, 'nobody says how many of them are in both answers')
  answers = [[into], [out]]
  const apart = await bench.ok('compliance-check', { framework: 'nist', ...PAYMENTS })
  partial(t, apart.analysed, { rows: 2, pce_flows: 2, raw_observations: 10 }, 'two queries of five')
  answers = [[], [{ ...row, dst: db }]]
  partial(
    t,
    await bench.ok('get-policy-coverage-report', PAYMENTS),
    { analysed: { rows: 1 }, total_flows: 1, intra: { total_flows: 1 }, inbound: { total_flows: 1 } },
    'inside, and the answer to the first query lacks it',
  )
})

t.test('passing by default: if one end is idle, the other in selective mode decides', async (t) => {
  const judgeSides = async (web: HandMadeHost['mode'], crm: HandMadeHost['mode'] & string) => {
    const hosts = { web: server(web), crm: { ...CRM, mode: crm } }
    const bench = await start(t, { hosts, flows: [{ from: 'crm', to: 'web' }] }, AS_GUIDED)
    return byId(await bench.ok('compliance-check', PAYMENTS))['SEG-4']
  }
  partial(t, await judgeSides('idle', 'selective'), {
    status: 'FAIL',
    evidence: { counts: { allowed: 0, potentially_blocked: 1 } },
  })
  partial(t, await judgeSides('selective', 'idle'), { status: 'FAIL' })
  partial(t, await judgeSides('visibility_only', 'selective'), { evidence: { counts: { allowed: 0 } } })
})

t.test('bad arguments', async (t) => {
  const bench = await start(t, { hosts: PAIR('full'), labels: ['app=payments-old'] })
  const error = await bench.fails('compliance-check', { app_name: 'payment' }, 'not_found')
  partial(t, error, { key: 'app', value: 'payment', near_names: ['payments', 'payments-old'] })
  await bench.fails('compliance-check', { app_name: 'payments', env_name: 'Prod' }, 'not_found')
  await bench.fails('compliance-check', { env_name: 'nowhere' }, 'not_found')
  await bench.fails('compliance-check', { framework: 'sox' }, 'invalid_argument')
  await bench.fails('compliance-check', { lookback_days: 0 }, 'invalid_argument')
  await bench.fails('compliance-check', { lookback_days: 366 }, 'invalid_argument')
  await bench.fails('compliance-check', { application: 'payments' }, 'invalid_argument')
})

t.test('facts the PCE refuses affect only the checks that need them', async (t) => {
  const bench = await start(t, {
    hosts: { ...PAIR('full'), crm: CRM },
    flows: [{ from: 'crm', to: 'web' }],
    ruleSets: [RINGFENCE, { name: 'in', scope: '', allow: [{ from: 'app=crm', to: 'app=payments' }] }],
  })
  await bench.ok('create-label', { key: 'role', value: 'to-leave-an-event' })
  const without = async (framework: string, path: string | RegExp) => {
    bench.simulator.faults.clear()
    bench.simulator.faults.add({ kind: 'status', status: 403, path, times: 99 })
    const answer = await bench.ok('compliance-check', { framework, ...PAYMENTS })
    bench.simulator.faults.clear()
    return { answer, found: byId(answer) }
  }
  const { found: events } = await without('swift-csp', '/orgs/1/events')
  partial(t, events['SWIFT-6.4'], { status: 'NOT_ASSESSED', detail: /events could not be read \(.*403/ })
  t.equal(events['SWIFT-6.4'].evidence, undefined)
  t.equal(events['SWIFT-2.1'].status, 'PASS')
  const { found: syslog } = await without('swift-csp', '/orgs/1/settings')
  partial(t, syslog['SWIFT-6.4'], { status: 'PASS', detail: /could not be read/ }, 'events without their destinations')
  t.equal(syslog['SWIFT-6.4'].evidence.counts.retention_days, undefined)
  const { found: policy } = await without('general', /sec_policy\/active\/rule_sets/)
  t.same(statuses(policy), {
    'SEG-1': 'NOT_ASSESSED',
    'SEG-2': 'PASS',
    'SEG-3': 'NOT_ASSESSED',
    'SEG-4': 'NOT_ASSESSED',
  })
  const { found: workloads, answer } = await without('general', '/orgs/1/workloads')
  t.same(statuses(workloads), {
    'SEG-1': 'NOT_ASSESSED',
    'SEG-2': 'NOT_ASSESSED',
    'SEG-3': 'PASS',
    'SEG-4': 'NOT_ASSESSED',
  })
  partial(t, answer, { workloads_analyzed: null, enforcement_modes: {}, compliance_score: 100 })
  const { found: lists } = await without('pci-dss', /ip_lists/)
  t.equal(lists['PCI-1.4'].status, 'NOT_ASSESSED')
  t.equal(lists['PCI-2.1'].status, 'NOT_ASSESSED', 'rules name lists')
  const { found: scans } = await without('pci-dss', '/orgs/1/vulnerability_reports')
  partial(t, scans['PCI-6.1'], { status: 'NOT_ASSESSED', detail: /403/ })

  bench.simulator.faults.add({ kind: 'status', status: 403, path: '/orgs/1/traffic_flows', times: 99 })
  const error = await bench.fails('compliance-check', PAYMENTS, 'pce_error')
  t.equal(error.http_status, 403, 'without traffic there is no answer')
  bench.simulator.faults.clear()
  bench.simulator.faults.add({ kind: 'job-failed', path: '/orgs/1/traffic_flows/async_queries', times: 1 })
  await bench.fails('compliance-check', PAYMENTS, 'traffic_query_failed')
})

t.test('cleans PCE text and stays within the budget', async (t) => {
  const names = Array.from({ length: 30 }, (_, at) => `host${at}-${'x'.repeat(200)}\u200b`)
  const hosts = Object.fromEntries(
    names.map((name, at) => [name, { ip: `10.0.2.${at + 1}`, mode: 'visibility_only' as const }]),
  )
  const estate = handMade({
    hosts: { ...hosts, web: server('full') },
    flows: names.map((from, at) => ({ from, to: 'web', port: 22, connections: at + 1 })),
    ruleSets: [OPEN],
  })
  const bench = await startBench(t, { estate, budget: 6_000 })
  const answer = await bench.ok('compliance-check', { framework: 'dora', ...PAYMENTS })
  t.ok(JSON.stringify(answer).length <= 6_000, `${JSON.stringify(answer).length} bytes`)
  t.equal(answer.evidence_limit, 2)
  const { evidence } = byId(answer)['DORA-9.2']
  t.equal(evidence.flows.length, 2)
  t.equal(evidence.counts.allowed_from_unlabelled, 30, 'counts are of everything')
  t.notMatch(JSON.stringify(answer), '\u200b')
})

t.test('no PASS while the row limit left traffic out', async (t) => {
  const query = '/orgs/1/traffic_flows/async_queries/q1'
  const end = (app: string) => ({ ip: '10.0.0.1', workload: { href: `/orgs/1/workloads/${app}`, labels: [] } })
  const row = {
    src: end('a'),
    dst: end('b'),
    service: { port: 443, proto: 6 },
    num_connections: 1,
    policy_decision: 'allowed',
  }
  const rows = Array<typeof row>(200_000).fill(row)
  const server = await startServer(t, ({ method, path }): Reply => {
    if (method === 'POST') return { status: 202, body: { href: query, status: 'queued' } }
    if (path === query) return { body: { href: query, status: 'completed', result: `${query}/download` } }
    if (path.startsWith(query)) return { body: rows }
    return { body: [], headers: { 'x-total-count': '0' } }
  })
  const simulator = await createPceSimulator({ workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  const answer = await benchOf(t, simulator, `http://127.0.0.1:${server.port}`).ok('compliance-check', {})
  partial(t, answer, { flows_truncated: true, analysed: { rows: 200_000 } })
  partial(t, byId(answer)['SEG-3'], { status: 'INFO', detail: /row limit/ })
})
