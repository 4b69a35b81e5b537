/** Words for the same: what answers, other tools and people call an argument is that argument, and never another one (D101). */
import t from 'tap'
import { startBench, WEEK, type Json } from './harness.js'

t.test('synonyms', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 400 })

  await t.test('an argument goes by the words of answers and other tools', async (t) => {
    const same = async (tool: string, own: object, other: object) =>
      t.same(await bench.ok(tool, other), await bench.ok(tool, own), `${tool} ${JSON.stringify(other)}`)
    await same('get-workload-enforcement-status', { app_name: 'payments' }, { app: 'payments' })
    await same('get-services', { proto: 'tcp', port: 443 }, { protocol: 6, port: 443 })
    await same('get-services', { proto: 'tcp', port: 443 }, { proto: '6', port: 443 })
    await same('find-unmanaged-traffic', { top_n: 2, direction: 'inbound' }, { limit: 2, direction_filter: 'Inbound' })
    await same('compare-draft-active', { resource_type: 'rule_sets' }, { filter: 'rulesets' })
    for (const kind of ['ruleset', 'RuleSets', 'rule sets'])
      await same('who-changed', { kind: 'rule_set', name: 'Default' }, { kind, name: 'Default' })
    for (const kind of ['iplist', 'iplists', 'ip_list'])
      await same('find-unused', { kinds: ['ip_lists'] }, { kinds: [kind] })
    await same('get-workloads', { enforcement_mode: 'visibility_only' }, { mode: 'Visibility Only' })
    await same('get-events', { severity: 'err' }, { severity: 'ERROR' })
    await same(
      'get-traffic-flows',
      {
        ...WEEK,
        policy_decisions: ['potentially_blocked'],
        include_services: [{ port: 443, proto: 'tcp', process_name: 'nginx' }],
        group_by: ['dst_app'],
      },
      {
        start: WEEK.start_date,
        end: WEEK.end_date,
        policy_decision: 'Potentially blocked',
        services: [{ port: 443, protocol: 6, process: 'nginx' }],
        columns: ['dst_app'],
      },
    )
    const { next_cursor } = await bench.ok('get-labels', { max_results: 2 })
    await same('get-labels', { max_results: 2, cursor: next_cursor }, { max_results: 2, next_cursor })
  })

  await t.test('a word beside what it means, or one that could mean two, is refused', async (t) => {
    const paths = async (tool: string, args: object) =>
      (await bench.fails(tool, args, 'invalid_argument')).problems.map(({ path }: Json) => path)
    t.same(await paths('get-workload-enforcement-status', { app_name: 'payments', app: 'ordering' }), ['/app'])
    t.same(await paths('get-traffic-flows', { start: '2026-06-01', since: '2026-06-02', end: '2026-06-03' }), [
      '/since',
    ])
    t.same(await paths('get-workloads', { app: 'payments' }), ['/app'], 'a tool without such an argument')
    t.same(await paths('compare-draft-active', { resource_type: 'workloads' }), ['/resource_type'])
    t.same(await paths('get-services', { __proto__: null, constructor: 'x' }), ['/constructor'])
  })

  await t.test('what an answer shows of a rule can be sent back', async (t) => {
    const [web, db] = (await bench.ok('get-labels', { key: 'role' })).labels as Json[]
    const { ruleset } = await bench.ok('create-ruleset', {
      name: 'Round trip',
      scopes: [['app=payments', 'env=prod']],
      rules: [
        {
          providers: ['ams'],
          consumers: [`role=${web.value}`, 'iplist:Any (0.0.0.0/0 and ::/0)'],
          services: [{ service: 'All Services' }, { port: 443, protocol: 'tcp' }],
        },
      ],
    })
    const stored = async () =>
      (await bench.ok('get-rulesets', { name: 'Round trip', detail_level: 'full' })).rulesets[0]
    const [rule] = (await stored()).rules
    t.same(
      rule.consumers.map(({ type, key, value, name }: Json) => name ?? `${type} ${key}=${value}`),
      [`label role=${web.value}`, 'Any (0.0.0.0/0 and ::/0)'],
    )
    const { providers, consumers, ingress_services } = rule
    const change = (args: object) => ({ href: rule.href, ...args })
    bench.writes()
    await bench.ok('update-sec-rule', change({ providers, consumers, ingress_services }))
    await bench.ok('update-ruleset', { href: ruleset.href, scopes: (await stored()).scopes })
    const [again] = (await stored()).rules
    t.same([again.providers, again.consumers, again.ingress_services], [providers, consumers, ingress_services])
    const [label, list] = consumers
    const [all] = ingress_services
    bench.writes()
    await bench.fails('update-sec-rule', change({ consumers: [{ ...label, value: db.value }] }), 'label_not_found')
    await bench.fails('update-sec-rule', change({ consumers: [{ ...list, name: 'Office' }] }), 'invalid_actor')
    await bench.fails('update-sec-rule', change({ consumers: [{ ...label, name: 'Office' }] }), 'invalid_actor')
    await bench.fails('update-sec-rule', change({ consumers: [{ type: 'ip_list', name: 'Office' }] }), 'invalid_actor')
    const contradiction = await bench.fails(
      'update-sec-rule',
      change({ ingress_services: [{ ...all, name: 'S-HTTP' }] }),
      'invalid_ingress_services',
    )
    t.match(contradiction.message, /is "All Services", not "S-HTTP"/)
    t.same(bench.writes(), [], 'a contradiction writes nothing')
  })
})
