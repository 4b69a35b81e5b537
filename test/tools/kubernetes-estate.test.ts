/** Kubernetes workloads among the workloads of every tool that counts or judges, in the forms that real PCEs answer. */
import t, { type Test } from 'tap'
import type { Json } from './harness.js'
import { startListed, type ListedPce } from './listed-pce.js'

const label = (id: number, key: string, value: string) => ({ href: `/orgs/1/labels/${id}`, key, value })
const CART = label(1, 'app', 'cart')
const PROD = label(2, 'env', 'prod')
const SHOP = label(3, 'app', 'shop')
const LABELS = [CART, PROD, SHOP]

const pod = (name: string, mode: string | null, labels: Json[], ip: string): Json => ({
  href: `/orgs/1/kubernetes_workloads/${name}`,
  name,
  namespace: 'shop',
  kind: 'Deployment',
  // Kubernetes workloads name their labels by href alone in some releases.
  labels: labels.map(({ href }) => ({ href })),
  enforcement_mode: mode,
  visibility_level: 'flow_summary',
  container_cluster: { href: '/orgs/1/container_clusters/c', name: 'k1' },
  private_ip_addresses: [ip],
})
const host = (name: string, mode: string, labels: Json[], ip: string): Json => ({
  href: `/orgs/1/workloads/${name}`,
  name,
  hostname: name,
  managed: true,
  online: true,
  enforcement_mode: mode,
  visibility_level: 'flow_summary',
  labels,
  interfaces: [{ name: 'eth0', address: ip }],
  ven: { href: `/orgs/1/vens/${name}`, hostname: name, status: 'active' },
})
const PODS = [
  pod('basket', 'full', [CART, PROD], '10.85.0.9'),
  pod('driver', 'visibility_only', [CART, PROD], '10.85.0.7'),
  pod('front', 'full', [SHOP, PROD], '10.85.0.20'),
]
const DB = host('db-1', 'full', [CART, PROD], '10.1.0.1')

/** A row between two of these. */
function row(from: Json, to: Json, decision: string, connections = 10): Json {
  const end = ({ interfaces, private_ip_addresses: ips, hostname = null, ...one }: Json) => ({
    ip: ips?.[0] ?? interfaces[0].address,
    workload: { ...one, hostname, managed: true, os_type: 'unknown' },
  })
  return {
    src: end(from),
    dst: end(to),
    service: { port: 8080, proto: 6 },
    num_connections: connections,
    policy_decision: decision,
    flow_direction: 'inbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
}
const ALL = {
  href: '/orgs/1/sec_policy/draft/services/1',
  name: 'All Services',
  service_ports: [{ proto: -1 }],
}
const ROWS = [row(PODS[2], PODS[0], 'blocked'), row(PODS[2], DB, 'allowed')]

const start = (t: Test, { lists = {}, ...more }: Partial<ListedPce> = {}) =>
  startListed(t, {
    lists: { labels: LABELS, workloads: [DB], kubernetes_workloads: PODS, 'sec_policy/services': [ALL], ...lists },
    rows: ROWS,
    ...more,
  })
const REFUSED = { refused: { kubernetes_workloads: 403 } }
const WHY =
  'Kubernetes workloads could not be read (GET /orgs/1/kubernetes_workloads: the PCE answered 403 Forbidden: "refused: no kubernetes_workloads here"), so what concerns them is not known.'
const GONE = { refused: { kubernetes_workloads: 404 } }
const CART_PROD = { app_name: 'cart', env_name: 'prod' }

t.test('get-workload-enforcement-status counts them', async (t) => {
  const bench = await start(t)
  const group = { app: 'cart', env: 'prod', workload_count: 3, enforcement_modes: { full: 2, visibility_only: 1 } }
  t.same(await bench.ok('get-workload-enforcement-status', CART_PROD), {
    total_workloads: 3,
    kubernetes_workloads: 2,
    global_enforcement_modes: { full: 2, visibility_only: 1 },
    managed_only: { total: 3, enforcement_modes: { full: 2, visibility_only: 1 } },
    offline: 0,
    app_groups: [{ ...group, is_mixed: true }],
    app_groups_total: 1,
    mixed_enforcement_apps: [{ app: 'cart', env: 'prod', modes: { full: 2, visibility_only: 1 } }],
    mixed_count: 1,
    truncated: false,
  })
  const all = await bench.ok('get-workload-enforcement-status')
  t.same([all.total_workloads, all.kubernetes_workloads], [4, 3])
  const alone = {
    total_workloads: 1,
    global_enforcement_modes: { full: 1 },
    managed_only: { total: 1, enforcement_modes: { full: 1 } },
    offline: 0,
    app_groups: [{ app: 'cart', env: 'prod', workload_count: 1, enforcement_modes: { full: 1 }, is_mixed: false }],
    app_groups_total: 1,
    mixed_enforcement_apps: [],
    mixed_count: 0,
    truncated: false,
  }
  t.same(await (await start(t, REFUSED)).ok('get-workload-enforcement-status'), { note: WHY, ...alone })
  t.same(await (await start(t, GONE)).ok('get-workload-enforcement-status'), alone, 'older releases have none')
})

t.test('get-workloads counts those that its filters select too, and says if it cannot', async (t) => {
  const left = async (bench: Awaited<ReturnType<typeof start>>, args = {}) =>
    (await bench.ok('get-workloads', args)).kubernetes_workloads_left_out
  const bench = await start(t)
  t.same(
    [await left(bench), await left(bench, { labels: ['app=cart'] }), await left(bench, { managed: false })],
    [PODS.length, 2, undefined],
  )
  t.equal(await left(await start(t, REFUSED)), null)
  t.equal(await left(await start(t, GONE)), undefined, 'older releases have none')
})

t.test('enforcement-readiness and the coverage report know their modes', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('enforcement-readiness', CART_PROD)
  t.same(answer.workloads, {
    total: 3,
    enforcement_modes: { full: 2, visibility_only: 1 },
    managed_only: { total: 3, enforcement_modes: { full: 2, visibility_only: 1 } },
    offline: 0,
    not_enforceable: 0,
  })
  const factor = ({ factors }: Json) => factors.find((one: Json) => one.factor === 'enforcement_mode').reason
  t.equal(factor(answer), '2 full, 1 visibility_only of 3 with a VEN or in Kubernetes')
  t.ok(
    answer.recommendations.includes(
      '2 Kubernetes workloads of 3: their mode is that of the container workload profile of their namespace, and is changed there.',
    ),
  )
  const unread = await (await start(t, REFUSED)).ok('enforcement-readiness', CART_PROD)
  t.same(unread.workloads.total, 1)
  t.match(JSON.stringify(unread.recommendations), /their modes are not known/u)
  const none = await (await start(t, { ...REFUSED, lists: { workloads: [] } })).ok('enforcement-readiness', CART_PROD)
  t.equal(none.recommendations[0].startsWith(`No score: No workload has these two labels. ${WHY}`), true)
})

t.test('a ringfence holds them, and says where it does not know them', async (t) => {
  const args = { ...CART_PROD, dry_run: true }
  const lists = { workloads: [] }
  const answer = await (await start(t, { lists })).ok('create-ringfence', args)
  t.same(answer.workloads, { total: 2, managed: 2, enforcement_modes: { full: 1, visibility_only: 1 } })
  const bench = await start(t, { ...REFUSED, lists })
  const { warnings } = await bench.ok('create-ringfence', args)
  t.ok(warnings.includes(WHY), 'that nothing is known')
  const error = await bench.fails('create-ringfence', CART_PROD, 'no_workloads')
  t.ok(error.message.endsWith(WHY), error.message)
})

t.test('compliance-check judges them, without their VENs', async (t) => {
  const args = { framework: 'nist' }
  const found = (answer: Json, part: RegExp) =>
    answer.findings
      .filter(({ looked_at: at }: Json) => part.test(at))
      .map(({ status, detail }: Json) => [status, detail])
  const bench = await start(t)
  const answer = await bench.ok('compliance-check', args)
  t.same([answer.workloads_analyzed, answer.enforcement_modes], [4, { full: 3, visibility_only: 1 }])
  const ONLINE = 'All 1 managed workload are online and report flows.'
  const UNPROVEN = `Not proven: ${WHY}`
  for (const [what, given, modes, online] of [
    [
      'all in full',
      { lists: { kubernetes_workloads: [PODS[0], PODS[2]] } },
      ['PASS', 'All 3 managed workloads are in full enforcement.'],
      `PASS: ${ONLINE}`,
    ],
    [
      'no mode',
      { lists: { kubernetes_workloads: [pod('x', null, [CART, PROD], '10.85.0.30')] } },
      ['INFO', '1 workload in a mode that the PCE does not tell.'],
      `PASS: ${ONLINE}`,
    ],
    [
      'refused',
      REFUSED,
      ['INFO', `All 1 managed workload are in full enforcement. ${UNPROVEN}`],
      `INFO: ${ONLINE} ${UNPROVEN}`,
    ],
  ] as const) {
    const one = await (await start(t, given)).ok('compliance-check', args)
    t.same(found(one, /^enforcement modes of managed/u), [modes], what)
    t.ok(found(one, /online and report/u)[0][1].endsWith(online), what)
    t.equal(
      one.recommendation.includes('not in the inventory'),
      what === 'no mode',
      'pods that were not read are not gone',
    )
  }
  const watched = answer.findings.find(({ looked_at: at }: Json) => at.includes('online and report'))
  t.equal(watched.evidence.counts.kubernetes_left_out, 3)
})

const LIMITS =
  'its mode and labels come from the container workload profile of its namespace, and rules name it by its labels alone'
const LEFT_OUT =
  '2 Kubernetes workloads are left out: their modes and labels come from the container workload profiles of namespaces.'

t.test('what changes workloads counts them as left out', async (t) => {
  const bench = await start(t)
  const mode = { ...CART_PROD, enforcement_mode: 'selective', dry_run: true }
  const label = { selection: { labels: ['app=cart', 'env=prod'] }, set: ['app=shop'], dry_run: true }
  const { dry_run: _dry, ...preview } = mode
  for (const [tool, args, countOf] of [
    ['set-enforcement-mode', mode, ({ selection }: Json) => selection.kubernetes_workloads_left_out],
    ['preview-enforcement-change', preview, ({ selection }: Json) => selection.kubernetes_workloads_left_out],
    ['label-workloads', label, ({ kubernetes_workloads_left_out: left }: Json) => left],
  ] as const) {
    const answer = await bench.ok(tool, args)
    t.equal(countOf(answer), 2, tool)
    t.ok(answer.warnings.includes(LEFT_OUT), `${tool}: ${answer.warnings}`)
    const unread = await (await start(t, REFUSED)).ok(tool, args)
    t.equal(countOf(unread), undefined, tool)
    t.ok(unread.warnings.includes(WHY), `${tool}: ${unread.warnings}`)
    const alone = await start(t, { lists: { workloads: [] } })
    const error = await alone.fails(tool, args, 'no_workloads')
    t.ok(error.message.endsWith(LEFT_OUT), error.message)
  }
  const lacking = await bench.ok('find-unlabelled-workloads', {
    missing: ['env'],
    labels: 'app=cart',
    suggest_from: [],
  })
  t.same([lacking.workloads_total, lacking.kubernetes_workloads_left_out], [1, 2])
})

t.test('what the PCE cannot do to one is said', async (t) => {
  const bench = await start(t)
  const { href } = PODS[0]
  const named = `No workload is named exactly "basket". A Kubernetes workload is: ${LIMITS}.`
  const byHref = `"${href}" is the href of a Kubernetes workload: ${LIMITS}.`
  for (const [tool, args] of [
    ['update-workload', { description: 'x' }],
    ['delete-workload', {}],
  ] as const) {
    t.equal((await bench.fails(tool, { ...args, name: 'basket' }, 'not_found')).message, named, tool)
    t.equal((await bench.fails(tool, { ...args, href }, 'invalid_href')).message, byHref, tool)
  }
  const mode = { enforcement_mode: 'full' }
  t.equal((await bench.fails('set-enforcement-mode', { ...mode, workloads: ['basket'] }, 'not_found')).message, named)
  const labels = await bench.fails('label-workloads', { workloads: ['basket', href], set: ['app=shop'] }, 'not_found')
  t.equal(
    labels.message,
    `workloads: "basket" is a Kubernetes workload: ${LIMITS}; "${href}" is a Kubernetes workload: ${LIMITS}. Nothing was written.`,
  )
})

t.test('find-rules finds the rules of a pod by name, href and address', async (t) => {
  const sets = '/orgs/1/sec_policy/draft/rule_sets'
  const rule = {
    href: `${sets}/1/sec_rules/1`,
    enabled: true,
    providers: [{ label: CART }],
    consumers: [{ label: SHOP }],
    ingress_services: [{ port: 8080, proto: 6 }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    unscoped_consumers: true,
  }
  const bench = await start(t, {
    lists: { 'sec_policy/rule_sets': [{ href: `${sets}/1`, name: 's', enabled: true, scopes: [[]], rules: [rule] }] },
  })
  for (const applies_to of ['basket', PODS[0].href, '10.85.0.9']) {
    const { rules } = await bench.ok('find-rules', { applies_to })
    t.same(
      rules.map(({ href }: Json) => href),
      [rule.href],
      applies_to,
    )
  }
})

const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const RULE_SET = { href: `${SETS}/1`, name: 's', enabled: true, scopes: [[]], rules: [] }
const BROWSER = {
  href: '/orgs/1/sec_policy/draft/services/2',
  name: 'Browser',
  windows_egress_services: [{ process_name: 'browser.exe' }],
}
const DESK = { ...host('desk-1', 'full', [CART, PROD], '10.1.0.2'), os_id: 'win-x86_64-server' }
const RULES = {
  workloads: [DESK],
  'sec_policy/services': [ALL, BROWSER],
  'sec_policy/rule_sets': [RULE_SET],
}

t.test('a rule about Windows programs warns of the pods among its consumers', async (t) => {
  const warn = async (consumers: unknown[], more: Partial<ListedPce> = {}) => {
    const bench = await start(t, { ...more, lists: { ...RULES, ...more.lists } })
    const args = {
      ruleset_name: 's',
      providers: ['app=cart'],
      consumers,
      ingress_services: [{ port: 443, proto: 'tcp' }],
      egress_services: [{ service: 'Browser' }],
      dry_run: true,
    }
    const { policy_widening_warning: warning } = await bench.ok('create-rule', args)
    return warning && [warning.non_windows_consumer_count, warning.examples, warning.message]
  }
  const portAlone = (count: number) =>
    `${count} consumers without a Windows VEN match this rule by port alone, whatever process connects: "Browser" is checked on Windows only.`
  t.same(await warn(['app=cart', 'env=prod']), [2, ['basket', 'driver'], portAlone(2)], 'labels of different keys')
  t.same(await warn(['app=cart', 'app=shop']), [3, ['basket', 'driver', 'front'], portAlone(3)], 'of one key')
  t.same(await warn(['ams']), [3, ['basket', 'driver', 'front'], portAlone(3)], 'all workloads')
  t.same(
    await warn(['ams', { key: 'app', value: 'cart', exclusion: true }]),
    [1, ['front'], portAlone(1)],
    'but those with a label',
  )
  t.same(await warn(['app=cart'], { lists: { kubernetes_workloads: [] } }), undefined, 'there are none')
  t.same(await warn(['app=cart'], GONE), undefined, 'the release does not know them')
  t.same(await warn(['app=cart'], REFUSED), [undefined, [], WHY], 'they could not be read')
  t.same(
    await warn(['app=cart'], { ...REFUSED, lists: { workloads: [host('lin-1', 'full', [CART, PROD], '10.1.0.3')] } }),
    [undefined, ['lin-1'], `${portAlone(1)} ${WHY}`],
    'the hosts among the consumers are named, and how many there are in all is not known',
  )
})

t.test('what is counted beside scopes without workloads holds them', async (t) => {
  const empty = { ...RULE_SET, scopes: [[{ label: label(9, 'app', 'gone') }]] }
  const lists = {
    labels: [...LABELS, label(9, 'app', 'gone')],
    'sec_policy/rule_sets': [empty],
  }
  const summary = async (more: Partial<ListedPce> = {}) =>
    (await (await start(t, { ...more, lists: { ...lists, ...more.lists } })).ok('find-redundant-rules', {})).summary
  const none = 'None of the 0 enabled rules of the draft is found redundant.'
  t.equal(await summary(), `${none} 1 rule set with scopes that none of 4 workloads is in.`)
  t.equal(await summary(GONE), `${none} 1 rule set with scopes that none of 1 workloads is in.`)
  t.equal(
    await summary({ lists: { kubernetes_workloads: [] } }),
    `${none} 1 rule set with scopes that none of 1 workloads is in.`,
  )
  t.equal(await summary(REFUSED), none, 'nothing is said where they could not be read')
})

t.test('a rule that names one by its href is refused, never stored without it', async (t) => {
  const { href } = PODS[0]!
  const bench = await start(t, { lists: RULES })
  const on = { providers: ['app=cart'], consumers: ['app=shop'], ingress_services: ['All Services'] }
  for (const named of [href, { href }]) {
    for (const [tool, args] of [
      ['create-rule', { ruleset_name: 's', ...on, consumers: [named] }],
      ['create-rule', { ruleset_name: 's', ...on, providers: ['app=shop', named] }],
      ['create-deny-rule', { ruleset_name: 's', ...on, providers: [named] }],
      ['create-ruleset', { name: 'new', scopes: [[]], rules: [{ ...on, consumers: [named] }] }],
    ] as [string, Json][])
      t.match(
        (await bench.fails(tool, args, 'invalid_actor')).message,
        /Rules name a Kubernetes workload by its labels alone\.$/,
        `${tool} ${JSON.stringify(named)}`,
      )
  }
  t.same(bench.writes(), [])
})

t.test('resolve-policy says of each either that its addresses are in the rows, or that it has none', async (t) => {
  const rule = {
    href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1',
    enabled: true,
    providers: [{ label: CART }],
    consumers: [{ label: SHOP }],
    ingress_services: [{ href: ALL.href }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  }
  const set = { href: '/orgs/1/sec_policy/draft/rule_sets/1', name: 'Cart', enabled: true, scopes: [[]], rules: [rule] }
  const bare = { ...pod('bare', 'full', [CART, PROD], ''), private_ip_addresses: [] }
  const lists = { kubernetes_workloads: [...PODS, bare], 'sec_policy/rule_sets': [set] }
  const answer = await (await start(t, { lists })).ok('resolve-policy', { labels: ['app=cart', 'env=prod'] })
  t.same(answer.rules[0].destination, ['10.1.0.1', '10.85.0.7', '10.85.0.9'])
  t.same(answer.not_resolved, [
    { what: 'without_address', count: 1, examples: ['bare'], means: 'rules name these workloads; no row has them' },
    {
      what: 'kubernetes',
      count: 3,
      examples: ['front', 'basket', 'driver'],
      means: 'their addresses of now are in the rows, and change whenever they are started',
    },
  ])
})
