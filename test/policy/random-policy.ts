/** Random policies and connections, small enough that every part of a rule decides something. */
import fc from 'fast-check'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { PolicyView } from '../../pce-simulator/model.js'
import { indexLabels } from '../../domain/inventory/labels.js'
import { catalogOf, type PolicyCatalog } from '../../domain/policy/load-snapshot.js'

const DRAFT = '/orgs/1/sec_policy/draft'
export const LABELS = [
  ...[
    ['app', 'pay'],
    ['app', 'crm'],
    ['env', 'prod'],
    ['env', 'dev'],
    ['role', 'web'],
    ['role', 'db'],
  ].map(([key = '', value = ''], at) => ({ href: `/orgs/1/labels/${at + 1}`, key, value })),
] as Label[]
const [PAY, CRM, PROD, , WEB] = LABELS as [Label, Label, Label, Label, Label]

const groups = [
  {
    href: `${DRAFT}/label_groups/1`,
    name: 'both apps',
    key: 'app',
    labels: [PAY],
    sub_groups: [{ href: `${DRAFT}/label_groups/2`, name: 'crm' }],
  },
  { href: `${DRAFT}/label_groups/2`, name: 'crm', key: 'app', labels: [CRM], sub_groups: [] },
  { href: `${DRAFT}/label_groups/3`, name: 'production', key: 'env', labels: [PROD] },
  { href: `${DRAFT}/label_groups/4`, name: 'nobody', key: 'role', labels: [] },
] as unknown as LabelGroup[]
const MEMBERS = new Map([
  [groups[0]!.href, [PAY.href, CRM.href]],
  [groups[1]!.href, [CRM.href]],
  [groups[2]!.href, [PROD.href]],
  [groups[3]!.href, []],
])

const services = [
  { href: `${DRAFT}/services/1`, name: 'All Services', service_ports: [{ proto: -1 }] },
  {
    href: `${DRAFT}/services/2`,
    name: 'web',
    service_ports: [
      { port: 80, proto: 6 },
      { port: 443, to_port: 445, proto: 6 },
    ],
  },
  { href: `${DRAFT}/services/3`, name: 'all tcp', service_ports: [{ port: -1, proto: 6 }] },
  { href: `${DRAFT}/services/4`, name: 'ping', service_ports: [{ proto: 1, icmp_type: 8 }] },
  { href: `${DRAFT}/services/5`, name: 'smb', windows_services: [{ port: 445, proto: 6, process_name: 'smb.exe' }] },
  { href: `${DRAFT}/services/6`, name: 'udp', service_ports: [{ port: 0, to_port: 65_535, proto: 17 }] },
] as Service[]
/** A process that connects, which a rule names beside its services. */
const EGRESS = {
  href: `${DRAFT}/services/7`,
  name: 'backup agent',
  windows_egress_services: [{ process_name: 'agent.exe' }],
} as Service

const lists = [
  {
    href: `${DRAFT}/ip_lists/1`,
    name: 'Any (0.0.0.0/0 and ::/0)',
    ip_ranges: [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }],
  },
  {
    href: `${DRAFT}/ip_lists/2`,
    name: 'office',
    ip_ranges: [{ from_ip: '10.0.0.0/24' }, { from_ip: '10.0.0.9', exclusion: true }],
  },
  { href: `${DRAFT}/ip_lists/3`, name: 'range', ip_ranges: [{ from_ip: '8.8.8.0', to_ip: '8.8.8.8' }] },
  { href: `${DRAFT}/ip_lists/4`, name: 'six', ip_ranges: [{ from_ip: '2001:db8::/32' }] },
  { href: `${DRAFT}/ip_lists/5`, name: 'names', ip_ranges: [], fqdns: [{ fqdn: '*.example.com' }] },
] as IpList[]

export const CATALOG: PolicyCatalog = catalogOf({
  labels: indexLabels(LABELS),
  services: [...services, EGRESS],
  lists,
  groups,
})
const byHref = <T extends { href: string }>(items: readonly T[]) => new Map(items.map((item) => [item.href, item]))

/** The same objects for the simulator. */
export const viewOf = (ruleSets: readonly RuleSet[]): PolicyView => ({
  ruleSets,
  ipLists: byHref(lists),
  services: byHref([...services, EGRESS]),
  labelGroups: MEMBERS,
})

/** One end of a connection. */
export interface RandomEnd {
  /** Href; null: an address. */
  workload: string | null
  labels: readonly Label[]
  ip: string
  fqdn: string | null
}

const ADDRESSES = ['10.0.0.1', '10.0.0.9', '8.8.8.8', '8.8.8.9', '2001:db8::7', '2a00::1']

const label = fc.constantFrom(...LABELS).map(({ href, key, value }) => ({ label: { href, key, value } }))
const group = fc.constantFrom(...groups).map(({ href, key, name }) => ({ label_group: { href, key, name } }))
const excluded = <T extends object>(arbitrary: fc.Arbitrary<T>) =>
  fc
    .tuple(arbitrary, fc.constantFrom(false, false, false, true))
    .map(([entry, exclusion]) => ({ ...entry, ...(exclusion && { exclusion }) }))
const scopeEntry: fc.Arbitrary<ScopeEntry> = excluded(
  fc.oneof({ weight: 4, arbitrary: label }, { weight: 1, arbitrary: group }),
)

const rare = <T>(usual: T, ...others: T[]) => fc.constantFrom(...Array.from({ length: 12 }, () => usual), ...others)

const actor = (workloads: readonly string[]): fc.Arbitrary<Actor> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant({ actors: 'ams' as const }) },
    { weight: 6, arbitrary: excluded(label) },
    { weight: 2, arbitrary: excluded(group) },
    { weight: 5, arbitrary: fc.constantFrom(...lists).map(({ href }) => ({ ip_list: { href } })) },
    { weight: 2, arbitrary: fc.constantFrom(...workloads).map((href) => ({ workload: { href } })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Actor>({ virtual_service: { href: '/vs/1' } }, { actors: 'container_host' }),
    },
  )

const ingress: fc.Arbitrary<IngressService> = fc.oneof(
  fc.constantFrom(...services).map(({ href }) => ({ href })),
  fc.constantFrom<IngressService>(
    { port: 443, proto: 6 },
    { port: 1, to_port: 1024, proto: 6 },
    { port: 53, proto: 17 },
  ),
)

const rule = (workloads: readonly string[]): fc.Arbitrary<Rule & DenyRule> =>
  fc.record({
    href: fc.constant(''),
    enabled: rare(true, false),
    update_type: rare<string | null>(null, 'delete'),
    providers: fc.array(actor(workloads), { minLength: 1, maxLength: 3 }),
    consumers: fc.array(actor(workloads), { minLength: 1, maxLength: 3 }),
    ingress_services: fc.array(ingress, { minLength: 1, maxLength: 2 }),
    unscoped_consumers: fc.boolean(),
    network_type: rare('brn', 'all', 'non_brn'),
    egress_services: rare<{ href: string }[]>([], [{ href: EGRESS.href }]),
    consuming_security_principals: rare<{ href: string }[]>([], [{ href: '/orgs/1/security_principals/1' }]),
    sec_connect: rare(false, true),
    stateless: rare(false, true),
    resolve_labels_as: fc.record({
      providers: rare(['workloads'], ['workloads', 'virtual_services'], ['virtual_services']),
      consumers: rare(['workloads'], ['virtual_services']),
    }),
    override: fc.boolean(),
  }) as unknown as fc.Arbitrary<Rule & DenyRule>

const randomEnd = (workload: string | null): fc.Arbitrary<RandomEnd> =>
  fc.record({
    workload: fc.constant(workload),
    labels:
      workload === null
        ? fc.constant([])
        : fc.tuple(...['app', 'env', 'role'].map(labelOfKey)).map((found) => found.flat()),
    ip: fc.constantFrom(...ADDRESSES),
    fqdn: workload === null ? fc.constantFrom(null, 'www.example.com', 'example.org') : fc.constant(null),
  })
const labelOfKey = (key: string) =>
  fc.constantFrom<Label[]>([], ...LABELS.filter((one) => one.key === key).flatMap((one) => [[one], [one]]))

export interface RandomFlow {
  port: number | null
  proto: number
}
const flow: fc.Arbitrary<RandomFlow> = fc.constantFrom<RandomFlow>(
  { port: 443, proto: 6 },
  { port: 445, proto: 6 },
  { port: 80, proto: 6 },
  { port: 8443, proto: 6 },
  { port: 53, proto: 17 },
  { port: null, proto: 1 },
  { port: null, proto: 47 },
)

const HREFS = ['/orgs/1/workloads/a', '/orgs/1/workloads/b']

export const ruleSets = (least: number, most: number): fc.Arbitrary<RuleSet[]> =>
  fc
    .array(
      fc.record({
        enabled: rare(true, false),
        scopes: fc.array(fc.array(scopeEntry, { maxLength: 2 }), { maxLength: 2 }),
        rules: fc.array(rule(HREFS), { maxLength: 2 }),
        deny_rules: fc.array(rule(HREFS), { maxLength: 2 }),
      }),
      { minLength: least, maxLength: most },
    )
    .map((sets) =>
      sets.map((set, at) => {
        const href = `${DRAFT}/rule_sets/${at + 1}`
        const numbered = (rules: Rule[], kind: string) =>
          rules.map((one, index) => ({ ...one, href: `${href}/${kind}/${index + 1}` }))
        return {
          ...set,
          href,
          name: `set ${at + 1}`,
          rules: numbered(set.rules, 'sec_rules'),
          deny_rules: numbered(set.deny_rules, 'deny_rules'),
        }
      }),
    )

/** A source and a destination, each a workload or an address, at least one of them a workload. */
export const connection = fc
  .tuple(fc.constantFrom('both', 'both', 'source', 'destination'), fc.constant(HREFS))
  .chain(([which, [a = '', b = '']]) =>
    fc.record({
      source: randomEnd(which === 'destination' ? null : a),
      destination: randomEnd(which === 'source' ? null : b),
      flow,
    }),
  )

export { WEB }
