/**
 * What scopes say of the objects that the toolset objects-plus writes: virtual services and their bindings are placed by
 * labels, addresses and workloads; everything else has no scope.
 */
import t, { type Test } from 'tap'
import type { Json } from '../contract/authenticated-service.js'
import { handMade } from '../tools/hand-made.js'
import { startScoped } from './scoped-service.js'

const GROUPS = {
  payments: { scopes: [{ app: 'payments' }], create: ['label_groups', 'pairing_profiles'] },
  core: { scopes: '*' },
}
const PORTS = { service_ports: [{ port: 443, proto: 'tcp' }] }
const MANY = Array.from({ length: 25 }, (_, at) => `pay${at}`)
const refused = (rule: string) => ['out_of_scope', rule, 0]
const OK = ['ok', undefined, 1]

const start = (t: Test) =>
  startScoped(
    t,
    GROUPS,
    handMade({
      hosts: {
        ...Object.fromEntries(MANY.map((name, at) => [name, { ip: `10.0.1.${at}`, labels: 'app=payments' }])),
        shop1: { ip: '10.0.0.3', labels: 'app=shop' },
      },
    }),
  )
type Service = Awaited<ReturnType<typeof start>>

/** Creates virtual services as the platform team, and provisions them. */
async function offer({ call }: Service, services: object[]): Promise<void> {
  for (const service of services) await call('core', 'create-virtual-service', { ...PORTS, ...service })
  await call('core', 'provision-policy', { all_pending: true })
}

t.test('a virtual service is inside by its labels, and by whose addresses it claims', async (t) => {
  const service = await start(t)
  const { ask } = service
  await offer(service, [{ name: 'shop', labels: ['app=shop'] }])
  const create = (name: string, more: object) =>
    ask('payments', 'create-virtual-service', { name, labels: ['app=payments'], ...PORTS, ...more })
  t.same(await create('own', {}), OK)
  t.same(await create('none', { labels: [] }), refused('virtual_service'))
  t.same(await create('theirs', { labels: ['app=shop'] }), refused('virtual_service'))
  t.same(await create('at', { service_addresses: [{ ip: '10.0.1.1' }], ip_overrides: ['10.9.9.9'] }), OK)
  t.same(await create('claiming', { service_addresses: [{ ip: '10.0.0.3' }] }), refused('address_taken'))
  t.same(await create('instead', { ip_overrides: ['10.0.0.3'] }), refused('address_taken'))
  t.same(await create('named', { service_addresses: [{ fqdn: 'db.example.com' }] }), refused('virtual_service'))
  const update = (name: string, more: object) => ask('payments', 'update-virtual-service', { name, ...more })
  t.same(await update('own', { description: 'x' }), OK)
  t.same(await update('own', { labels: ['app=shop'] }), refused('virtual_service'), 'out of reach')
  t.same(await update('own', { ip_overrides: ['10.0.0.3'] }), refused('address_taken'))
  t.same(await update('own', { service_addresses: [{ fqdn: 'db.example.com' }] }), refused('virtual_service'))
  t.same(await update('shop', { labels: ['app=payments'] }), refused('virtual_service'), 'into reach')
  t.same(await ask('payments', 'delete-virtual-service', { name: 'shop' }), refused('virtual_service'))
  t.same(await ask('payments', 'delete-virtual-service', { name: 'own' }), OK)
})

t.test('a binding is inside if its workload and its virtual service are', async (t) => {
  const service = await start(t)
  const { ask, call } = service
  await offer(service, [
    { name: 'own', labels: ['app=payments'] },
    { name: 'shop', labels: ['app=shop'] },
    { name: 'shared', labels: ['app=payments'] },
  ])
  await call('core', 'bind-workloads', { virtual_service: 'shared', workloads: ['shop1', 'pay1'] })
  const bind = (virtual: string, workloads: string[], unbind = false) =>
    ask('payments', 'bind-workloads', { virtual_service: virtual, workloads, unbind })
  t.same(await bind('own', ['pay0', 'shop1']), refused('workload_labels'))
  t.same(await bind('shop', ['pay0']), refused('virtual_service'))
  t.same(await bind('shared', ['pay0']), refused('virtual_service'), 'a workload outside offers it')
  t.same(await bind('own', ['pay0']), OK)
  t.same(await bind('own', ['pay0'], true), OK)
  t.same(await bind('shared', ['shop1'], true), refused('workload_labels'))
  t.same(await bind('shared', ['pay1'], true), OK, 'the end of a binding is about its workload alone')
})

t.test('a request that binds many workloads reads their virtual service once', async (t) => {
  const service = await start(t)
  const { simulator } = service.pce
  await offer(service, [{ name: 'own', labels: ['app=payments'] }])
  const reads = async (workloads: string[]): Promise<number> => {
    simulator.clearRequests()
    const answer: Json = await service.call('payments', 'bind-workloads', { virtual_service: 'own', workloads })
    t.equal(answer.changed, workloads.length, answer.message)
    return simulator.requests.filter(({ path }) => /\/(?:draft|active)\/virtual_services\//.test(path)).length
  }
  const one = await reads(MANY.slice(0, 1))
  t.equal(await reads(MANY.slice(1)), one)
})

t.test('what has no scope is for everything alone, but for creating what may be created', async (t) => {
  const { ask, call } = await start(t)
  const group = { name: 'both', labels: ['app=payments', 'app=shop'] }
  t.same(await ask('payments', 'create-label-group', group), OK)
  t.same(await ask('payments', 'update-label-group', { name: 'both', remove: ['app=shop'] }), refused('no_scope'))
  t.same(await ask('payments', 'delete-label-group', { name: 'both' }), refused('no_scope'))
  t.same(await ask('payments', 'create-label-dimension', { key: 'bu', display_name: 'Unit' }), refused('no_scope'))
  t.same(await ask('payments', 'update-label-dimension', { key: 'app', display_name: 'x' }), refused('no_scope'))
  await call('core', 'create-label-dimension', { key: 'bu', display_name: 'Unit' })
  t.same(await ask('payments', 'delete-label-dimension', { key: 'bu' }), refused('no_scope'))
  t.same(await ask('core', 'delete-label-dimension', { key: 'bu' }), OK)
  const profile = (name: string, labels: string[]) => ask('payments', 'create-pairing-profile', { name, labels })
  t.same(await profile('theirs', ['app=shop']), refused('profile_labels'))
  t.same(await profile('own', ['app=payments']), OK)
  t.same(await ask('payments', 'update-pairing-profile', { name: 'own', enabled: false }), refused('no_scope'))
  t.same(await ask('payments', 'create-pairing-key', { name: 'own' }), refused('no_scope'))
  t.same(await ask('core', 'create-pairing-key', { name: 'own' }), OK)
  t.same(await ask('payments', 'delete-pairing-keys', { name: 'own' }), refused('no_scope'))
  t.same(await ask('payments', 'delete-pairing-profile', { name: 'own' }), refused('no_scope'))
})
