/**
 * A program that serves a PCE with a large policy, in a process of its own, and prints its address and key as JSON. Its
 * argument is the size as JSON. Every IP list and every tenth rule has a pending change.
 */
import { createPceSimulator } from '../../pce-simulator/index.js'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { largeEstate } from '../tools/large-estate.js'

/** Numbers of objects. Of the lists, `long` have as many domain names and networks as `names` says, the others five. */
export interface PolicySize {
  rules: number
  lists: number
  long: number
  names: number
  workloads: number
}

const RULES_PER_SET = 100
const DRAFT = '/orgs/1/sec_policy/draft'

const { rules, lists, long, names, workloads } = JSON.parse(process.argv[2]!) as PolicySize
const large = largeEstate({ workloads, events: 100, ipLists: 20, services: 20 })
const [paymentsRules] = large.ruleSets
const listAt = (at: number) => `${DRAFT}/ip_lists/${(at % lists) + 10}`
const ipLists = Array.from({ length: lists }, (_, at) => ({
  ...large.ipLists[0]!,
  href: listAt(at),
  name: `list-${at}`,
  description: '',
  ip_ranges: Array.from({ length: at < long ? names : 5 }, (_, n) => ({
    from_ip: n % 2 === 0 ? `10.${at % 250}.${n % 250}.0/24` : `2001:${at.toString(16)}:${n.toString(16)}::/48`,
  })),
  // Every seventh is a pattern.
  fqdns: Array.from({ length: at < long ? names : 5 }, (_, n) => ({
    fqdn: `${n % 7 === 0 ? '*.' : ''}host-${n}.list-${at}.example.com`,
  })),
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
const estate = { ...large, ipLists, ruleSets: [...smallEstate().ruleSets, ...ruleSets] }
const simulator = await createPceSimulator({ estate, pollsUntilDone: 1, retryAfter: 0, totalCount: 'all' })
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

for (const { href, name, fqdns } of ipLists)
  await change(href, { fqdns: [...fqdns.slice(1), { fqdn: `new.${name}.example.com` }] })
for (const { rules: own } of ruleSets)
  for (const [at, { href }] of own.entries())
    if (at % 10 === 0) await change(href, { ingress_services: [{ port: 9999, proto: 6 }] })
console.log(JSON.stringify({ url, key, secret }))
process.stdin.once('end', () => process.exit()).resume()
