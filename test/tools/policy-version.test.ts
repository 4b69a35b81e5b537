/** `policy_version` on every list of policy objects: the draft, what is in force, or a past version, with the names it had then. */
import t from 'tap'
import { partial } from '../partial.js'
import { CONTRACT, namesTaking } from '../surface/contract.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const AT = '/orgs/1/sec_policy'

/** The tools that list objects of a policy version, by the contract. */
const LISTS = namesTaking('policy_version').filter(
  (name) => name.startsWith('get-') && CONTRACT[name]!.rows !== undefined,
)

const estate = () =>
  handMade({
    hosts: { web: { ip: '10.0.0.1', labels: 'app=shop env=prod' } },
    labels: ['env=test'],
    ipLists: { Old: ['10.0.0.0/8'], Other: ['192.0.2.0/24'] },
    services: { Web: { service_ports: [{ port: 443, proto: 6 }] } },
    ruleSets: [
      {
        name: 'Shop',
        scope: 'app=shop',
        allow: [{ from: 'iplist:Old', to: 'ams', services: ['Web'] }],
        deny: [{ from: 'iplist:Other', to: 'ams' }],
      },
    ],
  })

t.test('each version is answered as it was', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  const { pce } = bench
  const list = (await pce.ipLists.getByName('Old'))!
  const service = (await pce.services.getByName('Web'))!
  const set = (await pce.ruleSets.getByName('Shop'))!
  // Version 2: other names, another port, a group, and a second allow rule.
  await pce.ipLists.update(list, { name: 'New', ip_ranges: [{ from_ip: '10.1.0.0/16' }] })
  await pce.services.update(service, { name: 'TLS', service_ports: [{ port: 8443, proto: 6 }] })
  const group = await pce.labelGroups.create({ name: 'Live', key: 'env', labels: [] })
  await pce.rules.create({ ...allow(set), consumers: [{ label_group: { href: group.href } }] }, set.href)
  const pending = (await pce.getPendingPolicyChanges()).map(({ href }) => href)
  await pce.provisionPolicyChanges('second', pending)
  t.equal(bench.simulator.state.policyVersion, 2)
  // Draft: the list is to go, the group is renamed.
  await pce.labelGroups.update(group, { name: 'Alive' })
  await pce.ipLists.update(list, { description: 'draft' })

  const listed = async (tool: string, policy_version?: string | number) =>
    (await bench.ok(tool, { ...(policy_version !== undefined && { policy_version }) }))[
      CONTRACT[tool]!.rows!.in
    ] as Json[]
  const names = async (tool: string, version?: string | number) => (await listed(tool, version)).map(({ name }) => name)

  for (const version of [undefined, 'draft', 'active', 2, '2']) {
    t.same(await names('get-iplists', version), ['Any (0.0.0.0/0 and ::/0)', 'New', 'Other'], `lists of ${version}`)
    t.same(await names('get-services', version), ['All Services', 'TLS'], `services of ${version}`)
    const groups = version === undefined || version === 'draft' ? ['Alive'] : ['Live']
    t.same(await names('get-label-groups', version), groups, `groups of ${version}`)
  }
  t.same(await names('get-iplists', 1), ['Any (0.0.0.0/0 and ::/0)', 'Old', 'Other'])
  t.same(await names('get-services', '1'), ['All Services', 'Web'])
  t.same(await names('get-label-groups', 1), [])
  partial(t, (await listed('get-iplists', 1))[1], {
    href: list.href.replace('draft', '1'),
    ip_ranges: [{ from_ip: '10.0.0.0/8' }],
  })
  const draft = (await listed('get-iplists'))[1]
  t.equal(draft.update_type, 'update')
  t.notOk('update_type' in (await listed('get-iplists', 'active'))[1], 'what is in force has no pending change')
  t.same(
    (await bench.ok('get-services', { port: 8443, policy_version: 1 })).services,
    [],
    'the filters are of the version',
  )

  await t.test('rules name what they name by the names of the version', async (t) => {
    const rulesOf = async (args: object) =>
      (await bench.ok('get-rulesets', { name: 'Shop', ...args })).rulesets[0]?.rules
    partial(t, await rulesOf({ policy_version: 1 }), [
      { rule_type: 'allow', consumers: ['iplist:Old'], ingress_services: ['Web'], href: new RegExp(`^${AT}/1/`) },
      { rule_type: 'deny', consumers: ['iplist:Other'] },
    ])
    partial(t, await rulesOf({ policy_version: 'active' }), [
      { consumers: ['iplist:New'], ingress_services: ['TLS'], href: new RegExp(`^${AT}/active/`) },
      { consumers: ['labelgroup:Live'] },
      { consumers: ['iplist:Other'] },
    ])
    partial(t, await rulesOf({}), [{}, { consumers: ['labelgroup:Alive'] }, {}])
    t.equal((await rulesOf({ policy_version: 1 })).length, 2)
  })

  await t.test('the answer names the version, and the ports that its services have there', async (t) => {
    for (const version of ['draft', 'active', 1])
      for (const tool of [...LISTS, 'find-rules'])
        t.equal(
          (await bench.ok(tool, { policy_version: version })).policy_version,
          String(version),
          `${tool} ${version}`,
        )
    t.equal((await bench.ok('get-ip-list-matches', { address: '10.0.0.1' })).policy_version, 'draft')
    for (const tool of ['get-rulesets', 'find-rules']) {
      t.same((await bench.ok(tool, { policy_version: 1 })).services, {
        Web: '443/tcp',
        'All Services': 'every port and protocol',
      })
      partial(t, (await bench.ok(tool)).services, { TLS: '8443/tcp' })
    }
    t.notOk('services' in (await bench.ok('get-rulesets', { fields: ['name'] })))
  })

  await t.test('ends and services are looked up in the version too', async (t) => {
    const found = async (args: object) =>
      (await bench.ok('get-rulesets', args)).rulesets.map((one: Json) => one.rules_matching)
    t.same(await found({ actor: 'iplist:Old', policy_version: 1 }), [1])
    await bench.fails('get-rulesets', { actor: 'iplist:Old', policy_version: 2 }, 'not_found')
    await bench.fails('get-rulesets', { actor: 'iplist:Old' }, 'not_found')
    t.same(await found({ actor: 'iplist:New', policy_version: 'active' }), [1])
    t.same(await found({ service: { port: 443, proto: 'tcp' }, policy_version: 1 }), [2], 'Web, and All Services')
    t.same(await found({ service: { port: 443, proto: 'tcp' } }), [1], 'TLS is another port now')
  })

  await t.test('an href is the object of the version asked for', async (t) => {
    const [rule] = set.rules!
    for (const href of [set.href, rule!.href].flatMap((one) => [
      one,
      one.replace('draft', 'active'),
      one.replace('draft', '1'),
    ])) {
      const { rulesets } = await bench.ok('get-rulesets', { href, policy_version: 1 })
      t.equal(rulesets[0].href, set.href.replace('draft', '1'), href)
    }
    await bench.fails('get-rulesets', { href: set.href.replace('draft', '1') }, 'invalid_href')
    await bench.fails('get-rulesets', { href: set.href.replace('draft', '1'), policy_version: 2 }, 'invalid_href')
    await bench.fails('update-ruleset', { href: set.href.replace('draft', '1'), enabled: false }, 'invalid_href')
    const groupHref = group.href.replace('draft', 'active')
    t.equal((await bench.ok('get-label-groups', { href: groupHref })).label_groups[0].name, 'Alive')
    await bench.fails('get-label-groups', { href: groupHref, policy_version: 1 }, 'not_found')
  })

  for (const tool of [...LISTS, 'find-rules']) {
    await t.test(`${tool}: what is no version is refused before anything is read`, async (t) => {
      bench.simulator.clearRequests()
      for (const policy_version of ['', 'Draft', 'latest', 0, '0', '-1', '1.5', '01', '2 3', '99999999999999999999'])
        partial(t, await bench.fails(tool, { policy_version }, 'invalid_argument'), {
          argument: 'policy_version',
          message: /draft, active or the number/,
        })
      t.same(bench.simulator.requests, [])
      if (tool !== 'find-rules')
        partial(t, await bench.fails(tool, { policy_version: 3 }, 'not_found'), {
          message: 'There is no policy version 3. The newest is 2.',
          policy_version: 3,
          newest: 2,
        })
    })
  }

  await t.test('a cursor is good for its version alone, however it is written', async (t) => {
    const first = await bench.ok('get-iplists', { max_results: 1, policy_version: 2, fields: ['name'] })
    const next = { max_results: 1, cursor: first.next_cursor, fields: ['name'] }
    t.same((await bench.ok('get-iplists', { ...next, policy_version: '2' })).ip_lists, [{ name: 'New' }])
    for (const policy_version of ['draft', 'active', 1])
      await bench.fails('get-iplists', { ...next, policy_version }, 'invalid_argument')
    await bench.fails('get-iplists', next, 'invalid_argument')
    const draft = await bench.ok('get-iplists', { max_results: 1 })
    t.ok(await bench.ok('get-iplists', { max_results: 1, cursor: draft.next_cursor, policy_version: 'draft' }))
  })

  await t.test('a PCE that does not say which versions it has', async (t) => {
    bench.simulator.faults.add({ kind: 'status', status: 403, path: /\/sec_policy$/, times: 1 })
    const error = await bench.fails('get-iplists', { policy_version: 7 }, 'not_found')
    t.equal(error.message, 'There is no policy version 7.')
  })
})

function allow({ rules }: Json): Json {
  const { enabled, providers, ingress_services, resolve_labels_as } = rules[0]
  const plain = (some: Json[]) => some.map((one) => ('ip_list' in one ? { ip_list: { href: one.ip_list.href } } : one))
  return { enabled, providers: plain(providers), ingress_services, resolve_labels_as, unscoped_consumers: true }
}
