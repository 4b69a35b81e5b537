import t from 'tap'
import { SMALL, SMALL_QUERY } from '../../pce-simulator/small-estate.js'
import { contains, partial } from '../partial.js'
import { startPce } from './start-pce.js'

const RULE = {
  enabled: true,
  providers: [{ label: { href: SMALL.db } }],
  consumers: [{ label: { href: SMALL.ordering } }],
  ingress_services: [{ href: SMALL.postgres }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  unscoped_consumers: true,
}
const { resolve_labels_as: _allowOnly, ...DENY_RULE } = RULE
const active = (href: string) => href.replace('/draft/', '/active/')
const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
const message = (answer: { body: { message: string }[] }) => answer.body[0]!.message

t.test('the life of a versioned object', async (t) => {
  const { simulator, org } = await startPce(t)
  const provision = () => org('POST', '/sec_policy', { update_description: 'x' })
  const { href } = (
    await org('POST', '/sec_policy/draft/ip_lists', { name: 'Branch', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
  ).body
  const expectState = async (
    step: string,
    draft: string | null | 404,
    live: string | 404,
    pending: string | undefined,
  ) => {
    const one = await org('GET', href)
    t.equal(one.status === 200 ? one.body.update_type : one.status, draft, `${step}: draft`)
    const other = await org('GET', active(href))
    t.equal(other.status === 200 ? other.body.description : other.status, live, `${step}: active`)
    t.equal((await org('GET', '/sec_policy/pending')).body.ip_lists?.[0]?.update_type, pending, `${step}: pending`)
  }

  await expectState('POST', 'create', 404, 'create')
  t.equal((await org('PUT', href, { description: 'one' })).status, 204)
  await expectState('PUT before provisioning', 'create', 404, 'create')
  partial(t, (await provision()).body, {
    version: 2,
    commit_message: 'x',
    object_counts: { ip_lists: 2, rule_sets: 1 },
  })
  await expectState('provisioned', null, 'one', undefined)
  t.equal((await org('GET', active(href))).body.href, active(href))
  await org('PUT', href, { description: 'two' })
  await expectState('PUT after provisioning', 'update', 'one', 'update')
  t.equal((await org('DELETE', '/sec_policy/pending')).status, 204)
  await expectState('update discarded', null, 'one', undefined)

  t.equal((await org('DELETE', href)).status, 204)
  await expectState('DELETE', 'delete', 'one', 'delete')
  t.equal((await org('PUT', href, { description: 'three' })).status, 204)
  await expectState('PUT on a pending deletion', 'delete', 'one', 'delete')
  t.equal((await org('DELETE', href)).status, 204, 'a second DELETE changes nothing')
  t.equal(token(await org('POST', '/sec_policy/draft/ip_lists', { name: 'Branch' })), 'ip_list_name_not_unique')
  t.equal((await org('PUT', '/sec_policy/delete', { change_subset: { ip_lists: [{ href }] } })).status, 204)
  await expectState('deletion reverted', null, 'one', undefined)
  await org('DELETE', href)
  await provision()
  await expectState('deletion provisioned', 404, 404, undefined)
  t.equal((await org('GET', href.replace('/draft/', '/2/'))).body.description, 'one', 'a past version can be read')

  const short = (await org('POST', '/sec_policy/draft/ip_lists', { name: 'Short' })).body.href
  t.equal((await org('DELETE', short)).status, 204)
  t.equal((await org('GET', short)).status, 404, 'a draft that was never provisioned is gone at once')
  const kept = (await org('POST', '/sec_policy/draft/ip_lists', { name: 'Short' })).body.href
  await org('DELETE', '/sec_policy/pending')
  t.equal((await org('GET', kept)).status, 404, 'discarded')
  t.equal((await provision()).status, 406, 'nothing is pending')
  t.equal(
    (await org('POST', '/sec_policy/active/ip_lists', { name: 'x' })).status,
    405,
    'the active policy is not written to',
  )
  t.equal((await org('DELETE', active(SMALL.postgres))).status, 405)
  t.equal(simulator.state.policyVersion, 3)
  t.same(
    (await org('GET', '/sec_policy')).body.map((one: { version: number }) => one.version),
    [3, 2, 1],
  )
})

t.test('rules are edited in the draft and provisioned with their rule set', async (t) => {
  const { org } = await startPce(t)
  const path = `${SMALL.paymentsRules}/sec_rules`
  const { body: rule } = await org('POST', path, RULE)
  partial(t, rule, { href: `${path}/2`, update_type: 'create', network_type: 'brn', sec_connect: false })
  const deny = (await org('POST', `${SMALL.paymentsRules}/deny_rules`, { ...DENY_RULE, override: true })).body
  partial(t, deny, { override: true, update_type: 'create' })
  t.notOk('resolve_labels_as' in deny)
  await org('DELETE', SMALL.paymentsRule)

  const types = async (version: string) => {
    const { body } = await org('GET', SMALL.paymentsRules.replace('draft', version))
    const list = [...body.rules, ...body.deny_rules] as { update_type: string | null }[]
    return [body.update_type, ...list.map(({ update_type }) => update_type)]
  }
  t.same(await types('draft'), ['update', 'delete', 'create', 'create'])
  t.same(await types('active'), [null, null], 'untouched')
  partial(t, (await org('GET', '/sec_policy/pending')).body, {
    rule_sets: [{ href: SMALL.paymentsRules, related_services: [{ href: SMALL.postgres }] }],
  })
  const subset = (href: string) => ({ change_subset: { rule_sets: [{ href }] } })
  t.equal(
    token(await org('POST', '/sec_policy', subset(rule.href))),
    'invalid_uri',
    'a rule is no part of a change subset',
  )
  t.equal(token(await org('POST', '/sec_policy', subset(active(SMALL.paymentsRules)))), 'invalid_uri')
  const impact = (await org('POST', '/sec_policy/impact', {})).body
  partial(t, impact, { num_sets: 1, num_managed_workloads: 2, num_unmanaged_workloads: 0 })
  const bare = { name: 'without a VEN', labels: [SMALL.db, SMALL.payments, SMALL.prod].map((href) => ({ href })) }
  t.equal((await org('POST', '/workloads', bare)).status, 201)
  partial(t, (await org('POST', '/sec_policy/impact', {})).body, {
    num_managed_workloads: 2,
    num_unmanaged_workloads: 1,
  })
  t.equal((await org('POST', '/sec_policy', subset(SMALL.paymentsRules))).body.workloads_affected, 2)
  t.same(await types('draft'), [null, null, null])
  const [first] = (await org('GET', active(path))).body
  partial(
    t,
    [first.href, first.ingress_services[0].href],
    [active(rule.href), active(SMALL.postgres)],
    'active hrefs throughout',
  )

  await org('PUT', SMALL.paymentsRules, { rules: [{ href: rule.href, enabled: false }, RULE] })
  t.same(await types('draft'), ['update', 'update', 'create', null], 'kept, created; the deny rule is not concerned')
  await org('PUT', SMALL.paymentsRules, { rules: [] })
  t.same(await types('draft'), ['update', 'delete', null], 'what was not provisioned is gone, the rest is marked')
})

t.test('refuses invalid rules', async (t) => {
  const { org } = await startPce(t)
  const group = (await org('POST', '/sec_policy/draft/label_groups', { name: 'G', key: 'env' })).body.href
  await org('DELETE', group)
  const cases: ['sec_rules' | 'deny_rules', object, string][] = [
    ['sec_rules', { ingress_services: [] }, 'ingress_services_cannot_be_empty'],
    ['deny_rules', { ingress_services: [] }, 'ingress_services_cannot_be_empty'],
    ['sec_rules', { ingress_services: [{ href: SMALL.browser }] }, 'ingress_service_cannot_be_windows_egress_service'],
    ['sec_rules', { egress_services: [{ href: SMALL.postgres }] }, 'input_validation_error'],
    ['sec_rules', { ingress_services: [{ port: 80, proto: 1 }] }, 'input_validation_error'],
    ['sec_rules', { ingress_services: [{ port: 90, to_port: 80, proto: 6 }] }, 'input_validation_error'],
    ['sec_rules', { resolve_labels_as: undefined }, 'input_validation_error'],
    ['sec_rules', { providers: [] }, 'input_validation_error'],
    ['sec_rules', { providers: [{ actors: 'ams', label: { href: SMALL.db } }] }, 'input_validation_error'],
    ['sec_rules', { providers: [{ actors: 'container_host' }] }, 'input_validation_error'],
    ['sec_rules', { consumers: [{ virtual_server: { href: 'x' } }] }, 'input_validation_error'],
    [
      'sec_rules',
      { consumers: [{ ip_list: { href: active('/orgs/1/sec_policy/draft/ip_lists/4711') } }] },
      'invalid_uri',
    ],
    ['sec_rules', { consumers: [{ label_group: { href: group } }] }, 'invalid_uri'],
    ['sec_rules', { consumers: [{ workload: { href: '/orgs/1/workloads/none' } }] }, 'invalid_uri'],
    ['sec_rules', { stateless: true, sec_connect: true }, 'input_validation_error'],
    ['sec_rules', { override: true }, 'input_validation_error'],
    ['deny_rules', { resolve_labels_as: RULE.resolve_labels_as }, 'input_validation_error'],
    ['deny_rules', { consumers: [{ actors: 'container_host' }] }, 'input_validation_error'],
    ['deny_rules', { ingress_services: [{ href: SMALL.updater }] }, 'input_validation_error'],
  ]
  for (const [kind, change, expected] of cases) {
    const answer = await org('POST', `${SMALL.paymentsRules}/${kind}`, {
      ...(kind === 'sec_rules' ? RULE : DENY_RULE),
      ...change,
    })
    t.equal(answer.status, 406, JSON.stringify(change))
    t.equal(token(answer), expected, JSON.stringify(change))
  }
  partial(
    t,
    (await org('GET', SMALL.paymentsRules)).body,
    { update_type: null, rules: { length: 1 } },
    'none of them left a trace',
  )
  const either = { ...RULE, consumers: [{ ip_list: { href: active(SMALL.anyIpList) } }] }
  const made = await org('POST', `${SMALL.paymentsRules}/sec_rules`, either)
  partial(
    t,
    made,
    { status: 201, body: { consumers: [{ ip_list: { href: SMALL.anyIpList } }] } },
    'understood as the draft',
  )
  const scopes = [[{ label: { href: SMALL.prod } }, { label: { href: SMALL.dev } }]]
  t.equal((await org('POST', '/sec_policy/draft/rule_sets', { name: 'x', scopes })).status, 406, 'one entry of a key')
})

t.test('references: what is in use cannot be deleted, what is needed is provisioned along', async (t) => {
  const { simulator, org } = await startPce(t)
  t.equal(token(await org('DELETE', SMALL.postgres)), 'service_referenced')
  t.equal((await org('PUT', SMALL.allServices, { name: 'x' })).status, 406, 'built in')
  t.equal(
    (await org('POST', '/sec_policy/draft/rule_sets', { name: 'Payments prod', scopes: [[]] })).body[0].token,
    'rule_set_name_in_use',
  )
  t.equal(
    (await org('POST', '/sec_policy/draft/services', { name: 'PostgreSQL', service_ports: [{ port: 1, proto: 6 }] }))
      .status,
    201,
  )
  t.equal(
    (await org('PUT', SMALL.browser, { service_ports: [{ port: 1, proto: 6 }] })).status,
    406,
    'the OS type is for life',
  )
  await org('DELETE', '/sec_policy/pending')

  const list = (await org('POST', '/sec_policy/draft/ip_lists', { name: 'Branch' })).body.href
  const other = (await org('POST', '/sec_policy/draft/ip_lists', { name: 'Other' })).body.href
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, { ...RULE, consumers: [{ ip_list: { href: list } }] })
  t.equal(token(await org('DELETE', list)), 'ip_list_referenced', 'used by a draft')
  const rules = { rule_sets: [{ href: SMALL.paymentsRules }] }
  const needs = await org('POST', '/sec_policy/draft/dependencies', { operation: 'commit', change_subset: rules })
  t.same(needs.body, [{ dependency: { ip_lists: { href: list } }, required_by: rules }])
  const alone = await org('POST', '/sec_policy', { change_subset: rules })
  t.same([alone.status, simulator.state.policyVersion], [406, 1])
  contains(t, message(alone), list)
  const lists = { ip_lists: [{ href: list }] }
  const back = await org('POST', '/sec_policy/draft/dependencies', { operation: 'revert', change_subset: lists })
  t.same(back.body, [{ dependency: { rule_sets: rules.rule_sets[0] }, required_by: lists }])
  t.equal((await org('PUT', '/sec_policy/delete', { change_subset: lists })).status, 406)
  t.equal((await org('POST', '/sec_policy/draft/dependencies', { change_subset: lists })).status, 406, 'no operation')

  t.equal((await org('POST', '/sec_policy', { change_subset: { ...rules, ...lists } })).status, 201)
  t.same(simulator.state.pendingHrefs(), [other], 'the rest stays pending')
  partial(t, (await org('GET', '/sec_policy/2/modified_objects')).body, [
    { object_type: 'rule_sets', update_type: 'update' },
    { object_type: 'ip_lists', update_type: 'create', name: 'Branch' },
  ])
  await org('PUT', `${SMALL.paymentsRules}/sec_rules/2`, { consumers: [{ actors: 'ams' }] })
  t.equal(token(await org('DELETE', list)), 'ip_list_referenced', 'the active policy still uses it')
})

t.test('a traffic query from submission to rows, and how provisioning changes it', async (t) => {
  const { org } = await startPce(t)
  const path = '/traffic_flows/async_queries'
  const finish = async () => {
    const asked = await org('POST', path, SMALL_QUERY)
    t.equal(asked.status, 202)
    t.equal(asked.headers.get('location'), asked.body.href)
    t.match(asked.headers.get('retry-after'), /^\d+$/)
    t.equal((await org('GET', `${asked.body.href}/download`)).status, 404, 'not yet')
    const states: string[] = [asked.body.status]
    let query = asked.body
    while (query.status !== 'completed') states.push((query = (await org('GET', asked.body.href)).body).status)
    t.same(states, ['queued', 'queued', 'working', 'completed'])
    t.same([query.result, query.flows_count, query.query_parameters], [`${query.href}/download`, 1, SMALL_QUERY])
    return query.href as string
  }

  const before = await finish()
  const [flow] = (await org('GET', `${before}/download`)).body
  partial(t, flow, {
    policy_decision: 'potentially_blocked',
    num_connections: 70,
    dst: { workload: { href: SMALL.paymentsDb } },
  })
  t.notOk('draft_policy_decision' in flow)
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, RULE)
  const updateRules = async () => {
    t.equal((await org('PUT', `${before}/update_rules`, {})).status, 202)
    for (let poll = 0; poll < 3; poll += 1) await org('GET', before)
    t.equal((await org('GET', before)).body.rules, 'completed')
    return (await org('GET', `${before}/download`)).body
  }
  partial(t, await updateRules(), [
    { policy_decision: 'potentially_blocked', draft_policy_decision: 'allowed', rules: [{ href: /sec_rules\/2$/ }] },
  ])
  await org('PUT', `${SMALL.paymentsRules}/sec_rules/2`, { enabled: false })
  partial(
    t,
    await updateRules(),
    [{ draft_policy_decision: 'potentially_blocked', rules: [] }],
    'asked again, judged again',
  )
  await org('PUT', `${SMALL.paymentsRules}/sec_rules/2`, { enabled: true })
  await org('POST', '/sec_policy', {})
  partial(t, (await org('GET', `${await finish()}/download`)).body, [{ policy_decision: 'allowed' }])
  partial(
    t,
    (await org('GET', `${before}/download`)).body,
    [{ policy_decision: 'potentially_blocked' }],
    'an old answer stays',
  )

  const running = (await org('POST', path, SMALL_QUERY)).body.href
  t.equal((await org('PUT', running, { status: 'completed' })).status, 406)
  t.equal((await org('PUT', running, { status: 'cancel_requested' })).status, 204)
  t.equal((await org('GET', running)).body.status, 'cancelled')
  t.equal((await org('DELETE', running)).status, 204)
  t.equal((await org('GET', running)).status, 404)
})

t.test('refuses invalid traffic queries', async (t) => {
  const { org } = await startPce(t)
  const one = (selector: object) => ({ include: [[selector]], exclude: [] })
  const cases: [object, string][] = [
    [{ query_name: undefined }, 'input_validation_error'],
    [{ sources: { include: [[]] } }, 'input_validation_error'],
    [{ sources: { exclude: [] } }, 'input_validation_error'],
    [{ sources: one({ ip_address: { value: '10.0.0.1' } }) }, 'input_validation_error'],
    [{ sources: one({ ip_address: '10.0.0' }) }, 'invalid_ip_address'],
    [{ sources: one({ fqdn: 'a.example' }) }, 'input_validation_error'],
    [{ destinations: one({ transmission: 'broadcast' }) }, 'input_validation_error'],
    [{ sources: one({ label: { href: '/orgs/1/labels/99' } }) }, 'invalid_uri'],
    [{ destinations: one({ ip_list: { href: '/orgs/1/sec_policy/active/ip_lists/99' } }) }, 'invalid_uri'],
    [{ policy_decisions: ['denied'] }, 'input_validation_error'],
    [{ max_results: 200_001 }, 'input_validation_error'],
    [{ start_date: '2026-02-20T00:00:00' }, 'input_validation_error'],
    [{ start_date: 'yesterday' }, 'input_validation_error'],
    [{ start_date: '2026-02-28T00:00:00Z' }, 'input_validation_error'],
    [{ start_date: '2025-11-01T00:00:00Z' }, 'input_validation_error'],
  ]
  for (const [change, expected] of cases) {
    const answer = await org('POST', '/traffic_flows/async_queries', { ...SMALL_QUERY, ...change })
    t.equal(answer.status, 406, JSON.stringify(change))
    t.equal(token(answer), expected, JSON.stringify(change))
  }
  const broadcast = {
    ...SMALL_QUERY,
    destinations: { include: [], exclude: [{ transmission: 'broadcast' }, { fqdn: 'a.example' }] },
  }
  t.equal((await org('POST', '/traffic_flows/async_queries', broadcast)).status, 202)
})
