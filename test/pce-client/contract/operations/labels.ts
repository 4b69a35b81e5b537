import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const GROUPS = '/orgs/1/sec_policy/draft/label_groups'
const RULES = '/orgs/1/label_mapping_rules'
const NO_UUID = '00000000-dead-4000-8000-000000000000'

/** Label groups and label mapping (P13, P15, P28). */
export async function labelOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, ask } = pce
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

  const rule = `${RULES}/${NO_UUID}`

  await proveOperation(t, pce, 'reorder_label_mapping_rule', async (t) => {
    const wire = { method: 'PUT', path: `${rule}/reorder` }
    pce.answerNext(wire.method, wire.path, {}, 204)
    t.equal(await client.reorderLabelMappingRule(rule, 0), undefined)
    pce.wire(t, { ...wire, body: { position: 0 }, status: 204 }, 'the position')
    for (const bad of [-1, 1.5, NaN]) {
      await pce.refusedHere(t, () => client.reorderLabelMappingRule(rule, bad), 'invalid_integer', `position ${bad}`)
    }
    await pce.refused(t, () => client.reorderLabelMappingRule(rule, 0), { ...wire, status: 404 }, 'an unknown rule')
  })

  await proveOperation(t, pce, 'bulk_update_label_mapping_rules', async (t) => {
    const path = `${RULES}/update`
    const changes = [{ href: rule, enabled: false }]
    pce.answerNext('PUT', path, [{ href: rule, status: 'updated' }])
    const result = await client.bulkUpdateLabelMappingRules(changes)
    pce.wire(t, { method: 'PUT', path, body: changes }, 'the rules as given')
    t.ok(Array.isArray(result), 'a list')
    checkResult(t, 'bulk_update_label_mapping_rules', result)
    pce.refuseNext('PUT', path, 406, 'input_validation_error')
    const facts = { status: 406, method: 'PUT', path, token: 'input_validation_error' }
    await pce.refused(t, () => client.bulkUpdateLabelMappingRules(changes), facts, 'refused')
  })

  await proveOperation(t, pce, 'bulk_delete_label_mapping_rules', async (t) => {
    const path = `${RULES}/delete`
    pce.answerNext('PUT', path, {}, 204)
    t.equal(await client.bulkDeleteLabelMappingRules([rule]), undefined)
    pce.wire(t, { method: 'PUT', path, body: { rules: [{ href: rule }] }, status: 204 }, 'the documented body')
    pce.refuseNext('PUT', path, 406, 'input_validation_error')
    const facts = { status: 406, method: 'PUT', path, token: 'input_validation_error' }
    await pce.refused(t, () => client.bulkDeleteLabelMappingRules([rule]), facts, 'refused')
  })

  const run = `${RULES}/run/${NO_UUID}`
  const job: Json = { href: run, status: 'completed', progress_percent: 100 }

  await proveOperation(t, pce, 'run_label_mapping_rules', async (t) => {
    const path = `${RULES}/run`
    const data = { rules: [{ href: rule }], assign_labels: false }
    pce.answerNext('POST', path, job, 201)
    const started = await client.runLabelMappingRules(data)
    pce.wire(t, { method: 'POST', path, body: data, status: 201 }, 'the data as given')
    t.strictSame(started, job)
    checkResult(t, 'run_label_mapping_rules', started)
    pce.refuseNext('POST', path, 406, 'input_validation_error')
    const facts = { status: 406, method: 'POST', path, token: 'input_validation_error' }
    await pce.refused(t, () => client.runLabelMappingRules(data), facts, 'refused')
  })

  await proveOperation(t, pce, 'get_label_mapping_job', async (t) => {
    pce.answerNext('GET', run, job)
    const found = await client.getLabelMappingJob(NO_UUID)
    pce.wire(t, { method: 'GET', path: run }, 'by its id')
    t.strictSame(found, job)
    checkResult(t, 'get_label_mapping_job', found)
    const facts = { status: 404, method: 'GET', path: run }
    await pce.refused(t, () => client.getLabelMappingJob(NO_UUID), facts, 'an unknown run')
  })

  await proveOperation(t, pce, 'download_label_mapping_results', async (t) => {
    const path = `${run}/download`
    const results = { results: [{ href: group, labels_to_assign: [{ href: inner }] }] }
    pce.answerNext('GET', path, results)
    const bytes = await client.downloadLabelMappingResults(NO_UUID)
    pce.wire(t, { method: 'GET', path }, 'of the run')
    t.strictSame(JSON.parse(Buffer.from(bytes).toString()), results, 'the bytes as they came')
    const facts = { status: 404, method: 'GET', path }
    await pce.refused(t, () => client.downloadLabelMappingResults(NO_UUID), facts, 'an unknown run')
  })

  await proveOperation(t, pce, 'assign_label_mapping_labels', async (t) => {
    const path = `${run}/assign_labels`
    pce.answerNext('PUT', path, {}, 204)
    t.equal(await client.assignLabelMappingLabels(NO_UUID, {}), undefined)
    pce.wire(t, { method: 'PUT', path, body: {}, status: 204 }, 'the data as given')
    const facts = { status: 404, method: 'PUT', path }
    await pce.refused(t, () => client.assignLabelMappingLabels(NO_UUID, {}), facts, 'an unknown run')
  })
}
