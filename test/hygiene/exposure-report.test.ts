/** exposure-report: what the PCE says, what it does not say, and how risky services are reached by policy of today. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeFlow, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'
import type { Estate } from '../../pce-simulator/model.js'

const TOOL = 'exposure-report'
const HOSTS: Record<string, HandMadeHost> = {
  web: { ip: '10.0.0.1', labels: 'app=web env=prod' },
  pay: { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' },
  crm: { ip: '10.0.0.3', labels: 'app=crm env=prod', mode: 'selective' },
  lab: { ip: '10.0.0.4', labels: 'app=lab env=prod', mode: 'idle' },
}
const SERVICES = {
  SMB: { service_ports: [{ port: 445, proto: 6 }] },
  RDP: { service_ports: [{ port: 3389, proto: 6 }] },
  WinRM: { service_ports: [{ port: 5985, to_port: 5986, proto: 6 }] },
  Web: { service_ports: [{ port: 443, proto: 6 }] },
}
const RATED: Record<string, object> = {
  SMB: { category: 'legacy', severity: 'high', os_platforms: ['windows'] },
  RDP: { category: 'admin', severity: 'critical', os_platforms: ['windows'], average_protection_percent: 40 },
  WinRM: { category: 'admin', severity: 'medium', os_platforms: ['windows'] },
}
const FLOWS: HandMadeFlow[] = [
  { from: 'web', to: 'crm', port: 445, connections: 5 },
  { from: 'crm', to: 'web', port: 445, connections: 7 },
  { from: 'web', to: 'pay', port: 445, connections: 3, recorded: 'allowed' },
  { from: 'web', to: 'pay', port: 3389, connections: 2 },
  { from: 'web', to: '203.0.113.9', port: 3389, connections: 4 },
  { from: 'lab', to: 'lab', port: 445, connections: 1 },
  { from: 'web', to: 'crm', port: 443, connections: 90 },
]
const RULES = [
  {
    name: 'pay',
    scope: 'app=pay env=prod',
    allow: [
      { from: 'app=web', to: 'ams', extra: true, services: ['RDP'] },
      { from: 'app=crm', to: 'ams', extra: true, services: [{ port: 5986, to_port: 6000, proto: 6 }] },
    ],
  },
]
const rated = (severity: string, percent: number) => ({
  ransomware: {
    workload_exposure_severity: severity,
    ransomware_protection_percent: percent,
    last_updated_at: '2026-06-14T00:00:00Z',
  },
})
const RISKS: Record<string, object> = {
  web: rated('critical', 10),
  pay: rated('fully_protected', 100),
  crm: rated('high', 50),
}
const score = (present: number, full: number) => ({
  num_vulnerabilities: 3,
  max_vulnerability_score: 98,
  vulnerability_exposure_score: present,
  vulnerable_port_wide_exposure: { any: true, ip_list: false },
  current_enforcement_vulnerability_exposure: { vulnerability_exposure_score: present },
  full_enforcement_vulnerability_exposure: { vulnerability_exposure_score: full },
})

/** The estate, with what a PCE of this licence says about risks: all, or nothing. */
const estate = (licensed: boolean): Estate => {
  const made = handMade({ hosts: HOSTS, services: SERVICES, flows: FLOWS, ruleSets: RULES })
  if (!licensed) return made
  return {
    ...made,
    workloads: made.workloads.map((one) => ({
      ...one,
      risk_summary: RISKS[String(one.name)] ?? { ransomware: null },
      vulnerabilities_summary: one.name === 'web' ? score(70, 0) : one.name === 'pay' ? score(0, 0) : null,
    })),
    services: (made.services ?? []).map((one) => ({
      ...one,
      risk_details: { ransomware: RATED[one.name] ?? null },
    })),
  } as Estate
}
const start = (t: Test, licensed = true): Promise<Bench> => startBench(t, { estate: estate(licensed) })
const refuse = (bench: Bench, path: string, status: number) =>
  bench.simulator.faults.add({ kind: 'status', path, status, times: 100 })
const missing = ({ not_known }: Json): string[] =>
  not_known.map(({ what, is, http_status: status }: Json) => [what, is, ...(status ? [status] : [])].join(' '))

t.test('what the PCE says, and how risky services are reached', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(TOOL)
  t.same(missing(answer), ['vulnerability_reports not_computed'])
  t.same(answer.ransomware.workloads_by_exposure, { critical: 1, high: 1, medium: 0, low: 0, fully_protected: 1 })
  t.same(answer.workloads, { total: 4, by_severity: { critical: 1, fully_protected: 1, high: 1 }, not_computed: 1 })
  t.same(answer.app_group_counts, { total: 4, not_computed: 1, critical: 1, high: 1, fully_protected: 1 })
  t.same(
    answer.app_groups.map((one: Json) => [one.name, one.severity, one.protection_percent, one.details ?? null]),
    [
      ['web | prod', 'critical', 10, { ransomware: { num_rated: 1 } }],
      ['crm | prod', 'high', 50, { ransomware: { num_rated: 1 } }],
      ['pay | prod', 'fully_protected', 100, null],
    ],
  )
  t.same(answer.vulnerabilities, { exposed_workloads: 1, reports: 0 })
  t.same(answer.vulnerable_workloads, [
    { name: 'web', score: 70, score_in_full: 0, vulnerabilities: 3, worst: 98, open_to_any: true },
  ])
  t.same(
    answer.services.map(({ ports: _ports, category: _category, ...one }: Json) => one),
    [
      {
        service: 'RDP',
        severity: 'critical',
        pce_protection_percent: 40,
        connections: { by_rule: 2, by_mode: 4 },
        would_protect: { change_rules: 2, enforce_source: 4 },
        allow_rules: 1,
      },
      {
        service: 'SMB',
        severity: 'high',
        connections: { by_mode: 12, not_enforced: 1, stopped: 3 },
        would_protect: { deny_rule: 5, enforce_destination: 8 },
        allow_rules: 0,
      },
      { service: 'WinRM', severity: 'medium', connections: {}, allow_rules: 1 },
    ],
  )
  t.same(answer.open_rules, [
    {
      services: ['RDP'],
      rule_set: 'pay',
      href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1',
      rule: 'app=web to all workloads, RDP',
    },
    {
      services: ['WinRM'],
      rule_set: 'pay',
      href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/2',
      rule: 'app=crm to all workloads, 5986-6000/tcp',
    },
  ])
  t.equal(answer.open_rules_total, 2)
  const ports = [5987, 5988, 5989, 5990, 5991, 5992].map((port) => `${port}/tcp`)
  const more = await bench.ok(TOOL, { services: ports, sections: ['open_rules'] })
  t.same(
    more.open_rules.map(({ services, services_total: total }: Json) => [services, total]),
    [
      [['RDP'], undefined],
      [['WinRM', ...ports.slice(0, 4)], 7],
    ],
    'a rule for many services names the first',
  )
  t.same(answer.connections, { by_rule: 2, by_mode: 16, not_enforced: 1, undecided: 0, stopped: 3 })
  t.same(
    answer.reached.map(({ from, to, ports, connections, by, would_protect: remedy }: Json) =>
      [from, to, ports.join(' '), connections, by, remedy].join(' '),
    ),
    [
      'crm (prod) web (prod) 445/tcp 7 by_mode enforce_destination',
      'web (prod) crm (prod) 445/tcp 5 by_mode deny_rule',
      'web (prod) 203.0.113.9 (Any (0.0.0.0/0 and ::/0)) 3389/tcp 4 by_mode enforce_source',
      'web (prod) pay (prod) 3389/tcp 2 by_rule change_rules',
      'lab lab 445/tcp 1 not_enforced enforce_destination',
    ],
  )
  t.same(
    answer.destinations.map(({ to, sources, connections, would_protect: remedy }: Json) => [
      to,
      sources,
      connections,
      remedy,
    ]),
    [
      ['web (prod)', 1, 7, { enforce_destination: 7 }],
      ['crm (prod)', 1, 5, { deny_rule: 5 }],
      ['203.0.113.9 (Any (0.0.0.0/0 and ::/0))', 1, 4, { enforce_source: 4 }],
      ['pay (prod)', 1, 2, { change_rules: 2 }],
      ['lab', 1, 1, { enforce_destination: 1 }],
    ],
  )
  t.equal(answer.destinations_total, 5)
  const enforce = await bench.ok(TOOL, { would_protect: 'enforce_destination' })
  t.same(
    enforce.reached.map(({ to }: Json) => to),
    ['web (prod)', 'lab'],
  )
  t.same([enforce.reached_total, enforce.destinations_total, enforce.connections], [2, 2, answer.connections])
  t.same(answer.recorded_otherwise, { allowed_without_rule: 3, stopped_despite_rule: 0 })
  t.equal(
    answer.summary,
    'The PCE counts 1 of 4 workloads as protected from ransomware (coverage 53 %). 1 workload with vulnerabilities can be reached. Of 3 risky services, 2 were reached in observed traffic: 19 connections pass, 3 are stopped by policy, of 0 it is undecided. What would stop them: 5 by a deny rule today, 8 by enforcing the destination, 4 by enforcing the source, 2 only by changing the allow rules that let it in, or by an override deny rule. Not known from this PCE: vulnerability_reports.',
  )
})

/** The pairs that reach risky services in an estate where every workload may use them, with what would stop them. */
const remediesOf = async (t: Test, hosts: Record<string, HandMadeHost>, pairs: [from: string, to: string][]) => {
  const flows = pairs.map(([from, to], at) => ({ from, to, port: 445, connections: 9 - at }))
  const open = {
    name: 'open',
    scope: '',
    allow: ['ams', 'any'].map((from) => ({ from, to: 'ams', services: ['SMB'] })),
  }
  const { ok } = await startBench(t, { estate: handMade({ hosts, services: SERVICES, flows, ruleSets: [open] }) })
  const answer = await ok(TOOL, { services: ['SMB'] })
  return {
    answer,
    remedies: answer.reached.map(({ from, to, connections, by, would_protect: remedy }: Json) =>
      [from, to, connections, by, remedy].join(' '),
    ),
  }
}
const host = (at: number, name: string, more: Partial<HandMadeHost> = {}): HandMadeHost => ({
  ip: `10.0.0.${at}`,
  labels: `app=${name}`,
  ...more,
})

t.test('where no end drops anything, changing the allow rules is not called enough', async (t) => {
  const hosts = {
    vis: host(1, 'vis'),
    idle: host(2, 'idle', { mode: 'idle' }),
    sel: host(3, 'sel', { mode: 'selective' }),
    full: host(4, 'full', { mode: 'full' }),
  }
  const { answer, remedies } = await remediesOf(t, hosts, [
    ['vis', 'idle'],
    ['idle', 'vis'],
    ['idle', 'idle'],
    ['vis', 'sel'],
    ['vis', 'full'],
    ['full', 'vis'],
    ['203.0.113.9', 'vis'],
  ])
  t.same(remedies, [
    'vis idle 9 by_rule change_rules_and_enforce',
    'idle vis 8 by_rule change_rules_and_enforce',
    'idle idle 7 not_enforced change_rules_and_enforce',
    'vis sel 6 by_rule change_rules',
    'vis full 5 by_rule change_rules',
    'full vis 4 by_rule change_rules',
    '203.0.113.9 (Any (0.0.0.0/0 and ::/0)) vis 3 by_rule change_rules_and_enforce',
  ])
  t.same(answer.would_protect, { change_rules: 15, change_rules_and_enforce: 27 })
  t.match(
    answer.summary,
    /: 15 only by changing the allow rules that let it in, or by an override deny rule, 27 only by changing those rules or an override deny rule, and by enforcing an end too\. /,
  )
})

t.test('a PCE that computes nothing is not called safe', async (t) => {
  const bench = await start(t, false)
  const answer = await bench.ok(TOOL)
  t.same(missing(answer), [
    'risk_summary not_computed',
    'app_group_risk not_computed',
    'workload_risk not_computed',
    'risky_services not_computed',
    'vulnerability_reports not_computed',
    'vulnerability_exposure not_computed',
  ])
  t.same([answer.ransomware, answer.services, answer.connections], [null, undefined, undefined])
  t.same(answer.vulnerabilities, { reports: 0 }, 'no "0 exposed" where no scan is known')
  t.equal(
    answer.summary,
    'No service was held against traffic: the PCE rates none as a risk, and none was named. Next: services ["22/tcp","23/tcp","135/tcp","139/tcp","445/tcp","3389/tcp","5985/tcp","5986/tcp"]. Not known from this PCE: risk_summary, app_group_risk, workload_risk, risky_services, vulnerability_reports, vulnerability_exposure.',
  )
  const named = await bench.ok(TOOL, { services: ['SMB', { port: 3389, proto: 'tcp' }] })
  t.same(
    named.services.map(({ service, severity, connections }: Json) => [service, severity, connections]),
    [
      ['SMB', undefined, { by_mode: 12, not_enforced: 1, stopped: 3 }],
      ['3389/tcp', undefined, { by_rule: 2, by_mode: 4 }],
    ],
    'named services are held against traffic all the same',
  )
})

t.test('each refusal of the PCE is named with its meaning, and the rest is answered', async (t) => {
  for (const [path, status, what] of [
    ['/orgs/1/reports/risk_summary', 404, 'risk_summary'],
    ['/orgs/1/app_groups/risk_summary', 403, 'app_group_risk'],
    ['/orgs/1/vulnerability_reports', 406, 'vulnerability_reports'],
  ] as const) {
    const bench = await start(t)
    refuse(bench, path, status)
    const answer = await bench.ok(TOOL)
    t.ok(missing(answer).includes(`${what} refused ${status}`), `${path}: ${missing(answer).join(', ')}`)
    t.same(answer.connections, { by_rule: 2, by_mode: 16, not_enforced: 1, undecided: 0, stopped: 3 })
    t.ok(answer.summary.includes(what))
  }
})

t.test('ports are read as answers show them, unless a service has that name', async (t) => {
  const bench = await start(t, false)
  const services = ['445/tcp', 'tcp/3389', '5985-5986/TCP']
  const named = async () =>
    (await bench.ok(TOOL, { services })).services.map((one: Json) => [one.service, one.ports, one.connections])
  const [rdp, winrm] = [
    ['3389/tcp', '3389/tcp', { by_rule: 2, by_mode: 4 }],
    ['5985-5986/tcp', '5985-5986/tcp', {}],
  ]
  const smb = { by_mode: 12, not_enforced: 1, stopped: 3 }
  t.same(await named(), [['445/tcp', '445/tcp', smb], rdp, winrm])
  await bench.pce.services.create({ name: '445/tcp', service_ports: [{ port: 443, proto: 6 }] })
  await bench.pce.provisionPolicyChanges('named', bench.simulator.state.pendingHrefs())
  t.same((await named())[0], ['445/tcp', '443/tcp', { by_mode: 90 }])
})

t.test('an unknown service is an error, and nothing is asked of traffic', async (t) => {
  const bench = await start(t)
  bench.simulator.clearRequests()
  for (const name of ['SMB 2', '445', 'http/tcp', '445/icmp', '99999/tcp']) {
    const { details, message } = await bench.fails(TOOL, { services: [name] }, 'invalid_argument')
    t.match(message, /^services: /)
    t.equal(details?.argument ?? 'services', 'services')
  }
  t.notOk(bench.simulator.requests.some(({ path }) => path.includes('traffic_flows')))
})

t.test('a part can be asked for alone', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(TOOL, { sections: ['reached'] })
  t.equal(answer.reached.length, 5)
  t.same(answer.sections_left_out, ['services', 'open_rules', 'destinations', 'app_groups', 'vulnerable_workloads'])
  t.equal(answer.not_known, undefined)
  t.match(answer.summary, /Not known from this PCE: vulnerability_reports\.$/)
  t.same([answer.services, answer.app_groups], [undefined, undefined])
})
