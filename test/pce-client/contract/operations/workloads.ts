import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const WORKLOADS = '/orgs/1/workloads'
const NO_WORKLOAD = `${WORKLOADS}/00000000-dead-4000-8000-000000000000`

/** Workloads (P13). */
export async function workloadOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const { href } = await ask<{ href: string }>('POST', WORKLOADS, {
    name: 'operation-1',
    hostname: 'operation-1.example.com',
    interfaces: [{ name: 'eth0', address: '10.77.0.1', link_state: 'up' }],
  })
  const managed = (await pce.list(`${WORKLOADS}?managed=true`)).map((workload) => workload.href)
  const path = `${href}/interfaces`
  const unknown = { status: 404, path: `${NO_WORKLOAD}/interfaces` }

  await proveOperation(t, pce, 'get_workload_interfaces', async (t) => {
    const interfaces = await client.getWorkloadInterfaces(href)
    pce.wire(t, { method: 'GET', path }, 'below the workload')
    partial(t, interfaces, [{ name: 'eth0', address: '10.77.0.1', link_state: 'up' }])
    checkResult(t, 'get_workload_interfaces', interfaces)
    t.strictSame(await client.getWorkloadInterfaces(href, { params: { name: 'wlan' } }), [], 'filtered')
    pce.wire(t, { method: 'GET', path, query: { name: 'wlan' } }, 'by name')
    const attempt = () => client.getWorkloadInterfaces(NO_WORKLOAD)
    await pce.refused(t, attempt, { ...unknown, method: 'GET' }, 'an unknown workload')
  })

  await proveOperation(t, pce, 'create_workload_interface', async (t) => {
    const body = { name: 'eth1', link_state: 'up', address: '10.77.0.2', cidr_block: 24, friendly_name: 'back' }
    const made = await client.createWorkloadInterface(href, body)
    pce.wire(t, { method: 'POST', path, body, status: 201 }, 'the interface as given')
    partial(t, made, { name: 'eth1', address: '10.77.0.2' })
    checkResult(t, 'create_workload_interface', made)
    const names = (simulator.state.find(href)?.interfaces as Json[]).map(({ name }) => name)
    t.strictSame(names, ['eth0', 'eth1'], 'the workload has it')
    const attempt = () => client.createWorkloadInterface(href, { name: 'eth2' } as never)
    const facts = { status: 406, method: 'POST', path, token: 'input_validation_error' }
    await pce.refused(t, attempt, facts, 'without a link state')
  })

  await proveOperation(t, pce, 'delete_workload_interface', async (t) => {
    const odd = 'Ethernet 2/α'
    await ask('POST', path, { name: odd, link_state: 'up', address: '10.77.0.3' })
    t.equal(await client.deleteWorkloadInterface(href, odd), undefined)
    const wire = { method: 'DELETE', path: `${path}/${encodeURIComponent(odd)}`, status: 204 }
    pce.wire(t, wire, 'by its name, encoded')
    const names = (simulator.state.find(href)?.interfaces as Json[]).map(({ name }) => name)
    t.notOk(names.includes(odd), 'it is gone')
    const facts = { status: 404, method: 'DELETE', path: `${path}/none` }
    await pce.refused(t, () => client.deleteWorkloadInterface(href, 'none'), facts, 'an unknown interface')
  })

  await proveOperation(t, pce, 'get_workload_risk_details', async (t) => {
    const answer = { risk_details: { ransomware: { num_workloads: 1 } } }
    pce.answerNext('GET', `${href}/risk_details`, answer)
    const details = await client.getWorkloadRiskDetails(href)
    pce.wire(t, { method: 'GET', path: `${href}/risk_details` }, 'below the workload')
    t.strictSame(details, answer)
    checkResult(t, 'get_workload_risk_details', details)
    const facts = { status: 404, method: 'GET', path: `${NO_WORKLOAD}/risk_details` }
    await pce.refused(t, () => client.getWorkloadRiskDetails(NO_WORKLOAD), facts, 'an unknown workload')
  })

  await proveOperation(t, pce, 'unpair_workloads', async (t) => {
    const target = `${WORKLOADS}/unpair`
    const [one, two] = managed as [string, string]
    const result = await client.unpairWorkloads([one])
    const body = { workloads: [{ href: one }], ip_table_restore: 'default' }
    pce.wire(t, { method: 'PUT', path: target, body, status: [200, 204] }, 'the documented field, with the default')
    t.strictSame(result, [], 'nothing went wrong')
    t.not(simulator.state.find(one)?.managed, true, 'no VEN manages it any more')
    await client.unpairWorkloads([two], 'saved')
    partial(t, pce.look()[0]?.body, { ip_table_restore: 'saved' })
    const attempt = () => client.unpairWorkloads([two], 'never' as never)
    const facts = { status: 406, method: 'PUT', path: target, token: 'input_validation_error' }
    await pce.refused(t, attempt, facts, 'a bad way')
  })

  await proveOperation(t, pce, 'bulk_import_workloads', async (t) => {
    const target = `${WORKLOADS}/bulk_import`
    const data = [{ href, name: 'operation-1, renamed', description: 'said "so"' }]
    const results = await client.bulkImportWorkloads(data)
    const [request] = simulator.requests
    partial(t, request, { method: 'PUT', path: `/api/v2${target}`, status: 200 })
    t.match(request?.headers['content-type'], /^text\/csv/, 'CSV, as documented')
    const lines = String(request?.body).trimEnd().split(/\r?\n/)
    const columns = lines[0]!.split(',')
    t.same([...columns].sort(), ['description', 'href', 'name'], 'a line of names')
    const cells = { href, name: '"operation-1, renamed"', description: '"said ""so"""' } as Record<string, string>
    t.equal(lines[1], columns.map((column) => cells[column]).join(','), 'then one for every workload, quoted')
    t.equal(lines.length, 2)
    pce.wire(t, { method: 'PUT', path: target, body: request?.body }, 'in one request')
    partial(t, simulator.state.find(href), { name: 'operation-1, renamed', description: 'said "so"' }, 'and it is done')
    t.equal(results.length, 1)
    checkResult(t, 'bulk_import_workloads', results)
    await client.bulkImportWorkloads(data, { params: { dry_run: true, create_labels: false } })
    t.strictSame(pce.look()[0]?.query, { dry_run: 'true', create_labels: 'false' })
    pce.refuseNext('PUT', target, 403, 'forbidden_error')
    const facts = { status: 403, method: 'PUT', path: target, token: 'forbidden_error' }
    await pce.refused(t, () => client.bulkImportWorkloads(data), facts, 'forbidden')
  })
}
