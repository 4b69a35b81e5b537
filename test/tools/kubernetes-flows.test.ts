/** Kubernetes workloads as ends of explain-flow and suggest-rule, in the forms that real PCEs answer. */
import t, { type Test } from 'tap'
import type { Json } from './harness.js'
import { startListed, type ListedPce } from './listed-pce.js'

const LABELS = [
  { href: '/orgs/1/labels/1', key: 'app', value: 'cart' },
  { href: '/orgs/1/labels/2', key: 'env', value: 'cluster' },
  { href: '/orgs/1/labels/3', key: 'app', value: 'shop' },
]
const label = (text: string): Json => LABELS.find(({ key, value }) => `${key}=${value}` === text)!
const idOf = (name: string) => `/orgs/1/kubernetes_workloads/${name}`
const CLUSTER = { href: '/orgs/1/container_clusters/c', name: 'k1' }
const pod = (name: string, labels: string, addresses: string[] | null, more: object = {}): Json => ({
  href: idOf(name),
  name,
  namespace: 'shop',
  kind: 'Deployment',
  labels: labels.split(' ').filter(Boolean).map(label),
  enforcement_mode: 'full',
  container_cluster: CLUSTER,
  private_ip_addresses: addresses,
  ...more,
})
const BASKET = pod('basket', 'app=cart env=cluster', ['10.85.0.9', '10.85.0.10'])
const DRIVER = pod('driver', 'app=cart env=cluster', ['10.85.0.7'])
const FRONT = pod('front', 'app=shop env=cluster', ['10.85.0.20'])
const PODS = [BASKET, DRIVER, FRONT]
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const RULE_SET = {
  href: `${SETS}/1`,
  name: 'shop to cart',
  enabled: true,
  scopes: [[]],
  rules: [
    {
      href: `${SETS}/1/sec_rules/1`,
      enabled: true,
      providers: [{ label: label('app=cart') }],
      consumers: [{ label: label('app=shop') }],
      ingress_services: [{ port: 8080, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
      unscoped_consumers: true,
    },
  ],
}
const start = (t: Test, pods: Json[] = PODS, { lists = {}, ...more }: Partial<ListedPce> = {}) =>
  startListed(t, {
    lists: { labels: LABELS, kubernetes_workloads: pods, 'sec_policy/rule_sets': [RULE_SET], ...lists },
    ...more,
  })
const PORT = { port: 8080, proto: 'tcp', lookback_days: 0 }
const REFUSED =
  'GET /orgs/1/kubernetes_workloads: the PCE answered 403 Forbidden: "refused: no kubernetes_workloads here"'
const NOBODY = 'Neither end enforces policy: "10.1.1.1" (no VEN), "10.1.1.2" (no VEN).'

t.test('an end is a pod by its address, name, href, labels and IP list', async (t) => {
  const list = { href: '/orgs/1/sec_policy/draft/ip_lists/1', name: 'Pods', ip_ranges: [{ from_ip: '10.85.0.9' }] }
  const bench = await start(t, PODS, { lists: { 'sec_policy/ip_lists': [list] } })
  const blocked = { verdict: 'blocked', why: 'dropped by "driver" (full) and "basket" (full): no rule allows it.' }
  for (const [source, destination] of [
    ['10.85.0.7', '10.85.0.9'],
    ['driver', 'workload:basket'],
    [idOf('driver'), idOf('basket')],
    ['10.85.0.7', 'iplist:Pods'],
  ]) {
    const answer = await bench.ok('explain-flow', { source, destination, ...PORT })
    t.same(answer.active, blocked, `${source} to ${destination}`)
    t.same([answer.source.modes, answer.destination.modes], [{ full: 1 }, { full: 1 }], 'both have a mode')
    t.same(answer.source.labels, { app: 'cart', env: 'cluster' }, 'and labels')
    t.same(answer.assumes, ['P106'], 'how rules reach pods is derived')
  }
  const answer = await bench.ok('explain-flow', {
    source: 'app=shop',
    destination: ['app=cart', 'env=cluster'],
    ...PORT,
  })
  t.same(answer.active, {
    verdict: 'allowed',
    why: 'All 2 pairs; "front" to "basket", for example: let through by "front" (full) and "basket" (full): allow rule "app=shop to app=cart, 8080/tcp" in "shop to cart".',
  })
  t.same([answer.source.members, answer.destination.members], [1, 2], 'labels stand for the pods that have them')
})

t.test('pods of one workload are two ends', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('explain-flow', { source: '10.85.0.9', destination: '10.85.0.10', ...PORT })
  t.equal(answer.active.verdict, 'blocked')
})

t.test('an address that several have is judged for all of them', async (t) => {
  const twin = pod('twin', 'app=cart', ['10.85.0.20'], { enforcement_mode: 'visibility_only' })
  const bench = await start(t, [...PODS, twin])
  const answer = await bench.ok('explain-flow', { source: '10.85.0.20', destination: 'basket', ...PORT })
  t.equal(answer.active.verdict, 'split')
  t.same(answer.source.modes, { full: 1, visibility_only: 1 })
  t.same(answer.not_judged, [
    '10.85.0.20 is the Kubernetes workload "front" and the Kubernetes workload "twin"; which of them a connection belongs to is not known, so all are judged.',
  ])
  const error = await bench.fails(
    'suggest-rule',
    { source: '10.85.0.20', destination: 'basket', port: 1, proto: 'tcp' },
    'ambiguous_name',
  )
  t.same(error.candidates, [
    { href: idOf('front'), name: 'front' },
    { href: idOf('twin'), name: 'twin' },
  ])
})

t.test('a name that several have is refused with namespace and cluster', async (t) => {
  const bench = await start(t, [...PODS, pod('front', '', null, { href: idOf('other'), namespace: null })])
  const error = await bench.fails('explain-flow', { source: 'front', destination: 'basket', ...PORT }, 'ambiguous_name')
  t.same(error.candidates, [
    { href: idOf('front'), name: 'front', namespace: 'shop', cluster: 'k1' },
    { href: idOf('other'), name: 'front', namespace: null, cluster: 'k1' },
  ])
})

t.test('what may be a pod is nobody with certainty only where no pod can be', async (t) => {
  const clusters = { container_clusters: [CLUSTER] }
  const why = (about: string) =>
    ['10.1.1.1', '10.1.1.2'].map((address) => `${address} may be that of a Kubernetes workload: ${about}.`)
  const NONE = 'Kubernetes workloads could not be read: this PCE has container clusters, but no list of their workloads'
  for (const [what, pods, more, verdict, notes] of [
    ['none has it', PODS, {}, 'allowed', []],
    ['no such list, and no clusters', [], { refused: { kubernetes_workloads: 404 } }, 'allowed', []],
    ['no such list', [], { refused: { kubernetes_workloads: 404 }, lists: clusters }, 'uncertain', why(NONE)],
    [
      'the account may not read them',
      [],
      { refused: { kubernetes_workloads: 403 } },
      'uncertain',
      why(`Kubernetes workloads could not be read: ${REFUSED}`),
    ],
    [
      'no addresses',
      [pod('silent', 'app=cart', null)],
      {},
      'uncertain',
      why('of 1 Kubernetes workload no address is known'),
    ],
  ] as const) {
    const bench = await start(t, [...pods], more)
    const { active, not_judged: notJudged } = await bench.ok('explain-flow', {
      source: '10.1.1.1',
      destination: '10.1.1.2',
      ...PORT,
    })
    t.equal(active.verdict, verdict, what)
    t.same(active.why === NOBODY, verdict === 'allowed', active.why)
    t.same(
      notJudged.filter((note: string) => note.includes(' be that of ')),
      notes,
      what,
    )
  }
})

t.test('a pod that only the traffic names is not nobody', async (t) => {
  const end = (name: string, ip: string) => ({
    ip,
    workload: { ...BASKET, href: idOf(name), name, hostname: null, managed: true, os_type: 'unknown' },
  })
  const row = {
    src: end('gone', '10.85.9.1'),
    dst: end('basket', '10.85.0.9'),
    service: { port: 8080, proto: 6 },
    num_connections: 40,
    policy_decision: 'blocked',
    flow_direction: 'inbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
  const bench = await start(t, PODS, { rows: [row] })
  const answer = await bench.ok('explain-flow', {
    ...PORT,
    source: '10.85.9.1',
    destination: 'basket',
    lookback_days: 7,
  })
  const why =
    'The traffic that was seen names 10.85.9.1 as "gone" (full), but no list has a workload there, so what it enforces today is not known.'
  t.same(answer.active, { verdict: 'uncertain', why })
  t.same(answer.draft, { verdict: 'uncertain', why: 'For the same reason.' })
  t.same(answer.observed.connections, { blocked: 40 })
  t.same(
    bench.queries().map(({ sources, destinations }) => [sources.include, destinations.include]),
    [[[[{ ip_address: '10.85.9.1' }]], [[{ ip_address: '10.85.0.9' }], [{ ip_address: '10.85.0.10' }]]]],
    'pods are searched by their addresses',
  )
})

t.test('suggest-rule names pods by their labels, and refuses those without', async (t) => {
  const bench = await start(t, [...PODS, pod('bare', '', ['10.85.0.30'])])
  const asked = { source: 'driver', destination: '10.85.0.20', port: 443, proto: 'tcp' }
  const answer = await bench.ok('suggest-rule', asked)
  t.equal(answer.suggestion.rule, 'app=cart + env=cluster to all workloads of the scope, 443/tcp')
  t.notMatch(JSON.stringify(answer), /kubernetes_workloads\//u)
  const error = await bench.fails('suggest-rule', { ...asked, source: 'bare' }, 'invalid_argument')
  t.equal(
    error.message,
    'The Kubernetes workload "bare" has no labels, and rules name Kubernetes workloads by labels alone.',
  )
})

t.test('a pod whose texts are null costs its own cells alone', async (t) => {
  const empty = { name: null, namespace: null, kind: null, labels: null, enforcement_mode: null }
  const bench = await start(t, [...PODS, pod('null', '', null, { ...empty, href: idOf('null') })])
  const { kubernetes_workloads: rows } = await bench.ok('get-kubernetes-workloads')
  t.same(rows.at(-1), { ...empty, href: idOf('null'), labels: [], security_policy_sync_state: null, cluster: 'k1' })
  const { active } = await bench.ok('explain-flow', { source: '192.0.2.1', destination: idOf('null'), ...PORT })
  t.equal(active.verdict, 'uncertain', 'without a mode nothing is certain')
})
