/** Pending changes of others: a call that writes into an object that has some, or that provisions without hrefs, says whose. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { connect, startBench, type Bench, type Json } from './harness.js'

const estate = handMade({
  hosts: {
    'db-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' },
    web: { ip: '10.1.0.2', labels: 'app=web env=prod' },
  },
  flows: [{ from: 'web', to: 'db-1' }],
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
const PAY = `${DRAFT}/rule_sets/1`
const [LIST, SERVICE] = [`${DRAFT}/ip_lists/2`, `${DRAFT}/services/2`]
const WEB = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }

/** Makes a user with a key of its own. Gives the user's href, and a client of that user. */
async function addUser(bench: Bench, username: string): Promise<{ href: string; pce: Bench['pce'] }> {
  const user = (await bench.pce.users.create({ username, full_name: username, type: 'local' })) as Json
  const principal = await bench.pce.authSecurityPrincipals.create({
    type: 'user',
    name: username,
    display_name: username,
  })
  const role = { href: '/orgs/1/roles/owner' }
  await bench.pce.permissions.create({ role, scope: [], auth_security_principal: { href: principal.href } } as never)
  const { auth_username: key, secret } = await bench.pce.createUserApiKey(user.href.split('/').at(-1))
  return {
    href: user.href,
    pce: connect({ orgId: bench.simulator.orgId, credentials: { key, secret } }, bench.pce.origin),
  }
}

/** A bench where another user changed the rule set, the IP list and the service. */
async function startShared(t: Parameters<typeof startBench>[0]) {
  const bench = await startBench(t, { estate, flows: 0 })
  const anna = await addUser(bench, 'anna@example.com')
  t.teardown(() => anna.pce.close())
  const change = async (href: string) =>
    void (await anna.pce.put(href, { json: { description: 'by anna' }, includeOrg: false }))
  for (const href of [PAY, LIST, SERVICE]) await change(href)
  return { bench, anna, change }
}

const warning = (who: string) => `It already has pending changes of ${who}. Provisioning it makes them active, too.`

t.test(
  'a change of an object that has pending changes of others names them, in the dry run and afterwards',
  async (t) => {
    const { bench, anna, change } = await startShared(t)
    const theirs = warning(`"anna@example.com" (${anna.href})`)
    const calls: [tool: string, args: object][] = [
      ['create-rule', { ruleset_name: 'Pay', ...WEB }],
      ['create-deny-rule', { ruleset_name: 'Pay', ...WEB }],
      ['update-sec-rule', { href: `${PAY}/sec_rules/1`, description: 'ours' }],
      ['update-deny-rule', { href: `${PAY}/deny_rules/2`, description: 'ours' }],
      ['delete-sec-rule', { href: `${PAY}/sec_rules/1` }],
      ['delete-deny-rule', { href: `${PAY}/deny_rules/2` }],
      ['create-ringfence', { app_name: 'pay', env_name: 'prod', ruleset_name: 'Pay' }],
      ['update-ruleset', { name: 'Pay', description: 'ours' }],
      ['delete-ruleset', { name: 'Pay' }],
      ['update-iplist', { name: 'Old', description: 'ours' }],
      ['edit-ip-list-ranges', { name: 'Old', add_ranges: ['10.8.0.0/16'] }],
      ['delete-iplist', { name: 'Old' }],
      ['update-service', { name: 'old', description: 'ours' }],
      ['delete-service', { name: 'old' }],
    ]
    const told = async (tool: string, args: object) =>
      ((await bench.ok(tool, args)).warnings ?? []).filter((text: string) => text.includes('pending changes of'))
    for (const [tool, args] of calls) t.same(await told(tool, { ...args, dry_run: true }), [theirs], `${tool}, dry run`)
    for (const [tool, args] of calls.slice(0, 5)) {
      t.same(await told(tool, args), [theirs], tool)
      await change(PAY)
    }
    t.same(await told('delete-iplist', { name: 'Old' }), [theirs], 'delete-iplist')
  },
)

t.test('whose change it is where nobody, nobody else, or an author who cannot be asked made it', async (t) => {
  const { bench, anna } = await startShared(t)
  const { simulator } = bench
  const told = async (name: string) =>
    (await bench.ok('update-iplist', { name, description: 'x', dry_run: true })).warnings
  await bench.ok('create-iplist', { name: 'Ours', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  t.same(await told('Ours'), undefined, 'what this key changed is no change of others')
  const made = await anna.pce.ipLists.create({ name: 'Made', ip_ranges: [{ from_ip: '192.0.2.2' }] })
  await bench.ok('update-iplist', { href: made.href, description: 'ours' })
  t.same(await told('Made'), [warning(`"anna@example.com" (${anna.href})`)], 'who made what was never provisioned')
  const unreadable = { kind: 'status', path: /\/api_keys/, times: 100, status: 403 } as const
  simulator.faults.add(unreadable)
  t.same(await told('Old'), [
    warning(`"anna@example.com" (${anna.href}) (possibly you: the keys of this author cannot be read)`),
  ])
})

t.test('provision-policy without hrefs', async (t) => {
  const { bench, anna } = await startShared(t)
  const TOOL = 'provision-policy'
  await bench.ok('create-iplist', { name: 'Ours', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  bench.writes()
  for (const args of [{}, { dry_run: true }, { all_pending: false }]) {
    const error = await bench.fails(TOOL, args, 'pending_changes')
    t.equal(
      error.message,
      `Of 4 pending changes, 3 are not yours: 3 by "anna@example.com" (${anna.href}). Nothing was provisioned.`,
    )
    t.same(error.others, [
      {
        author: { href: anna.href, name: 'anna@example.com' },
        changes_total: 3,
        changes: [
          { href: SERVICE, type: 'services', name: 'old', update_type: 'update' },
          { href: PAY, type: 'rule_sets', name: 'Pay', update_type: 'update' },
          { href: LIST, type: 'ip_lists', name: 'Old', update_type: 'update' },
        ],
      },
    ])
    t.same([error.argument, error.others_total, error.pending_total], ['all_pending', 3, 4])
  }
  t.same(bench.writes(), [])
  await bench.fails(TOOL, { hrefs: [LIST], all_pending: true }, 'conflicting_identifiers')
  t.same((await bench.ok(TOOL, { hrefs: [LIST] })).provisioned_hrefs, [LIST], 'what is named needs no further word')
  t.equal((await bench.ok(TOOL, { all_pending: true })).provisioned_hrefs.length, 3)
  await bench.ok('update-iplist', { name: 'Ours', description: 'ours alone' })
  t.equal((await bench.ok(TOOL)).provisioned_hrefs.length, 1, 'nobody else has changes pending')
})
