/**
 * The guardrails of the operator (MCP_PROTECTED, MCP_FREEZE_WINDOWS, MCP_MAX_WORKLOADS_AFFECTED), over HTTP against a
 * simulated PCE: what each refuses and lets through, that nothing is written by a refused call, and that a guardrail
 * holds which comes between the preview and the redemption of its confirmation.
 */
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { defineTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { registrationFor, startPce, startService } from '../contract/authenticated-service.js'
import { insecureApp, textOf } from '../contract/insecure-app.js'
import { estate, PROTECTED, startGuarded, windows } from './guarded-service.js'

const ANY = { ingress_services: [{ port: 443, proto: 'tcp' }] }
const OK = ['ok', undefined, 1]
const refused = (rule: string) => ['protected', rule, 0]

t.test('protected workloads', async (t) => {
  const { ask } = await startGuarded(t, PROTECTED)
  const label = 'protected_label'
  t.same(await ask('update-workload', { name: 'web1', description: 'x' }), OK)
  t.same(await ask('update-workload', { name: 'dc1', description: 'x' }), refused(label))
  t.same(await ask('update-workload', { name: 'dc1', labels: ['role=web'] }), refused(label), 'out of it')
  t.same(await ask('update-workload', { name: 'bare', labels: ['role=dc'] }), refused(label), 'into it')
  const fresh = { name: 'fresh', ip_addresses: ['10.0.0.9'] }
  t.same(await ask('create-workload', { ...fresh, labels: ['role=dc'] }), refused(label))
  t.same(await ask('create-workload', { ...fresh, ip_addresses: ['10.0.0.1'] }), refused(label), 'its address')
  t.same(await ask('create-workload', { ...fresh, labels: ['role=web'] }), OK)
  t.same(await ask('label-workloads', { workloads: ['web1', 'dc1'], set: ['env=dev'] }), refused(label), 'one of two')
  const modes = { workloads: ['dc1', 'web1'], enforcement_mode: 'full' }
  t.same(await ask('set-enforcement-mode', modes), refused(label))
  t.same(await ask('set-enforcement-mode', { ...modes, workloads: ['web1', 'web2'] }), OK)
})

t.test('labels, and what rules of protected workloads use', async (t) => {
  const { ask, log } = await startGuarded(t, {
    protectedLabels: [...PROTECTED.protectedLabels, { key: 'role', value: 'none' }],
  })
  const label = 'protected_label'
  t.same(await ask('create-label', { key: 'role', value: 'new' }), OK)
  t.same(await ask('update-label', { key: 'role', value: 'dc', new_value: 'pc' }), refused(label))
  t.same(await ask('update-label', { key: 'role', value: 'db', new_value: 'none' }), refused(label), 'renamed into it')
  t.same(await ask('create-label', { key: 'role', value: 'none' }), refused(label))
  t.same(await ask('delete-label', { key: 'role', value: 'new' }), OK)
  t.same(
    await ask('update-iplist', { name: 'office', description: 'x' }),
    refused(label),
    'a rule to the protected workloads has it',
  )
  t.same(await ask('update-iplist', { name: 'branch', description: 'x' }), OK)
  t.same(await ask('create-iplist', { name: 'new', ip_ranges: [{ from_ip: '203.0.113.0/24' }] }), OK)
  const said = log.filter(({ msg }) => String(msg).startsWith('MCP_PROTECTED names a label that the PCE does not have'))
  t.same(
    said.map(({ label: which }) => which),
    ['role=none'],
    'told once',
  )
})

t.test('rule sets and rules that reach protected workloads', async (t) => {
  const { ask } = await startGuarded(t, PROTECTED)
  const [reached, label] = ['protected_workload', 'protected_label']
  t.same(await ask('update-ruleset', { name: 'Shop', description: 'x' }), OK)
  t.same(await ask('update-ruleset', { name: 'AD', description: 'x' }), refused(reached), 'by its scope')
  t.same(await ask('update-ruleset', { name: 'Core', enabled: false }), refused(label), 'named by a rule')
  t.same(await ask('update-ruleset', { name: 'Branch', description: 'x' }), OK, 'its rules are for others')
  t.same(
    await ask('update-ruleset', { name: 'Shop', scopes: [['app=ad']] }),
    refused(reached),
    'its rules would reach them',
  )
  t.same(await ask('delete-ruleset', { name: 'AD' }), refused(reached))
  t.same(await ask('create-ruleset', { name: 'new', scopes: [['role=dc']] }), refused(label))
  t.same(await ask('create-ruleset', { name: 'prod', scopes: [['env=prod']] }), OK, 'no rules yet')
  const rule = (ruleset_name: string, consumers: string[], providers: string[], more = {}) =>
    ask('create-rule', { ruleset_name, consumers, providers, ...ANY, ...more })
  t.same(await rule('prod', ['role=web'], ['role=web']), OK)
  t.same(await rule('prod', ['ams'], ['role=web']), refused(reached), 'they are among the sources')
  t.same(await rule('prod', ['role=web'], ['app=ad']), refused(reached))
  t.same(await rule('prod', ['workload:dc1'], ['role=web']), refused(label))
  t.same(await rule('Shop', ['ams'], ['ams'], { unscoped_consumers: true }), refused(reached), 'from everywhere')
  t.same(await rule('Shop', ['role=web'], ['role=web'], { unscoped_consumers: true }), OK)
  t.same(
    await ask('create-deny-rule', { ruleset_name: 'prod', consumers: ['iplist:branch'], providers: ['ams'], ...ANY }),
    refused(reached),
  )
  t.same(await ask('create-ringfence', { app_name: 'ad', env_name: 'prod', ruleset_name: 'r' }), refused(reached))
  t.same(await ask('provision-policy', { all_pending: true }), OK, 'what was drafted here reaches none of them')
  t.same((await ask('restore-policy-version', { version: 1 })).slice(0, 2), ['protected', 'not_judged'])
})

t.test('what somebody drafted elsewhere is judged when it is provisioned', async (t) => {
  const { ask, pce } = await startGuarded(t, PROTECTED)
  const { simulator } = pce
  const direct = createPceClient({ url: 'http://127.0.0.1', port: pce.port })
  t.teardown(() => direct.close())
  direct.setCredentials(simulator.credentials.key, simulator.credentials.secret)
  const href = (kind: string, id: number) => `/orgs/1/sec_policy/draft/${kind}/${id}`
  await direct.put(href('rule_sets', 1), { includeOrg: false, json: { description: 'x' } })
  await direct.put(href('ip_lists', 2), { includeOrg: false, json: { description: 'x' } })
  await direct.put(href('ip_lists', 3), { includeOrg: false, json: { description: 'x' } })
  const provision = (...hrefs: string[]) => ask('provision-policy', { hrefs })
  t.same(await provision(href('rule_sets', 1)), refused('protected_workload'))
  t.same(await provision(href('ip_lists', 2)), refused('protected_label'), 'a list that a rule to them has')
  t.same(await ask('provision-policy', { all_pending: true }), refused('protected_workload'), 'all together')
  t.same(await ask('discard-draft-changes', { hrefs: [href('rule_sets', 1)] }), refused('protected_workload'))
  t.same(await provision(href('ip_lists', 3)), OK)
})

t.test('a dry run says the same, names object, condition and labels, and audit has it', async (t) => {
  const { call, audit } = await startGuarded(t, PROTECTED)
  const answer = await call('update-ruleset', { name: 'AD', enabled: false, dry_run: true })
  t.same(
    [answer.error, answer.object.name, answer.rule, answer.protected_labels, answer.message],
    [
      'protected',
      'AD',
      'protected_workload',
      ['role=dc'],
      '"AD" has a rule that reaches protected workloads, with the labels app=ad, env=prod, role=dc.',
    ],
  )
  const { tool, decision, reason, guardrail } = audit.at(-1)!
  t.same(
    { tool, decision, reason, guardrail },
    {
      tool: 'update-ruleset',
      decision: 'denied',
      reason: 'protected',
      guardrail: {
        kind: 'rule_sets',
        href: '/orgs/1/sec_policy/draft/rule_sets/1',
        rule: 'protected_workload',
        protected_labels: ['role=dc'],
      },
    },
  )
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
    input: Type.Object({ href: Type.String() }),
    output: Type.Object({}),
    example: { href: '' },
    plan: () => Promise.resolve([]),
    async handler({ href }, { pce }) {
      await pce.put(href, { includeOrg: false, json: { labels: [] } })
      return {}
    },
  })
  const workload = (id: number) => ({ href: `/orgs/1/workloads/00000000-0000-4000-8000-00000000000${id}` })
  const { ask } = await startGuarded(t, PROTECTED, { offered: [forgetful] })
  t.same(await ask('update-workload', workload(2)), OK)
  t.same(await ask('update-workload', workload(1)), ['protected', undefined, 0])
})

t.test('a freeze refuses what takes effect at once, and drafts go on', async (t) => {
  let now = Date.parse('2026-11-28T12:00:00Z')
  const { ask, call, audit } = await startGuarded(
    t,
    { freezes: windows('Fri 18:00 - Mon 06:00 Europe/Berlin') },
    { now: () => now },
  )
  const frozen = ['frozen', undefined, 0]
  t.same(await ask('update-ruleset', { name: 'Shop', description: 'x' }), OK, 'a draft')
  t.same(await ask('update-workload', { name: 'web1', description: 'x' }), OK, 'a description')
  t.same(await ask('update-workload', { name: 'web1', labels: ['env=dev'] }), frozen)
  t.same(await ask('label-workloads', { workloads: ['web1'], set: ['env=dev'] }), frozen)
  t.same(await ask('create-workload', { name: 'fresh', ip_addresses: ['10.0.0.9'] }), frozen)
  t.same(await ask('set-enforcement-mode', { workloads: ['web1'], enforcement_mode: 'full' }), frozen)
  t.same(await ask('provision-policy', { all_pending: true }), frozen)
  const answer = await call('provision-policy', { all_pending: true, dry_run: true })
  t.same(
    [answer.error, answer.frozen_until, answer.message],
    [
      'frozen',
      '2026-11-30T05:00:00.000Z',
      'Changes that take effect at once are frozen (Fri 18:00 - Mon 06:00 Europe/Berlin). The freeze ends on Mon 2026-11-30 06:00 Europe/Berlin. Drafts can be changed meanwhile.',
    ],
  )
  const { reason, guardrail } = audit.at(-1)!
  t.same(
    { reason, guardrail },
    {
      reason: 'frozen',
      guardrail: { window: 'Fri 18:00 - Mon 06:00 Europe/Berlin', frozen_until: '2026-11-30T05:00:00.000Z' },
    },
  )
  now = Date.parse('2026-11-30T05:00:00Z')
  t.same(await ask('provision-policy', { all_pending: true }), OK)
})

t.test('a freeze that begins between the preview and the redemption holds', async (t) => {
  let now = Date.parse('2026-11-27T16:59:30Z')
  const { call, pce } = await startGuarded(
    t,
    { freezes: windows('Fri 18:00 - Mon 06:00 Europe/Berlin') },
    { now: () => now },
  )
  await call('update-ruleset', { name: 'Shop', description: 'x' })
  pce.simulator.clearRequests()
  const answer = await call('provision-policy', { all_pending: true }, () => (now += 60_000))
  t.equal(answer.error, 'frozen')
  t.notOk(pce.simulator.requests.some(({ method, path }) => method === 'POST' && path.endsWith('/sec_policy')))
})

t.test('a call that affects too many workloads, or nobody knows how many, is refused', async (t) => {
  const { ask, call, audit } = await startGuarded(t, { maxWorkloads: 1 })
  const tooMany = ['too_many_workloads', undefined, 0]
  t.same(await ask('label-workloads', { workloads: ['web1'], set: ['env=dev'] }), OK)
  t.same(await ask('label-workloads', { workloads: ['web1', 'web2'], set: ['env=prod'] }), OK, 'only one changes')
  t.same(await ask('label-workloads', { workloads: ['web1', 'web2'], set: ['env=dev'] }), tooMany)
  t.same(await ask('set-enforcement-mode', { workloads: ['web1', 'web2'], enforcement_mode: 'full' }), tooMany)
  t.same(await ask('update-ruleset', { name: 'Shop', description: 'x' }), OK, 'a draft affects none')
  const answer = await call('provision-policy', { all_pending: true, dry_run: true })
  t.same(
    [answer.error, answer.workloads_affected, answer.max_workloads_affected, answer.message],
    ['too_many_workloads', 2, 1, 'This affects 2 workloads, and at most 1 may be affected at a time.'],
  )
  t.same(audit.at(-1)!.guardrail, { workloads_affected: 2, max_workloads_affected: 1 })
})

t.test('the other modes: nobody logged in, and keys of users', async (t) => {
  const { port, simulator } = await startPce(t, { estate: estate() })
  const { key: apiKey, secret: apiSecret } = simulator.credentials
  const pce = { url: `https://127.0.0.1:${port}`, port: String(port), orgId: '1', apiKey, apiSecret }
  const config = { pce: { ...pce, tls: { verify: false } }, guardrails: PROTECTED, offer: { toolsets: ['all'] } }
  const { app, call } = await insecureApp(tools, config)
  t.teardown(() => app.close())
  const open = await call('update-workload', { name: 'dc1', description: 'x' })
  t.equal(textOf(open).error, 'protected')
  const own = await startService(t, {
    config: { guardrails: PROTECTED, offer: { toolsets: ['all'] } },
    estate: { estate: estate() },
  })
  const token = await own.tokenOf('ann')
  await own.call(token, 'register-pce-credentials', registrationFor(own.pce))
  const answer = await own.call(token, 'update-workload', { name: 'dc1', description: 'x' })
  t.equal(answer.error, 'protected')
  t.equal((await own.call(token, 'update-workload', { name: 'web1', description: 'x' })).error, undefined)
})
