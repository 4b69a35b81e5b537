import type { Test } from 'tap'
import type { BulkResultItem } from '../../../../pce-client/types.js'
import { partial } from '../../../partial.js'
import { failureOf, type ContractPce, type Json } from '../start-contract-pce.js'
import { proveGeneric } from './prove-generic.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const BULK = '/orgs/1/workloads/bulk'
const NO_WORKLOAD = '/orgs/1/workloads/00000000-dead-4000-8000-000000000000'

/** The operations that write (S9, P12, P29, P30, P31). */
export async function writingOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const find = (href: string) => simulator.state.find(href)
  const made = async (path: string, body: object) => (await ask<{ href: string }>('POST', path, body)).href

  await proveGeneric(t, pce, 'create', async (t) => {
    const label = await client.labels.create({ key: 'app', value: 'Generic' })
    const wire = { method: 'POST', path: '/orgs/1/labels', status: 201 }
    pce.wire(t, { ...wire, body: { key: 'app', value: 'Generic' } }, 'POST of the collection')
    partial(t, label, { href: /^\/orgs\/1\/labels\/\d+$/, key: 'app', value: 'Generic', created_at: /Z$/ })
    const list = await client.ipLists.create({ name: 'Generic made' })
    pce.wire(t, { ...wire, path: `${DRAFT}/ip_lists`, body: { name: 'Generic made' } }, 'versioned kinds: in the draft')
    partial(t, list, { href: /\/draft\/ip_lists\/\d+$/, update_type: 'create' })
    const parent = await made(`${DRAFT}/rule_sets`, { name: 'Generic', scopes: [[]] })
    const rule = {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ actors: 'ams' }],
      ingress_services: [{ port: 1, proto: 6 }],
    }
    for (const version of [parent, parent.replace('/draft/', '/active/')]) {
      const denied = await client.denyRules.create(rule, version)
      pce.wire(t, { ...wire, path: `${parent}/deny_rules`, body: rule }, 'below its parent, in the draft')
      t.ok(denied.href.startsWith(`${parent}/deny_rules/`))
    }
    const one = { reference_id: 'generic-1', name: 'x', score: 1 }
    const made1 = await client.vulnerabilities.create(one)
    pce.wire(t, { ...wire, path: '/orgs/1/vulnerabilities', body: [one] }, 'an array where the PCE wants one')
    partial(t, made1, { href: '/orgs/1/vulnerabilities/generic-1' }, 'and the one object of the answer')
    await pce.refusedHere(t, () => client.denyRules.create(rule), 'invalid_argument', 'a rule without a rule set')
    await pce.refusedHere(t, () => client.roles.create({ name: 'x' }), 'unsupported', 'a kind without a POST')
    const attempt = () => client.labels.create({ key: 'app', value: 'Generic' })
    const facts = { status: 406, method: 'POST', path: '/orgs/1/labels', token: 'label_key_and_value_must_be_unique' }
    await pce.refused(t, attempt, facts, 'a duplicate')
  })

  await proveGeneric(t, pce, 'update', async (t) => {
    const label = await made('/orgs/1/labels', { key: 'app', value: 'Before' })
    t.equal(await client.labels.update({ href: label }, { value: 'After' }), undefined, 'nothing comes back')
    pce.wire(t, { method: 'PUT', path: label, body: { value: 'After' }, status: 204 }, 'PUT of the href')
    partial(t, find(label), { key: 'app', value: 'After' }, 'only what was sent has changed')
    const list = await made(`${DRAFT}/ip_lists`, { name: 'Updated' })
    await client.ipLists.update(list.replace('/draft/', '/active/'), { description: 'x' })
    pce.wire(t, { method: 'PUT', path: list, body: { description: 'x' }, status: 204 }, 'active hrefs mean the draft')
    await client.reportSettings.update('/orgs/1/settings/reports', { max_queued_reports: 3 })
    const settings = { method: 'PUT', path: '/orgs/1/settings/reports', status: 204 }
    pce.wire(t, { ...settings, body: { max_queued_reports: 3 } }, 'a single object at its path')
    await pce.refusedHere(t, () => client.events.update('/orgs/1/events/1', {}), 'unsupported', 'a read-only kind')
    await pce.refusedHere(t, () => client.labels.update('/orgs/1/workloads/1', {}), 'invalid_href', 'another kind')
    const attempt = () => client.labels.update(label, { key: 'env' })
    const facts = { status: 406, method: 'PUT', path: label, token: 'input_validation_error' }
    await pce.refused(t, attempt, facts, 'a field that cannot change')
  })

  await proveGeneric(t, pce, 'delete', async (t) => {
    const label = await made('/orgs/1/labels', { key: 'app', value: 'Deleted' })
    t.equal(await client.labels.delete(label), undefined, 'nothing comes back')
    pce.wire(t, { method: 'DELETE', path: label, status: 204 }, 'DELETE of the href')
    const list = await made(`${DRAFT}/ip_lists`, { name: 'Deleted' })
    await client.ipLists.delete({ href: list.replace('/draft/', '/active/') })
    pce.wire(t, { method: 'DELETE', path: list, status: 204 }, 'active hrefs mean the draft')
    t.equal(find(list), undefined, 'it is gone')
    await pce.refusedHere(t, () => client.vens.delete('/orgs/1/vens/1'), 'unsupported', 'a kind without a DELETE')
    const facts = { status: 406, method: 'DELETE', path: label, token: 'label_already_deleted' }
    await pce.refused(t, () => client.labels.delete(label), facts, 'a deleted label')
  })

  await proveGeneric(t, pce, 'bulk_create', async (t) => {
    const objects = Array.from({ length: 1001 }, (_, index) => ({ name: `bulk-${index}` }))
    const results = await client.workloads.bulkCreate(objects)
    pce.wire(
      t,
      [objects.slice(0, 1000), objects.slice(1000)].map((body) => ({ method: 'PUT', path: `${BULK}_create`, body })),
      'in chunks of at most 1000, one after the other',
    )
    t.equal(results.length, 1001, 'the answers joined')
    t.ok(results.every(({ href, errors }) => href !== undefined && errors.length === 0))
    partial(t, find(results[1000]!.href!), { name: 'bulk-1000', managed: false })
    const external = { external_data_set: 'bulk', external_data_reference: '1' }
    await client.workloads.bulkCreate([{ name: 'first', ...external }])
    const mixed = await client.workloads.bulkCreate([{ name: 'second', ...external }, { name: 'third' }])
    partial(t, mixed, [{ errors: [{ token: /./, message: /./ }] }, { href: /./, errors: [] }], 'failures one by one')
    simulator.clearRequests()

    const principals = [
      { sid: 'S-1-5-21-1-2-3-4', name: 'Bulk' },
      { sid: 'S-1-5-21-1-2-3-5', name: 'Bulk two', description: 'x' },
    ]
    const sids = await client.securityPrincipals.bulkCreate(principals)
    const path = '/orgs/1/security_principals/bulk_create'
    pce.wire(t, { method: 'PUT', path, body: principals }, 'security principals')
    partial(t, sids, [{ href: '/orgs/1/security_principals/S-1-5-21-1-2-3-4', errors: [] }, { errors: [] }])
    const services = [{ name: 'Bulk', service_ports: [{ port: 1, proto: 6 }] }]
    const virtual = await client.virtualServices.bulkCreate(services)
    const draft = `${DRAFT}/virtual_services/bulk_create`
    pce.wire(t, { method: 'PUT', path: draft, body: services }, 'virtual services, in the draft')
    partial(t, find(virtual[0]!.href!), { name: 'Bulk', update_type: 'create' })

    await pce.refusedHere(t, () => client.labels.bulkCreate([{ key: 'app', value: 'x' }]), 'unsupported', 'labels')
    const attempt = () => client.workloads.bulkCreate([{ name: 5 }])
    const facts = { status: 406, method: 'PUT', path: `${BULK}_create`, token: 'input_validation_error' }
    await pce.refused(t, attempt, facts, 'a bad body')
  })

  await proveGeneric(t, pce, 'bulk_update', async (t) => {
    const hrefs = await many(client, 1001)
    simulator.clearRequests()
    const changes = hrefs.map((href, index) => ({ href, description: `changed ${index}` }))
    const results = await client.workloads.bulkUpdate(changes)
    pce.wire(
      t,
      [changes.slice(0, 1000), changes.slice(1000)].map((body) => ({ method: 'PUT', path: `${BULK}_update`, body })),
      'in chunks of at most 1000',
    )
    t.equal(results.length, 1001)
    t.ok(results.every(({ errors }) => errors.length === 0))
    partial(t, find(hrefs[1000]!), { description: 'changed 1000' })
    const mixed = await client.workloads.bulkUpdate([
      { href: NO_WORKLOAD, description: 'x' },
      { href: hrefs[0]!, description: 'y' },
      { href: hrefs[1]!, managed: true },
    ])
    const outcomes = [[{ token: 'not_found_error' }], [], [{ token: 'input_validation_error', message: /managed/ }]]
    partial(
      t,
      mixed,
      outcomes.map((errors) => ({ errors })),
      'failures one by one',
    )
    t.equal(mixed[1]!.errors.length, 0)
    partial(t, find(hrefs[0]!), { description: 'y' })
    const virtual = await made(`${DRAFT}/virtual_services`, {
      name: 'Bulk updated',
      service_ports: [{ port: 1, proto: 6 }],
    })
    simulator.clearRequests()
    const active = { href: virtual.replace('/draft/', '/active/'), description: 'x' }
    await client.virtualServices.bulkUpdate([active])
    const path = `${DRAFT}/virtual_services/bulk_update`
    pce.wire(t, { method: 'PUT', path, body: [{ href: virtual, description: 'x' }] }, 'virtual services, in the draft')
    partial(t, find(virtual), { description: 'x' })

    const attempt = () =>
      client.securityPrincipals.bulkUpdate([{ href: '/orgs/1/security_principals/S-1-5-21-1-2-3-4' }])
    await pce.refusedHere(t, attempt, 'unsupported', 'security principals')
    const foreign = () => client.workloads.bulkUpdate([{ href: '/orgs/2/workloads/1' }])
    await pce.refusedHere(t, foreign, 'invalid_href', 'another organisation')
    pce.refuseNext('PUT', `${BULK}_update`, 403, 'forbidden_error')
    const facts = { status: 403, method: 'PUT', path: `${BULK}_update`, token: 'forbidden_error' }
    await pce.refused(t, () => client.workloads.bulkUpdate([changes[0]!]), facts, 'forbidden')
  })

  await proveGeneric(t, pce, 'bulk_delete', async (t) => {
    const hrefs = await many(client, 1001)
    const [managed] = await pce.list('/orgs/1/workloads?managed=true&max_results=1')
    t.strictSame(await client.workloads.bulkDelete(hrefs), [], 'nothing to report')
    const chunks = [hrefs.slice(0, 1000), hrefs.slice(1000)]
    pce.wire(
      t,
      chunks.map((chunk) => ({ method: 'PUT', path: `${BULK}_delete`, body: chunk.map((href) => ({ href })) })),
      'in chunks of at most 1000',
    )
    t.notOk(
      (await pce.list('/orgs/1/workloads?max_results=100000')).some(({ href }) => hrefs.includes(href)),
      'gone',
    )
    const failed = await client.workloads.bulkDelete([managed!.href, NO_WORKLOAD])
    partial(
      t,
      failed,
      [
        { href: managed!.href, errors: [{ token: 'method_not_allowed_error', message: /./ }] },
        { href: NO_WORKLOAD, errors: [{ token: 'not_found_error', message: /./ }] },
      ],
      'only the failures',
    )
    await ask('POST', '/orgs/1/workloads', { name: 'x', external_data_set: 'a', external_data_reference: 'b' })
    const external = '/orgs/1/workloads?external_data_set=a&external_data_reference=b'
    t.strictSame(await client.workloads.bulkDelete([external]), [], 'an external reference names a workload')
    pce.wire(t, { method: 'PUT', path: `${BULK}_delete`, body: [{ href: external }] }, 'as it is')

    const attempt = () => client.virtualServices.bulkDelete([`${DRAFT}/virtual_services/1`])
    await pce.refusedHere(t, attempt, 'unsupported', 'virtual services')
    const more = await many(client, 1001)
    simulator.clearRequests()
    const path = `${BULK}_delete`
    simulator.faults.add({ kind: 'status', path, times: 1, skip: 1, status: 403, body: [{ token: 'forbidden_error' }] })
    const error = (await failureOf(() => client.workloads.bulkDelete([managed!.href, ...more]))) as {
      status?: number
      completed?: BulkResultItem[]
    }
    t.equal(error.status, 403)
    partial(t, error.completed, [{ href: managed!.href }], 'a failure in between keeps the answers so far')
    pce.refuseNext('PUT', path, 403, 'forbidden_error')
    const facts = { status: 403, method: 'PUT', path, token: 'forbidden_error' }
    await pce.refused(t, () => client.workloads.bulkDelete([managed!.href]), facts, 'forbidden')
  })
}

/** New workloads of nobody. */
async function many(client: ContractPce['client'], count: number): Promise<string[]> {
  const bodies: Json[] = Array.from({ length: count }, (_, index) => ({ name: `many-${index}` }))
  return (await client.workloads.bulkCreate(bodies)).map(({ href }) => href ?? '')
}
