/**
 * A PCE that answers something else than it should. Before a write that stops the call with a clear error; after it, what is
 * certain is reported. The relay passes everything to a simulator and may replace what comes back.
 */
import t from 'tap'
import { partial } from '../partial.js'
import type { Json } from './harness.js'
import { startTwisted, type Answer, type Twist } from './twisted.js'

const json = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body) })
/** Replaces the answers of one kind of request. */
const on =
  (method: string, path: RegExp, answer: (real: Answer) => Answer): Twist =>
  (request, real) =>
    request.method === method && path.test(request.path) ? answer(real) : undefined

t.test('pending changes of an odd shape', async (t) => {
  const bench = await startTwisted(t)
  await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  for (const body of ['{"x":1}', '7', '[null]', '{"ip_lists":7}', '', 'null', '[]', '{"error":"busy"}']) {
    bench.twist(on('GET', /\/sec_policy\/pending$/, () => ({ status: 200, body })))
    for (const [tool, args] of [
      ['compare-draft-active', {}],
      ['provision-policy', {}],
      ['provision-policy', { hrefs: ['/orgs/1/sec_policy/draft/ip_lists/1'] }],
    ] as const) {
      const { message } = await bench.fails(tool, args, 'invalid_response')
      t.match(message, /something other than its pending changes/, `${tool}: ${body}`)
    }
  }
  t.same(bench.writes().length, 1, 'and nothing is provisioned')
  bench.twist(on('GET', /\/sec_policy\/pending$/, () => json(200, {})))
  partial(t, await bench.ok('compare-draft-active'), { status: 'in_sync' })
})

t.test('a pending rule set with a rule of an odd shape', async (t) => {
  const bench = await startTwisted(t)
  const { href } = await bench.direct.pce.ruleSets.create({ name: 'odd', enabled: true, scopes: [[]], rules: [] })
  const rule = { href: `${href}/sec_rules/1`, consumers: null, providers: [], ingress_services: [] }
  const id = href.slice(href.indexOf('/rule_sets/'))
  bench.twist(
    on('GET', new RegExp(`${id}$`), (real) => json(200, { ...(JSON.parse(real.body) as Json), rules: [rule] })),
  )
  const changes = Object.values((await bench.ok('compare-draft-active')).changes).flat() as Json[]
  t.match(changes.find((one) => one.href === href)?.diff_error, /consumers is missing or of a shape/)
})

t.test('an odd enforcement boundary is listed, and refused by name where a decision hangs on it', async (t) => {
  const bench = await startTwisted(t, { workloads: 20, flows: 0 })
  const list = await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  const boundary = await bench.direct.pce.enforcementBoundaries.create({
    name: 'No telnet',
    providers: [{ actors: 'ams' }],
    consumers: [{ ip_list: { href: list.href } }],
    ingress_services: [{ port: 23, proto: 6 }],
  })
  await bench.ok('provision-policy', { hrefs: [list.href, boundary.href] })
  await bench.ok('update-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/25' }] })
  const flow = { source: '192.0.2.1', destination: 'app=ordering', port: 23, proto: 'tcp', lookback_days: 0 }
  const spoiled = (fields: object) =>
    bench.twist(
      on('GET', /\/enforcement_boundaries$/, (real) =>
        json(
          200,
          (JSON.parse(real.body) as Json[]).map((one) => ({ ...one, ...fields })),
        ),
      ),
    )
  const id = boundary.href.slice(boundary.href.indexOf('/enforcement_boundaries'))
  const row = async () => {
    const { rules } = await bench.ok('find-rules', { rule_type: 'deny', detail_level: 'full' })
    return (rules as Json[]).filter(({ rule_set: holder }) => holder === 'enforcement boundary No telnet').length
  }
  const effect = async () => {
    const { changes } = await bench.ok('compare-draft-active')
    return (Object.values(changes).flat() as Json[]).find(({ href }) => href === list.href)?.effect
  }
  t.same([await row(), await effect()], [1, 'widening'], 'as it is')

  for (const [field, oddities] of [
    ['providers', [null, undefined, 'brand_new', [null]]],
    ['consumers', [undefined]],
    ['ingress_services', [null, [null]]],
  ] as [string, unknown[]][])
    for (const odd of oddities) {
      spoiled({ [field]: odd })
      t.equal(await row(), 1, `listed with ${field} ${JSON.stringify(odd)}`)
      const says = `${field} is missing or of a shape that is not known, so its rules cannot be judged`
      for (const [tool, args] of [
        ['explain-flow', flow],
        ['find-redundant-rules', {}],
        ['compare-policy-versions', { from: 'active', to: 'draft' }],
      ] as const) {
        const { message } = await bench.fails(tool, args, 'invalid_response')
        t.equal((message as string).replace(/^.*(?=\/enforcement_boundaries)/u, ''), `${id}: ${says}`, tool)
      }
      t.equal(await effect(), undefined, 'who uses the list is open')
    }
  spoiled({ name: null, enabled: null, network_type: null, created_at: 7, updated_by: { href: '/users/99' } })
  t.ok((await bench.ok('explain-flow', flow)).active, 'no decision hangs on these')

  // A PCE may list every selector and set only one.
  spoiled({})
  const { active: plain } = await bench.ok('explain-flow', flow)
  spoiled({ consumers: [{ label: null, workload: null, ip_list: { href: list.href } }] })
  t.same((await bench.ok('explain-flow', flow)).active, plain)
  spoiled({ consumers: [{ ip_list: null }] })
  t.match((await bench.fails('explain-flow', flow, 'invalid_response')).message, /\d+: consumers is missing or of/)
})

t.test('rules with selectors that are null are judged by the others', async (t) => {
  const bench = await startTwisted(t, { workloads: 30, flows: 0 })
  const flow = { source: 'app=ordering', destination: 'app=payments', port: 8443, proto: 'tcp', lookback_days: 0 }
  const NULLS = { label: null, label_group: null, ip_list: null, workload: null, virtual_service: null, actors: null }
  const plain = await bench.ok('explain-flow', flow)
  const twist = (change: (rule: Json) => Json) =>
    bench.twist(
      on('GET', /\/rule_sets$/, (real) =>
        json(
          200,
          (JSON.parse(real.body) as Json[]).map((set) => ({ ...set, rules: set.rules.map(change) })),
        ),
      ),
    )
  const all = (actors: Json[]) => actors.map((actor) => ({ ...NULLS, ...actor }))
  twist((rule) => ({ ...rule, providers: all(rule.providers), consumers: all(rule.consumers) }))
  t.same(await bench.ok('explain-flow', flow), plain)
  const { rules } = await bench.ok('find-rules', { actor: 'app=payments' })
  t.ok(rules.length > 0, 'and found')
  twist((rule) => ({ ...rule, resolve_labels_as: { ...rule.resolve_labels_as, providers: null } }))
  t.match(
    (await bench.fails('explain-flow', flow, 'invalid_response')).message,
    /sec_rules\/\d+: resolve_labels_as is missing or of a shape/,
  )
})

t.test('a range that does not say where it begins leaves checks of IP lists open', async (t) => {
  const bench = await startTwisted(t, { workloads: 20, flows: 20 })
  await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  await bench.ok('provision-policy')
  bench.twist(on('GET', /\/ip_lists$/, (real) => ({ ...real, body: real.body.replaceAll('"from_ip":', '"was":') })))
  const answer = JSON.stringify(await bench.ok('compliance-check', { framework: 'PCI-DSS' }))
  t.match(answer, /NOT_ASSESSED[^}]*ip_lists\/\d+: ip_ranges: from_ip is missing or of a shape that is not known/)
})

t.test('dependencies of an odd shape', async (t) => {
  const bench = await startTwisted(t)
  await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  bench.writes()
  const href = '/orgs/1/sec_policy/draft/ip_lists/1'
  for (const body of [
    null,
    {},
    [[]],
    [{}],
    [{ dependency: null }],
    [{ dependency: { ip_lists: [{ href }] } }],
    [{ dependency: { ip_lists: { href } }, required_by: { rule_sets: { href } } }],
    [{ dependency: { firewall_settings: [] } }],
    [{ dependency: { ip_lists: { href } }, required_by: [] }],
  ]) {
    bench.twist(on('POST', /\/dependencies$/, () => json(200, body)))
    const { message } = await bench.fails('provision-policy', {}, 'invalid_response')
    t.match(message, /dependencies/, JSON.stringify(body))
  }
  t.same(bench.writes(), [], 'stop before the write')
})

t.test('firewall settings of an odd shape leave open who uses an object', async (t) => {
  const bench = await startTwisted(t)
  const { href }: Json = await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  await bench.ok('provision-policy')
  await bench.ok('update-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/25' }] })
  const judged = async () => (await bench.ok('compare-draft-active')).changes.updated[0]
  const expected = await judged()
  for (const body of [{ ike: 1 }, {}]) {
    bench.twist(on('GET', /\/firewall_settings$/, () => json(200, body)))
    t.same(await judged(), expected, `without an href they are settings: ${JSON.stringify(body)}`)
  }
  for (const body of [[], [{ href }], null, 7]) {
    bench.twist(on('GET', /\/firewall_settings$/, () => json(200, body)))
    const { effect: _effect, used_by: _users, ...rest } = expected
    const effect_note = 'Undecided: the rules that use it could not be read.'
    t.same(await judged(), { ...rest, effect_note }, `without an effect: ${JSON.stringify(body)}`)
  }
})

t.test('a pending change without a name', async (t) => {
  const bench = await startTwisted(t)
  await bench.ok('create-iplist', { name: 'branch', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  const nameless = (real: Answer) => {
    const buckets = JSON.parse(real.body) as Record<string, Json[]>
    for (const change of Object.values(buckets).flat())
      Object.assign(change, { name: null, updated_by: null, caps: null, updated_at: null })
    return json(200, buckets)
  }
  bench.twist(on('GET', /\/sec_policy\/pending$/, nameless))
  partial(t, await bench.ok('compare-draft-active'), { total_pending_changes: 1 })
  const answer = await bench.ok('provision-policy', { all_pending: true })
  t.equal(answer.changes.length, 1)
  t.notOk('name' in answer.changes[0])
  t.same(bench.simulator.state.pendingHrefs(), [])
})

t.test('what was accepted with an answer that cannot be read is done', async (t) => {
  const bench = await startTwisted(t)
  const unreadable = ['', 'null', '[]', '{', '7', '{}']
  const range = [{ from_ip: '192.0.2.7' }]
  const CREATIONS: [tool: string, path: RegExp, args: (name: string) => object][] = [
    ['create-label', /\/labels$/, (value) => ({ key: 'app', value })],
    ['create-iplist', /\/ip_lists$/, (name) => ({ name, ip_ranges: range })],
    ['create-service', /\/services$/, (name) => ({ name, service_ports: [{ port: 1, proto: 'tcp' }] })],
    ['create-ruleset', /\/rule_sets$/, (name) => ({ name, scopes: [['app=odd-0']], rules: [] })],
    ['create-workload', /\/workloads$/, (name) => ({ name, ip_addresses: ['10.250.0.2'], labels: [] })],
  ]
  const hrefIn = (answer: Json): string => answer.href ?? Object.values<Json>(answer).find((part) => part?.href).href
  for (const [tool, path, args] of CREATIONS) {
    for (const [n, body] of unreadable.entries()) {
      bench.twist(on('POST', path, () => ({ status: 201, body })))
      const answer = await bench.ok(tool, args(`odd-${n}`))
      const stored: Json = bench.simulator.state.find(hrefIn(answer))
      t.ok([stored?.name, stored?.value].includes(`odd-${n}`), `${tool} found what it had made: ${body}`)
    }
  }

  await t.test('but not by a name that another has, nor by a list that cannot be read', async (t) => {
    await bench.direct.pce.workloads.create({ name: 'twin', hostname: 'twin' })
    bench.twist(on('POST', /\/workloads$/, () => ({ status: 201, body: '' })))
    const twin = { name: 'twin', ip_addresses: ['10.250.0.3'], labels: [] }
    const { message } = await bench.fails('create-workload', twin, 'outcome_unknown')
    t.match(message, /accepted the object \(status 201\)/)
    bench.twist((request, real) => {
      if (request.method === 'POST') return { status: 201, body: '' }
      return /\/ip_lists$/.test(request.path) && real.body.includes('lost') ? { status: 200, body: '{' } : undefined
    })
    await bench.fails('create-iplist', { name: 'lost', ip_ranges: [{ from_ip: '192.0.2.9' }] }, 'outcome_unknown')
  })

  await t.test('provisioning too', async (t) => {
    for (const body of unreadable) {
      bench.twist()
      await bench.ok('create-iplist', { name: `to go [${body}]`, ip_ranges: [{ from_ip: '192.0.2.7' }] })
      bench.twist(on('POST', /\/sec_policy$/, () => ({ status: 201, body })))
      const answer = await bench.ok('provision-policy')
      partial(t, answer, { message: /^Provisioned \d+ objects?\.$/, warnings: [/version is not known/] })
      t.notOk('version' in answer)
      t.same(bench.simulator.state.pendingHrefs(), [], 'has happened')
    }
    bench.twist()
    await bench.ok('create-iplist', { name: 'still to go', ip_ranges: [{ from_ip: '192.0.2.7' }] })
    bench.simulator.faults.add({
      kind: 'status',
      method: 'POST',
      path: /\/sec_policy$/,
      times: 1,
      status: 201,
      body: {},
    })
    await bench.fails('provision-policy', {}, 'outcome_unknown')
    t.equal(bench.simulator.state.pendingHrefs().length, 1, 'unless it is still pending')
    await bench.ok('provision-policy')
    await bench.ok('create-iplist', { name: 'last', ip_ranges: [{ from_ip: '192.0.2.7' }] })
    const odd = {
      href: '/orgs/1/sec_policy/7',
      version: null,
      workloads_affected: 'some',
      object_counts: { a: 'x', b: 2 },
    }
    bench.twist((request) =>
      /\/sec_policy(\/\d+)?$/.test(request.path) ? json(201, { ...odd, commit_message: 7 }) : undefined,
    )
    const answer = await bench.ok('provision-policy')
    partial(t, answer, { message: 'Provisioned 1 object.', workloads_affected: null, commit_message: null })
    t.same(answer.object_counts, { b: 2 })
  })
})

t.test('a PUT or DELETE that is done, and answered by 500 at every attempt', async (t) => {
  const bench = await startTwisted(t)
  const list = (name: string) => bench.direct.ok('create-iplist', { name, ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  const { href } = await list('branch')
  const { href: second } = await list('second')
  const failing = (method: string) => on(method, /\/ip_lists\/\d+$/, () => json(500, []))
  const change = { name: 'branch', description: 'new' }

  bench.twist(failing('PUT'))
  const done = await bench.fails('update-iplist', change, 'outcome_unknown')
  partial(t, done, { href, http_status: 500, read_back: { state: 'as_sent' }, hint: /the change was made/ })
  t.equal((bench.simulator.state.find(href) as Json).description, 'new')

  bench.simulator.faults.add({ kind: 'status', method: 'PUT', path: href, times: 6, status: 500 })
  bench.twist()
  const undone = await bench.fails('update-iplist', { ...change, description: 'newer' }, 'outcome_unknown')
  partial(t, undone, {
    read_back: { state: 'unchanged', differences: [{ field: 'description', sent: 'newer', stored: 'new' }] },
    hint: /nothing was changed so far/,
  })

  // Someone else changes it between the look before the write and the one after it.
  let hasFailed = false
  bench.twist((request, real) => {
    if (request.path !== href) return undefined
    if (request.method === 'PUT') {
      hasFailed = true
      return json(500, [])
    }
    return hasFailed ? json(200, { ...(JSON.parse(real.body) as object), description: 'of someone else' }) : undefined
  })
  const other = await bench.fails('update-iplist', { name: 'branch', description: 'newest' }, 'outcome_unknown')
  partial(t, other, { read_back: { state: 'differs', differences: [{ stored: 'of someone else' }] } })

  let isSent = false
  bench.twist((request) => {
    isSent ||= request.method === 'PUT'
    return isSent && request.path === second ? json(500, []) : undefined
  })
  const unread = await bench.fails('update-iplist', { name: 'second', description: 'new' }, 'outcome_unknown')
  partial(t, unread, { read_back: { state: 'unreadable' } })

  bench.twist(failing('DELETE'))
  const gone = await bench.fails('delete-iplist', { name: 'branch' }, 'outcome_unknown')
  partial(t, gone, { href, read_back: { state: 'gone' }, hint: /does not exist any more/ })
  t.equal(bench.simulator.state.find(href), undefined)

  bench.twist()
  await bench.ok('provision-policy')
  bench.twist(failing('DELETE'))
  const marked = await bench.fails('delete-iplist', { name: 'second' }, 'outcome_unknown')
  partial(t, marked, { read_back: { state: 'deletion_pending' } })

  const { href: third } = await list('third')
  bench.simulator.faults.add({ kind: 'status', method: 'DELETE', path: third, times: 6, status: 500 })
  bench.twist()
  partial(t, await bench.fails('delete-iplist', { name: 'third' }, 'outcome_unknown'), {
    read_back: { state: 'still_there' },
  })
})

t.test('the loser of a race', async (t) => {
  const bench = await startTwisted(t)
  const { pce } = bench.direct
  const range = { ip_ranges: [{ from_ip: '192.0.2.1' }] }
  const RACES: [tool: string, args: object, make: () => Promise<Json>][] = [
    ['delete-iplist', { name: 'l' }, () => pce.ipLists.create({ name: 'l', ...range })],
    ['delete-label', { key: 'app', value: 'l' }, () => pce.labels.create({ key: 'app', value: 'l' })],
    ['delete-workload', { name: 'w' }, () => pce.workloads.create({ name: 'w', hostname: 'w' })],
    ['update-iplist', { name: 'u', description: 'x' }, () => pce.ipLists.create({ name: 'u', ...range })],
  ]
  for (const [tool, args, make] of RACES) {
    const { href: path }: Json = await make()
    const method = tool.startsWith('delete') ? 'DELETE' : 'PUT'
    bench.simulator.faults.add({ kind: 'status', method, path, times: 1, status: 404 })
    const lost = await bench.fails(tool, args, 'not_found')
    partial(t, lost, { href: path, http_status: 404, message: /deleted in the meantime/ })
  }
  const label = (value: string) => ({ key: 'app', value })
  const { href: both }: Json = await pce.labels.create(label('both'))
  const body = [{ token: 'label_already_deleted', message: 'x' }]
  bench.simulator.faults.add({ kind: 'status', method: 'DELETE', path: both, times: 1, status: 406, body })
  partial(t, await bench.fails('delete-label', label('both'), 'not_found'), { href: both, token: body[0]?.token })
  const { href: repeated }: Json = await pce.labels.create(label('repeated'))
  bench.simulator.faults.add({ kind: 'commit-then-drop', method: 'DELETE', path: repeated, times: 1 })
  await bench.ok('delete-label', label('repeated'))
  t.pass('a repetition that finds nothing has done its work the first time')
})

t.test('an answer that is too large says so by its own code, and which bound', async (t) => {
  const bench = await startTwisted(t)
  bench.twist(on('GET', /\/pending$/, () => ({ status: 200, body: `[${'{},'.repeat(2_100_000)}{}]` })))
  const error = await bench.fails('compare-draft-active', {}, 'pce_answer_too_large')
  partial(t, error, { message: /has more than 2,000,000 elements/, hint: /narrower filters/ })

  const row = `[{"href":"${'x'.repeat(9 * 1024 * 1024)}"}]`
  bench.twist(on('GET', /\/labels$/, () => ({ status: 200, body: row })))
  partial(t, await bench.fails('get-labels', {}, 'pce_answer_too_large'), {
    message: /has a row that is too large, above 8 MiB/,
  })

  const large = `[${' '.repeat(33 * 1024 * 1024)}]`
  bench.twist(on('GET', /\/settings\/workloads$/, () => ({ status: 200, body: large })))
  partial(t, await bench.fails('check-pce-connection', {}, 'pce_answer_too_large'), {
    message: /is larger than 32 MiB/,
    connected: false,
  })
  bench.twist(on('POST', /\/labels$/, (real) => ({ ...real, body: large })))
  await bench.fails('create-label', { key: 'app', value: 'large' }, 'outcome_unknown')
  t.equal((await bench.direct.ok('get-labels', { key: 'app', value: 'large' })).total_count, 1, 'it was carried out')
})

t.test('a rule whose state the PCE leaves out is not called disabled', async (t) => {
  const bench = await startTwisted(t)
  const state = async () => {
    const unused = await bench.ok('find-unused', { kinds: ['rule_sets', 'rules'] })
    const { rules } = await bench.ok('find-rules', { enabled: true })
    const { rulesets } = await bench.ok('get-rulesets', { enabled: true, fields: ['name'] })
    return { unused, hrefs: rules.map(({ href }: Json) => href), rulesets }
  }
  const expected = await state()
  bench.twist(
    on('GET', /\/rule_sets$/, ({ body }) => {
      const untold = (object: Json) => ({ ...object, ...(object.enabled === true && { enabled: null }) })
      const all = (objects: Json[] | undefined) => objects?.map(untold)
      const ruleSets = JSON.parse(body) as Json[]
      return json(
        200,
        ruleSets.map((one) => ({ ...untold(one), rules: all(one.rules), deny_rules: all(one.deny_rules) })),
      )
    }),
  )
  t.same(await state(), expected)
})
