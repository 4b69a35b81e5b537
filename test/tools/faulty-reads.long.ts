/**
 * Reads that an answer can do without, under every fault that needs no waiting: each call ends in a clear error, or its answer
 * says that these workloads are not known; it never says what it would say if there were none.
 */
import t, { type Test } from 'tap'
import { FAULTS } from '../pce-client/faults/faults.js'
import type { Fault } from '../pce-client/faults/faulty-gateway.js'
import { WEEK, type Json } from './harness.js'
import { startFaulty } from './listed-pce.js'

const CART = { href: '/orgs/1/labels/1', key: 'app', value: 'cart' }
const PROD = { href: '/orgs/1/labels/2', key: 'env', value: 'prod' }
const pod = (name: string, ip: string): Json => ({
  href: `/orgs/1/kubernetes_workloads/${name}`,
  name,
  namespace: 'shop',
  labels: [CART, PROD],
  enforcement_mode: 'full',
  container_cluster: { href: '/orgs/1/container_clusters/c', name: 'k1' },
  private_ip_addresses: [ip],
})
const host = (name: string, ip: string): Json => ({
  href: `/orgs/1/workloads/${name}`,
  name,
  hostname: name,
  managed: true,
  online: true,
  enforcement_mode: 'full',
  labels: [CART, PROD],
  interfaces: [{ name: 'eth0', address: ip }],
})
const [HOME, DB] = [host('home', '10.1.0.7'), host('db', '10.1.0.1')]
const OUTSIDE = {
  src: { ip: '10.1.0.7', workload: HOME },
  dst: { ip: '10.1.0.1' },
  service: { port: 8080, proto: 6 },
  num_connections: 10,
  policy_decision: 'blocked',
  flow_direction: 'outbound',
  network: { name: 'External', href: '/orgs/1/networks/External' },
  client_type: 'endpoint',
  timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
}
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const PCE = {
  lists: {
    labels: [CART, PROD],
    workloads: [HOME, DB],
    kubernetes_workloads: [pod('basket', '10.85.0.9'), pod('driver', '10.85.0.7')],
    // Whether the flow is allowed depends on who its source is.
    'sec_policy/rule_sets': [
      {
        href: `${SETS}/1`,
        name: 'cart',
        enabled: true,
        scopes: [[]],
        rules: [
          {
            href: `${SETS}/1/sec_rules/1`,
            enabled: true,
            providers: [{ label: CART }],
            consumers: [{ label: CART }],
            ingress_services: [{ port: 8080, proto: 6 }],
            resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
            unscoped_consumers: true,
          },
        ],
      },
    ],
    'sec_policy/services': [
      { href: '/orgs/1/sec_policy/draft/services/1', name: 'All Services', service_ports: [{ proto: -1 }] },
    ],
  },
  rows: [OUTSIDE],
}

const PODS = /\/kubernetes_workloads(?:\?|$)/
const HOSTS = /\/workloads(?:\?|$)/
const UNREAD = /could not be read/
const CART_PROD = { app_name: 'cart', env_name: 'prod' }
const FLOW = { port: 8080, proto: 'tcp', lookback_days: 0 }
/** What a call asks, what it reads under faults, and where its answer says that this is not known. */
const CASES: readonly [tool: string, args: object, on: RegExp, says: (answer: Json) => boolean][] = [
  ['get-workload-enforcement-status', CART_PROD, PODS, ({ note = '' }) => UNREAD.test(note)],
  ['enforcement-readiness', CART_PROD, PODS, ({ recommendations: all }) => all.some((one: string) => UNREAD.test(one))],
  [
    'explain-flow',
    { source: '10.85.0.7', destination: '10.85.0.9', ...FLOW },
    PODS,
    ({ active, not_judged: notes }) =>
      active.verdict === 'uncertain' && notes.some((note: string) => UNREAD.test(note)),
  ],
  ['explain-flow', { source: 'driver', destination: 'basket', ...FLOW }, PODS, () => false],
  [
    'get-traffic-flows',
    { ...WEEK, group_by: ['dst_name'] },
    HOSTS,
    ({ coverage_note: note = '' }) => UNREAD.test(note),
  ],
  [
    'get-traffic-flows-summary',
    WEEK,
    HOSTS,
    ({ totals, external_destinations: external }) =>
      UNREAD.test(totals.coverage_note ?? '') &&
      external.every(({ to }: Json) => !String(to).startsWith('10.1.0.1 (Any')),
  ],
]
/** Errors that say what the PCE did: by their code, or in their message. */
const CLEAR = /"error":"(?:rate_limited|pce_[a-z_]+|invalid_response)"|could not be read/

/** Lists of something other than workloads. */
const SHAPES = [
  '{}',
  '{"x":1}',
  '{"href":7}',
  '7',
  '"x"',
  '{"href":"/orgs/1/labels/1","key":"app","value":"cart"}',
].map((item): Fault => ({
  name: `the list is of ${item}`,
  handled: true,
  misshapes: true,
  strike: (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(`[${item}]`),
}))

async function outcomeOf(bench: Awaited<ReturnType<typeof startFaulty>>, tool: string, args: object): Promise<Json> {
  return bench.ok(tool, args).catch((error: unknown) => String(error))
}

for (const [tool, args, on, says] of CASES) {
  t.test(`${tool} ${JSON.stringify(args)}`, async (t: Test) => {
    const bench = await startFaulty(t, PCE)
    const clean = await outcomeOf(bench, tool, args)
    t.not(typeof clean, 'string', `without a fault: ${JSON.stringify(clean).slice(0, 300)}`)
    const counts = { answers: 0, errors: 0, same: 0 }
    for (const fault of [...FAULTS.filter(({ stalls }) => stalls !== true), ...SHAPES]) {
      for (const once of [true, false]) {
        bench.begin({ fault, from: 0, once, on })
        const outcome = await outcomeOf(bench, tool, args)
        const where = `${fault.name}, ${once ? 'once' : 'always'}`
        if (bench.struck() === 0) t.fail(`${where}: nothing was struck`)
        if (JSON.stringify(outcome) === JSON.stringify(clean)) counts.same += 1
        else if (typeof outcome === 'string') {
          counts.errors += 1
          if (!CLEAR.test(outcome)) t.fail(`${where}: ${outcome}`)
        } else {
          counts.answers += 1
          if (!says(outcome)) t.fail(`${where}: ${JSON.stringify(outcome)}`)
        }
      }
    }
    t.comment(JSON.stringify(counts))
    t.ok(counts.same > 0 && counts.answers + counts.errors > 0, JSON.stringify(counts))
  })
}
