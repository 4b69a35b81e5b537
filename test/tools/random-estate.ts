/** Random small estates around one application, for what a ringfence says of it and what comes of that. */
import fc from 'fast-check'
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import type { HandMadeEstate, HandMadeFlow, HandMadeHost, HandMadeRule, HandMadeRuleSet } from './hand-made.js'

const MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
const mode: fc.Arbitrary<EnforcementMode> = fc.constantFrom(...MODES)

const rare = <T>(usual: T, ...others: T[]) => fc.constantFrom(...Array.from({ length: 7 }, () => usual), ...others)
const host = (ip: string, labels: string): fc.Arbitrary<HandMadeHost> =>
  fc.record({
    ip: fc.constant(ip),
    labels: fc.constant(labels),
    mode,
    managed: rare(true, false),
    os: fc.constantFrom('win-x86_64-server', 'ubuntu-x86_64-jammy'),
  })

/** The application is pay (prod): its hosts have one mode, except for a stray one. */
const hosts = fc
  .record({
    'pay-1': host('10.0.0.1', 'app=pay env=prod role=web'),
    'pay-2': host('10.0.0.2', 'app=pay env=prod role=db'),
    'pay-3': host('10.0.0.3', 'app=pay env=prod'),
    'crm-1': host('10.0.1.1', 'app=crm env=prod role=web'),
    'crm-2': host('10.0.1.2', 'app=crm env=prod'),
    'crm-dev': host('10.0.1.3', 'app=crm env=dev'),
    'half-1': host('10.0.2.1', 'app=crm'),
    'bare-1': host('10.0.2.2', ''),
    'printer-1': host('10.0.2.3', 'role=printer'),
    own: mode,
    isMixed: rare(false, true),
  })
  .map(({ own, isMixed, ...all }) => {
    const ours = isMixed ? ['pay-2', 'pay-3'] : ['pay-1', 'pay-2', 'pay-3']
    return Object.fromEntries(
      Object.entries(all).map(([name, one]) => [name, ours.includes(name) ? { ...one, mode: own } : one]),
    )
  })

const IP_LISTS = {
  Office: ['192.168.10.0/24', '!192.168.10.9'],
  Servers: ['10.0.1.0/24', '10.0.2.0/24'],
  Farm: ['10.0.0.0/31', '10.0.0.2'],
  Internet: ['0.0.0.0/0', '::/0', '!10.0.0.0/8', '!192.168.0.0/16'],
}
const WSUS = 'WsusService'
const WORKER = 'c:\\windows\\system32\\inetsrv\\w3wp.exe'
const PORT_SERVICES = {
  web: { service_ports: [{ port: 443, proto: 6 }] },
  updates: { service_ports: [{ port: 8530, to_port: 8531, proto: 6 }] },
  administration: {
    service_ports: [
      { port: 22, proto: 6 },
      { port: 445, proto: 6 },
    ],
  },
  'all tcp': { service_ports: [{ proto: 6 }] },
}
const PROGRAMS = {
  'update server': { windows_services: [{ service_name: WSUS, port: 8531, proto: 6 }] },
  'web worker': { windows_services: [{ process_name: '%systemroot%\\System32\\inetsrv\\w3wp.exe', proto: 6 }] },
  'any port of the update server': { windows_services: [{ service_name: WSUS }] },
}
const CLIENTS = { 'update client': { windows_egress_services: [{ service_name: 'wuauserv' }] } }

const PORTS = [
  { port: 443, proto: 6 },
  { port: 8531, proto: 6 },
  { port: 8531, proto: 6 },
  { port: 22, proto: 6 },
  { port: 445, proto: 6 },
  { port: 53, proto: 17 },
  { port: 67, proto: 17 },
  { proto: 1 },
]
const RUNNING = [{}, {}, { process: WORKER }, { service: WSUS }, { service: 'wuauserv' }, { process: '/usr/sbin/sshd' }]
const OURS = ['pay-1', 'pay-2', 'pay-3']
const OUTSIDE = ['192.168.10.7', '192.168.10.9', '8.8.8.8', '172.16.5.5', '2a00:1450::8', '10.0.2.77']
const THEIRS = ['crm-1', 'crm-2', 'crm-dev', 'half-1', 'bare-1', 'printer-1']

const flow: fc.Arbitrary<HandMadeFlow> = fc
  .record({
    from: fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(...OURS) },
      { weight: 5, arbitrary: fc.constantFrom(...THEIRS) },
      { weight: 4, arbitrary: fc.constantFrom(...OUTSIDE) },
    ),
    to: fc.constantFrom(...OURS),
    on: fc.constantFrom(...PORTS),
    running: fc.constantFrom(...RUNNING),
    direction: fc.constantFrom(undefined, 'inbound' as const),
  })
  .map(({ on, running, direction, ...ends }) => ({
    ...ends,
    ...on,
    ...running,
    ...(direction !== undefined && { direction }),
  }))

const side = (...names: string[]) => fc.constantFrom(...names)
const FROM = [
  'ams',
  'any',
  'iplist:Office',
  'iplist:Servers',
  'iplist:Internet',
  'app=crm',
  'app=crm env=prod',
  'role=web',
  'host:bare-1',
  'host:half-1',
]
const TO = ['ams', 'ams', 'app=pay', 'role=web', 'app=pay role=db', 'iplist:Farm', 'any', 'host:pay-1']
const rule = (services: readonly string[]): fc.Arbitrary<HandMadeRule> =>
  fc
    .record({
      from: side(...FROM),
      to: side(...TO),
      on: fc.option(fc.subarray([...services], { minLength: 1, maxLength: 2 }), { nil: null, freq: 4 }),
      egress: rare<string[] | null>(null, Object.keys(CLIENTS)),
      extra: fc.boolean(),
      enabled: rare(true, false),
    })
    .map(({ on, egress, ...one }) => ({
      ...one,
      ...(on !== null && { services: on }),
      ...(egress !== null && { egress }),
    }))
// A deny rule takes no programs (P21).
const denying = rule(Object.keys(PORT_SERVICES)).map(({ egress: _none, ...one }) => one)
const allowing = rule([...Object.keys(PORT_SERVICES), ...Object.keys(PROGRAMS), ...Object.keys(PROGRAMS)])

const ruleSet: fc.Arbitrary<HandMadeRuleSet> = fc.record({
  name: fc.constant(''),
  scope: fc.constantFrom('', 'app=pay', 'app=pay env=prod', 'env=prod', 'app=crm', 'app=crm env=prod', 'env=dev'),
  allow: fc.array(allowing, { maxLength: 3 }),
  deny: fc.array(denying, { maxLength: 1 }),
  override: fc.array(denying, { maxLength: 1 }),
})

/** The arguments of create-ringfence beside the application. */
const asked = fc.constantFrom<object>(
  {},
  {},
  { skip_allowed: true },
  { selective: true },
  { selective: true, skip_allowed: true },
  { selective: true, deny_consumer: 'ams' },
  { selective: true, deny_consumer: 'ams_and_any' },
  { selective: true, deny_consumer: 'ams', skip_allowed: true },
  { selective: true, deny_service: [{ port: 8531, proto: 'tcp' }] },
  { selective: true, deny_service: [{ port: 22, proto: 'tcp' }], deny_consumer: 'ams_and_any' },
  { environments: ['prod'] },
  { selective: true, exclude_sources: ['crm|dev'] },
  { selective: true, exclude_sources: ['app=crm'], deny_consumer: 'ams_and_any' },
)

export interface RandomCase {
  estate: HandMadeEstate
  asked: object
  /** Rules whose `enabled` is changed in draft before the plan is made; they are counted through all rule sets. */
  toggled: number[]
  /** Whether these changes are provisioned with the ringfence. */
  provisionsAll: boolean
}

/** Estates with everything that makes the outcome of a ringfence depend on more than labels and ports. */
export const randomCase: fc.Arbitrary<RandomCase> = fc
  .record({
    hosts,
    flows: fc.uniqueArray(flow, { minLength: 6, maxLength: 24, selector: (one) => JSON.stringify(one) }),
    ruleSets: fc.array(ruleSet, { maxLength: 4 }),
    isMerged: rare(false, true),
    asked,
    toggled: rare<number[]>([], [0], [1], [0, 2]),
    provisionsAll: fc.boolean(),
  })
  .map(({ hosts: all, flows, ruleSets, isMerged, ...how }) => ({
    ...how,
    estate: {
      hosts: all,
      flows,
      ipLists: IP_LISTS,
      services: { ...PORT_SERVICES, ...PROGRAMS, ...CLIENTS },
      labels: ['app=pay', 'app=crm', 'env=prod', 'env=dev', 'role=web', 'role=db', 'role=printer'],
      ruleSets: ruleSets.map((set, at) =>
        isMerged && at === 0
          ? { ...set, name: 'RF-pay-prod', scope: 'app=pay env=prod' }
          : { ...set, name: `set ${at + 1}` },
      ),
    },
  }))
