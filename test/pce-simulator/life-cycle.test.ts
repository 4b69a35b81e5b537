import t from 'tap'
import { SMALL } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'
import { BOUNDARY, DENY_RULE, RULE, VIRTUAL_SERVER, active, estateWithServers } from './policy-estate.js'

type Pce = Awaited<ReturnType<typeof startPce>>['org']

const IN_RULE_SET = { type: 'rule_sets', href: SMALL.paymentsRules }

/** One row for every kind that lives in a draft and an active version (P4). */
const KINDS: { path: string; body: object; change: string[]; within?: typeof IN_RULE_SET }[] = [
  { path: 'ip_lists', body: { name: 'n' }, change: ['description', 'one', 'two'] },
  { path: 'services', body: { name: 'n', service_ports: [{ proto: 6 }] }, change: ['description', 'one', 'two'] },
  { path: 'label_groups', body: { name: 'n', key: 'env' }, change: ['description', 'one', 'two'] },
  { path: 'rule_sets', body: { name: 'n', scopes: [[]] }, change: ['description', 'one', 'two'] },
  {
    path: 'virtual_services',
    body: { name: 'n', service_ports: [{ port: 80, proto: 6 }] },
    change: ['description', 'one', 'two'],
  },
  { path: 'virtual_servers', body: VIRTUAL_SERVER, change: ['description', 'one', 'two'] },
  { path: 'enforcement_boundaries', body: BOUNDARY, change: ['name', 'one', 'two'] },
  { path: 'rule_sets/1/sec_rules', body: RULE, change: ['description', 'one', 'two'], within: IN_RULE_SET },
  { path: 'rule_sets/1/deny_rules', body: DENY_RULE, change: ['description', 'one', 'two'], within: IN_RULE_SET },
]

/** What a GET of either version says and what pending lists, in one line. */
async function stateOf(org: Pce, href: string, field: string, within?: typeof IN_RULE_SET) {
  const [draft, live, pending] = [
    await org('GET', href),
    await org('GET', active(href)),
    (await org('GET', '/sec_policy/pending')).body as Record<string, { href: string; update_type: string }[]>,
  ]
  const holder = within?.href ?? href
  const entry = Object.values(pending)
    .flat()
    .find((one) => one.href === holder)
  return [
    draft.status === 200 ? draft.body.update_type : draft.status,
    live.status === 200 ? live.body[field] : live.status,
    entry?.update_type ?? 'not pending',
  ]
}

for (const { path, body, change, within } of KINDS) {
  const [field = '', one = '', two = ''] = change
  t.test(`the life cycle of an object of ${path}`, async (t) => {
    const { org } = await startPce(t, { estate: estateWithServers() })
    const create = async () => {
      const answer = await org('POST', `/sec_policy/draft/${path}`, body)
      t.equal(answer.status, 201, answer.text)
      return answer.body.href as string
    }
    const put = async (value: string) => t.equal((await org('PUT', href, { [field]: value })).status, 204)
    const remove = async () => t.equal((await org('DELETE', href)).status, 204)
    const subset = () => ({ change_subset: { [within?.type ?? path]: [{ href: within?.href ?? href }] } })
    const provision = async () => t.equal((await org('POST', '/sec_policy', subset())).status, 201)
    /** A rule's change makes its rule set an update, whatever it is itself. */
    const is = async (
      step: string,
      draft: string | null | 404,
      live: string | 404,
      pending = draft ?? 'not pending',
    ) => {
      const held = pending === 'not pending' || !within ? pending : 'update'
      t.same(await stateOf(org, href, field, within), [draft, live, held], step)
    }

    let href = await create()
    await is('POST', 'create', 404)
    await put(one)
    await is('PUT before provisioning', 'create', 404)
    await provision()
    await is('provision', null, one)
    await put(two)
    await is('PUT after provisioning', 'update', one)
    t.equal((await org('PUT', '/sec_policy/delete', subset())).status, 204)
    await is('revert', null, one)
    t.equal((await org('GET', href)).body[field], one, 'as it was')
    await put(two)
    await org('DELETE', '/sec_policy/pending')
    await is('discard', null, one)

    await remove()
    await is('DELETE', 'delete', one)
    await put(two)
    await is('PUT on a pending deletion', 'delete', one)
    await remove()
    await is('a second DELETE', 'delete', one)
    await org('DELETE', '/sec_policy/pending')
    await is('a discarded deletion', null, one)
    t.equal((await org('GET', href)).body.deleted_at, null)
    await remove()
    await provision()
    await is('the deletion provisioned', 404, 404, 'not pending')
    t.equal((await org('GET', href.replace('/draft/', '/2/'))).body[field], one, 'a past version can be read')
    t.equal((await org('GET', href.replace('/draft/', '/99/'))).status, 404)

    href = await create()
    await remove()
    await is('DELETE of what was never provisioned', 404, 404, within ? 'update' : 'not pending')
    href = await create()
    await org('DELETE', '/sec_policy/pending')
    await is('a discarded creation', 404, 404, 'not pending')

    for (const [verb, target] of [
      ['POST', `/sec_policy/active/${path}`],
      ['PUT', active(href)],
      ['DELETE', active(href)],
      ['POST', `/sec_policy/1/${path}`],
    ] as const) {
      t.equal((await org(verb, target, verb === 'DELETE' ? undefined : body)).status, 405, `${verb} ${target}`)
    }
    const types = (await org('GET', '/events?max_results=1000')).body.map((e: { event_type: string }) => e.event_type)
    for (const verb of ['create', 'update', 'delete']) {
      t.ok(
        types.some((type: string) => type.endsWith(`.${verb}`) && !type.startsWith('sec_policy')),
        verb,
      )
    }
  })
}

t.test('the life cycle of firewall settings: never created, never deleted', async (t) => {
  const { org } = await startPce(t)
  const href = '/orgs/1/sec_policy/draft/firewall_settings'
  const is = async (step: string, draft: string | null, live: string) =>
    t.same(await stateOf(org, href, 'ike_authentication_type'), [draft, live, draft ?? 'not pending'], step)
  await is('at first', null, 'psk')
  await org('PUT', href, { ike_authentication_type: 'certificate' })
  await is('PUT', 'update', 'psk')
  partial(t, (await org('GET', '/sec_policy/pending')).body, { firewall_settings: [{ name: 'Firewall Settings' }] })
  await org('PUT', '/sec_policy/delete', [{ href }])
  await is('reverted', null, 'psk')
  await org('PUT', href, { ike_authentication_type: 'certificate' })
  await org('POST', '/sec_policy', { change_subset: { firewall_settings: [{ href }] } })
  await is('provisioned', null, 'certificate')
  t.equal((await org('GET', href.replace('draft', '1'))).body.ike_authentication_type, 'psk')
  for (const verb of ['POST', 'DELETE']) t.equal((await org(verb, href, {})).status, 405, verb)
  t.equal((await org('PUT', active(href), {})).status, 405)

  const scopes = [[{ label: { href: SMALL.dev } }]]
  const names = [
    'static_policy_scopes',
    'containers_inherit_host_policy_scopes',
    'blocked_connection_reject_scopes',
    'loopback_interfaces_in_policy_scopes',
    'ip_forwarding_enabled_scopes',
    'rule_hit_count_enabled_scopes',
  ]
  for (const name of names) {
    await org('PUT', href, { [name]: scopes })
    partial(t, (await org('GET', href)).body[name], [[{ label: { href: SMALL.dev, key: 'env', value: 'dev' } }]], name)
    t.equal((await org('GET', `${SMALL.dev}?usage=true`)).body.usage[name], true)
    t.equal((await org('DELETE', SMALL.dev)).status, 406, `a label in ${name} stays`)
    await org('PUT', href, { [name]: [] })
    t.equal((await org('PUT', href, { [name]: [[{ label: { href: '/orgs/1/labels/99' } }]] })).status, 406)
  }
  const coexistence = [{ scope: [{ href: SMALL.dev }], illumio_primary: true }]
  t.equal((await org('PUT', href, { firewall_coexistence: coexistence })).status, 204)
  partial(t, (await org('GET', href)).body.firewall_coexistence, coexistence)
})

t.test('a version is restored as draft changes', async (t) => {
  const { simulator, org } = await startPce(t)
  const lists = '/sec_policy/draft/ip_lists'
  const kept = (await org('POST', lists, { name: 'Kept', description: 'then' })).body.href
  const gone = (await org('POST', lists, { name: 'Gone' })).body.href
  const consumers = [{ ip_list: { href: gone } }]
  const rule = (await org('POST', `${SMALL.paymentsRules}/sec_rules`, { ...RULE, consumers })).body.href
  await org('POST', '/sec_policy', {})
  await org('PUT', kept, { description: 'now' })
  await org('DELETE', rule)
  await org('PUT', SMALL.paymentsRule, { description: 'now' })
  const later = (await org('POST', `${SMALL.paymentsRules}/deny_rules`, DENY_RULE)).body.href
  await org('POST', '/sec_policy', {})
  await org('DELETE', gone)
  const made = (await org('POST', lists, { name: 'Made' })).body.href

  t.equal((await org('POST', '/sec_policy/2/restore', {})).status, 406, 'changes are pending')
  await org('POST', '/sec_policy', {})
  for (const version of ['draft', 'active', '99', 'x']) {
    t.equal((await org('POST', `/sec_policy/${version}/restore`, {})).status, 406, version)
  }
  t.equal((await org('POST', '/sec_policy/2/restore', { x: 1 })).status, 406)
  t.equal((await org('POST', '/sec_policy/2/restore', {})).status, 204)
  const modified = (await org('GET', '/sec_policy/draft/modified_objects')).body
  const byHref = Object.fromEntries(
    modified.map(({ href, update_type }: { href: string; update_type: string }) => [href, update_type]),
  )
  t.same(byHref, { [kept]: 'update', [gone]: 'create', [made]: 'delete', [SMALL.paymentsRules]: 'update' })
  t.equal((await org('GET', kept)).body.description, 'then')
  const { rules, deny_rules } = (await org('GET', SMALL.paymentsRules)).body
  const types = [...rules, ...deny_rules].map(({ href, update_type }) => [href, update_type])
  t.same(types, [
    [SMALL.paymentsRule, 'update'],
    [rule, 'create'],
    [later, 'delete'],
  ])
  t.equal((await org('GET', active(kept))).body.description, 'now', 'nothing is in force yet')
  t.equal((await org('POST', '/sec_policy', {})).status, 201)
  t.equal(simulator.state.policyVersion, 5)
  const content = async (version: string) =>
    (await org('GET', `/sec_policy/${version}/rule_sets`)).body[0].rules.map((one: object) => ({
      ...one,
      href: '',
      updated_at: '',
      ingress_services: '',
      consumers: '',
    }))
  t.same(await content('5'), await content('2'))
  t.equal((await org('GET', '/events?event_type=sec_policy.restore&status=success')).body.length, 1)
})
