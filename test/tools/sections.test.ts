/** The parts of an analysis that a caller chooses: one shape for all tools, and what they cost the PCE. */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const SHOP = { app_name: 'shop', env_name: 'prod' }
const ESTATE = handMade({
  hosts: {
    'shop-1': { ip: '10.0.0.1', labels: 'app=shop env=prod', mode: 'visibility_only' },
    'shop-2': { ip: '10.0.0.2', labels: 'app=shop env=prod', mode: 'visibility_only' },
    'cart-1': { ip: '10.0.0.3', labels: 'app=cart env=prod', mode: 'visibility_only' },
    'auth-1': { ip: '10.0.0.4', labels: 'app=auth env=prod', mode: 'visibility_only' },
  },
  flows: [
    { from: 'cart-1', to: 'shop-1', port: 443, process: '/usr/sbin/nginx', connections: 9 },
    { from: 'cart-1', to: 'auth-1', port: 22, process: '/usr/sbin/sshd', connections: 4 },
    { from: 'shop-1', to: 'auth-1', port: 3389, process: 'svchost', connections: 5 },
    { from: 'shop-1', to: '8.8.8.8', port: 443, process: '/usr/bin/curl', connections: 3 },
    { from: '203.0.113.9', to: 'shop-1', port: 443, process: '/usr/sbin/nginx', connections: 2 },
    { from: '203.0.113.9', to: '203.0.113.10', port: 443, connections: 2 },
  ],
})

/** Where the lists of a part are in the answer, if not in a field of its name; `each` names a field of every row. */
interface Place {
  part: string
  at?: string[]
  each?: string
}
const same = (...parts: string[]): Place[] => parts.map((part) => ({ part }))
const ANALYSES: Record<string, { args: object; places: Place[] }> = {
  'get-traffic-flows-summary': {
    args: {},
    places: same('by_process', 'external_destinations', 'blocked', 'app_to_app'),
  },
  'discover-process-egress': { args: {}, places: same('processes', 'providers', 'findings') },
  'find-unmanaged-traffic': {
    args: {},
    places: same('unmanaged_sources', 'unmanaged_destinations', 'both_unlabelled'),
  },
  'enforcement-readiness': {
    args: SHOP,
    places: [
      { part: 'uncovered_flows' },
      { part: 'remote_apps', at: ['remote_apps', 'uncovered'] },
      { part: 'unlabelled_sources', at: ['unlabelled_sources', 'top'] },
    ],
  },
  'get-policy-coverage-report': {
    args: SHOP,
    places: [
      { part: 'inbound', at: ['inbound', 'uncovered_services'] },
      { part: 'outbound', at: ['outbound', 'uncovered_services'] },
      { part: 'draft', at: ['draft', 'rules'] },
    ],
  },
  'identify-infrastructure-services': {
    args: {},
    places: [
      { part: 'top_ports', each: 'results' },
      { part: 'consumed_by', each: 'results' },
      { part: 'consumes', each: 'results' },
    ],
  },
  'detect-lateral-movement-paths': {
    args: { app_name: 'cart' },
    places: same('high_risk_bridge_nodes', 'top_reachable_nodes', 'high_risk_edges', 'paths', 'path_edges'),
  },
  'ven-health-report': {
    args: {},
    places: same('not_running', 'offline', 'in_error', 'unsynced', 'warned', 'out_of_date', 'not_known'),
  },
  'preview-enforcement-change': {
    args: { ...SHOP, enforcement_mode: 'full' },
    places: same('traffic_changes', 'workloads'),
  },
  'explain-flow': {
    args: { source: ['app=cart'], destination: ['app=shop'], port: 443, proto: 'tcp' },
    places: same('pairs', 'rules', 'near_misses', 'observed', 'pce_check'),
  },
  'exposure-report': {
    args: { services: [{ port: 443, proto: 'tcp' }] },
    places: same('services', 'open_rules', 'destinations', 'reached', 'app_groups', 'vulnerable_workloads'),
  },
  'compliance-check': { args: { ...SHOP, framework: 'pci-dss' }, places: [] },
}

t.test('every tool that takes sections is looked at here', async (t) => {
  const taking = tools.filter(({ input }) => 'sections' in (input as { properties: object }).properties)
  t.same(taking.map(({ name }) => name).sort(), Object.keys(ANALYSES).sort())
})

t.test('each part alone: its lists as in the whole answer, no others, and the same totals', async (t) => {
  for (const [name, { args, places }] of Object.entries(ANALYSES)) {
    const bench = await startBench(t, { estate: ESTATE })
    const whole = await bench.ok(name, args)
    t.notOk('sections_left_out' in whole, `${name}: nothing is left out unless asked`)
    const shown = (answer: Json, { part, at = [part], each }: Place): Json =>
      each === undefined ? at.reduce((inner, key) => inner?.[key], answer) : answer[each][0][part]
    const has = places.filter((place) => shown(whole, place) !== undefined)
    for (const place of places) {
      const one = await bench.ok(name, { ...args, sections: [place.part] })
      const others = places.filter((other) => other !== place && shown(one, other) !== undefined)
      t.same(others, [], `${name} ${place.part}: no other part`)
      if (has.includes(place)) t.ok(shown(one, place) !== undefined, `${name} ${place.part}: it is there`)
      for (const { part } of has.filter((other) => other !== place && isFull(shown(whole, other))))
        t.ok(one.sections_left_out.includes(part), `${name} ${place.part}: says that ${part} is left out`)
      for (const [field, value] of Object.entries(whole).filter(([field]) =>
        /total|^counts$|_count$|score/.test(field),
      ))
        if (typeof value !== 'object' || field === 'section_totals')
          t.same(one[field], value, `${name} ${place.part}: ${field} stays`)
    }
  }
})

const isFull = (value: Json) => Array.isArray(value) && value.length > 0

t.test('an unknown part is an error that names the known ones, before the PCE is asked', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  for (const [name, { args, places }] of Object.entries(ANALYSES)) {
    bench.simulator.clearRequests()
    const error = await bench.fails(name, { ...args, sections: ['nonsense'] }, 'invalid_argument')
    t.same(error.argument, 'sections', name)
    t.same(error.unknown_sections, ['nonsense'], name)
    if (places.length > 0)
      t.same(
        error.known_sections,
        places.map(({ part }) => part),
        name,
      )
    t.same(bench.simulator.requests, [], `${name}: no request`)
    await bench.fails(name, { ...args, sections: [] }, 'invalid_argument')
  }
  const typo = await bench.fails('find-unmanaged-traffic', { sections: ['unmanaged_source'] }, 'invalid_argument')
  t.match(typo.message, /Did you mean "unmanaged_sources"\? Parts: unmanaged_sources, /)
  const spelt = await bench.ok('find-unmanaged-traffic', { sections: ['Unmanaged Sources'] })
  t.ok('unmanaged_sources' in spelt, 'case and spaces are as people write them')
})

t.test('a compliance check shows the controls that are asked for, and scores all', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const ask = (more: object) => bench.ok('compliance-check', { ...SHOP, framework: 'pci-dss', ...more })
  const whole = await ask({})
  const [first, ...others] = whole.findings
  const one = await ask({ sections: [first.id.toLowerCase()] })
  t.same(one.findings, [first])
  t.same(
    one.sections_left_out,
    others.map(({ id }: Json) => id),
  )
  t.same([one.compliance_score, one.summary], [whole.compliance_score, whole.summary])
})

t.test('what is not asked for costs no requests', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  await bench.ok('create-ruleset', { name: 'Pending', scopes: [['app=shop', 'env=prod']], rules: [] })
  const requests = async (name: string, args: object) => {
    bench.simulator.clearRequests()
    const answer = await bench.ok(name, args)
    return { answer, paths: bench.simulator.requests.map(({ path }) => path.replace(/\?.*/, '')) }
  }
  const coverage = await requests('get-policy-coverage-report', { ...SHOP, sections: ['inbound'] })
  t.notOk(
    coverage.paths.some((path) => /pending|sec_policy\/draft/.test(path)),
    'the draft is not read',
  )
  t.equal(coverage.answer.draft.assessed, false)
  t.equal(coverage.answer.draft.reason, 'sections leaves it out')
  const { args } = ANALYSES['explain-flow']!
  const flow = await requests('explain-flow', { ...args, sections: ['rules'] })
  t.notOk(
    flow.paths.some((path) => /policy_check|async_queries/.test(path)),
    'neither traffic nor the check of the PCE',
  )
  t.same(flow.answer.sections_left_out, ['pairs', 'near_misses', 'observed', 'pce_check'])
  const stranger = { source: ['203.0.113.9'], destination: ['shop-1'], port: 443, proto: 'tcp' }
  const unseen = await bench.ok('explain-flow', { ...stranger, sections: ['rules'] })
  t.ok(
    unseen.not_judged.some((text: string) => text.startsWith('Traffic was not looked at')),
    'which the answer says',
  )
  const seen = await bench.ok('explain-flow', stranger)
  t.notOk(seen.not_judged.some((text: string) => text.startsWith('Traffic was not looked at')))
})

t.test('numbers that nobody reads are said in words', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const all = await bench.ok('explain-flow', {
    source: ['iplist:Any (0.0.0.0/0 and ::/0)'],
    destination: ['app=shop'],
    port: 443,
    proto: 'tcp',
  })
  t.equal(all.source.members, 'more than a trillion')
  t.equal(all.pairs.total, 'more than a trillion')
  t.notMatch(JSON.stringify(all), /\d[eE]\+\d/, 'no number in powers of ten')
})
