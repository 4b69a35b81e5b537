/** References to objects whose deletion is pending are found out before the first write, in every tool that writes references. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench } from './harness.js'

const estate = handMade({
  hosts: { 'db-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' } },
  ipLists: { Old: ['10.9.0.0/16'] },
  services: { old: { service_ports: [{ port: 9, proto: 6 }] } },
  ruleSets: [
    {
      name: 'Pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=pay', to: 'ams' }],
      deny: [{ from: 'any', to: 'ams' }],
    },
  ],
})
const DRAFT = '/orgs/1/sec_policy/draft'

t.test('nothing is written where a reference is pending deletion, and the error names object and field', async (t) => {
  const bench = await startBench(t, { estate, flows: 0 })
  const { pce } = bench
  const [{ href: label }] = (await pce.labels.getAll('draft', null, { params: { key: 'app' } })) as unknown as [
    { href: string },
  ]
  const group = await pce.labelGroups.create({ name: 'old group', key: 'app', labels: [{ href: label }] })
  const virtual = await pce.virtualServices.create({
    name: 'old virtual',
    apply_to: 'host_only',
    service_ports: [{ port: 80, proto: 6 }],
    labels: [],
  } as never)
  await bench.ok('provision-policy', {})
  await bench.ok('delete-iplist', { name: 'Old' })
  await bench.ok('delete-service', { name: 'old' })
  for (const { href } of [group, virtual]) await pce.delete(href, { includeOrg: false })
  bench.writes()

  const [list, service] = [`${DRAFT}/ip_lists/2`, `${DRAFT}/services/2`]
  const web = [{ port: 80, proto: 'tcp' }]
  const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: web }
  const allow = `${DRAFT}/rule_sets/1/sec_rules/1`
  const deny = `${DRAFT}/rule_sets/1/deny_rules/2`
  const cases: [tool: string, args: object, code: string, href: string, field: RegExp][] = [
    [
      'create-ruleset',
      { name: 'N', scopes: [], rules: [rule, { ...rule, consumers: ['iplist:Old'] }] },
      'invalid_actor',
      list,
      /consumers of rule 1/,
    ],
    [
      'create-ruleset',
      { name: 'N', scopes: [], rules: [{ ...rule, providers: [virtual.href] }] },
      'invalid_actor',
      virtual.href,
      /providers of rule 0/,
    ],
    ['create-ruleset', { name: 'N', scopes: [['labelgroup:old group']] }, 'invalid_scope_label', group.href, /scope/],
    ['create-ruleset', { name: 'N', scopes: [[group.href]] }, 'invalid_scope_label', group.href, /scope/],
    [
      'create-ruleset',
      { name: 'N', scopes: [], rules: [{ ...rule, ingress_services: 'old' }] },
      'invalid_ingress_services',
      service,
      /Rule 0/,
    ],
    [
      'create-rule',
      { ...rule, rule_type: 'allow', ruleset_name: 'Pay', consumers: [{ href: list }] },
      'invalid_actor',
      list,
      /consumers/,
    ],
    [
      'create-deny-rule',
      { ...rule, ruleset_name: 'Pay', consumers: ['labelgroup:old group'] },
      'invalid_actor',
      group.href,
      /consumers/,
    ],
    [
      'create-deny-rule',
      { ...rule, ruleset_name: 'Pay', ingress_services: [{ href: service }] },
      'invalid_ingress_services',
      service,
      /ingress_services/,
    ],
    ['update-ruleset', { name: 'Pay', scopes: [['labelgroup:old group']] }, 'invalid_scope_label', group.href, /scope/],
    ['update-sec-rule', { href: allow, providers: ['iplist:Old'] }, 'invalid_actor', list, /providers/],
    [
      'update-deny-rule',
      { href: deny, ingress_services: 'old' },
      'invalid_ingress_services',
      service,
      /ingress_services/,
    ],
    [
      'create-ringfence',
      { app_name: 'pay', env_name: 'prod', selective: true, deny_service: 'old' },
      'invalid_deny_service',
      service,
      /deny_service/,
    ],
  ]
  for (const [tool, args, code, href, field] of cases)
    for (const dryRun of [true, false]) {
      const error = await bench.fails(tool, { ...args, dry_run: dryRun }, code)
      t.equal(error.href, href, `${tool} ${JSON.stringify(args)}`)
      t.equal(error.reason, 'pending_deletion')
      t.match(error.message, /The deletion of the (?:IP list|label group|service|virtual service) \S.* is pending/u)
      t.ok(field.test(error.message), error.message)
      t.same(bench.writes(), [], `${tool} writes nothing`)
    }
  t.equal((await bench.ok('find-rules', { actor: 'iplist:Old' })).total_count, 0, 'a search may still name it')
})
