import t from 'tap'
import type { PceClient } from '../../pce-client/index.js'
import { clientOf, startServer, type Reply } from './support.js'

/**
 * One row for each operation that is one request: what it sends for its plainest arguments, and what it makes of an answer and of
 * none. The rest have their own tests.
 */
interface Row {
  call: (client: PceClient) => Promise<unknown>
  /** Method and path with its query. */
  sends: string
  body?: unknown
  answer?: unknown
  gives?: unknown
  /** What an answer without a body is; an error code where it cannot be anything. */
  givesForNothing?: unknown
}

const UUID = '5a0c6ad1-0000-4000-8000-000000000001'
const POLICY = '/orgs/7/sec_policy'
const ORG = '/orgs/7'
const RULE = `${ORG}/label_mapping_rules/${UUID}`
const LIST = `${POLICY}/draft/ip_lists/12`
const SUBSET = { change_subset: { ip_lists: [{ href: LIST }] } }
const SOME = [{ a: 1 }, { a: 2 }]
const ONE = { href: '/orgs/7/things/1', of_a_later_release: true }
const KEY = { key_id: 'k', auth_username: 'api_k', secret: 's' }

/** No body does not say that there is nothing in the list (D70). */
const list = (row: Omit<Row, 'answer' | 'gives' | 'givesForNothing'>): Row => ({
  ...row,
  answer: SOME,
  gives: SOME,
  givesForNothing: 'invalid_response',
})
const object = (row: Omit<Row, 'answer' | 'gives' | 'givesForNothing'>, givesForNothing: unknown): Row => ({
  ...row,
  answer: ONE,
  gives: ONE,
  givesForNothing,
})
const nothing = (row: Omit<Row, 'answer' | 'gives' | 'givesForNothing'>): Row => ({
  ...row,
  answer: ONE,
  gives: undefined,
  givesForNothing: undefined,
})

const ROWS: Record<string, Row> = {
  generatePairingKey: {
    call: (client) => client.generatePairingKey({ href: `${ORG}/pairing_profiles/3` }),
    sends: `POST ${ORG}/pairing_profiles/3/pairing_key`,
    body: {},
    answer: { activation_code: '1f2e' },
    gives: '1f2e',
    givesForNothing: 'outcome_unknown',
  },
  getAsyncQueries: list({
    call: (client) => client.getAsyncQueries(),
    sends: `GET ${ORG}/traffic_flows/async_queries`,
  }),
  deleteAsyncQuery: nothing({
    call: (client) => client.deleteAsyncQuery(UUID),
    sends: `DELETE ${ORG}/traffic_flows/async_queries/${UUID}`,
  }),
  updateAsyncQueryRules: nothing({
    call: (client) => client.updateAsyncQueryRules(UUID, {}, { params: { label_based_rules: true, limit: 5 } }),
    sends: `PUT ${ORG}/traffic_flows/async_queries/${UUID}/update_rules?label_based_rules=true&limit=5`,
    body: {},
  }),
  getTrafficFlowDbMetrics: object(
    {
      call: (client) => client.getTrafficFlowDbMetrics(),
      sends: `GET ${ORG}/traffic_flows/database_metrics`,
    },
    'invalid_response',
  ),
  discardPendingPolicyChanges: nothing({
    call: (client) => client.discardPendingPolicyChanges(),
    sends: `DELETE ${POLICY}/pending`,
  }),
  getPolicyDependencies: list({
    call: (client) => client.getPolicyDependencies([LIST], 81, { json: { operation: 'revert' } }),
    sends: `POST ${POLICY}/81/dependencies`,
    body: { operation: 'revert', ...SUBSET },
  }),
  getModifiedPolicyObjects: list({
    call: (client) => client.getModifiedPolicyObjects('81' as never),
    sends: `GET ${POLICY}/81/modified_objects`,
  }),
  checkPolicy: {
    call: (client) => client.checkPolicy(undefined, { params: { port: 443 } }),
    sends: `GET ${POLICY}/draft/policy_check?port=443`,
    answer: { sec_rules: SOME, deny_rules: null, status: 'ok' },
    gives: { sec_rules: SOME, deny_rules: [], override_deny_rules: [], status: 'ok' },
    givesForNothing: 'invalid_response',
  },
  getPolicyAllow: list({
    call: (client) => client.getPolicyAllow(),
    sends: `GET ${POLICY}/active/allow`,
  }),
  restorePolicy: object(
    { call: (client) => client.restorePolicy(), sends: `POST ${POLICY}/draft/restore`, body: {} },
    {},
  ),
  bulkDeletePolicyObjects: nothing({
    call: (client) => client.bulkDeletePolicyObjects([LIST.replace('draft', 'active'), LIST]),
    sends: `PUT ${POLICY}/delete`,
    body: SUBSET,
  }),
  createServiceAccountApiKey: {
    call: (client) => client.createServiceAccountApiKey(`${ORG}/service_accounts/${UUID}`),
    sends: `POST ${ORG}/service_accounts/${UUID}/api_keys`,
    body: { expires_in_seconds: 'default' },
    answer: KEY,
    gives: KEY,
    givesForNothing: 'outcome_unknown',
  },
  deleteServiceAccountApiKey: nothing({
    call: (client) => client.deleteServiceAccountApiKey(`${ORG}/service_accounts/${UUID}`, '1f/2e'),
    sends: `DELETE ${ORG}/service_accounts/${UUID}/api_keys/1f%2F2e`,
  }),
  getUserApiKeys: list({ call: (client) => client.getUserApiKeys(9), sends: 'GET /users/9/api_keys' }),
  createUserApiKey: {
    call: (client) => client.createUserApiKey('9', { json: { description: 'd' } }),
    sends: 'POST /users/9/api_keys',
    body: { name: 'pce-client', description: 'd' },
    answer: KEY,
    gives: KEY,
    givesForNothing: 'outcome_unknown',
  },
  deleteUserApiKey: nothing({
    call: (client) => client.deleteUserApiKey(9, 'k'),
    sends: 'DELETE /users/9/api_keys/k',
  }),
  deleteOrgApiKey: nothing({ call: (client) => client.deleteOrgApiKey('k'), sends: `DELETE ${ORG}/api_keys/k` }),
  verifyLdapConnection: object(
    {
      call: (client) => client.verifyLdapConnection(`/authentication_settings/ldap_configs/${UUID}`),
      sends: `POST /authentication_settings/ldap_configs/${UUID}/verify_connection`,
      body: {},
    },
    {},
  ),
  requestEnforcementInstructions: object(
    {
      call: (client) => client.requestEnforcementInstructions(`${ORG}/network_devices/${UUID}`),
      sends: `POST ${ORG}/network_devices/${UUID}/enforcement_instructions_request`,
      body: {},
    },
    {},
  ),
  applyEnforcementInstructions: nothing({
    call: (client) =>
      client.applyEnforcementInstructions(`${ORG}/network_devices/${UUID}`, {
        enforcement_instructions_data_href: '/d',
      }),
    sends: `POST ${ORG}/network_devices/${UUID}/enforcement_instructions_applied`,
    body: { enforcement_instructions_data_href: '/d' },
  }),
  multiEnforcementInstructionsRequest: nothing({
    call: (client) =>
      client.multiEnforcementInstructionsRequest({ network_devices: [{ href: `${ORG}/network_devices/${UUID}` }] }),
    sends: `POST ${ORG}/network_devices/multi_enforcement_instructions_request`,
    body: { network_devices: [{ href: `${ORG}/network_devices/${UUID}` }] },
  }),
  multiEnforcementInstructionsApplied: nothing({
    call: (client) => client.multiEnforcementInstructionsApplied({ all_devices: true }),
    sends: `POST ${ORG}/network_devices/multi_enforcement_instructions_applied`,
    body: { all_devices: true },
  }),
  getContainerServiceBackends: list({
    call: (client) => client.getContainerServiceBackends(`${ORG}/container_clusters/${UUID}`),
    sends: `GET ${ORG}/container_clusters/${UUID}/service_backends`,
  }),
  getRiskSummary: object(
    { call: (client) => client.getRiskSummary(), sends: `GET ${ORG}/reports/risk_summary` },
    'invalid_response',
  ),
  getDetectedCoreServicesSummary: list({
    call: (client) => client.getDetectedCoreServicesSummary(),
    sends: `GET ${ORG}/detected_core_services_summary`,
  }),
  getAppGroupRiskSummary: list({
    call: (client) => client.getAppGroupRiskSummary(),
    sends: `GET ${ORG}/app_groups/risk_summary`,
  }),
  getAppGroupRiskDetails: object(
    {
      call: (client) => client.getAppGroupRiskDetails('14x7'),
      sends: `GET ${ORG}/app_groups/14x7/risk_details`,
    },
    'invalid_response',
  ),
  getVenStatistics: {
    call: (client) => client.getVenStatistics([`${ORG}/vens/${UUID}`]),
    sends: `POST ${ORG}/vens/statistics`,
    body: {
      property_counts: [
        { property: 'status' },
        { property: 'version' },
        { property: 'health' },
        { property: 'condition' },
        { property: 'os_id' },
        { property: 'enforcement_mode' },
        { property: 'ven_type' },
      ],
    },
    answer: [
      { property: 'status', counts: [] },
      { property: 'health', counts: SOME },
    ],
    gives: { status: { property: 'status', counts: [] }, health: { property: 'health', counts: SOME } },
    givesForNothing: 'invalid_response',
  },
  getVenSoftwareReleases: list({
    call: (client) => client.getVenSoftwareReleases({ params: { ven_type: 'server' } }),
    sends: `GET ${ORG}/software/ven/releases?ven_type=server`,
  }),
  getVenSoftwareRelease: object(
    {
      call: (client) => client.getVenSoftwareRelease('22.2.0-166'),
      sends: `GET ${ORG}/software/ven/releases/22.2.0-166`,
    },
    'invalid_response',
  ),
  deleteVenSoftwareRelease: nothing({
    call: (client) => client.deleteVenSoftwareRelease('22.2.0-166'),
    sends: `DELETE ${ORG}/software/ven/releases/22.2.0-166`,
  }),
  setDefaultVenRelease: nothing({
    call: (client) => client.setDefaultVenRelease('22.2.0-166'),
    sends: `PUT ${ORG}/software/ven/releases/default`,
    body: { release: '22.2.0-166' },
  }),
  getVenReleaseImages: list({
    call: (client) => client.getVenReleaseImages('22.2.0-166'),
    sends: `GET ${ORG}/software/ven/releases/22.2.0-166/images`,
  }),
  getWorkloadInterfaces: list({
    call: (client) => client.getWorkloadInterfaces(`${ORG}/workloads/${UUID}`),
    sends: `GET ${ORG}/workloads/${UUID}/interfaces`,
  }),
  createWorkloadInterface: {
    call: (client) =>
      client.createWorkloadInterface(`${ORG}/workloads/${UUID}`, { name: 'eth0', link_state: 'up', cidr_block: 24 }),
    sends: `POST ${ORG}/workloads/${UUID}/interfaces`,
    body: { name: 'eth0', link_state: 'up', cidr_block: 24 },
    answer: { name: 'eth0', of_a_later_release: true },
    gives: { name: 'eth0', of_a_later_release: true },
    givesForNothing: 'outcome_unknown',
  },
  deleteWorkloadInterface: nothing({
    call: (client) => client.deleteWorkloadInterface(`${ORG}/workloads/${UUID}`, 'Ethernet 2/α?#%'),
    sends: `DELETE ${ORG}/workloads/${UUID}/interfaces/Ethernet%202%2F%CE%B1%3F%23%25`,
  }),
  getWorkloadRiskDetails: object(
    {
      call: (client) => client.getWorkloadRiskDetails(`${ORG}/workloads/${UUID}`),
      sends: `GET ${ORG}/workloads/${UUID}/risk_details`,
    },
    'invalid_response',
  ),
  getLabelGroupAllLabels: list({
    call: (client) => client.getLabelGroupAllLabels(`${POLICY}/active/label_groups/${UUID}`),
    sends: `GET ${POLICY}/active/label_groups/${UUID}/all_labels`,
  }),
  getLabelGroupMemberOf: list({
    call: (client) => client.getLabelGroupMemberOf(`${POLICY}/draft/label_groups/${UUID}`),
    sends: `GET ${POLICY}/draft/label_groups/${UUID}/member_of`,
  }),
  reorderLabelMappingRule: nothing({
    call: (client) => client.reorderLabelMappingRule(RULE, 0),
    sends: `PUT ${RULE}/reorder`,
    body: { position: 0 },
  }),
  bulkUpdateLabelMappingRules: {
    call: (client) => client.bulkUpdateLabelMappingRules([{ href: RULE, enabled: false }]),
    sends: `PUT ${ORG}/label_mapping_rules/update`,
    body: [{ href: RULE, enabled: false }],
    answer: [
      { href: RULE, status: 'updated' },
      { href: 'x', status: 'validation_failure', token: 'no', message: 'No' },
    ],
    gives: [
      { href: RULE, errors: [] },
      { href: 'x', errors: [{ token: 'no', message: 'No' }] },
    ],
    givesForNothing: [],
  },
  runLabelMappingRules: object(
    {
      call: (client) => client.runLabelMappingRules({ rules: [{ href: RULE }], assign_labels: false }),
      sends: `POST ${ORG}/label_mapping_rules/run`,
      body: { rules: [{ href: RULE }], assign_labels: false },
    },
    'outcome_unknown',
  ),
  getLabelMappingJob: object(
    {
      call: (client) => client.getLabelMappingJob(UUID),
      sends: `GET ${ORG}/label_mapping_rules/run/${UUID}`,
    },
    'invalid_response',
  ),
  assignLabelMappingLabels: nothing({
    call: (client) => client.assignLabelMappingLabels(UUID),
    sends: `PUT ${ORG}/label_mapping_rules/run/${UUID}/assign_labels`,
    body: {},
  }),
  getProductVersion: object(
    { call: (client) => client.getProductVersion(), sends: 'GET /product_version' },
    'invalid_response',
  ),
}

let reply: Reply = {}
const server = await startServer(t, () => reply)

for (const [name, row] of Object.entries(ROWS)) {
  t.test(name, async (t) => {
    const client = clientOf(server, { orgId: 7 })
    server.seen.length = 0
    reply = { body: row.answer }
    t.strictSame(await row.call(client), row.gives, 'its result')
    t.strictSame(server.requests(), [row.sends], 'its request')
    const body = server.seen[0]?.body ?? ''
    t.strictSame(body === '' ? undefined : JSON.parse(body), row.body, 'its body')

    reply = { status: 204 }
    const result = await row.call(client).catch((error: { code: string }) => error.code)
    t.strictSame(result, row.givesForNothing, 'an answer without a body')
    if (!Array.isArray(row.gives) || !Array.isArray(row.answer)) return
    reply = { body: 'null', headers: { 'content-type': 'application/json' } }
    const nulled = await row.call(client).catch((error: { code: string }) => error.code)
    t.strictSame(
      nulled,
      name === 'bulkUpdateLabelMappingRules' ? 'outcome_unknown' : 'invalid_response',
      'null instead',
    )
  })
}

t.test("the client's includeOrg option does not affect the operations", async (t) => {
  const client = clientOf(server, { orgId: 7 })
  server.seen.length = 0
  reply = { body: ONE }
  client.includeOrg = false
  await client.getRiskSummary()
  await client.getProductVersion({ includeOrg: true })
  t.strictSame(server.requests(), [`GET ${ORG}/reports/risk_summary`, 'GET /product_version'])
})
