import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const GROUPS = '/orgs/1/sec_policy/draft/label_groups'
const RULES = '/orgs/1/label_mapping_rules'
const NO_UUID = '00000000-dead-4000-8000-000000000000'

/** Label groups and label mapping (P13, P15, P28). */
export async function labelOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const made = async (path: string, body: object) => (await ask<{ href: string }>('POST', path, body)).href
  const label = (value: string) => made('/orgs/1/labels', { key: 'app', value })
  const [inner, outer] = [await label('Operation inner'), await label('Operation outer')]
  const below = await made(GROUPS, { name: 'Operation below', key: 'app', labels: [{ href: inner }] })
  const group = await made(GROUPS, {
    name: 'Operation above',
    key: 'app',
    labels: [{ href: outer }],
    sub_groups: [{ href: below }],
  })
  const unknownGroup = `${GROUPS}/${NO_UUID}`

  await proveOperation(t, pce, 'get_label_group_all_labels', async (t) => {
    const labels = await client.getLabelGroupAllLabels(group)
    pce.wire(t, { method: 'GET', path: `${group}/all_labels` }, 'below the group')
    t.same(labels.map((one: Json) => one.href).sort(), [inner, outer].sort(), 'those of its sub-groups too')
    checkResult(t, 'get_label_group_all_labels', labels)
    const facts = { status: 404, method: 'GET', path: `${unknownGroup}/all_labels` }
    await pce.refused(t, () => client.getLabelGroupAllLabels(unknownGroup), facts, 'an unknown group')
  })

  await proveOperation(t, pce, 'get_label_group_member_of', async (t) => {
    const groups = await client.getLabelGroupMemberOf(below)
    pce.wire(t, { method: 'GET', path: `${below}/member_of` }, 'below the group')
    partial(t, groups, [{ href: group, name: 'Operation above' }])
    t.equal(groups.length, 1)
    checkResult(t, 'get_label_group_member_of', groups)
    const facts = { status: 404, method: 'GET', path: `${unknownGroup}/member_of` }
    await pce.refused(t, () => client.getLabelGroupMemberOf(unknownGroup), facts, 'an unknown group')
  })

  const rule = (start: string) =>
    made(RULES, {
      expression: { property: 'hostname', operator: 'starts_with', values: [start] },
      label_assignments: [{ label: { href: inner } }],
    })
  const rules = async () => (await pce.list(RULES)).map(({ href }) => href)
  const [first, second, third] = [await rule('operation-a'), await rule('operation-b'), await rule('operation-c')]
  const workload = await made('/orgs/1/workloads', { name: 'operation-a-1', hostname: 'operation-a-1.example.com' })

  await proveOperation(t, pce, 'reorder_label_mapping_rule', async (t) => {
    t.equal(await client.reorderLabelMappingRule(third, 0), undefined)
    pce.wire(t, { method: 'PUT', path: `${third}/reorder`, body: { position: 0 }, status: 204 }, 'the position')
    t.equal((await rules())[0], third, 'it is the first now')
    for (const bad of [-1, 1.5, NaN]) {
      await pce.refusedHere(t, () => client.reorderLabelMappingRule(third, bad), 'invalid_integer', `position ${bad}`)
    }
    const unknown = `${RULES}/${NO_UUID}`
    const facts = { status: 404, method: 'PUT', path: `${unknown}/reorder` }
    await pce.refused(t, () => client.reorderLabelMappingRule(unknown, 0), facts, 'an unknown rule')
  })

  await proveOperation(t, pce, 'bulk_update_label_mapping_rules', async (t) => {
    const path = `${RULES}/update`
    const changes = [
      { href: second, enabled: false },
      { href: third, label_assignments: [{ label: { href: outer } }] },
    ]
    const result = await client.bulkUpdateLabelMappingRules(changes)
    pce.wire(t, { method: 'PUT', path, body: changes, status: [200, 204] }, 'the rules as given')
    t.ok(Array.isArray(result), 'a list, even of an empty answer')
    checkResult(t, 'bulk_update_label_mapping_rules', result)
    partial(t, simulator.state.find(second), { enabled: false })
    partial(t, simulator.state.find(third), { label_assignments: [{ label: { href: outer } }] })
    const attempt = () => client.bulkUpdateLabelMappingRules([{ href: second, enabled: 'no' }])
    await pce.refused(t, attempt, { status: 406, method: 'PUT', path, token: 'input_validation_error' }, 'a bad body')
  })

  await proveOperation(t, pce, 'bulk_delete_label_mapping_rules', async (t) => {
    const path = `${RULES}/delete`
    t.equal(await client.bulkDeleteLabelMappingRules([second, third]), undefined)
    const body = { rules: [{ href: second }, { href: third }] }
    pce.wire(t, { method: 'PUT', path, body, status: 204 }, 'the documented body')
    const left = await rules()
    t.ok(left.includes(first) && !left.includes(second) && !left.includes(third), 'these are gone, and no others')
    pce.refuseNext('PUT', path, 406, 'input_validation_error')
    const facts = { status: 406, method: 'PUT', path, token: 'input_validation_error' }
    await pce.refused(t, () => client.bulkDeleteLabelMappingRules([first]), facts, 'refused')
  })

  const run = async (data: Json) => {
    const { href } = await ask<{ href: string }>('POST', `${RULES}/run`, data)
    return { href, uuid: href.slice(href.lastIndexOf('/') + 1) }
  }
  const only = { workloads: [{ href: workload }], rules: [{ href: first }] }

  await proveOperation(t, pce, 'run_label_mapping_rules', async (t) => {
    const path = `${RULES}/run`
    const data = { ...only, assign_labels: false }
    const job = (await client.runLabelMappingRules(data)) as Json
    pce.wire(t, { method: 'POST', path, body: data, status: [200, 201, 202] }, 'the data as given')
    partial(t, job, { href: new RegExp(`^${path}/[0-9a-f-]{36}$`), status: /./ })
    checkResult(t, 'run_label_mapping_rules', job)
    const attempt = () => client.runLabelMappingRules({ assign_labels: 'yes' as never })
    await pce.refused(t, attempt, { status: 406, method: 'POST', path, token: 'input_validation_error' }, 'a bad body')
  })

  await proveOperation(t, pce, 'get_label_mapping_job', async (t) => {
    const { href, uuid } = await run(only)
    const job = (await client.getLabelMappingJob(uuid)) as Json
    pce.wire(t, { method: 'GET', path: href }, 'by its id')
    partial(t, job, { href, status: /./, progress_percent: Number })
    checkResult(t, 'get_label_mapping_job', job)
    const facts = { status: 404, method: 'GET', path: `${RULES}/run/${NO_UUID}` }
    await pce.refused(t, () => client.getLabelMappingJob(NO_UUID), facts, 'an unknown run')
  })

  await proveOperation(t, pce, 'download_label_mapping_results', async (t) => {
    const { href, uuid } = await run(only)
    await ask('GET', href)
    const bytes = await client.downloadLabelMappingResults(uuid)
    pce.wire(t, { method: 'GET', path: `${href}/download` }, 'of the run')
    t.ok(ArrayBuffer.isView(bytes), 'bytes')
    const { results } = JSON.parse(Buffer.from(bytes).toString('utf8')) as { results: Json[] }
    partial(t, results, [{ href: workload, existing_labels: [], labels_to_assign: [{ href: inner, key: 'app' }] }])
    t.equal(results.length, 1)
    const facts = { status: 404, method: 'GET', path: `${RULES}/run/${NO_UUID}/download` }
    await pce.refused(t, () => client.downloadLabelMappingResults(NO_UUID), facts, 'an unknown run')
  })

  await proveOperation(t, pce, 'assign_label_mapping_labels', async (t) => {
    const { href, uuid } = await run(only)
    await ask('GET', href)
    partial(t, simulator.state.find(workload), { labels: [] }, 'the workload has no label yet')
    t.equal(await client.assignLabelMappingLabels(uuid, {}), undefined)
    pce.wire(t, { method: 'PUT', path: `${href}/assign_labels`, body: {}, status: 204 }, 'the data as given')
    partial(t, simulator.state.find(workload), { labels: [{ href: inner }] }, 'now it has one')
    const facts = { status: 404, method: 'PUT', path: `${RULES}/run/${NO_UUID}/assign_labels` }
    await pce.refused(t, () => client.assignLabelMappingLabels(NO_UUID, {}), facts, 'an unknown run')
  })
}
