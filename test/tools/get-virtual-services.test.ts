/** Virtual services: found by part and by whole name, in the draft and in what is in force, with what they offer and where. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const NAME = 'get-virtual-services'
const AT = '/orgs/1/sec_policy'

const estate = () =>
  handMade({
    hosts: { web: { ip: '10.0.0.1', labels: 'app=shop env=prod' } },
    services: { Web: { service_ports: [{ port: 443, proto: 6 }] } },
  })

const labelled = async ({ pce }: Bench, value: string) => {
  const { href } = (await pce.labels.getAll()).find((label) => label.value === value)!
  return { href }
}
const listed = async (bench: Bench, args: object = {}): Promise<Json[]> => (await bench.ok(NAME, args)).virtual_services
const namesOf = (rows: readonly Json[]) => rows.map(({ name }) => name)

t.test('what is no argument of it is refused', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  await bench.fails(NAME, { name: '' }, 'invalid_argument')
  await bench.fails(NAME, { service: 'Web' }, 'invalid_argument')
  partial(t, await bench.fails(NAME, { fields: ['ports'] }, 'invalid_argument'), { unknown_fields: ['ports'] })
  t.same(bench.simulator.requests, [])
  t.same(await bench.ok(NAME), {
    virtual_services: [],
    policy_version: 'draft',
    total_count: 0,
    pce_total: 0,
    truncated: false,
  })
})

t.test('what they offer, where, and under which labels', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  const { pce } = bench
  const service = (await pce.services.getByName('Web'))!
  const [app, env] = [await labelled(bench, 'shop'), await labelled(bench, 'prod')]
  const shop = await pce.virtualServices.create({
    name: 'Shop',
    description: 'the front',
    labels: [app, env],
    service: { href: service.href },
    service_addresses: [
      { ip: '10.9.0.1', port: 443 },
      { fqdn: 'shop.example.com', description: '' },
    ],
  } as Json)
  const queue = await pce.virtualServices.create({
    name: 'Shop queue',
    service_ports: [{ port: 5671, to_port: 5672, proto: 6 }],
    apply_to: 'internal_bridge_network',
    ip_overrides: ['10.9.0.2'],
  } as Json)

  t.same(await listed(bench), [
    {
      href: shop.href,
      name: 'Shop',
      description: 'the front',
      service: { href: service.href, name: 'Web' },
      labels: ['app=shop', 'env=prod'],
      apply_to: 'host_only',
      service_addresses: [{ ip: '10.9.0.1', port: 443 }, { fqdn: 'shop.example.com' }],
      update_type: 'create',
    },
    {
      href: queue.href,
      name: 'Shop queue',
      description: null,
      service_ports: [{ port: 5671, to_port: 5672, proto: 6 }],
      labels: [],
      apply_to: 'internal_bridge_network',
      ip_overrides: ['10.9.0.2'],
      update_type: 'create',
    },
  ])
  const [full] = await listed(bench, { detail_level: 'full', fields: ['labels'] })
  t.same(full, {
    labels: [
      { ...app, key: 'app', value: 'shop' },
      { ...env, key: 'env', value: 'prod' },
    ],
  })

  await t.test('by a part of the name or the description, or by the whole', async (t) => {
    t.same(namesOf(await listed(bench, { name: 'shop' })), ['Shop', 'Shop queue'], 'in any case')
    t.same(namesOf(await listed(bench, { name: 'Shop', exact: true })), ['Shop'])
    t.same(namesOf(await listed(bench, { name: 'shop', exact: true })), [], 'another case is another name')
    t.same(namesOf(await listed(bench, { description: 'front' })), ['Shop'])
    t.same(namesOf(await listed(bench, { description: 'front', exact: true })), [])
  })

  await t.test('page by page', async (t) => {
    const first = await bench.ok(NAME, { max_results: 1 })
    partial(t, first, { total_count: 2, truncated: true, virtual_services: [{ name: 'Shop' }] })
    const rest = await bench.ok(NAME, { max_results: 1, cursor: first.next_cursor })
    partial(t, rest, { truncated: false, virtual_services: [{ name: 'Shop queue' }] })
    await bench.fails(NAME, { name: 'Shop', cursor: first.next_cursor }, 'invalid_argument')
  })

  await t.test('as they are in a version', async (t) => {
    t.same(await listed(bench, { policy_version: 'active' }), [], 'nothing is provisioned')
    await pce.provisionPolicyChanges('first', [shop.href])
    await pce.virtualServices.update(shop, { name: 'Store' })
    const [active, ...others] = await listed(bench, { policy_version: 'active' })
    t.same(others, [])
    partial(t, active, { name: 'Shop', href: shop.href.replace('draft', 'active'), labels: ['app=shop', 'env=prod'] })
    t.notOk('update_type' in active, 'what is in force has no pending change')
    t.same(namesOf(await listed(bench)), ['Store', 'Shop queue'])
    const [{ href, name }] = await listed(bench, { policy_version: bench.simulator.state.policyVersion })
    t.same(
      { href, name },
      { href: shop.href.replace(`${AT}/draft`, `${AT}/${bench.simulator.state.policyVersion}`), name: 'Shop' },
    )
  })
})

t.test('a virtual service that is too large for an answer is cut, and says so', async (t) => {
  const bench = await startBench(t, { estate: estate(), budget: 4000 })
  const service_addresses = Array.from({ length: 200 }, (_, at) => ({ ip: `10.1.${at}.1` }))
  await bench.pce.virtualServices.create({
    name: 'Large',
    service_ports: [{ port: 1, proto: 6 }],
    service_addresses,
  } as Json)
  const [row] = await listed(bench)
  t.ok(row.service_addresses.length < 200)
  t.match(row.omitted, /at most \d+ entries per list/)
})
