/** Virtual services and their bindings as they are written: drafts, and bindings at once, exact names, and nothing bound twice. */
import t, { type Test } from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const AT = '/orgs/1/sec_policy/draft/virtual_services'
const BINDINGS = '/orgs/1/service_bindings'
const NOT_JUDGED =
  'Rules through virtual services are not judged here: which traffic this would open or cut is not known.'

/** The virtual service "web" is provisioned, and the rule set "to web" names it; three machines could offer it. */
async function start(t: Test): Promise<Bench> {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: {
        one: { ip: '10.0.0.1', labels: 'app=shop env=prod' },
        two: { ip: '10.0.0.2', labels: 'app=shop env=prod' },
        three: { ip: '10.0.0.3', labels: 'app=crm env=prod' },
      },
      services: { https: { service_ports: [{ port: 443, proto: 6 }] } },
      labels: ['app=web', 'app=old'],
    }),
  })
  const { href } = await bench.ok('create-virtual-service', {
    name: 'web',
    service: 'https',
    labels: ['app=web', 'env=prod'],
  })
  await bench.ok('create-ruleset', {
    name: 'to web',
    scopes: [[]],
    rules: [{ providers: [href], consumers: ['app=crm'], ingress_services: [{ port: 443, proto: 6 }] }],
  })
  await bench.ok('provision-policy', { all_pending: true })
  bench.writes()
  return bench
}
const namesOf = ({ bound }: Json) => bound.map(({ workload }: Json) => workload).sort()

t.test('a virtual service is created in draft, and the dry run announces what is sent', async (t) => {
  const bench = await start(t)
  const asked = {
    name: 'orders',
    description: 'For partners',
    service_ports: [
      { port: 8443, proto: 'tcp' },
      { port: 9000, to_port: 9010, proto: 17 },
    ],
    labels: ['app=shop'],
    service_addresses: [
      { ip: '10.9.0.1', port: 443 },
      { fqdn: 'orders.example.com', description: 'Public' },
    ],
    ip_overrides: ['10.9.0.2'],
    apply_to: 'internal_bridge_network',
  }
  const plan = await bench.ok('create-virtual-service', { ...asked, dry_run: true })
  t.same(bench.writes(), [])
  const { href, message, ...shown } = await bench.ok('create-virtual-service', asked)
  const [request] = bench.writes()
  t.same(plan.requests, [{ method: 'POST', path: AT, body: request!.body }])
  t.equal(
    message,
    'Created the virtual service "orders" in draft. Workloads can be bound to it once it is provisioned.',
  )
  t.same(shown, {
    name: 'orders',
    description: 'For partners',
    service_ports: [
      { port: 8443, proto: 6 },
      { port: 9000, to_port: 9010, proto: 17 },
    ],
    labels: ['app=shop'],
    apply_to: 'internal_bridge_network',
    service_addresses: [
      { ip: '10.9.0.1', port: 443 },
      { fqdn: 'orders.example.com', description: 'Public' },
    ],
    ip_overrides: ['10.9.0.2'],
    update_type: 'create',
  })
  t.equal((await bench.pce.virtualServices.getByReference(href)).name, 'orders')
})

t.test('what the PCE stores otherwise than it was sent is told field by field', async (t) => {
  const bench = await start(t)
  const sent = { name: 'orders', description: 'For partners', service_ports: [{ port: 8443, proto: 6 }] }
  const body = {
    href: `${AT}/9`,
    ...sent,
    description: 'Unknown',
    service_ports: [{ port: 443, proto: 6 }],
    labels: [],
  }
  bench.simulator.faults.add({ kind: 'answer', path: /virtual_services\/[^/]+$/, method: 'GET', times: 1, body })
  const done = await bench.ok('create-virtual-service', sent)
  t.same(done.differences, [
    { field: 'description', sent: 'For partners', stored: 'Unknown' },
    { field: 'service_ports', sent: [{ port: 8443, proto: 6 }], stored: [{ port: 443, proto: 6 }] },
  ])
})

t.test(
  'what cannot be a virtual service is refused with the place of the fault, before anything is written',
  async (t) => {
    const bench = await start(t)
    const refused = async (args: object, code: string) =>
      (await bench.fails('create-virtual-service', { name: 'new', ...args }, code)).message as string
    const ports = { service_ports: [{ port: 443, proto: 6 }] }
    t.equal(await refused({}, 'empty_service'), 'A virtual service offers something: give service or service_ports.')
    t.equal(
      await refused({ service: 'https', ...ports }, 'conflicting_service_definition'),
      'A virtual service offers a service or ports of its own: give service or service_ports, not both.',
    )
    t.equal(
      await refused({ service_ports: [{ port: 1, proto: 6 }, { proto: 'icmp' }] }, 'invalid_service_definition'),
      'service_ports[1]: a virtual service has ports of tcp and udp only; anything else takes a service.',
    )
    t.equal(
      await refused({ ...ports, labels: ['app=web', 'app=shop'] }, 'invalid_argument'),
      'labels: One label per key; "app" was given "web" and "shop".',
    )
    t.equal(
      await refused({ ...ports, labels: ['app=wb'] }, 'label_not_found'),
      'labels: No label matches "app=wb" exactly. Did you mean "app=web"?',
    )
    t.equal(
      await refused({ ...ports, service_addresses: [{ ip: '10.0.0.1', fqdn: 'a.example.com' }] }, 'invalid_argument'),
      'service_addresses[0]: Give ip or fqdn, one of them.',
    )
    t.equal(
      await refused(
        { ...ports, service_addresses: [{ ip: '10.0.0.1', network: '/orgs/1/labels/1' }] },
        'invalid_argument',
      ),
      'service_addresses[0]: "/orgs/1/labels/1" is not the href of a network in organisation 1.',
    )
    t.equal(
      await refused({ ...ports, ip_overrides: ['10.0.0.1', '10.0.0.0/24'] }, 'invalid_argument'),
      'ip_overrides[1]: "10.0.0.0/24" is not an IPv4 or IPv6 address.',
    )
    t.equal(await refused({ service: 'http' }, 'not_found'), 'No service is named exactly "http".')
    t.equal(
      await refused({ name: 'web', ...ports }, 'already_exists'),
      'The name "web" already belongs to another virtual service.',
    )
    t.same(bench.writes(), [])
  },
)

t.test('an update says who uses the virtual service and who is bound to it', async (t) => {
  const bench = await start(t)
  await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one'] })
  bench.writes()
  const dry = await bench.ok('update-virtual-service', { name: 'web', labels: ['app=old'], dry_run: true })
  t.same(dry.warnings, ['It is used by: "to web" (draft and active).', NOT_JUDGED])
  t.same([namesOf(dry), dry.bound_total, dry.labels], [['one'], 1, ['app=old']])
  const plain = await bench.ok('update-virtual-service', { name: 'web', description: 'x', dry_run: true })
  t.same([plain.warnings, plain.bound], [undefined, undefined])
  t.same(bench.writes(), [])
  const own = [{ port: 80, proto: 6 }]
  const changed = await bench.ok('update-virtual-service', { name: 'web', service_ports: own })
  t.same([changed.updated_fields, changed.service_ports, changed.service], [['service_ports'], own, undefined])
  t.equal(changed.update_type, 'update')
})

t.test('workloads are bound at once, each once, and the same call again does nothing', async (t) => {
  const bench = await start(t)
  const args = { virtual_service: 'web', app_name: 'shop', env_name: 'prod' }
  const dry = await bench.ok('bind-workloads', { ...args, dry_run: true })
  t.equal(dry.message, 'Would bind 2 workloads to the virtual service "web".')
  t.same(dry.warnings, [
    'It is used by: "to web" (draft and active).',
    'Bindings have no draft: this takes effect at once. Rules through virtual services are not judged here, so which traffic it would open or cut is not known.',
  ])
  t.same(bench.writes(), [])
  const done = await bench.ok('bind-workloads', args)
  const [request] = bench.writes()
  t.same(dry.requests, [{ method: 'POST', path: BINDINGS, body: request!.body }])
  t.same([done.message, done.changed, done.already], ['Bound 2 workloads to the virtual service "web".', 2, 0])
  t.same([namesOf(done), done.bound_total], [['one', 'two'], 2])
  const again = await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one', 'three'] })
  t.same([again.changed, again.already, namesOf(again)], [1, 1, ['one', 'three', 'two']])
  const nothing = await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one'] })
  t.equal(nothing.message, 'Nothing to do at the virtual service "web". 1 workload needs nothing.')
  const ended = await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one', 'two'], unbind: true })
  t.same([ended.message, namesOf(ended)], ['Unbound 2 workloads from the virtual service "web".', ['three']])
  const both = await Promise.all(
    ['one', 'one'].map((name) => bench.ok('bind-workloads', { virtual_service: 'web', workloads: [name] })),
  )
  t.same(both.map(({ changed }) => changed).sort(), [0, 1], 'of two calls at once one binds')
})

t.test('other ports at a workload', async (t) => {
  const bench = await start(t)
  const port_overrides = [{ port: 443, proto: 'tcp', new_port: 8443 }]
  const args = { virtual_service: 'web', workloads: ['one'], port_overrides }
  const wrong = async (override: object) => {
    const all = { ...args, port_overrides: [{ ...port_overrides[0], ...override }] }
    return (await bench.fails('bind-workloads', all, 'invalid_argument')).message as string
  }
  t.equal(await wrong({ port: 80 }), 'port_overrides[0]: the virtual service "web" does not offer 80/tcp.')
  t.equal(await wrong({ proto: 'udp' }), 'port_overrides[0]: the virtual service "web" does not offer 443/udp.')
  t.equal(await wrong({ new_port: 0 }), 'port_overrides[0]: new_port is a whole number from 1 to 65535.')
  t.equal(
    await wrong({ new_to_port: 8000 }),
    'port_overrides[0]: new_to_port is the end of a range that begins with new_port.',
  )
  const done = await bench.ok('bind-workloads', args)
  t.same(done.bound, [{ workload: 'one', port_overrides: [{ port: 443, proto: 6, new_port: 8443 }] }])
  t.equal((await bench.ok('bind-workloads', args)).changed, 0)
  t.equal(
    await wrong({ new_port: 9443 }),
    '"one" is bound already, with other port overrides, and a binding cannot be changed.',
  )
  await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one'], unbind: true })
  const other = [{ port: 443, proto: 6, new_port: 9443 }]
  t.same((await bench.ok('bind-workloads', { ...args, port_overrides: other })).bound, [
    { workload: 'one', port_overrides: other },
  ])
  const text = 'port_overrides belong to new bindings: leave them out, or leave unbind out.'
  t.equal((await bench.fails('bind-workloads', { ...args, unbind: true }, 'invalid_argument')).message, text)
})

t.test('nothing can be bound to a draft, and a name that nobody has binds nobody', async (t) => {
  const bench = await start(t)
  await bench.ok('create-virtual-service', { name: 'new', service: 'https' })
  bench.writes()
  const refused = await bench.fails(
    'bind-workloads',
    { virtual_service: 'new', workloads: ['one'] },
    'invalid_argument',
  )
  t.same(
    [refused.message, refused.reason],
    [
      'The virtual service "new" has not been provisioned, and workloads are bound to the active one.',
      'not_provisioned',
    ],
  )
  await bench.fails('bind-workloads', { virtual_service: 'web', workloads: ['one', 'oneself'] }, 'not_found')
  await bench.fails('bind-workloads', { virtual_service: 'we', workloads: ['one'] }, 'not_found')
  t.same(bench.writes(), [])
  await bench.ok('provision-policy', { all_pending: true })
  t.equal((await bench.ok('bind-workloads', { virtual_service: 'new', workloads: ['one'] })).changed, 1, refused.hint)
})

t.test('an answer that is lost after the PCE has bound them is no failure', async (t) => {
  const bench = await start(t)
  bench.simulator.faults.add({ kind: 'commit-then-drop', path: BINDINGS, method: 'POST', times: 1 })
  const done = await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one', 'two'] })
  t.same([done.changed, namesOf(done)], [2, ['one', 'two']])
})

t.test('a PCE that fails half-way: the error says who is left, and the same call completes it', async (t) => {
  const bench = await start(t)
  const args = { virtual_service: 'web', workloads: ['one', 'two', 'three'] }
  await bench.ok('bind-workloads', args)
  const fault = {
    kind: 'status',
    path: /service_bindings\/.+/,
    method: 'DELETE',
    times: 1,
    skip: 1,
    status: 406,
  } as const
  bench.simulator.faults.add(fault)
  const failed = await bench.fails('bind-workloads', { ...args, unbind: true }, 'pce_error')
  t.same(
    [failed.unbound, failed.not_unbound_total, failed.not_unbound.length, failed.hint],
    [1, 2, 2, 'The same call completes what is left.'],
  )
  const done = await bench.ok('bind-workloads', { ...args, unbind: true })
  t.same([done.changed, done.already, done.bound_total], [2, 1, 0])
})

t.test('more workloads than one request binds: the second fails, and the error says which are left', async (t) => {
  const named = Array.from({ length: 502 }, (_, at) => `host-${at}`)
  const hosts = named.map((name, at) => [name, { ip: `10.0.${at >> 8}.${at & 255}`, labels: 'app=shop env=prod' }])
  const estate = handMade({
    hosts: Object.fromEntries(hosts),
    services: { https: { service_ports: [{ port: 443, proto: 6 }] } },
  })
  const bench = await startBench(t, { estate })
  await bench.ok('create-virtual-service', { name: 'web', service: 'https' })
  await bench.ok('provision-policy', { all_pending: true })
  bench.writes()
  const args = { virtual_service: 'web', app_name: 'shop', env_name: 'prod' }
  bench.simulator.faults.add({ kind: 'status', path: BINDINGS, method: 'POST', times: 1, skip: 1, status: 406 })
  const failed = await bench.fails('bind-workloads', args, 'pce_error')
  t.equal(bench.writes().length, 2)
  const bound = new Set((await bench.pce.serviceBindings.getAll()).map(({ workload }) => workload?.href))
  const workloads = await bench.pce.workloads.getAll()
  t.same(
    failed.not_bound.map(({ href }: Json) => href).toSorted(),
    workloads.flatMap(({ href }) => (bound.has(href) ? [] : [href])).toSorted(),
    'those that the PCE does not have are named',
  )
  t.same([failed.bound, bound.size], [500, 500], 'the first request was carried out, as a whole')
  t.same([failed.not_bound_total, failed.hint], [2, 'The same call completes what is left.'])
  const done = await bench.ok('bind-workloads', args)
  t.same([done.changed, done.already, done.bound_total], [2, 500, 502])
})

t.test('a PCE that fails, and does not say what is bound either', async (t) => {
  const bench = await start(t)
  const args = { virtual_service: 'web', workloads: ['one'] }
  bench.simulator.faults.add({ kind: 'status', path: BINDINGS, method: 'POST', times: 1, status: 406 })
  bench.simulator.faults.add({ kind: 'status', path: BINDINGS, method: 'GET', times: 50, skip: 1, status: 403 })
  const failed = await bench.fails('bind-workloads', args, 'pce_error')
  t.same(
    [failed.planned, failed.read_back, failed.hint],
    [1, 'unreadable', 'Which of them are bound could not be read. A dry run of the same call says it.'],
  )
  bench.simulator.faults.clear()
  t.equal((await bench.ok('bind-workloads', { ...args, dry_run: true })).bound_total, 0)
})

t.test('a deletion names the rules that use it and the workloads bound to it', async (t) => {
  const bench = await start(t)
  await bench.ok('bind-workloads', { virtual_service: 'web', workloads: ['one'] })
  const dry = await bench.ok('delete-virtual-service', { name: 'web', dry_run: true })
  t.same(dry.warnings, [
    'The PCE will refuse it while it is used by: "to web" (draft and active).',
    '1 workload is bound to it. When the deletion is provisioned, they offer it no more; whether the PCE refuses it before they are unbound is not documented.',
  ])
  t.same([namesOf(dry), dry.bound_total], [['one'], 1])
  const refused = await bench.fails('delete-virtual-service', { name: 'web' }, 'pce_error')
  t.same(
    refused.used_by.map(({ name, versions }: Json) => [name, versions]),
    [['to web', ['draft', 'active']]],
  )
  await bench.ok('create-virtual-service', { name: 'spare', service: 'https' })
  const gone = await bench.ok('delete-virtual-service', { name: 'spare' })
  t.same(
    [gone.message, gone.bound],
    ['Deleted the virtual service "spare". It had never been provisioned, so it is gone.', undefined],
  )
})

t.test('two calls at once replace its labels: the second is told', async (t) => {
  const bench = await start(t)
  const answers = await Promise.all(
    ['app=old', 'app=shop'].map((label) =>
      bench.answer('update-virtual-service', { name: 'web', labels: [label, 'env=prod'] }),
    ),
  )
  const refused = answers.filter(({ error }) => error === 'already_exists')
  t.equal(refused.length, 1)
  t.same([refused[0].reason, refused[0].fields], ['changed_meanwhile', ['labels']])
  t.equal(bench.writes().length, 1)
})
