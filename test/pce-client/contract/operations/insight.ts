import type { Test } from 'tap'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce } from '../start-contract-pce.js'

const NO_UUID = '00000000-dead-4000-8000-000000000000'

/** Containers, reports and risk (P13). */
export async function insightOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client } = pce
  const forbidden = async (t: Test, path: string, attempt: () => Promise<unknown>) => {
    pce.refuseNext('GET', path, 403, 'forbidden_error')
    await pce.refused(t, attempt, { status: 403, method: 'GET', path, token: 'forbidden_error' }, 'forbidden')
  }

  await proveOperation(t, pce, 'get_container_service_backends', async (t) => {
    const clusters = await pce.list('/orgs/1/container_clusters')
    let rows = 0
    for (const { href } of clusters) {
      const backends = await client.getContainerServiceBackends(href)
      pce.wire(t, { method: 'GET', path: `${href}/service_backends` }, 'below the cluster')
      checkResult(t, 'get_container_service_backends', backends)
      rows += backends.length
    }
    t.ok(rows > 0, `${rows} backends of ${clusters.length} clusters`)
    const unknown = `/orgs/1/container_clusters/${NO_UUID}`
    const facts = { status: 404, method: 'GET', path: `${unknown}/service_backends` }
    await pce.refused(t, () => client.getContainerServiceBackends(unknown), facts, 'an unknown cluster')
  })

  await proveOperation(t, pce, 'download_report', async (t) => {
    const href = `/orgs/1/reports/${NO_UUID}`
    pce.answerNext('GET', `${href}/download`, 'Rule,Hits')
    const bytes = await client.downloadReport(href)
    pce.wire(t, { method: 'GET', path: `${href}/download` }, 'below the report')
    t.equal(Buffer.from(bytes).toString(), 'Rule,Hits', 'the bytes as they came')
    const facts = { status: 404, method: 'GET', path: `${href}/download` }
    await pce.refused(t, () => client.downloadReport(href), facts, 'an unknown report')
  })

  /** What the simulator does not compute: the request, the answer as it came, and a refusal. */
  const read = async (name: string, path: string, answer: unknown, ask: () => Promise<unknown>) =>
    proveOperation(t, pce, name, async (t) => {
      pce.answerNext('GET', path, answer)
      const result = await ask()
      pce.wire(t, { method: 'GET', path }, 'the path')
      t.strictSame(result, answer)
      checkResult(t, name, result)
      await forbidden(t, path, ask)
    })
  const group = { href: '/orgs/1/app_groups/14x7' }
  const labels = ['/orgs/1/labels/14', '/orgs/1/labels/7'].map((href) => ({ href }))

  await read('get_risk_summary', '/orgs/1/reports/risk_summary', { ransomware: null }, () => client.getRiskSummary())
  await read(
    'get_detected_core_services_summary',
    '/orgs/1/detected_core_services_summary',
    [{ core_service_type: { href: '/orgs/1/core_service_types/1' }, recommended: 2, accepted: 1, rejected: 0 }],
    () => client.getDetectedCoreServicesSummary(),
  )
  await read(
    'get_app_group_risk_summary',
    '/orgs/1/app_groups/risk_summary',
    [{ app_group: group, labels, risk_summary: { ransomware: null } }],
    () => client.getAppGroupRiskSummary(),
  )
  await read('get_app_group_risk_details', `${group.href}/risk_details`, { risk_details: { ransomware: {} } }, () =>
    client.getAppGroupRiskDetails('14x7'),
  )
}
