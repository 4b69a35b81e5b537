/**
 * The scopes of callers (MCP_SCOPES_FILE), over HTTP against a simulated PCE: what each kind of write is refused and let
 * through, that nothing is written by a refused call, and how the file is read.
 */
import { writeFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import type { Json } from '../contract/authenticated-service.js'
import { dataOf } from '../../tools/catalogue/catalogue-of.js'
import { parseScopes } from '../../domain/scopes/parse-scopes.js'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { handMade } from '../tools/hand-made.js'
import { startScoped } from './scoped-service.js'

const GROUPS = {
  payments: { scopes: [{ app: 'payments', env: ['prod', 'dev'] }] },
  open: { scopes: [{ app: 'payments', env: 'prod' }], extra: true, create: ['ip_lists', 'services'] },
  core: { scopes: '*' },
}
const ALL = { ingress_services: [{ port: 443, proto: 'tcp' }], providers: ['ams'], consumers: ['ams'] }

const estate = () =>
  handMade({
    hosts: {
      pay1: { ip: '10.0.0.1', labels: 'app=payments env=prod' },
      pay2: { ip: '10.0.0.2', labels: 'app=payments env=dev' },
      shop1: { ip: '10.0.0.3', labels: 'app=shop env=prod' },
      bare: { ip: '10.0.0.4' },
    },
    ipLists: { outside: ['192.0.2.0/24'] },
    ruleSets: [
      { name: 'Payments', scope: 'app=payments env=prod', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'Shop', scope: 'app=shop env=prod', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'Reaching', scope: 'app=payments env=prod', allow: [{ from: 'host:shop1', to: 'ams' }] },
    ],
    flows: [],
  })

const start = (t: Test, groups: object = GROUPS, offered?: readonly AnyTool[]) =>
  startScoped(t, groups, estate(), offered)

const OK = ['ok', undefined, 1]
const refused = (rule: string) => ['out_of_scope', rule, 0]

t.test('a workload has to match before and after', async (t) => {
  const { ask } = await start(t)
  const modes = { app_name: 'shop', env_name: 'prod', enforcement_mode: 'full' }
  t.same(await ask('payments', 'set-enforcement-mode', modes), refused('workload_labels'))
  t.same(await ask('payments', 'set-enforcement-mode', { ...modes, app_name: 'payments' }), OK)
  const vens = (...workloads: string[]) => ({ workloads, status: 'suspended' })
  t.same(await ask('payments', 'set-ven-status', vens('shop1')), refused('workload_labels'))
  t.same(await ask('payments', 'set-ven-status', vens('pay1')), OK)
  const unpair = { workloads: ['pay1', 'bare'], firewall_restore: 'saved' }
  t.same(await ask('payments', 'unpair-vens', unpair), refused('workload_labels'), 'one of two')
  t.same(await ask('payments', 'update-workload', { name: 'pay1', description: 'x' }), OK)
  t.same(await ask('payments', 'update-workload', { name: 'pay1', labels: ['app=payments', 'env=dev'] }), OK)
  t.same(
    await ask('payments', 'update-workload', { name: 'shop1', description: 'x' }),
    refused('workload_labels'),
    'another application',
  )
  t.same(
    await ask('payments', 'update-workload', { name: 'pay2', labels: ['app=shop', 'env=prod'] }),
    refused('workload_labels'),
    'out of reach',
  )
  t.same(
    await ask('payments', 'update-workload', { name: 'bare', labels: ['app=payments', 'env=prod'] }),
    refused('workload_labels'),
    'into reach',
  )
  const fresh = { name: 'fresh', labels: ['app=payments', 'env=prod'] }
  t.same(await ask('payments', 'create-workload', { ...fresh, ip_addresses: ['10.0.0.9'] }), OK)
  t.same(
    await ask('payments', 'create-workload', { name: 'none', ip_addresses: ['10.0.0.10'] }),
    refused('workload_labels'),
  )
  t.same(
    await ask('payments', 'create-workload', { ...fresh, name: 'claiming', ip_addresses: ['10.0.0.3'] }),
    refused('address_taken'),
    'the address of a workload outside',
  )
  t.same(await ask('payments', 'delete-workload', { name: 'fresh' }), OK)
  t.same(
    await ask('payments', 'label-workloads', { workloads: ['pay1', 'shop1'], set: ['env=dev'] }),
    refused('workload_labels'),
    'several at once, one of them outside',
  )
})

t.test('a rule set has to be as narrow as a scope, with all its rules', async (t) => {
  const { ask } = await start(t)
  const create = (scopes: string[][], name = 'new') => ask('payments', 'create-ruleset', { name, scopes })
  t.same(await create([['app=payments', 'env=prod']]), OK)
  t.same(await create([['app=payments', 'env=prod', 'role=web'].slice(0, 2), ['app=payments', 'env=dev']], 'two'), OK)
  t.same(await create([['app=payments']], 'wide'), refused('rule_set_scope'), 'wider than the scope')
  t.same(await create([[]], 'all'), refused('rule_set_scope'), 'everything')
  t.same(
    await create(
      [
        ['app=payments', 'env=prod'],
        ['app=shop', 'env=prod'],
      ],
      'half',
    ),
    refused('rule_set_scope'),
    'half inside',
  )
  t.same(await create([['!app=payments', 'env=prod']], 'but'), refused('rule_set_scope'), 'an exclusion is no scope')
  t.same(await ask('payments', 'update-ruleset', { name: 'Payments', enabled: false }), OK)
  t.same(
    await ask('payments', 'update-ruleset', { name: 'Payments', scopes: [['app=shop', 'env=prod']] }),
    refused('rule_set_scope'),
  )
  t.same(
    await ask('payments', 'update-ruleset', { name: 'Shop', scopes: [['app=payments', 'env=prod']] }),
    refused('rule_set_scope'),
    'into reach',
  )
  t.same(await ask('payments', 'delete-ruleset', { name: 'Shop' }), refused('rule_set_scope'))
  t.same(
    await ask('payments', 'update-ruleset', { name: 'Reaching', enabled: false }),
    refused('rule_ends'),
    'one of its rules names a workload outside',
  )
})

t.test('rules: workloads as ends, sources outside of the scope', async (t) => {
  const { ask } = await start(t)
  const create = (group: string, more: object, tool = 'create-rule') =>
    ask(group, tool, { ruleset_name: 'Payments', ...ALL, ...more })
  t.same(await create('payments', {}), OK)
  t.same(await create('payments', { ruleset_name: 'Shop' }), refused('rule_set_scope'))
  t.same(
    await create('payments', { consumers: ['workload:shop1'], ingress_services: [{ port: 1, proto: 'tcp' }] }),
    refused('rule_ends'),
  )
  t.same(await create('payments', { unscoped_consumers: true }), refused('extra_scope'))
  t.same(await create('open', { unscoped_consumers: true }), OK)
  t.same(
    await create('open', { unscoped_consumers: true, providers: ['iplist:outside'] }),
    refused('rule_ends'),
    'no end inside',
  )
  t.same(await create('payments', { ruleset_name: 'Shop' }, 'create-deny-rule'), refused('rule_set_scope'))
})

t.test('objects without a scope', async (t) => {
  const { ask } = await start(t)
  const list = { name: 'own', ip_ranges: [{ from_ip: '198.51.100.0/24' }] }
  t.same(await ask('payments', 'create-iplist', list), refused('no_scope'))
  t.same(await ask('open', 'create-iplist', list), OK, 'creating is allowed')
  t.same(await ask('open', 'update-iplist', { name: 'own', description: 'x' }), refused('no_scope'), 'changing is not')
  t.same(await ask('open', 'create-label', { key: 'app', value: 'new' }), refused('no_scope'))
  t.same(await ask('core', 'create-label', { key: 'app', value: 'new' }), OK)
  t.same(await ask('payments', 'restore-policy-version', { version: 1 }), refused('no_scope'))
})

t.test('ringfences are judged whole, before the first of their rules', async (t) => {
  const { ask } = await start(t)
  const shop = { app_name: 'shop', env_name: 'prod' }
  const pay = { app_name: 'payments', env_name: 'dev' }
  t.same(await ask('payments', 'create-ringfence', shop), refused('rule_set_scope'))
  t.same((await ask('payments', 'create-ringfence', pay))[0], 'ok')
  t.same(
    await ask('payments', 'ringfence-batch', { apps: [{ ...pay, ruleset_name: 'other' }, shop] }),
    refused('rule_set_scope'),
  )
})

t.test('a group in no entry has no scope, and reads stay', async (t) => {
  const { ask, call } = await start(t)
  t.same(await ask('strangers', 'update-workload', { name: 'pay1', description: 'x' }), refused('no_scope'))
  t.equal((await call('strangers', 'get-workloads', {})).total, 4)
})

t.test('a dry run says the same, names the object, the condition and the scopes, and audit has it', async (t) => {
  const { call, audit } = await start(t)
  const answer = await call('payments', 'update-ruleset', { name: 'Shop', enabled: false, dry_run: true })
  t.same(
    [answer.error, answer.object.name, answer.rule, answer.scopes, answer.message],
    [
      'out_of_scope',
      'Shop',
      'rule_set_scope',
      ['app=payments, env=prod|dev'],
      '"Shop" has the scope app=shop, env=prod, which is within none of your scopes.',
    ],
  )
  const { tool, decision, reason, outside, scopes } = audit.at(-1)!
  t.same(
    { tool, decision, reason, outside, scopes },
    {
      tool: 'update-ruleset',
      decision: 'denied',
      reason: 'out_of_scope',
      outside: { kind: 'rule_sets', href: '/orgs/1/sec_policy/draft/rule_sets/2', rule: 'rule_set_scope' },
      scopes: ['app=payments, env=prod|dev'],
    },
  )
})

t.test('provisioning without hrefs takes what is inside, and says what it left', async (t) => {
  const { ask, call } = await start(t)
  await call('core', 'update-ruleset', { name: 'Shop', description: 'changed' })
  await call('payments', 'update-ruleset', { name: 'Payments', description: 'changed' })
  const { pending } = await call('core', 'compare-draft-active', {})
  const shop = (pending ?? []).find(({ name }: Json) => name === 'Shop')
  t.same(
    await ask('payments', 'provision-policy', { hrefs: [shop?.href ?? '/orgs/1/sec_policy/draft/rule_sets/2'] }),
    refused('rule_set_scope'),
  )
  const answer = await call('payments', 'provision-policy', { all_pending: true })
  t.same(answer.warnings?.[0], '1 pending change outside of your scopes stay as they are: "Shop".')
  t.same(answer.provisioned_hrefs, ['/orgs/1/sec_policy/draft/rule_sets/1'])
  const rest = await call('payments', 'provision-policy', { all_pending: true })
  t.equal(rest.message, 'Nothing is pending inside of your scopes.')
})

t.test('a faulty file stops the start with every fault, and on SIGHUP leaves what there was', async (t) => {
  await t.rejects(start(t, { payments: { scopes: [{}], extra: 'yes' }, shop: { scopes: 'all' } }), {
    name: 'StartupError',
    faults: [{}, {}, {}],
  })
  for (const [groups, faults] of [
    [{ '': { scopes: '*' } }, ['/groups: a group needs a name']],
    [{ a: { scopes: [{ '': 'x' }] } }, ['/groups/a/scopes: a label needs a key']],
    [{ a: { scopes: [] } }, ['/groups/a/scopes: Expected "*", or a list of scopes that each have a label or more']],
  ] as const)
    t.same(parseScopes(JSON.stringify({ groups })), { faults })
  const { app, path, log, ask } = await start(t)
  const change = () => ask('payments', 'update-workload', { name: 'shop1', description: 'x' })
  writeFileSync(path, '{"groups":')
  await app.reloadScopes?.()
  t.same(await change(), refused('workload_labels'))
  const said = log.filter(({ msg }) => msg === 'the scopes could not be read again; those read before stay in force')
  t.same(
    said.map(({ level }) => level),
    [50],
  )
  writeFileSync(path, JSON.stringify({ groups: { payments: { scopes: '*' } } }))
  await app.reloadScopes?.()
  t.same(await change(), OK)
})

t.test('a write that the plan of a tool does not have is refused when it is sent', async (t) => {
  const forgetful = defineTool({
    name: 'update-workload',
    summary: 'Says that it writes nothing, and writes.',
    effect: 'write',
    scope: 'objects',
    toolset: 'objects',
    roles: ['admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: Type.Object({ href: Type.String(), address: Type.Optional(Type.String()) }),
    output: Type.Object({}),
    example: { href: '' },
    plan: () => Promise.resolve([]),
    async handler({ href, address }, { pce }) {
      if (address === undefined) await pce.put(href, { includeOrg: false, json: { description: 'written' } })
      else await pce.createWorkloadInterface(href, { name: 'eth9', link_state: 'up', address })
      return {}
    },
  })
  const { ask } = await start(t, GROUPS, [forgetful])
  const workload = (id: number) => `/orgs/1/workloads/00000000-0000-4000-8000-00000000000${id}`
  const [one, three] = [workload(1), workload(3)]
  t.same(await ask('payments', 'update-workload', { href: one }), OK)
  t.same(await ask('payments', 'update-workload', { href: three }), ['out_of_scope', undefined, 0])
  t.same(await ask('core', 'update-workload', { href: three }), OK)
  const taken = { href: one, address: '10.0.0.3' }
  t.same(await ask('payments', 'update-workload', taken), ['out_of_scope', undefined, 0], 'an address of another')
})

t.test('every tool that changes something states how scopes limit it', (t) => {
  const writing = tools.filter(({ effect }) => effect !== 'read')
  t.same(
    writing.filter(({ scope, plan }) => scope === undefined || (scope === 'objects' && plan === undefined)),
    [],
  )
  t.throws(() => dataOf({ ...writing[0]!, scope: undefined }), /has no `scope`/)
  t.end()
})
