import t from 'tap'
import { SMALL } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'
import { DENY_RULE, RULE, active, token } from './policy-estate.js'

const DRAFT = '/sec_policy/draft'
const ids = (rules: { href: string }[]) => rules.map(({ href }) => href.slice(href.indexOf('rule_sets/1/') + 12))

t.test('policy_check and allow name the rules that speak about a connection', async (t) => {
  const { org } = await startPce(t)
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, RULE)
  await org('POST', `${SMALL.paymentsRules}/deny_rules`, { ...DENY_RULE, consumers: [{ actors: 'ams' }] })
  await org('POST', `${SMALL.paymentsRules}/deny_rules`, {
    ...DENY_RULE,
    override: true,
    consumers: [{ ip_list: { href: SMALL.anyIpList } }],
  })
  const ask = (version: string, path: string, changes: Record<string, string | null> = {}) => {
    const query = new URLSearchParams()
    const asked = {
      src_workload: SMALL.orderingWeb,
      dst_workload: SMALL.paymentsDb,
      port: '5432',
      protocol: '6',
      ...changes,
    }
    for (const [name, value] of Object.entries(asked)) if (value !== null) query.set(name, value)
    return org('GET', `/sec_policy/${version}/${path}?${query.toString()}`)
  }
  const check = async (changes?: Record<string, string | null>) => {
    const { body } = await ask('draft', 'policy_check', changes)
    return [ids(body.sec_rules), ids(body.deny_rules), ids(body.override_deny_rules)]
  }
  const service = { port: null, protocol: null, service: SMALL.postgres }
  const outside = { src_workload: null, src_external_ip: '198.51.100.7' }
  t.same(await check(), [['sec_rules/2'], ['deny_rules/1'], ['deny_rules/2']])
  t.same(await check(service), await check(), 'a service is its ports')
  t.same(await check({ ...service, service: SMALL.updater }), [[], [], []])
  t.same(await check({ port: '5433' }), [[], [], []])
  t.same(await check({ protocol: '17' }), [[], [], []])
  t.same(await check(outside), [[], [], ['deny_rules/2']])
  t.same(await check({ src_workload: SMALL.paymentsDb, dst_workload: SMALL.orderingWeb }), [[], [], []], 'one way')
  t.same(await check({ network_type: 'non_brn' }), [[], [], []])
  t.same(await check({ network_type: 'brn' }), await check())

  const [allowing] = (await ask('draft', 'allow')).body
  partial(t, allowing, {
    href: `${SMALL.paymentsRules}/sec_rules/2`,
    update_type: 'create',
    rule_set: { href: SMALL.paymentsRules, name: 'Payments prod', enabled: true, scopes: [[{}, {}]] },
  })
  t.same((await ask('active', 'allow')).body, [], 'not yet in force')
  await org('POST', '/sec_policy', {})
  const [inForce] = (await ask('active', 'allow')).body
  t.equal(inForce.href, active(allowing.href))
  t.equal(inForce.rule_set.href, active(SMALL.paymentsRules))
  t.same((await ask('1', 'allow')).body, [], 'as it was')
  t.equal((await ask('99', 'allow')).status, 404)
  await org('PUT', allowing.href, { enabled: false })
  t.same((await ask('draft', 'allow')).body, [], 'disabled')

  partial(t, (await org('GET', `${DRAFT}/policy_check`)).body, { sec_rules: [], status: 'ok' }, 'nothing asked')
  for (const [change, expected] of [
    [{ src_workload: null }, 'input_validation_error'],
    [{ dst_workload: null }, 'input_validation_error'],
    [{ port: null, protocol: null }, 'input_validation_error'],
    [{ src_external_ip: '10.0.0.1' }, 'input_validation_error'],
    [{ network_type: 'x' }, 'input_validation_error'],
    [{ port: 'x' }, 'input_validation_error'],
    [{ ...outside, src_external_ip: '10.0' }, 'invalid_ip_address'],
    [{ dst_workload: '/orgs/1/workloads/none' }, 'invalid_uri'],
    [{ dst_workload: null, dst_container_workload: '/orgs/1/container_workloads/x' }, 'invalid_uri'],
    [{ ...service, service: `${SMALL.postgres}9` }, 'invalid_uri'],
  ] as const) {
    const answer = await ask('draft', 'policy_check', change)
    t.same([answer.status, token(answer)], [406, expected], JSON.stringify(change))
  }
})

t.test('rule search finds rules by every criterion', async (t) => {
  const { org } = await startPce(t)
  const group = (await org('POST', `${DRAFT}/label_groups`, { name: 'Dbs', key: 'role', labels: [{ href: SMALL.db }] }))
    .body.href
  const rule = {
    ...RULE,
    description: 'Ordering reads',
    providers: [{ label_group: { href: group } }],
    stateless: true,
  }
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, rule)
  await org('POST', `${SMALL.paymentsRules}/deny_rules`, { ...DENY_RULE, enabled: false })
  await org('POST', `${SMALL.paymentsRules}/deny_rules`, {
    ...DENY_RULE,
    override: true,
    consumers: [{ actors: 'ams' }],
    ingress_services: [{ port: 100, to_port: 200, proto: 6 }],
  })
  const [allow1, allow2, deny, override] = ['sec_rules/1', 'sec_rules/2', 'deny_rules/1', 'deny_rules/2']
  const search = async (criteria: object, version = 'draft') => {
    const { body } = await org('POST', `/sec_policy/${version}/rule_search`, criteria)
    return [body.sec_rules, body.deny_rules, body.override_deny_rules].flatMap((rules) => ids(rules ?? []))
  }
  const ordering = { label: { href: SMALL.ordering } }
  const web = { label: { href: SMALL.web } }
  const db = { label: { href: SMALL.db } }
  const database = { workload: { href: SMALL.paymentsDb } }
  const client = { workload: { href: SMALL.orderingWeb } }
  for (const [criteria, expected] of [
    [{}, [allow1, allow2, deny, override]],
    [{ enabled: false }, [deny]],
    [{ description: 'READS' }, [allow2]],
    [{ ingress_services: [{ href: SMALL.postgres }] }, [allow1, allow2, deny]],
    [{ ingress_services: [{ href: active(SMALL.postgres) }] }, [allow1, allow2, deny]],
    [{ ingress_services: [{ port: 5432, proto: 6 }] }, [allow1, allow2, deny]],
    [{ ingress_services: [{ port: 150 }] }, [override]],
    [{ ingress_services: [{ port: 150, to_port: 201 }] }, []],
    [{ ingress_services: [{ port: 150, proto: 17 }] }, []],
    [{ consumers: [ordering] }, [allow2, deny]],
    [{ consumers: [ordering, web] }, []],
    [{ consumers: [{ actors: 'ams' }] }, [override]],
    [{ providers: [db] }, [allow1, deny, override]],
    [{ providers: [db], resolve_actors: true }, [allow1, allow2, deny, override]],
    [{ providers: [{ label_group: { href: active(group) } }] }, [allow2]],
    [{ providers: [database] }, []],
    [{ providers: [database], resolve_actors: true }, [allow1, allow2, deny, override]],
    [{ consumers: [client], resolve_actors: true }, [allow2, deny, override]],
    [{ stateless: true }, [allow2]],
    [{ sec_connect: true }, []],
    [{ unscoped_consumers: false }, [allow1]],
    [{ update_type: 'create' }, [allow2, deny, override]],
    [{ rule_types: ['override_deny_rules'] }, [override]],
    [{ consuming_security_principals: [{ href: 'x' }] }, []],
    [{ enabled: true, consumers: [ordering] }, [allow2]],
  ] as const) {
    t.same(await search(criteria), expected, JSON.stringify(criteria))
  }
  t.same(await search({}, 'active'), [allow1])
  const counted = (await org('POST', `${DRAFT}/rule_search`, { enabled: false, counts: {} })).body
  t.same(counted.counts.deny_rules, { matched: 1, total: 1 })
  t.same(counted.counts.sec_rules, { matched: 0, total: 2 })
  t.same(Object.keys((await org('POST', `${DRAFT}/rule_search`, { rule_types: ['deny_rules'] })).body), ['deny_rules'])
  t.equal((await org('POST', `/sec_policy/active/rule_search`, {})).body.sec_rules[0].href, active(SMALL.paymentsRule))
  for (const bad of [{ x: 1 }, { providers: [] }, { rule_types: ['rules'] }, { consumers: [{ virtual_server: {} }] }]) {
    t.equal((await org('POST', `${DRAFT}/rule_search`, bad)).status, 406, JSON.stringify(bad))
  }
})

t.test('a bare list of hrefs stands for a change subset', async (t) => {
  const { org } = await startPce(t)
  const list = (await org('POST', `${DRAFT}/ip_lists`, { name: 'Branch' })).body.href
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, { ...RULE, consumers: [{ ip_list: { href: list } }] })
  const rules = [{ href: SMALL.paymentsRules }]
  const settings = '/orgs/1/sec_policy/draft/firewall_settings'
  await org('PUT', settings, { ike_authentication_type: 'certificate' })
  partial(t, (await org('POST', `${DRAFT}/dependencies`, rules)).body, [{ dependency: { ip_lists: { href: list } } }])
  partial(t, (await org('POST', '/sec_policy/impact', rules)).body, { num_sets: 1, num_managed_workloads: 1 })
  t.same((await org('POST', `${DRAFT}/dependencies`, [{ href: settings }])).body, [])
  t.equal((await org('PUT', '/sec_policy/delete', [{ href: list }])).status, 406, 'not closed')
  t.equal((await org('PUT', '/sec_policy/delete', [...rules, { href: list }, { href: settings }])).status, 204)
  t.same((await org('GET', '/sec_policy/pending')).body, {})
  for (const href of [SMALL.db, active(SMALL.paymentsRules), SMALL.paymentsRule, 'x']) {
    t.equal(token(await org('POST', `${DRAFT}/dependencies`, [{ href }])), 'invalid_uri', href)
  }
  t.equal((await org('POST', '/sec_policy', rules)).status, 406, 'provisioning takes the documented body alone')
})
