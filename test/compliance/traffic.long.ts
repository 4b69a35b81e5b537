/** The checks of compliance-check that weigh single flows: who may talk to whom, over which services. */
import t from 'tap'
import { partial } from '../partial.js'
import type { HandMadeHost } from '../tools/hand-made.js'
import {
  byId,
  CRM,
  expectVerdicts,
  INSIDE,
  judge,
  LEGACY,
  OPEN,
  OPEN_ON,
  PAIR,
  PAYMENTS,
  server,
  start,
  STRAY,
} from './judge-estates.js'

const UNENFORCED = { slow: server('visibility_only', '10.0.0.4') }

t.test('the high-risk ports are those of the framework', async (t) => {
  const NIST = [22, 23, 135, 139, 445, 1433, 3306, 3389, 5432]
  const expected = {
    'PCI-2.1': ['pci-dss', 22, 23, 445, 1433, 1521, 3306, 3389, 5432],
    'CM-7': ['nist', ...NIST],
    'CIS-13': ['cis', 21, 22, 23, 69, 135, 139, 445, 3389],
    'DORA-9.2': ['dora', ...NIST, 1521, 6379, 27017],
    'A.8.26': ['iso-27001', 21, ...NIST],
    'SWIFT-5.1': ['swift-csp', 21, 22, 23, 80, 135, 139, 445, 1433, 3306, 3389, 5432],
    '164.308(a)(1)': ['hipaa', 21, 22, 23, 80, 135, 139, 445, 1433, 1521, 3306, 3389, 5432],
    'SEG-3': ['general', ...NIST, 1521, 6379, 9200, 27017],
  }
  const candidates = [21, 22, 23, 69, 80, 135, 139, 443, 445, 1433, 1521, 3306, 3389, 5432, 6379, 9200, 27017]
  const flows = candidates.map((port) => ({ from: '10.9.9.9', to: 'web', port }))
  const bench = await start(t, { hosts: PAIR('full'), flows, ruleSets: [OPEN] })
  const found: Record<string, unknown> = {}
  const strayPorts: number[] = []
  for (const [id, [framework, ...ports]] of Object.entries(expected)) {
    const { status, evidence } = byId(await bench.ok('compliance-check', { framework, ...PAYMENTS }))[id]
    found[id] = [status, evidence.counts.allowed_from_unlabelled]
    strayPorts.push(
      ...evidence.flows.map(({ port }: { port: number }) => port).filter((port: number) => !ports.includes(port)),
    )
  }
  t.same(found, Object.fromEntries(Object.entries(expected).map(([id, { length }]) => [id, ['FAIL', length - 1]])))
  t.same(strayPorts, [], 'only ports of the framework are shown')
})

const NEIGHBOURS: Record<string, HandMadeHost> = {
  ...PAIR('full'),
  ...UNENFORCED,
  six: server('full', '2001:db8::1'),
  idle: server('idle', '10.0.0.5'),
  loose: server('selective', '10.0.0.6'),
  crm: CRM,
  stray: STRAY,
  legacy: LEGACY,
  desk: { ip: '10.0.4.1', labels: 'app=desk env=prod', managed: false },
  test: { ip: '10.0.5.1', labels: 'app=payments env=test', mode: 'full' },
}

t.test(
  'high-risk ports: allowed from unknown sources fails, allowed from others or unenforced warns, blocked passes',
  async (t) => {
    const ssh = (from: string, to = 'web') => ({ from, to, port: 22 })
    const open = (flow: ReturnType<typeof ssh> & { proto?: number; daysAgo?: number }) => ({
      flows: [flow],
      ruleSets: [OPEN],
    })
    await expectVerdicts(
      t,
      { 'SEG-3': 'general' },
      { hosts: NEIGHBOURS },
      {
        'an address outside': [open(ssh('10.9.9.9')), 'FAIL', { allowed_from_unlabelled: 1, flows: 1 }],
        'an unlabelled workload': [open(ssh('stray')), 'FAIL', { allowed_from_unlabelled: 1, flows: 1 }],
        'IPv6 and UDP': [
          open({ from: '2001:db8::66', to: 'six', port: 3389, proto: 17 }),
          'FAIL',
          { allowed_from_unlabelled: 1, flows: 1 },
        ],
        'a half-labelled workload': [
          open(ssh('legacy')),
          'WARNING',
          { allowed_from_unlabelled: 0, allowed_from_other_applications: 1, flows: 1 },
        ],
        'another application': [
          open(ssh('crm')),
          'WARNING',
          { allowed_from_other_applications: 1, allowed_from_unmanaged_labelled: 0, flows: 1 },
        ],
        'a labelled machine without a VEN': [
          open(ssh('desk')),
          'WARNING',
          { allowed_from_other_applications: 1, allowed_from_unmanaged_labelled: 1, flows: 1 },
        ],
        'the same application in another environment': [
          open(ssh('test')),
          'WARNING',
          { allowed_from_other_applications: 1, flows: 1 },
        ],
        'inside the application': [
          open(ssh('db')),
          'PASS',
          { allowed_from_unlabelled: 0, allowed_from_other_applications: 0, inside_one_application: 1, flows: 0 },
        ],
        'a workload with itself': [open(ssh('web')), 'PASS', { inside_one_application: 1, flows: 0 }],
        'outbound only': [open(ssh('web', 'crm')), 'PASS', { allowed_from_other_applications: 0, flows: 0 }],
        'blocked only': [{ flows: [ssh('10.9.9.9')] }, 'PASS', { blocked: 1, flows: 0 }],
        'another port': [
          open({ from: '10.9.9.9', to: 'web', port: 2222 }),
          'PASS',
          { allowed_from_unlabelled: 0, flows: 0 },
        ],
        'SCTP 22, which is no SSH': [open({ ...ssh('10.9.9.9'), proto: 132 }), 'PASS', { allowed_from_unlabelled: 0 }],
        'ICMP, which has no port': [
          { flows: [{ from: '10.9.9.9', to: 'web', proto: 1 }], ruleSets: [OPEN] },
          'PASS',
          { allowed_from_unlabelled: 0 },
        ],
        'not enforced': [{ flows: [ssh('10.9.9.9', 'slow')] }, 'WARNING', { passing_unenforced: 1, flows: 1 }],
        'idle, so that no VEN judges': [
          { flows: [ssh('10.9.9.9', 'idle')] },
          'WARNING',
          { passing_unenforced: 0, enforced_at_neither_end: 1, flows: 1 },
        ],
        'selective without a deny rule': [
          { flows: [ssh('10.9.9.9', 'loose')] },
          'WARNING',
          { allowed_from_unlabelled: 0, passing_unenforced: 1, flows: 1 },
        ],
        'no traffic': [{}, 'NOT_ASSESSED', { allowed_from_unlabelled: 0, flows: 0 }],
        'traffic of another application only': [{ flows: [ssh('10.9.9.9', 'crm')] }, 'NOT_ASSESSED'],
        'before the window': [open({ ...ssh('10.9.9.9'), daysAgo: 40 }), 'NOT_ASSESSED'],
      },
    )
  },
)

t.test('shows the ten worst flows first and counts all of them', async (t) => {
  const flows = Array.from({ length: 12 }, (_, at) => ({
    from: `10.9.9.${at + 1}`,
    to: 'web',
    port: 22,
    connections: at + 1,
  }))
  const { evidence } = (await judge(t, 'general', { hosts: NEIGHBOURS, flows, ruleSets: [OPEN] }))['SEG-3']
  t.same(
    evidence.flows.map(({ connections }: { connections: number }) => connections),
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3],
  )
  t.same(evidence.flows[0], {
    from: '10.9.9.12 (Any (0.0.0.0/0 and ::/0))',
    to: 'web',
    port: 22,
    proto: 'tcp',
    decision: 'allowed',
    connections: 12,
  })
  t.equal(evidence.counts.allowed_from_unlabelled, 12)
})

t.test('restricted access: both directions, and inbound only', async (t) => {
  const hosts = { ...PAIR('full'), ...UNENFORCED, crm: CRM, stray: STRAY, legacy: LEGACY }
  const ipLists = { Office: ['10.9.9.0/24'], 'Half the world': ['0.0.0.0/1'] }
  await expectVerdicts(
    t,
    { 'PCI-1.3': 'pci-dss', '164.312(a)': 'hipaa' },
    { hosts, ipLists, ruleSets: [OPEN_ON(443)] },
    {
      'a labelled application': [{ flows: [{ from: 'crm', to: 'web' }] }, 'PASS PASS'],
      'an address in an IP list': [{ flows: [{ from: '10.9.9.9', to: 'web' }] }, 'PASS PASS'],
      'an address in a list of half the world': [{ flows: [{ from: '10.8.8.8', to: 'web' }] }, 'FAIL FAIL'],
      'an unlabelled workload': [
        { flows: [{ from: 'stray', to: 'web' }] },
        'FAIL FAIL',
        { allowed_from_unknown: 1, flows: 1 },
      ],
      'a half-labelled workload': [{ flows: [{ from: 'legacy', to: 'web' }] }, 'WARNING WARNING'],
      'not enforced': [
        { flows: [{ from: '192.168.1.1', to: 'slow', port: 99 }] },
        'WARNING WARNING',
        { passing_unenforced: 1 },
      ],
      'out to an unlabelled workload': [
        { flows: [{ from: 'web', to: 'stray' }] },
        'WARNING PASS',
        { allowed_to_unknown: 1 },
      ],
      'out to an address in a list': [{ flows: [{ from: 'web', to: '10.9.9.9' }] }, 'PASS PASS'],
      blocked: [{ flows: [{ from: 'stray', to: 'web', port: 99 }] }, 'PASS PASS', { blocked: 1, flows: 0 }],
      inside: [{ flows: [INSIDE] }, 'PASS PASS'],
      'no traffic': [{}, 'NOT_ASSESSED NOT_ASSESSED'],
    },
  )
})

t.test('internet access: lists as approvals, and no internet at all', async (t) => {
  const hosts = {
    ...PAIR('full'),
    ...UNENFORCED,
    crm: CRM,
    cloud: { ip: '198.51.100.20', labels: 'app=cloud env=prod', managed: false },
  }
  const ipLists = { Bank: ['198.51.100.7'], Internet: ['0.0.0.0/0'], 'From to': ['1.0.0.0-223.255.255.255'] }
  const out = (to: string, more: object = {}) => ({ flows: [{ from: 'web', to, ...more }] })
  await expectVerdicts(
    t,
    { 'PCI-1.4': 'pci-dss', 'SWIFT-1.4': 'swift-csp' },
    { hosts, ipLists, ruleSets: [OPEN_ON(443)] },
    {
      'to an address in no list': [out('203.0.113.9'), 'FAIL FAIL', { allowed_unlisted: 1, flows: 1 }],
      'from an address in no list': [{ flows: [{ from: '203.0.113.9', to: 'web' }] }, 'FAIL FAIL'],
      'to an address of the documentation range': [out('192.0.2.7'), 'FAIL FAIL', { allowed_unlisted: 1 }],
      'to a name': [out('203.0.113.9', { fqdn: 'cdn.example.com' }), 'FAIL FAIL'],
      'to an IPv6 address': [out('2a00:1450::1'), 'FAIL FAIL'],
      'to an address in a list': [out('198.51.100.7'), 'PASS WARNING', { allowed_by_ip_list: 1, flows: 0 }],
      'not enforced': [
        { flows: [{ from: 'slow', to: '203.0.113.9', port: 99 }] },
        'WARNING WARNING',
        { passing_unenforced: 1 },
      ],
      blocked: [out('203.0.113.9', { port: 99 }), 'PASS PASS', { blocked: 1, flows: 0 }],
      'a private address': [out('192.168.7.7'), 'PASS PASS'],
      'a local IPv6 address': [out('fd00::7'), 'PASS PASS'],
      'a link-local address': [out('169.254.1.1'), 'PASS PASS'],
      'a carrier-grade NAT address': [out('100.64.0.9'), 'PASS PASS'],
      'a multicast address': [out('224.0.0.251'), 'PASS PASS'],
      'a workload with a public address': [out('cloud'), 'PASS PASS'],
      'no traffic': [{}, 'NOT_ASSESSED NOT_ASSESSED'],
    },
  )
})

t.test('direct mail, names and web', async (t) => {
  const common = { hosts: { ...PAIR('full'), ...UNENFORCED }, ipLists: { Proxy: ['198.51.100.7'] }, ruleSets: [OPEN] }
  const out = (port: number, to = '203.0.113.9', proto = 6) => ({ flows: [{ from: 'web', to, port, proto }] })
  await expectVerdicts(t, { 'CIS-9': 'cis' }, common, {
    web: [out(443), 'WARNING', { allowed_unlisted: 1, flows: 1 }],
    mail: [out(25), 'WARNING'],
    names: [out(53, '203.0.113.9', 17), 'WARNING'],
    'by an approved address': [out(443, '198.51.100.7'), 'PASS'],
    'a private address': [out(443, '10.7.7.7'), 'PASS'],
    'another service': [out(9999), 'PASS'],
    inbound: [{ flows: [{ from: '203.0.113.9', to: 'web', port: 443 }] }, 'PASS'],
    'not enforced': [
      { flows: [{ from: 'slow', to: '203.0.113.9' }], ruleSets: [] },
      'WARNING',
      { passing_unenforced: 1, flows: 1 },
    ],
    'no traffic': [{}, 'NOT_ASSESSED'],
  })
})

t.test('clear-text services never pass', async (t) => {
  const hosts = { ...PAIR('full'), ...UNENFORCED, crm: CRM }
  await expectVerdicts(
    t,
    { '164.312(e)': 'hipaa' },
    { hosts },
    {
      'HTTP in': [
        { flows: [{ from: 'crm', to: 'web', port: 80 }], ruleSets: [OPEN] },
        'FAIL',
        { allowed: 1, flows: 1 },
      ],
      'FTP out': [
        { flows: [{ from: 'web', to: 'crm', port: 21 }], ruleSets: [OPEN] },
        'FAIL',
        { allowed: 1, flows: 1 },
      ],
      'Telnet, not enforced': [
        { flows: [{ from: '10.9.9.9', to: 'slow', port: 23 }] },
        'WARNING',
        { allowed: 0, passing_unenforced: 1, flows: 1 },
      ],
      blocked: [{ flows: [{ from: '10.9.9.9', to: 'web', port: 23 }] }, 'NOT_ASSESSED', { allowed: 0, blocked: 1 }],
      'HTTPS proves nothing': [
        { flows: [{ from: 'crm', to: 'web', port: 443 }], ruleSets: [OPEN] },
        'NOT_ASSESSED',
        { allowed: 0 },
      ],
      inside: [
        { flows: [{ from: 'db', to: 'web', port: 80 }], ruleSets: [OPEN] },
        'NOT_ASSESSED',
        { allowed: 0, inside_one_application: 1 },
      ],
      'no traffic': [{}, 'NOT_ASSESSED', { allowed: 0 }],
    },
  )
})

t.test('segregation of environments', async (t) => {
  const lab = (mode: HandMadeHost['mode']): HandMadeHost => ({
    ip: '10.0.5.1',
    labels: 'app=lab env=test',
    ...(mode && { mode }),
  })
  const hosts = { ...PAIR('full'), ...UNENFORCED, lab: lab('full'), crm: CRM, stray: STRAY }
  const flow = (from: string, to: string, port = 443) => ({ flows: [{ from, to, port }], ruleSets: [OPEN] })
  const blockedByLab = { name: 'out', scope: '', allow: [{ from: 'app=lab', to: 'app=nobody' }] }
  await expectVerdicts(
    t,
    { 'A.8.22': 'iso-27001' },
    { hosts },
    {
      'RDP from test into production': [
        flow('lab', 'web', 3389),
        'FAIL',
        { allowed_high_risk_with_production: 1, allowed_between_environments: 0, flows: 1 },
      ],
      'RDP from production into test': [flow('web', 'lab', 3389), 'FAIL', { allowed_high_risk_with_production: 1 }],
      'HTTPS from test': [flow('lab', 'web'), 'WARNING', { allowed_between_environments: 1, flows: 1 }],
      'blocked at its source': [
        { flows: [{ from: 'lab', to: 'slow' }], ruleSets: [blockedByLab] },
        'PASS',
        { blocked: 1 },
      ],
      'not enforced': [
        { hosts: { ...hosts, lab: lab('visibility_only') }, flows: [{ from: 'lab', to: 'slow' }] },
        'WARNING',
        { passing_unenforced: 1 },
      ],
      'the same environment': [flow('crm', 'web', 3389), 'PASS'],
      'an unlabelled end is of no environment': [flow('stray', 'web', 3389), 'PASS'],
      'no traffic': [{}, 'NOT_ASSESSED'],
    },
  )
  const development = {
    hosts: { a: { ip: '10.1.0.1', labels: 'app=a env=dev' }, b: { ip: '10.1.0.2', labels: 'app=b env=test' } },
    flows: [{ from: 'a', to: 'b', port: 22 }],
    ruleSets: [{ name: 'ssh', scope: '', allow: [{ from: 'ams', to: 'ams' }] }],
  }
  const dev = (await judge(t, 'iso-27001', development, { app_name: 'a' }))['A.8.22']
  partial(
    t,
    dev,
    {
      status: 'WARNING',
      evidence: { counts: { allowed_high_risk_with_production: 0, allowed_between_environments: 1 } },
    },
    'without production it is no failure',
  )
})
