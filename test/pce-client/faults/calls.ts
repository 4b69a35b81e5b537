import { PceError, type PceClient } from '../../../pce-client/index.js'
import type { ContractPce, Json } from '../contract/start-contract-pce.js'
import type { Answered } from './faulty-gateway.js'

/** One kind of client call: how its ground is prepared, and the call itself. */
export interface Call {
  /** Prepares what the call needs, past the faults. A number that no other run has keeps names apart. */
  arrange?: (pce: ContractPce, run: number) => Promise<unknown>
  act: (client: PceClient, given: never, run: number) => Promise<unknown>
  /** Writes that may be repeated, because they set a state; all others must happen once at most. */
  repeatable?: true
  /** Its requests write nothing that lasts: a query that is started, a login. */
  asks?: true
  /** It asks by POST and may do so again. */
  computes?: true
  /** Nobody knows what its answer looks like, so that any body may be one. */
  open?: true
  /** What the PCE answers where the simulator does not know the operation. */
  answered?: Answered
  /** How many workloads the estate needs: every run may use one up. */
  workloads?: number
  /** What is compared of a result of a read; all of it by default. */
  shows?: (result: never) => unknown
}

const ORG = '/orgs/1'
const DRAFT = `${ORG}/sec_policy/draft`
const QUERY = {
  start_date: '2026-02-20T00:00:00Z',
  end_date: '2026-02-27T00:00:00Z',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: 1000,
}
const RULE = {
  enabled: true,
  providers: [{ actors: 'ams' }],
  consumers: [{ actors: 'ams' }],
  ingress_services: [{ port: 4711, proto: 6 }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
} as const
const INTERFACE = { name: 'eth7', link_state: 'up', address: '192.0.2.7' }

type Made = { href: string }
const make = (path: string, body: (run: number) => object) => (pce: ContractPce, run: number) =>
  pce.ask<Made>('POST', path, body(run))
const first = (path: string) => async (pce: ContractPce) => (await pce.list(path))[0]!
const idOf = ({ href }: Made) => href.slice(href.lastIndexOf('/') + 1)

const label = make(`${ORG}/labels`, (run) => ({ key: 'app', value: `made ${run}` }))
const ipList = make(`${DRAFT}/ip_lists`, (run) => ({ name: `made ${run}`, ip_ranges: [{ from_ip: '192.0.2.1' }] }))
const ruleSet = make(`${DRAFT}/rule_sets`, (run) => ({ name: `made ${run}`, scopes: [[]] }))
const workload = make(`${ORG}/workloads`, (run) => ({ name: `made ${run}` }))
const group = async (pce: ContractPce, run: number) => {
  const { href } = await label(pce, run)
  return pce.ask<Made>('POST', `${DRAFT}/label_groups`, { name: `made ${run}`, key: 'app', labels: [{ href }] })
}
const MAPPING_RULE = `${ORG}/label_mapping_rules/1`
const MAPPING_RUN = { href: `${ORG}/label_mapping_rules/run/1`, status: 'completed' }
const NOTHING = { status: 204 }
const asyncQuery = async (pce: ContractPce, run: number) => {
  const made = await pce.ask<Made>('POST', `${ORG}/traffic_flows/async_queries`, {
    ...QUERY,
    query_name: `made ${run}`,
  })
  await pce.ask('GET', made.href)
  return made
}
const pendingList = async (pce: ContractPce, run: number) => {
  await pce.ask('DELETE', `${ORG}/sec_policy/pending`)
  return ipList(pce, run)
}
const account = async (pce: ContractPce, run: number) => {
  const grant = { role: { href: `${ORG}/roles/owner` }, scope: [] }
  const body = { name: `made ${run}`, permissions: [grant], api_key: { expires_in_seconds: 3600 } }
  return pce.ask<Made>('POST', `${ORG}/service_accounts`, body)
}
const ven = async (pce: ContractPce) => (await pce.list(`${ORG}/vens`)).find(({ status }) => status === 'active')!
const spareRelease = async (pce: ContractPce) =>
  (await pce.ask<{ release: string; default: boolean }[]>('GET', `${ORG}/software/ven/releases`)).find(
    (release) => !release.default,
  )!
const normalRelease = async (pce: ContractPce) =>
  (await pce.ask<{ release: string; default: boolean }[]>('GET', `${ORG}/software/ven/releases`)).find(
    (release) => release.default,
  )!
/** One that every run can unpair: the last of those that are left. */
const pairedVen = async (pce: ContractPce) =>
  (await pce.list(`${ORG}/vens?max_results=5000`)).findLast(({ status }) => status === 'active')!
const policyEnds = async (pce: ContractPce) => {
  const [one, other] = await pce.list(`${ORG}/workloads?managed=true`)
  return { src_workload: one!.href, dst_workload: other!.href, port: '443', protocol: '6' }
}
const device = first(`${ORG}/network_devices`)

/** Every kind of call that the client offers. */
export const CALLS: Record<string, Call> = {
  // Generic operations.
  'labels.get': { act: (client) => client.labels.get() },
  'labels.getPage': { act: (client) => client.labels.getPage() },
  'labels.getAll': { act: (client) => client.labels.getAll() },
  'labels.getAsync': { act: (client) => client.labels.getAsync(), asks: true },
  'labels.getByReference': {
    arrange: first(`${ORG}/labels`),
    act: (client, of: Made) => client.labels.getByReference(of),
  },
  'ipLists.getByName': { act: (client) => client.ipLists.getByName('Any (0.0.0.0/0 and ::/0)') },
  'ruleSets.get of the active policy': { act: (client) => client.ruleSets.get('active') },
  'rules.get of a rule set': {
    arrange: async (pce) => (await pce.list(`${DRAFT}/rule_sets`)).find(({ rules }) => (rules as unknown[]).length > 0),
    act: (client, of: Made) => client.rules.get('draft', of),
  },
  'firewallSettings.get': { act: (client) => client.firewallSettings.get(), open: true },
  'workloads.getAll with a filter': {
    act: (client) => client.workloads.getAll('draft', null, { params: { managed: true } }),
  },
  'labels.create': { act: (client, _given, run) => client.labels.create({ key: 'app', value: `new ${run}` }) },
  'ipLists.create': {
    act: (client, _given, run) => client.ipLists.create({ name: `new ${run}`, ip_ranges: [{ from_ip: '192.0.2.1' }] }),
  },
  'ruleSets.create': { act: (client, _given, run) => client.ruleSets.create({ name: `new ${run}`, scopes: [[]] }) },
  'rules.create': { arrange: ruleSet, act: (client, of: Made) => client.rules.create(RULE, of) },
  'services.create, whose names may repeat': {
    act: (client) => client.services.create({ name: 'new', service_ports: [{ port: 4711, proto: 6 }] }),
  },
  'workloads.create, whose names may repeat': { act: (client) => client.workloads.create({ name: 'new' }) },
  'vulnerabilities.create': {
    act: (client, _given, run) => client.vulnerabilities.create({ reference_id: `new-${run}`, name: 'new', score: 50 }),
  },
  'labels.update': {
    arrange: label,
    act: (client, of: Made, run) => client.labels.update(of, { value: `changed ${run}` }),
    repeatable: true,
  },
  'ipLists.update': {
    arrange: ipList,
    act: (client, of: Made) => client.ipLists.update(of, { description: 'changed' }),
    repeatable: true,
  },
  'firewallSettings.update': {
    arrange: first(`${DRAFT}/firewall_settings`),
    act: (client) => client.firewallSettings.update(`${DRAFT}/firewall_settings`, { ike_authentication_type: 'psk' }),
    repeatable: true,
  },
  'labels.delete': { arrange: label, act: (client, of: Made) => client.labels.delete(of), repeatable: true },
  'ipLists.delete': { arrange: ipList, act: (client, of: Made) => client.ipLists.delete(of), repeatable: true },
  'workloads.bulkCreate': {
    act: (client, _given, run) => client.workloads.bulkCreate([{ name: `new ${run}` }, { name: `newer ${run}` }]),
  },
  'workloads.bulkUpdate': {
    arrange: workload,
    act: (client, { href }: Made) => client.workloads.bulkUpdate([{ href, description: 'changed' }]),
    repeatable: true,
  },
  'workloads.bulkDelete': {
    arrange: workload,
    act: (client, of: Made) => client.workloads.bulkDelete([of]),
    repeatable: true,
  },

  // Transport operations.
  'get of the transport': { act: async (client) => (await client.get('labels')).json(), open: true },
  'post of the transport': {
    act: (client, _given, run) => client.post('labels', { json: { key: 'app', value: `new ${run}` } }),
  },
  'put of the transport': {
    arrange: label,
    act: (client, { href }: Made) => client.put(href, { json: { value: `${href} changed` }, includeOrg: false }),
    repeatable: true,
  },
  'delete of the transport': {
    arrange: label,
    act: (client, { href }: Made) => client.delete(href, { includeOrg: false }),
    repeatable: true,
  },
  mustConnect: { act: (client) => client.mustConnect() },

  // Named operations.
  getDefaultIpList: { act: (client) => client.getDefaultIpList() },
  getDefaultService: { act: (client) => client.getDefaultService() },
  getTrafficFlows: { computes: true, act: (client) => client.getTrafficFlows(QUERY) },
  getTrafficFlowsAsync: { act: (client) => client.getTrafficFlowsAsync('faults', QUERY), asks: true },
  streamTrafficFlows: {
    act: async (client) => {
      let flows: unknown[] = []
      const { unparseable } = await client.streamTrafficFlows('faults', QUERY, {
        onFlows: (some: readonly unknown[]) => void (flows = [...flows, ...some]),
      })
      // Rows that are no flows are counted, so that the caller can say so.
      if (unparseable > 0) throw new PceError('invalid_response', `${unparseable} rows are no flows`)
      return flows
    },
    asks: true,
  },
  getAsyncQueries: {
    arrange: asyncQuery,
    act: (client) => client.getAsyncQueries(),
    shows: (queries: Json[]) => queries.length > 0 && queries.every(({ href }) => typeof href === 'string'),
  },
  downloadAsyncQuery: {
    arrange: asyncQuery,
    act: async (client, of: Made) => Buffer.from(await client.downloadAsyncQuery(idOf(of))).toString(),
    open: true,
  },
  deleteAsyncQuery: {
    arrange: asyncQuery,
    act: (client, of: Made) => client.deleteAsyncQuery(idOf(of)),
    repeatable: true,
  },
  updateAsyncQueryRules: { arrange: asyncQuery, act: (client, of: Made) => client.updateAsyncQueryRules(idOf(of)) },
  getTrafficFlowDbMetrics: { act: (client) => client.getTrafficFlowDbMetrics(), open: true },
  provisionPolicyChanges: {
    arrange: ipList,
    act: (client, { href }: Made) => client.provisionPolicyChanges('faults', [href]),
  },
  getPendingPolicyChanges: {
    arrange: pendingList,
    act: (client) => client.getPendingPolicyChanges(),
    shows: (changes: Json[]) => changes.map(({ type }) => type),
  },
  getPolicyDependencies: {
    computes: true,
    arrange: async (pce, run) => {
      const [list, set] = [await pendingList(pce, run), await ruleSet(pce, run)]
      await pce.ask('POST', `${set.href}/sec_rules`, { ...RULE, consumers: [{ ip_list: { href: list.href } }] })
      return set
    },
    act: (client, { href }: Made) => client.getPolicyDependencies([href]),
    shows: (dependencies: Json[]) => dependencies.map(({ dependency }) => Object.keys(dependency as object)),
  },
  analyzePolicyImpact: {
    computes: true,
    arrange: ipList,
    act: (client, { href }: Made) => client.analyzePolicyImpact([href]),
    open: true,
  },
  getModifiedPolicyObjects: {
    arrange: pendingList,
    act: (client) => client.getModifiedPolicyObjects(),
    shows: (objects: Json[]) => objects.map(({ object_type }) => object_type),
  },
  discardPendingPolicyChanges: { arrange: ipList, act: (client) => client.discardPendingPolicyChanges() },
  bulkDeletePolicyObjects: {
    arrange: ipList,
    act: (client, { href }: Made) => client.bulkDeletePolicyObjects([href]),
  },
  restorePolicy: {
    arrange: async (pce) => {
      await pce.ask('DELETE', `${ORG}/sec_policy/pending`)
    },
    act: (client) => client.restorePolicy(1),
    open: true,
  },
  searchRules: { computes: true, act: (client) => client.searchRules({}) },
  getUserApiKeys: { act: (client) => client.getUserApiKeys(1), shows: (keys: Json[]) => keys.map(({ name }) => name) },
  getOrgApiKeys: { act: (client) => client.getOrgApiKeys(), shows: (keys: Json[]) => keys.map(({ name }) => name) },
  createUserApiKey: { act: (client) => client.createUserApiKey(1) },
  deleteUserApiKey: {
    arrange: make('/users/1/api_keys', (run) => ({ name: `made ${run}` })),
    act: (client, of: Made) => client.deleteUserApiKey(1, idOf(of)),
    repeatable: true,
  },
  createServiceAccountApiKey: { arrange: account, act: (client, of: Made) => client.createServiceAccountApiKey(of) },
  loginUser: {
    arrange: (pce) => Promise.resolve(pce.simulator.login),
    act: (client, { username, password }: { username: string; password: string }) =>
      client.loginUser(username, password),
    shows: ({ auth_username, session_token }: Json) => [auth_username, typeof session_token],
    asks: true,
  },
  generatePairingKey: {
    arrange: first(`${ORG}/pairing_profiles`),
    act: (client, of: Made) => client.generatePairingKey(of),
  },
  requestEnforcementInstructions: {
    arrange: device,
    answered: { status: 202, json: {} },
    act: (client, of: Made) => client.requestEnforcementInstructions(of),
    open: true,
  },
  multiEnforcementInstructionsRequest: {
    answered: NOTHING,
    act: (client) => client.multiEnforcementInstructionsRequest({ all_devices: true }),
  },
  getContainerServiceBackends: {
    arrange: async (pce) =>
      (await pce.list(`${ORG}/container_clusters`)).find(({ cluster_mode }) => cluster_mode === 'clas'),
    act: (client, of: Made) => client.getContainerServiceBackends(of),
  },
  getRiskSummary: { answered: { status: 200, json: {} }, act: (client) => client.getRiskSummary(), open: true },
  getDetectedCoreServicesSummary: {
    answered: { status: 200, json: [{ num_servers: 1 }] },
    act: (client) => client.getDetectedCoreServicesSummary(),
  },
  getAppGroupRiskSummary: {
    answered: { status: 200, json: [{ app_group: {} }] },
    act: (client) => client.getAppGroupRiskSummary(),
  },
  getVenStatistics: { computes: true, act: (client) => client.getVenStatistics() },
  getVenSoftwareReleases: { act: (client) => client.getVenSoftwareReleases() },
  getVenSoftwareRelease: {
    arrange: normalRelease,
    act: (client, { release }: { release: string }) => client.getVenSoftwareRelease(release),
    open: true,
  },
  getVenReleaseImages: {
    arrange: normalRelease,
    act: (client, { release }: { release: string }) => client.getVenReleaseImages(release),
  },
  setDefaultVenRelease: {
    arrange: spareRelease,
    act: (client, { release }: { release: string }) => client.setDefaultVenRelease(release),
    repeatable: true,
  },
  upgradeVens: {
    arrange: async (pce) => ({ ven: await ven(pce), ...(await normalRelease(pce)) }),
    act: (client, { ven: one, release }: { ven: Made; release: string }) => client.upgradeVens([one], release),
  },
  venRemoteAction: { arrange: ven, act: (client, of: Made) => client.venRemoteAction([of], 'restart') },
  venAuthRecovery: { arrange: ven, act: (client, of: Made) => client.venAuthRecovery([of]) },
  getWorkloadInterfaces: {
    arrange: first(`${ORG}/workloads?managed=true`),
    act: (client, of: Made) => client.getWorkloadInterfaces(of),
  },
  createWorkloadInterface: {
    arrange: workload,
    act: (client, of: Made) => client.createWorkloadInterface(of, INTERFACE),
  },
  deleteWorkloadInterface: {
    arrange: async (pce, run) => {
      const made = await workload(pce, run)
      await pce.ask('POST', `${made.href}/interfaces`, INTERFACE)
      return made
    },
    act: (client, of: Made) => client.deleteWorkloadInterface(of, INTERFACE.name),
    repeatable: true,
  },
  getLabelGroupAllLabels: {
    arrange: group,
    act: (client, of: Made) => client.getLabelGroupAllLabels(of),
    shows: (labels: Json[]) => labels.map(({ key }) => key),
  },
  reorderLabelMappingRule: {
    answered: NOTHING,
    act: (client) => client.reorderLabelMappingRule(MAPPING_RULE, 0),
    repeatable: true,
  },
  bulkUpdateLabelMappingRules: {
    answered: NOTHING,
    act: (client) => client.bulkUpdateLabelMappingRules([{ href: MAPPING_RULE, enabled: false }]),
    repeatable: true,
  },
  bulkDeleteLabelMappingRules: {
    answered: { status: 200, json: [{ href: MAPPING_RULE, status: 'deleted' }] },
    act: (client) => client.bulkDeleteLabelMappingRules([{ href: MAPPING_RULE }]),
    repeatable: true,
  },
  runLabelMappingRules: {
    answered: { status: 201, json: MAPPING_RUN },
    act: (client) => client.runLabelMappingRules({ rules: [{ href: MAPPING_RULE }] }),
  },
  getLabelMappingJob: {
    answered: { status: 200, json: MAPPING_RUN },
    act: (client) => client.getLabelMappingJob(idOf(MAPPING_RUN)),
    open: true,
  },
  downloadLabelMappingResults: {
    answered: { status: 200, json: [] },
    act: async (client) => Buffer.from(await client.downloadLabelMappingResults(idOf(MAPPING_RUN))).toString(),
    open: true,
  },
  getLabelGroupMemberOf: {
    arrange: async (pce, run) => {
      const inner = await group(pce, run)
      await pce.ask('POST', `${DRAFT}/label_groups`, {
        name: `outer ${run}`,
        key: 'app',
        sub_groups: [{ href: inner.href }],
      })
      return inner
    },
    act: (client, of: Made) => client.getLabelGroupMemberOf(of),
    shows: (groups: Json[]) => groups.length,
  },
  assignLabelMappingLabels: {
    answered: NOTHING,
    act: (client) => client.assignLabelMappingLabels(idOf(MAPPING_RUN)),
  },
  unpairVens: {
    arrange: pairedVen,
    act: (client, of: Made) => client.unpairVens([of]),
    workloads: 300,
  },
  unpairWorkloads: {
    arrange: async (pce) => ({ href: (await pairedVen(pce)).href.replace('/vens/', '/workloads/') }),
    act: (client, of: Made) => client.unpairWorkloads([of]),
    workloads: 300,
  },
  bulkImportWorkloads: {
    arrange: workload,
    act: (client, { href }: Made) => client.bulkImportWorkloads([{ href, description: 'imported' }]),
    open: true,
  },
  deleteServiceAccountApiKey: {
    arrange: async (pce, run) => {
      const { href } = await account(pce, run)
      return { account: href, ...(await pce.ask<Made>('POST', `${href}/api_keys`, { expires_in_seconds: 3600 })) }
    },
    act: (client, { account: of, href }: Made & { account: string }) =>
      client.deleteServiceAccountApiKey(of, idOf({ href })),
    repeatable: true,
  },
  deleteOrgApiKey: {
    arrange: make('/users/1/api_keys', (run) => ({ name: `made ${run}` })),
    act: (client, of: Made) => client.deleteOrgApiKey(idOf(of)),
    repeatable: true,
  },
  multiEnforcementInstructionsApplied: {
    answered: NOTHING,
    act: (client) => client.multiEnforcementInstructionsApplied({ all_devices: true }),
  },
  checkPolicy: {
    arrange: policyEnds,
    act: (client, params: Record<string, string>) => client.checkPolicy('active', { params }),
    open: true,
  },
  getPolicyAllow: {
    arrange: policyEnds,
    act: (client, params: Record<string, string>) => client.getPolicyAllow('active', { params }),
  },
  getWorkloadRiskDetails: {
    arrange: first(`${ORG}/workloads?managed=true`),
    answered: { status: 200, json: {} },
    act: (client, of: Made) => client.getWorkloadRiskDetails(of),
    open: true,
  },
  getProductVersion: { act: (client) => client.getProductVersion(), open: true },
}
