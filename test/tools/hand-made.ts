/**
 * Words to write small estates with, whose right answers are known in full. Hosts by name, traffic as "from > to", rules as in a
 * policy: everything is seen on one day unless told otherwise, so that connections are what the line says.
 */
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Conversation, Endpoint, Estate } from '../../pce-simulator/model.js'
import { NOW } from './harness.js'

const DAY_MS = 86_400_000
const DRAFT = '/orgs/1/sec_policy/draft'
const STAMP = {
  created_at: '2026-01-10T09:00:00.000Z',
  updated_at: '2026-01-10T09:00:00.000Z',
  created_by: { href: '/users/1' },
  updated_by: { href: '/users/1' },
}
/** Built in by the simulator. */
export const ALL_SERVICES: IngressService = { href: `${DRAFT}/services/1` }
export const ANY_LIST = { ip_list: { href: `${DRAFT}/ip_lists/1` } }
export const AMS = { actors: 'ams' as const }
/** A rule in the words of iptables, of the first rule set, about all inbound traffic. */
export const ipTablesRule = (parameters: '-j ACCEPT' | '-j DROP', id = 1) => ({
  href: `${DRAFT}/rule_sets/1/ip_tables_rules/${id}`,
  enabled: true,
  statements: [{ table_name: 'filter', chain_name: 'INPUT', parameters }],
  actors: [AMS],
  ip_version: '4' as const,
})

export interface HandMadeHost {
  ip: string
  /** `app=payments env=prod`; values may hold blanks when given as a list. */
  labels?: string | string[]
  /** Default visibility_only. */
  mode?: EnforcementMode
  /** Default true. */
  managed?: boolean
  online?: boolean
  os?: string
  /** Name of the network of its interface. */
  network?: string
  /** True for a laptop. */
  endpoint?: boolean
}

export interface HandMadeFlow {
  /** A host's name or an address outside. */
  from: string
  to: string
  /** Default 443; absent for icmp. */
  port?: number
  /** IANA number, default 6. */
  proto?: number
  /** Of the one day it is seen, default 1. */
  connections?: number
  process?: string
  service?: string
  user?: string
  /** Name of an outside destination. */
  fqdn?: string
  /** Who reports it; default the source when that is a managed host, otherwise the destination. */
  direction?: 'inbound' | 'outbound'
  /** Days before the day of the test; default 1. */
  daysAgo?: number
  /** Decision of the time; default what policy and modes of today decide. */
  recorded?: PolicyDecision
}

export interface HandMadeRuleSet {
  name: string
  /** `app=payments env=prod`, or `` for everything. */
  scope: string
  allow?: HandMadeRule[]
  deny?: HandMadeRule[]
  override?: HandMadeRule[]
  /** Whom a rule in the words of iptables is for, one rule each. */
  iptables?: string[]
}
export interface HandMadeRule {
  /** Labels (`app=x env=prod`), `ams`, `any` (the built-in IP list), `iplist:<name>` or `host:<name>`. */
  from: string
  to: string
  /** Default All Services. A text is the name of a service of the estate. */
  services?: (IngressService | string)[]
  /** Names of services: the programs of the consumers. */
  egress?: string[]
  /** Consumers from anywhere, not only the scope. */
  extra?: boolean
  enabled?: boolean
  network?: 'brn' | 'non_brn' | 'all'
  description?: string
}

/** Exactly one of these (P18). */
export type HandMadeService = Pick<Service, 'service_ports' | 'windows_services' | 'windows_egress_services'>

export interface HandMadeEstate {
  hosts?: Record<string, HandMadeHost>
  flows?: HandMadeFlow[]
  /** Name → ranges, as `10.0.0.0/8` or `10.0.0.1-10.0.0.9`; `!` in front excludes. */
  ipLists?: Record<string, string[]>
  /** Beside All Services. */
  services?: Record<string, HandMadeService>
  ruleSets?: HandMadeRuleSet[]
  /** Labels beside those of hosts and rules. */
  labels?: string[]
}

const networkOf = ({ network: name }: HandMadeHost) =>
  name === undefined ? {} : { network: { href: `/orgs/1/networks/${name}`, name } }

/** The estate as the simulator takes it (`startBench(t, { estate })`). All of its policy is provisioned. */
export function handMade(parts: HandMadeEstate): Estate {
  const labels = new Map<string, { href: string; key: string; value: string; deleted: boolean }>()
  const labelHref = (text: string) => {
    const at = text.indexOf('=')
    const known = labels.get(text) ?? {
      href: `/orgs/1/labels/${labels.size + 1}`,
      key: text.slice(0, at),
      value: text.slice(at + 1),
      deleted: false,
      ...STAMP,
    }
    labels.set(text, known)
    return known.href
  }
  const wordsOf = (text: string | string[] = []) => (Array.isArray(text) ? text : text.split(' ').filter(Boolean))
  const hosts = parts.hosts ?? {}
  const hrefOf = (name: string) =>
    `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(hosts).indexOf(name) + 1).padStart(12, '0')}`
  const listHref = new Map(Object.keys(parts.ipLists ?? {}).map((name, at) => [name, `${DRAFT}/ip_lists/${at + 2}`]))
  const serviceHref = new Map(
    Object.keys(parts.services ?? {}).map((name, at) => [name, `${DRAFT}/services/${at + 2}`]),
  )
  const serviceRef = (name: string) => ({ href: serviceHref.get(name) as string })

  const workloads = Object.entries(hosts).map(([name, host]) => ({
    href: hrefOf(name),
    name,
    hostname: name,
    description: null,
    managed: host.managed ?? true,
    public_ip: null,
    interfaces: [{ name: 'eth0', link_state: 'up', address: host.ip, cidr_block: 24, ...networkOf(host) }],
    labels: wordsOf(host.labels).map((text) => ({ href: labelHref(text) })),
    os_id: host.os ?? 'ubuntu-x86_64-jammy',
    online: host.online ?? true,
    enforcement_mode: host.mode ?? ('visibility_only' as const),
    visibility_level: 'flow_summary',
    ven:
      host.managed === false
        ? null
        : {
            href: hrefOf(name).replace('/workloads/', '/vens/'),
            hostname: name,
            name: null,
            status: 'active',
            ...(host.endpoint === true && { ven_type: 'endpoint' }),
          },
    ...STAMP,
  }))

  const actors = (text: string) => {
    if (text === 'ams') return [AMS]
    if (text === 'any') return [ANY_LIST]
    if (text.startsWith('host:')) return [{ workload: { href: hrefOf(text.slice(5)) } }]
    if (text.startsWith('iplist:')) return [{ ip_list: { href: listHref.get(text.slice(7)) as string } }]
    return wordsOf(text).map((word) => ({ label: { href: labelHref(word) } }))
  }
  let ids = 0
  const rule = (
    set: number,
    kind: 'sec_rules' | 'deny_rules',
    { from, to, services = [ALL_SERVICES], egress, extra, enabled, network, description }: HandMadeRule,
  ) => ({
    href: `${DRAFT}/rule_sets/${set}/${kind}/${(ids += 1)}`,
    enabled: enabled ?? true,
    consumers: actors(from),
    providers: actors(to),
    ingress_services: services.map((one) => (typeof one === 'string' ? serviceRef(one) : one)),
    ...(egress !== undefined && { egress_services: egress.map(serviceRef) }),
    unscoped_consumers: extra ?? false,
    ...(network !== undefined && { network_type: network }),
    ...(description !== undefined && { description }),
    ...(kind === 'sec_rules'
      ? { resolve_labels_as: { providers: ['workloads' as const], consumers: ['workloads' as const] } }
      : {}),
    ...STAMP,
  })
  const ruleSets = (parts.ruleSets ?? []).map(
    ({ name, scope, allow = [], deny = [], override = [], iptables }, at) => ({
      href: `${DRAFT}/rule_sets/${at + 1}`,
      name,
      description: null,
      enabled: true,
      scopes: [wordsOf(scope).map((text) => ({ label: { href: labelHref(text) } }))],
      rules: allow.map((one) => rule(at + 1, 'sec_rules', one)),
      deny_rules: [
        ...deny.map((one) => ({ ...rule(at + 1, 'deny_rules', one), override: false })),
        ...override.map((one) => ({ ...rule(at + 1, 'deny_rules', one), override: true })),
      ],
      ...(iptables !== undefined && {
        ip_tables_rules: iptables.map((who, id) => ({
          ...ipTablesRule('-j DROP', id + 1),
          href: `${DRAFT}/rule_sets/${at + 1}/ip_tables_rules/${id + 1}`,
          actors: actors(who),
        })),
      }),
      ...STAMP,
    }),
  )
  for (const text of parts.labels ?? []) labelHref(text)

  const endpoint = (name: string, fqdn?: string): Endpoint => {
    const host = hosts[name]
    return host === undefined ? { ip: name, ...(fqdn && { fqdn }) } : { workload: hrefOf(name), ip: host.ip }
  }
  const conversations = (parts.flows ?? []).map((flow): Conversation => {
    const day = Math.floor(NOW / DAY_MS) - (flow.daysAgo ?? 1)
    const source = hosts[flow.from]
    const reportedBySource = source !== undefined && source.managed !== false
    return {
      src: endpoint(flow.from),
      dst: endpoint(flow.to, flow.fqdn),
      service: {
        ...(flow.proto === 1 || flow.proto === 58 ? {} : { port: flow.port ?? 443 }),
        proto: flow.proto ?? 6,
        ...(flow.process !== undefined && { process_name: flow.process }),
        ...(flow.service !== undefined && { windows_service_name: flow.service }),
        ...(flow.user !== undefined && { user_name: flow.user }),
      },
      flowDirection: flow.direction ?? (reportedBySource ? 'outbound' : 'inbound'),
      firstDay: day,
      lastDay: day,
      everyDays: 1,
      secondOfDay: 3600,
      connectionsPerDay: flow.connections ?? 1,
      bytesIn: 100,
      bytesOut: 200,
      state: 'closed',
      ...(flow.recorded !== undefined && { recorded: flow.recorded }),
    }
  })
  const ipLists = Object.entries(parts.ipLists ?? {}).map(([name, ranges]) => ({
    href: listHref.get(name) as string,
    name,
    description: null,
    ip_ranges: ranges.map((range) => {
      const [from = '', to] = range.replace('!', '').split('-')
      return { from_ip: from, ...(to !== undefined && { to_ip: to }), exclusion: range.startsWith('!') }
    }),
    fqdns: [],
    ...STAMP,
  }))
  return {
    labels: [...labels.values()] as Estate['labels'],
    workloads: workloads,
    ipLists: ipLists,
    services: Object.entries(parts.services ?? {}).map(([name, lists]) => ({
      ...serviceRef(name),
      name,
      description: null,
      ...lists,
      ...STAMP,
    })),
    ruleSets: ruleSets as unknown as Estate['ruleSets'],
    conversations,
    users: [{ href: '/users/1', username: 'admin@example.com', full_name: 'Ada Admin' }],
  }
}
