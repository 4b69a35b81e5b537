/**
 * A program that serves a PCE with a large policy, in a process of its own, and prints its address and key as JSON. Its
 * argument is the size as JSON. Some IP lists and every tenth rule have a pending change.
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
  /** True for an estate without traffic. */
  isQuiet?: boolean
  /** PEM of the certificate and its key, with which the PCE speaks https. */
  tls?: { cert: string; key: string }
}

const RULES_PER_SET = 100
const DRAFT = '/orgs/1/sec_policy/draft'

/** Long lists of the same shape share their names, because millions of them would be gigabytes. */
const SHAPES = 10

const { rules, lists, long, changed, names, workloads, isQuiet, tls } = JSON.parse(process.argv[2]!) as PolicySize
const large = largeEstate({ workloads, events: 100, ipLists: 20, services: 20 })
const [paymentsRules] = large.ruleSets
const listAt = (at: number) => `${DRAFT}/ip_lists/${(at % lists) + 10}`
const contentOf = (shape: number, length: number) => ({
  ip_ranges: Array.from({ length }, (_, n) => ({
    from_ip: n % 2 === 0 ? `10.${shape % 250}.${n % 250}.0/24` : `2001:${shape.toString(16)}:${n.toString(16)}::/48`,
  })),
  // Every seventh is a pattern.
  fqdns: Array.from({ length }, (_, n) => ({
    fqdn: `${n % 7 === 0 ? '*.' : ''}host-${n}.list-${shape}.example.com`,
  })),
})
const shapes = Array.from({ length: Math.min(SHAPES, long) }, (_, shape) => contentOf(shape, names))
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
const estate = {
  ...large,
  ...(isQuiet === true && { conversations: [] }),
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

async function change(href: string, body: object): Promise<void> {
  const response = await fetch(`${url}/api/v2${href}`, { method: 'PUT', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${href}: ${response.status} ${await response.text()}`)
}

for (const { href, name, fqdns } of ipLists.slice(0, changed))
  await change(href, { fqdns: [...fqdns.slice(1), { fqdn: `new.${name}.example.com` }] })
for (const { rules: own } of ruleSets)
  for (const [at, { href }] of own.entries())
    if (at % 10 === 0) await change(href, { ingress_services: [{ port: 9999, proto: 6 }] })
console.log(JSON.stringify({ url, key, secret }))
process.stdin.once('end', () => process.exit()).resume()
