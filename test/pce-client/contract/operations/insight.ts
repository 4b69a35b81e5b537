import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const NO_UUID = '00000000-dead-4000-8000-000000000000'

/** Containers, reports and risk (P13). */
export async function insightOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, ask } = pce
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
    const [template] = await pce.list('/orgs/1/report_templates')
    const { href } = await ask<{ href: string }>('POST', '/orgs/1/reports', {
      report_template: { href: template?.href },
      report_parameters: { report_time_range: { last_num_days: 7 } },
    })
    for (let poll = 0; poll < 3; poll++) if ((await ask('GET', href)).status === 'done') break
    const bytes = await client.downloadReport(href)
    pce.wire(t, { method: 'GET', path: `${href}/download` }, 'below the report')
    t.ok(ArrayBuffer.isView(bytes) && bytes.byteLength > 0, 'bytes')
    const unknown = `/orgs/1/reports/${NO_UUID}`
    const facts = { status: 404, method: 'GET', path: `${unknown}/download` }
    await pce.refused(t, () => client.downloadReport(unknown), facts, 'an unknown report')
  })

  await proveOperation(t, pce, 'get_risk_summary', async (t) => {
    const path = '/orgs/1/reports/risk_summary'
    const summary = await client.getRiskSummary()
    pce.wire(t, { method: 'GET', path }, 'the summary')
    t.ok('ransomware' in summary)
    checkResult(t, 'get_risk_summary', summary)
    await forbidden(t, path, () => client.getRiskSummary())
  })

  await proveOperation(t, pce, 'get_detected_core_services_summary', async (t) => {
    const path = '/orgs/1/detected_core_services_summary'
    const summary = (await client.getDetectedCoreServicesSummary()) as unknown as Json[]
    pce.wire(t, { method: 'GET', path }, 'the summary')
    partial(t, summary[0], { core_service_type: /./, recommended: Number, accepted: Number, rejected: Number })
    checkResult(t, 'get_detected_core_services_summary', summary)
    await forbidden(t, path, () => client.getDetectedCoreServicesSummary())
  })

  let appGroup = 'none'
  await proveOperation(t, pce, 'get_app_group_risk_summary', async (t) => {
    const path = '/orgs/1/app_groups/risk_summary'
    const summary = (await client.getAppGroupRiskSummary()) as unknown as Json[]
    pce.wire(t, { method: 'GET', path }, 'the summary')
    partial(t, summary[0], {
      app_group: { href: /./ },
      labels: [{ href: /\/labels\// }, { href: /\/labels\// }],
      risk_summary: {},
    })
    checkResult(t, 'get_app_group_risk_summary', summary)
    const { href } = summary[0]?.app_group as { href: string }
    appGroup = href.slice(href.lastIndexOf('/') + 1)
    await forbidden(t, path, () => client.getAppGroupRiskSummary())
  })

  await proveOperation(t, pce, 'get_app_group_risk_details', async (t) => {
    const details = await client.getAppGroupRiskDetails(appGroup)
    pce.wire(t, { method: 'GET', path: `/orgs/1/app_groups/${appGroup}/risk_details` }, 'of the group')
    partial(t, details, { risk_details: {} })
    checkResult(t, 'get_app_group_risk_details', details)
    const path = '/orgs/1/app_groups/999998x999999/risk_details'
    const facts = { status: 404, method: 'GET', path }
    await pce.refused(t, () => client.getAppGroupRiskDetails('999998x999999'), facts, 'an unknown group')
  })
}
