/** What every tool that changes one object says of it: how it was, and how it is or, after a dry run, would be. */
import t from 'tap'
import { startBench, type Json } from './harness.js'

t.test('a dry run of a change shows the object as it would be, beside what it was', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 0 })
  const { pce } = bench
  const PORT = { port: 8443, proto: 'tcp' }
  const { ruleset } = await bench.ok('create-ruleset', {
    name: 'Changes',
    scopes: [['app=payments', 'env=prod']],
    rules: [
      { providers: ['ams'], consumers: ['ams'], ingress_services: [PORT] },
      { providers: ['ams'], consumers: ['ams'], ingress_services: [PORT], rule_type: 'deny' },
    ],
  })
  const [allow, deny] = ruleset.rules.map(({ href }: Json) => href)
  await bench.ok('create-iplist', { name: 'L', description: 'old', ip_ranges: [{ from_ip: '10.0.0.1' }] })
  await bench.ok('create-service', { name: 'S', service_ports: [PORT] })
  const { workload } = await bench.ok('create-workload', {
    name: 'w',
    ip_addresses: ['10.99.0.1'],
    labels: [{ key: 'app', value: 'payments' }],
  })
  const [cluster] = await pce.containerClusters.getAll()
  const profiles: Json[] = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
  const profile = profiles.find(({ namespace, managed }) => namespace !== null && managed === true)
  const [app] = await pce.labels.getAll('draft', null, { params: { key: 'app', value: 'crm' } })

  for (const [tool, args, was, shows] of [
    [
      'update-iplist',
      { name: 'L', description: 'new', ip_ranges: [{ from_ip: '10.0.0.2' }] },
      { description: 'old', ip_ranges: [{ from_ip: '10.0.0.1', exclusion: false }] },
      (answer: Json) => [
        [answer.name, answer.description, answer.ip_ranges],
        ['L', 'new', [{ from_ip: '10.0.0.2' }]],
      ],
    ],
    [
      'update-service',
      { name: 'S', new_name: 'T' },
      { name: 'S' },
      ({ service }: Json) => [
        [service.name, service.service_ports],
        ['T', [{ port: 8443, proto: 6 }]],
      ],
    ],
    [
      'update-ruleset',
      { name: 'Changes', enabled: false, scopes: [['env=dev']] },
      { enabled: true, scopes: [['app=payments', 'env=prod']] },
      ({ enabled, scopes }: Json) => [
        [enabled, scopes.map((scope: Json) => scope.map(({ key, value }: Json) => `${key}=${value}`))],
        [false, [['env=dev']]],
      ],
    ],
    [
      'update-sec-rule',
      { href: allow, consumers: ['env=dev'] },
      { consumers: ['ams'] },
      ({ rule }: Json) => [rule.consumers, ['env=dev']],
    ],
    ['update-deny-rule', { href: deny, enabled: false }, { enabled: true }, ({ rule }: Json) => [rule.enabled, false]],
    [
      'update-label',
      { key: 'app', value: 'crm', new_value: 'customers' },
      null,
      ({ label, previous_value: before }: Json) => [
        [label.value, before],
        ['customers', 'crm'],
      ],
    ],
    [
      'update-workload',
      { name: 'w', description: 'moved', labels: ['app=brand-new', 'env=prod'] },
      null,
      ({ workload: { description, labels } }: Json) => [
        [description, labels],
        ['moved', ['app=brand-new', 'env=prod']],
      ],
    ],
    [
      'update-container-workload-profile',
      { profile_href: profile.href, assign_labels: [app!.href] },
      null,
      ({ profile: { assign_labels: assigned, labels } }: Json) => [
        [assigned, labels],
        [['app=crm'], undefined],
      ],
    ],
  ] as const) {
    bench.writes()
    const answer = await bench.ok(tool, { ...args, dry_run: true })
    t.same(bench.writes(), [], `${tool} writes nothing`)
    const [seen, expected] = shows(answer) as [unknown, unknown]
    t.same(seen, expected, `${tool} shows what would be`)
    if (was !== null) t.same(answer.previous, was, `${tool} shows what is`)
    t.ok(answer.previous_value ?? Object.keys(answer.previous).length > 0, tool)
  }

  await t.test('and the real call shows the same object', async (t) => {
    const args = { name: 'w', description: 'moved' }
    const planned = await bench.ok('update-workload', { ...args, dry_run: true })
    const done = await bench.ok('update-workload', args)
    t.same(done.workload, planned.workload)
    t.equal(done.workload.description, 'moved')
    t.equal((await bench.ok('update-workload', { name: 'w', description: '' })).workload.description, '')
    t.notOk('description' in workload, 'one that was never given is left out')
  })
})

t.test('update-label needs no new value where something else changes', async (t) => {
  const bench = await startBench(t, { workloads: 20, flows: 0 })
  const label = { key: 'env', value: 'prod' }
  const source = { external_data_set: 'cmdb', external_data_reference: 'env-1' }
  const done = await bench.ok('update-label', { ...label, ...source })
  t.same(done.updated_fields, ['external_data_set', 'external_data_reference'])
  t.same(
    bench.writes().map(({ body }) => body),
    [source],
  )
  t.equal(done.label.value, 'prod')
  const { labels } = await bench.ok('get-labels', { ...label, exact: true })
  t.equal(labels[0].external_data_reference, 'env-1')
  t.same((await bench.ok('update-label', { ...label, new_value: 'prod', ...source })).updated_fields, [])
  const refused = await bench.fails('update-label', label, 'invalid_argument')
  t.equal(refused.message, 'new_value is required unless external_data_set or external_data_reference changes.')
  t.same(bench.writes(), [])
})
