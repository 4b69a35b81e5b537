/**
 * A program that serves a PCE with a large policy, in a process of its own, and prints its address and key as JSON. Its
 * argument is the size as JSON. Some IP lists and rules have a pending change.
 */
import { createPceSimulator } from '../../pce-simulator/index.js'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { largeEstate } from '../tools/large-estate.js'

/**
 * Numbers of objects. Of the lists, `long` have as many domain names and networks as `names` says, the others five;
 * `changed` of them have a pending change.
 */
export interface PolicySize {
  rules: number
  lists: number
  long: number
  changed: number
  names: number
  workloads: number
  /** Of the rules, one in so many has a pending change; one in ten by default. */
  oneChangedIn?: number
  /** True if every second long list has addresses alone, and the others names alone. By default each has both. */
  isHalved?: boolean
  /** Number of conversations with addresses in lists, in place of the one of the small estate. */
  flows?: number
  /** PEM of the certificate and its key, with which the PCE speaks https. */
  tls?: { cert: string; key: string }
}

const RULES_PER_SET = 100
const DRAFT = '/orgs/1/sec_policy/draft'

const size = JSON.parse(process.argv[2]!) as PolicySize
const { rules, lists, long, changed, names, workloads, isHalved, flows, tls, oneChangedIn = 10 } = size
/** If there are many long lists, they share the entries of ten, because all together they would be gigabytes. */
const SHAPES = long > 100 ? 10 : long
const large = largeEstate({ workloads, events: 100, ipLists: 20, services: 20 })
const [paymentsRules] = large.ruleSets
const listAt = (at: number) => `${DRAFT}/ip_lists/${(at % lists) + 10}`
const countsOf = (shape: number, length: number) =>
  isHalved !== true ? [length, length] : shape % 2 === 0 ? [0, length] : [length, 0]
const contentOf = (shape: number, length: number) => {
  const [addresses, domains] = countsOf(shape, length)
  return {
    ip_ranges: Array.from({ length: addresses! }, (_, n) => ({
      // Half of the addresses between them are in no network, so that neighbours do not make one.
      from_ip:
        n % 2 === 0
          ? `10.${shape % 250}.${n >> 5}.${((n >> 1) & 15) << 4}/29`
          : `2001:${shape.toString(16)}:${n.toString(16)}::/48`,
    })),
    // Every seventh is a pattern.
    fqdns: Array.from({ length: domains! }, (_, n) => ({
      fqdn: `${n % 7 === 0 ? '*.' : ''}host-${n}.list-${shape}.example.com`,
    })),
  }
}
const shapes = Array.from({ length: SHAPES }, (_, shape) => contentOf(shape, names))
const ipLists = Array.from({ length: lists }, (_, at) => ({
  ...large.ipLists[0]!,
  href: listAt(at),
  // None is part of another, because a PCE finds names by their parts.
  name: `list-${String(at).padStart(4, '0')}`,
  description: '',
  ...(at < long ? shapes[at % SHAPES]! : contentOf(at, 5)),
}))
const ruleSets = Array.from({ length: Math.ceil(rules / RULES_PER_SET) }, (_, set) => ({
  ...paymentsRules!,
  href: `${DRAFT}/rule_sets/${set + 10}`,
  name: `set-${set}`,
  scopes: [[]],
  rules: Array.from({ length: RULES_PER_SET }, (_, n) => ({
    ...paymentsRules!.rules![0]!,
    href: `${DRAFT}/rule_sets/${set + 10}/sec_rules/${set * RULES_PER_SET + n + 10}`,
    providers:
      n % 2 === 0
        ? [{ label: { href: SMALL.payments } }]
        : [{ ip_list: { href: listAt(n % 4 === 1 ? n % long : set * 37 + n) } }],
    consumers: n % 2 === 0 ? [{ ip_list: { href: listAt(set * 53 + n) } }] : [{ actors: 'ams' as const }],
    ingress_services: [{ port: 1000 + n, proto: 6 }],
    unscoped_consumers: true,
  })),
}))
const [daily] = [...large.conversations]
const hostAt = (at: number) => ({ workload: large.workloads[at % workloads]!.href, ip: '2001:db8::1' })
/** They are from an address in a list, to a domain name in one, and between two applications. */
const conversations = Array.from({ length: flows ?? 0 }, (_, at) => {
  const outside = { ip: `10.${at % SHAPES}.${at % 100}.7`, fqdn: `host-${at}.list-${at % SHAPES}.example.com` }
  const [src, dst] = [
    [{ ip: outside.ip }, hostAt(at)],
    [hostAt(at), outside],
    [hostAt(4 * at), hostAt(4 * at + 1)],
  ][at % 3]!
  return { ...daily!, src: src!, dst: dst!, service: { ...daily!.service, port: 1000 + (at % RULES_PER_SET) } }
})
const estate = {
  ...large,
  ...(flows !== undefined && { conversations }),
  ipLists,
  ruleSets: [...smallEstate().ruleSets, ...ruleSets],
}
const simulator = await createPceSimulator({
  estate,
  pollsUntilDone: 1,
  retryAfter: 0,
  totalCount: 'all',
  ...(tls && { tls }),
})
const url = await simulator.listen()
const { key, secret } = simulator.credentials
const headers = {
  'content-type': 'application/json',
  authorization: `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`,
}

async function write(method: 'POST' | 'PUT', href: string, body: object): Promise<Response> {
  const response = await fetch(`${url}/api/v2${href}`, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${href}: ${response.status} ${await response.text()}`)
  return response
}
const change = (href: string, body: object) => write('PUT', href, body)

for (const { href, name, fqdns, ip_ranges: ranges } of ipLists.slice(0, changed))
  await change(href, {
    fqdns: [...fqdns.slice(1), { fqdn: `new.${name}.example.com` }],
    ...(fqdns.length === 0 && { ip_ranges: ranges.slice(1) }),
  })
for (const [at, { href }] of ruleSets.flatMap(({ rules: own }) => own).entries())
  if (at % oneChangedIn === 0) await change(href, { ingress_services: [{ port: 9999, proto: 6 }] })
const created = await write('POST', '/orgs/1/container_clusters', { name: 'cluster' })
const cluster = (await created.json()) as { href: string }
const labels = [SMALL.payments, SMALL.prod].map((href) => ({ href }))
const mode = { managed: true, enforcement_mode: 'visibility_only' }
await write('POST', `${cluster.href}/container_workload_profiles`, { name: 'profile', ...mode, assign_labels: labels })
console.log(JSON.stringify({ url, key, secret }))
process.stdin.once('end', () => process.exit()).resume()
