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
  const { href } = await bench.ok('create-iplist', { name: 'Ours', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const ours = { href, type: 'ip_lists', name: 'Ours', update_type: 'create' }
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
    t.same([error.yours, error.yours_total], [[ours], 1], 'what may be given without asking anybody')
  }
  t.same(bench.writes(), [])
  await bench.fails(TOOL, { hrefs: [LIST], all_pending: true }, 'conflicting_identifiers')
  t.same((await bench.ok(TOOL, { hrefs: [LIST] })).provisioned_hrefs, [LIST], 'what is named needs no further word')
  t.equal((await bench.ok(TOOL, { all_pending: true })).provisioned_hrefs.length, 3)
  await bench.ok('update-iplist', { name: 'Ours', description: 'ours alone' })
  t.equal((await bench.ok(TOOL)).provisioned_hrefs.length, 1, 'nobody else has changes pending')
})

/** As a release that keeps the deny rules of Pay apart: what is stored now is answered without them. */
function keepApart({ simulator }: Bench): void {
  const { deny_rules: _apart, ...bare } = simulator.state.find(PAY) as Json
  const answer = { kind: 'status', method: 'GET', status: 200, times: 100 } as const
  simulator.faults.add({ ...answer, path: new RegExp(`${PAY}$`), body: bare })
  simulator.faults.add({ ...answer, path: new RegExp(`${DRAFT}/rule_sets$`), body: [bare] })
}

/** A bench where another user has added an allow or a deny rule, and this key has described the rule set since. */
async function startHidden(t: Parameters<typeof startBench>[0], kind: 'sec_rules' | 'deny_rules') {
  const bench = await startBench(t, { estate, flows: 0 })
  const anna = await addUser(bench, 'anna@example.com')
  t.teardown(() => anna.pce.close())
  await anna.pce.put(`${PAY}/${kind}/${kind === 'sec_rules' ? 1 : 2}`, {
    json: { enabled: false },
    includeOrg: false,
  })
  await bench.pce.put(PAY, { json: { description: 'ours' }, includeOrg: false })
  return { bench, who: `"anna@example.com" (${anna.href})`, anna }
}

const UNREAD = 'authors not known, because not all rules could be read'

t.test('a rule of another counts, whoever changed its rule set last', async (t) => {
  const describe = ['update-ruleset', { name: 'Pay', description: 'x', dry_run: true }] as const
  const refusal = (yours: string, who: string) =>
    `Of 1 pending change, 1 is not ${yours}: 1 by ${who}. Nothing was provisioned.`
  for (const kind of ['sec_rules', 'deny_rules'] as const) {
    const { bench, who } = await startHidden(t, kind)
    const { simulator } = bench
    const refused = async () => (await bench.fails('provision-policy', {}, 'pending_changes')).message
    const told = async () => (await bench.ok(...describe)).warnings
    if (kind === 'deny_rules') keepApart(bench)
    t.equal(await refused(), refusal('yours alone', who), kind)
    t.same(await told(), [warning(who)], kind)
    if (kind === 'sec_rules') continue
    const status = { kind: 'status', method: 'GET', path: /deny_rules$/, times: 100 } as const
    simulator.faults.add({ ...status, status: 403 })
    t.equal(await refused(), refusal('known to be yours alone', UNREAD), 'what cannot be read counts as of others')
    t.same(await told(), [warning(UNREAD)])
    simulator.faults.clear()
    keepApart(bench)
    simulator.faults.add({ ...status, status: 404 })
    t.same(await told(), undefined, 'a release without deny rules')
  }
})

t.test('who made a new IP list or service counts, whoever changed it last', async (t) => {
  const bench = await startBench(t, { estate, flows: 0 })
  const anna = await addUser(bench, 'anna@example.com')
  t.teardown(() => anna.pce.close())
  // Six are read from their list, and one by itself.
  for (let n = 1; n <= 6; n++) {
    const { href } = await anna.pce.ipLists.create({ name: `list ${n}`, ip_ranges: [{ from_ip: `192.0.2.${n}` }] })
    await bench.ok('update-iplist', { href, description: 'ours' })
  }
  const service = await anna.pce.services.create({ name: 'made', service_ports: [{ port: 9, proto: 6 }] })
  await bench.ok('update-service', { href: service.href, description: 'ours' })
  const error = await bench.fails('provision-policy', {}, 'pending_changes')
  t.equal(
    error.message,
    `Of 7 pending changes, 7 are not yours alone: 7 by "anna@example.com" (${anna.href}). Nothing was provisioned.`,
  )
})

t.test('the rules of many rule sets are read from one list', async (t) => {
  const { bench, who } = await startHidden(t, 'sec_rules')
  for (let n = 0; n < 5; n++) await bench.pce.ruleSets.create({ name: `ours ${n}`, scopes: [[]] })
  bench.simulator.clearRequests()
  const { message } = await bench.fails('provision-policy', {}, 'pending_changes')
  t.equal(message, `Of 6 pending changes, 1 is not yours alone: 1 by ${who}. Nothing was provisioned.`)
  const paths = bench.simulator.requests.map(({ path }) => path)
  t.same(
    paths.filter((path) => path.includes('/rule_sets')),
    [`/api/v2${DRAFT}/rule_sets`],
  )
  bench.simulator.faults.add({ kind: 'status', method: 'GET', path: /rule_sets$/, times: 1, status: 403 })
  const unread = await bench.fails('provision-policy', {}, 'pending_changes')
  t.equal(
    unread.message,
    `Of 6 pending changes, 6 are not known to be yours alone: 6 by ${UNREAD}. Nothing was provisioned.`,
  )
  t.same([unread.others[0].author, unread.others[0].doubt], [null, 'unread'])
})

t.test('provision-policy with hrefs says whose changes go along', async (t) => {
  const { bench, who, anna } = await startHidden(t, 'sec_rules')
  const list = await anna.pce.ipLists.create({ name: 'Along', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const { ruleset } = await bench.ok('create-ruleset', {
    name: 'Needy',
    scopes: [['app=pay', 'env=prod']],
    rules: [{ ...WEB, consumers: ['iplist:Along'], unscoped_consumers: true }],
  })
  const args = { hrefs: [ruleset.href, PAY], include_dependencies: true }
  const told = `Of 3 pending changes in this call, 2 are not yours alone: 2 by ${who}.`
  t.same((await bench.ok('provision-policy', { ...args, dry_run: true })).warnings, [told])
  const answer = await bench.ok('provision-policy', args)
  t.same(answer.dependencies_included, [{ href: list.href, type: 'ip_lists', required_by: [ruleset.href] }])
  t.same(answer.warnings, [told])
  await bench.ok('update-iplist', { name: 'Along', description: 'ours' })
  t.same((await bench.ok('provision-policy', { hrefs: [list.href] })).warnings, undefined, 'nothing of others')
})

t.test('who was not asked is kept apart from who cannot be read', async (t) => {
  const { bench, anna } = await startShared(t)
  const { simulator } = bench
  const row = (n: number, by: string) => ({
    href: `${DRAFT}/ip_lists/${n}`,
    name: `L${n}`,
    update_type: 'update',
    updated_by: { href: by },
  })
  const refused = async (authors: string[]) => {
    const body = { ip_lists: authors.map((by, n) => row(n + 10, by)) }
    simulator.faults.add({ kind: 'status', path: /\/pending$/, times: 1, status: 200, body })
    return bench.fails('provision-policy', {}, 'pending_changes')
  }
  const nobody = Array.from({ length: 9 }, (_, n) => `/users/${900 + n}`)
  const own = (await bench.pce.ipLists.create({ name: 'Whose', ip_ranges: [{ from_ip: '192.0.2.1' }] })).updated_by!
    .href
  const first = nobody.slice(0, 5).map((href) => `1 by ${href} (possibly you: the keys of this author cannot be read)`)
  const late = await refused([anna.href, ...nobody, own])
  t.equal(
    late.message,
    `Of 11 pending changes, 11 are not known to be yours: ${[`1 by "anna@example.com" (${anna.href})`, ...first.slice(0, 4)].join(', ')}, 6 more (1 not looked up, possibly you among them). Nothing was provisioned.`,
  )
  t.same(
    late.others.slice(0, 2).map(({ doubt }: Json) => doubt),
    [undefined, 'keys_unread'],
  )
  const found = await refused([own, ...nobody, anna.href])
  t.equal(
    found.message,
    `Of 11 pending changes, 10 are not yours: ${nobody
      .slice(0, 5)
      .map((href) => `1 by ${href}`)
      .join(', ')}, 5 more. Nothing was provisioned.`,
  )
})
