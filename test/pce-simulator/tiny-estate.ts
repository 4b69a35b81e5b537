import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { Service } from '../../schemas/pce/service.js'
import type { EnforcementMode, Workload } from '../../schemas/pce/workload.js'
import type { Endpoint, PolicyView } from '../../pce-simulator/model.js'
import { createEvaluator } from '../../pce-simulator/policy/evaluate.js'

/** Words to write estates of a few hosts and rules with, small enough to know the answer by looking. */

export const DRAFT = '/orgs/1/sec_policy/draft'

/** A traffic query for everything there ever was. */
export const UNFILTERED: TrafficQuery = {
  start_date: '2026-01-01T00:00:00Z',
  end_date: '2027-06-01T00:00:00Z',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: 200_000,
}

/** Every label that was ever named. */
export const labels = new Map<string, Label>()

/** `app=payments` as a label. */
export function label(text: string): Label {
  const [key = '', value = ''] = text.split('=')
  const href = `/orgs/1/labels/${text}`
  const known = labels.get(href) ?? { href, key, value }
  labels.set(href, known)
  return known
}

interface Host {
  at: string
  /** Labels parted by blanks. */
  labels?: string
  mode?: EnforcementMode
  managed?: boolean
  os?: string
}

export const host = (name: string, { at, labels: bears = '', mode, managed = true, os }: Host): Workload => ({
  href: `/orgs/1/workloads/${name}`,
  name: null,
  hostname: name,
  managed,
  os_id: os ?? 'ubuntu-x86_64-jammy',
  interfaces: [{ name: 'eth0', address: at }],
  labels: bears.split(' ').filter(Boolean).map(label),
  enforcement_mode: mode ?? 'visibility_only',
})

export const IP_LISTS: IpList[] = [
  { href: `${DRAFT}/ip_lists/1`, name: 'Any', ip_ranges: [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }] },
  {
    href: `${DRAFT}/ip_lists/2`,
    name: 'Branches',
    ip_ranges: [
      { from_ip: '10.60.9.0', to_ip: '10.60.9.127', exclusion: true },
      { from_ip: '10.60.0.0/16' },
      { from_ip: 'fd00:60::/32' },
    ],
    fqdns: null,
  },
  { href: `${DRAFT}/ip_lists/3`, name: 'Partner', ip_ranges: null, fqdns: [{ fqdn: '*.partner.example' }] },
]

const service = (id: number, more: Partial<Service>): Service => ({
  href: `${DRAFT}/services/${id}`,
  name: '',
  ...more,
})

export const ALL = service(1, { service_ports: [{ proto: -1 }] })
export const WEB = service(2, {
  service_ports: [
    { port: 443, proto: 6 },
    { port: 8000, to_port: 8099, proto: 6 },
  ],
})
export const PING = service(3, { service_ports: [{ proto: 1, icmp_type: 8, icmp_code: 0 }] })
export const ANY_TCP = service(4, { service_ports: [{ proto: 6 }] })
export const IIS = service(5, {
  windows_services: [{ process_name: '%systemroot%\\System32\\inetsrv\\w3wp.exe', port: 443, proto: 6 }],
})
export const UPDATER = service(6, { windows_egress_services: [{ service_name: 'wuauserv' }] })

export const ANY: Actor = { ip_list: { href: `${DRAFT}/ip_lists/1` } }
export const BRANCHES: Actor = { ip_list: { href: `${DRAFT}/ip_lists/2` } }
export const PARTNER: Actor = { ip_list: { href: `${DRAFT}/ip_lists/3` } }
export const AMS: Actor = { actors: 'ams' }
export const is = (text: string): Actor => ({ label: { href: label(text).href } })
export const isNot = (text: string): Actor => ({ ...is(text), exclusion: true })

interface Sides {
  from: Actor[]
  to: Actor[]
}

let ids = 0

/** An allow rule on All Services, intra-scope. */
export const rule = ({ from, to, ...more }: Sides & Partial<Omit<Rule, 'href'>>): Rule => ({
  href: `${DRAFT}/rule_sets/1/sec_rules/${(ids += 1)}`,
  enabled: true,
  consumers: from,
  providers: to,
  ingress_services: [{ href: ALL.href }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  ...more,
})

/** A deny rule on All Services, extra-scope. */
export const deny = ({ from, to, override = false }: Sides & { override?: boolean }): DenyRule => ({
  href: `${DRAFT}/rule_sets/1/deny_rules/${(ids += 1)}`,
  enabled: true,
  consumers: from,
  providers: to,
  ingress_services: [{ href: ALL.href }],
  unscoped_consumers: true,
  override,
})

/** A rule set for everything. */
export const ruleSet = (more: Partial<RuleSet>): RuleSet => ({
  href: `${DRAFT}/rule_sets/1`,
  name: 'r',
  enabled: true,
  scopes: [[]],
  rules: [],
  deny_rules: [],
  ...more,
})

export const byHref = <T extends { href: string }>(objects: readonly T[]) =>
  new Map(objects.map((object) => [object.href, object]))

export const view = (...ruleSets: RuleSet[]): PolicyView => ({
  ruleSets,
  ipLists: byHref(IP_LISTS),
  services: byHref([ALL, WEB, PING, ANY_TCP, IIS, UPDATER]),
  labelGroups: new Map([[`${DRAFT}/label_groups/nonprod`, [label('env=dev').href, label('env=test').href]]]),
})

export const allow = (...rules: Rule[]) => view(ruleSet({ rules }))
export const denyAll = (...deny_rules: DenyRule[]) => view(ruleSet({ deny_rules }))

export const end = ({ href, interfaces }: Workload): Endpoint => ({
  workload: href,
  ip: interfaces?.[0]?.address ?? '',
})

export interface Call {
  policy: PolicyView
  /** A workload, or an address outside the estate. */
  from: Workload | Endpoint | string
  to: Workload | Endpoint | string
  port?: number
  proto?: number
  icmp?: [type: number, code: number]
  process?: string
  windowsService?: string
  direction?: 'inbound' | 'outbound'
}

/** What becomes of one connection (TCP 443 unless told otherwise, as its destination reports it). */
export function judge({ policy, from, to, port = 443, proto = 6, icmp, direction = 'inbound', ...seen }: Call) {
  const known = [from, to].filter((of): of is Workload => typeof of === 'object' && 'hostname' in of)
  const asEnd = (of: Call['from']): Endpoint => (typeof of === 'string' ? { ip: of } : 'hostname' in of ? end(of) : of)
  const processes = { process_name: seen.process, windows_service_name: seen.windowsService }
  return createEvaluator(
    policy,
    byHref(known),
    labels,
  )({
    src: asEnd(from),
    dst: asEnd(to),
    service: { proto, ...(icmp === undefined ? { port } : {}), ...processes },
    flowDirection: direction,
    ...(icmp === undefined ? {} : { icmpType: icmp[0], icmpCode: icmp[1] }),
  })
}

export const decide = (call: Call) => judge(call).decision
