import t, { type Test } from 'tap'
import { PceError, PceIntegerError, type PceClient } from '../../pce-client/index.js'
import { clientOf, startServer } from './support.js'

/* What the operations refuse themselves: nothing of it may reach the PCE. */

const server = await startServer(t, () => ({}))
const client = clientOf(server)
const any = client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>

async function refused(t: Test, code: string, what: string, call: () => Promise<unknown>): Promise<void> {
  server.seen.length = 0
  const error: unknown = await Promise.resolve()
    .then(call)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  const type = code === 'invalid_integer' ? PceIntegerError : PceError
  t.strictSame(
    { isOfType: error instanceof type, code: (error as PceError | undefined)?.code, requests: server.requests() },
    { isOfType: true, code, requests: [] },
    `${what} is refused before any request: ${String(error)}`,
  )
}

t.test('hrefs', async (t) => {
  const UUID = '5a0c6ad1-0000-4000-8000-000000000001'
  const wrong = (right: string) => [
    '',
    'x',
    null,
    {},
    right.includes('/orgs/1/') ? right.replace('/orgs/1/', '/orgs/2/') : `/orgs/1${right}`,
    `${right}/more`,
    right.slice(0, right.lastIndexOf('/')),
    right.replace(/\/[^/]+$/, '/..'),
    `${right}?x=1`,
    '/orgs/1/labels/1',
  ]
  const one: [string, string, ...unknown[]][] = [
    ['generatePairingKey', '/orgs/1/pairing_profiles/1'],
    ['createServiceAccountApiKey', `/orgs/1/service_accounts/${UUID}`],
    ['deleteServiceAccountApiKey', `/orgs/1/service_accounts/${UUID}`, 'k'],
    ['verifyLdapConnection', `/authentication_settings/ldap_configs/${UUID}`],
    ['requestEnforcementInstructions', `/orgs/1/network_devices/${UUID}`],
    ['applyEnforcementInstructions', `/orgs/1/network_devices/${UUID}`, {}],
    ['getContainerServiceBackends', `/orgs/1/container_clusters/${UUID}`],
    ['downloadReport', `/orgs/1/reports/${UUID}`],
    ['getWorkloadInterfaces', `/orgs/1/workloads/${UUID}`],
    ['createWorkloadInterface', `/orgs/1/workloads/${UUID}`, { name: 'a', link_state: 'up' }],
    ['deleteWorkloadInterface', `/orgs/1/workloads/${UUID}`, 'eth0'],
    ['getWorkloadRiskDetails', `/orgs/1/workloads/${UUID}`],
    ['getLabelGroupAllLabels', `/orgs/1/sec_policy/draft/label_groups/${UUID}`],
    ['getLabelGroupMemberOf', `/orgs/1/sec_policy/active/label_groups/${UUID}`],
    ['reorderLabelMappingRule', `/orgs/1/label_mapping_rules/${UUID}`, 1],
  ]
  for (const [name, right, ...rest] of one) {
    await any[name]!(right, ...rest).catch(() => undefined)
    t.equal(server.seen.length > 0, true, `${name}: ${right} is sent`)
    for (const href of wrong(right)) {
      await refused(t, 'invalid_href', `${name}(${JSON.stringify(href)})`, () => any[name]!(href, ...rest))
    }
  }

  const many: [string, string, ...unknown[]][] = [
    ['unpairVens', `/orgs/1/vens/${UUID}`],
    ['upgradeVens', `/orgs/1/vens/${UUID}`, '1'],
    ['venRemoteAction', `/orgs/1/vens/${UUID}`, 'restart'],
    ['venAuthRecovery', `/orgs/1/vens/${UUID}`],
    ['getVenStatistics', `/orgs/1/vens/${UUID}`],
    ['unpairWorkloads', `/orgs/1/workloads/${UUID}`],
    ['bulkDeleteLabelMappingRules', `/orgs/1/label_mapping_rules/${UUID}`],
  ]
  for (const [name, right, ...rest] of many) {
    for (const href of wrong(right)) {
      const what = `${name} with ${JSON.stringify(href)} among others`
      await refused(t, 'invalid_href', what, () => any[name]!([right, href], ...rest))
    }
    await refused(t, 'invalid_argument', `${name} of no list`, () => any[name]!(right, ...rest))
  }
  for (const href of ['/orgs/1/labels/1', '/orgs/2/sec_policy/draft/ip_lists/1', '', 'ip_lists/1', undefined]) {
    const what = `bulkDeletePolicyObjects(${String(href)})`
    await refused(t, 'invalid_href', what, () => any.bulkDeletePolicyObjects!([href]))
  }
  const device = { href: `/orgs/2/network_devices/${UUID}` }
  const rule = { href: '/orgs/1/labels/1' }
  const inside: [string, () => Promise<unknown>][] = [
    ['a device', () => client.multiEnforcementInstructionsRequest({ network_devices: [device] })],
    ['a device', () => client.multiEnforcementInstructionsApplied({ network_devices: [device] })],
    ['a rule to change', () => client.bulkUpdateLabelMappingRules([rule])],
    ['a rule to run', () => client.runLabelMappingRules({ rules: [rule] })],
    ['a workload to run for', () => client.runLabelMappingRules({ workloads: [rule] })],
  ]
  for (const [what, call] of inside) await refused(t, 'invalid_href', what, call)
})

t.test('an empty list, which the PCE could take for everything', async (t) => {
  const calls: [string, () => Promise<unknown>][] = [
    ['unpairVens', () => client.unpairVens([])],
    ['upgradeVens', () => client.upgradeVens([], '1')],
    ['venRemoteAction', () => client.venRemoteAction([], 'restart')],
    ['venAuthRecovery', () => client.venAuthRecovery([])],
    ['unpairWorkloads', () => client.unpairWorkloads([])],
    ['bulkDeleteLabelMappingRules', () => client.bulkDeleteLabelMappingRules([])],
    ['bulkUpdateLabelMappingRules', () => client.bulkUpdateLabelMappingRules([])],
    ['bulkDeletePolicyObjects', () => client.bulkDeletePolicyObjects([])],
    ['runLabelMappingRules for no workload', () => client.runLabelMappingRules({ workloads: [] })],
    ['runLabelMappingRules of no rule', () => client.runLabelMappingRules({ rules: [] })],
    ['multiEnforcementInstructionsRequest', () => client.multiEnforcementInstructionsRequest({})],
    ['… for no device', () => client.multiEnforcementInstructionsRequest({ network_devices: [] })],
    ['… for all but not', () => client.multiEnforcementInstructionsApplied({ all_devices: false })],
  ]
  for (const [what, call] of calls) await refused(t, 'invalid_argument', what, call)
})

t.test('ids that are not a path segment', async (t) => {
  const ids = ['', '.', '..', 'a/../b', '..\\b', undefined, null, 7, 'half \ud800 a pair']
  const calls: Record<string, (id: never) => Promise<unknown>> = {
    deleteAsyncQuery: (id) => client.deleteAsyncQuery(id),
    downloadAsyncQuery: (id) => client.downloadAsyncQuery(id),
    updateAsyncQueryRules: (id) => client.updateAsyncQueryRules(id),
    deleteServiceAccountApiKey: (id) => client.deleteServiceAccountApiKey('/orgs/1/service_accounts/x', id),
    deleteUserApiKey: (id) => client.deleteUserApiKey(1, id),
    deleteOrgApiKey: (id) => client.deleteOrgApiKey(id),
    getAppGroupRiskDetails: (id) => client.getAppGroupRiskDetails(id),
    getVenSoftwareRelease: (id) => client.getVenSoftwareRelease(id),
    deleteVenSoftwareRelease: (id) => client.deleteVenSoftwareRelease(id),
    getVenReleaseImages: (id) => client.getVenReleaseImages(id),
    deleteWorkloadInterface: (id) => client.deleteWorkloadInterface('/orgs/1/workloads/x', id),
    getLabelMappingJob: (id) => client.getLabelMappingJob(id),
    assignLabelMappingLabels: (id) => client.assignLabelMappingLabels(id),
    downloadLabelMappingResults: (id) => client.downloadLabelMappingResults(id),
  }
  for (const [name, call] of Object.entries(calls)) {
    for (const id of ids) {
      await refused(t, 'invalid_argument', `${name}(${JSON.stringify(id)})`, () => call(id as never))
    }
    server.seen.length = 0
    await call('a/b c%2f…' as never).catch(() => undefined)
    t.match(server.seen[0]?.path, /\/a%2Fb%20c%252f%E2%80%A6(?:\/|$)/, `${name}: an id stays one segment`)
  }
  for (const version of ['', 'Draft', '0', -1, 1.5, '../x', 'active/ip_lists/1?', null, {}]) {
    const versioned: Record<string, (policyVersion: never) => Promise<unknown>> = {
      getPolicyDependencies: (v) => client.getPolicyDependencies(['/orgs/1/sec_policy/draft/ip_lists/1'], v),
      getModifiedPolicyObjects: (v) => client.getModifiedPolicyObjects(v),
      checkPolicy: (v) => client.checkPolicy(v),
      getPolicyAllow: (v) => client.getPolicyAllow(v),
      restorePolicy: (v) => client.restorePolicy(v),
      searchRules: (v) => client.searchRules({}, v),
    }
    for (const [name, call] of Object.entries(versioned)) {
      const what = `${name} of version ${JSON.stringify(version)}`
      await refused(t, 'invalid_argument', what, () => call(version as never))
    }
  }
})

t.test('numbers', async (t) => {
  const integers = [1.5, NaN, Infinity, -1, '', '1.5', '-1', '1e3', null, undefined, true, {}]
  const rule = '/orgs/1/label_mapping_rules/x'
  const ven = '/orgs/1/vens/x'
  for (const number of integers) {
    const shown = JSON.stringify(number)
    const value = number as never
    await refused(t, 'invalid_integer', `user ${shown}`, () => client.getUserApiKeys(value))
    await refused(t, 'invalid_integer', `user ${shown}`, () => client.createUserApiKey(value))
    await refused(t, 'invalid_integer', `user ${shown}`, () => client.deleteUserApiKey(value, 'k'))
    await refused(t, 'invalid_integer', `position ${shown}`, () => client.reorderLabelMappingRule(rule, value))
  }
  await refused(t, 'invalid_integer', 'user 0', () => client.getUserApiKeys(0))
  const timed: [string, string, number, number, (options: { json: object }) => ReturnType<PceClient['unpairVens']>][] =
    [
      ['upgradeVens', 'upgrade_timeout_seconds', 900, 15_552_000, (options) => client.upgradeVens([ven], '1', options)],
      [
        'venAuthRecovery',
        'recovery_duration_seconds',
        3600,
        2_592_000,
        (options) => client.venAuthRecovery([ven], options),
      ],
    ]
  for (const [name, field, least, most, call] of timed) {
    for (const seconds of [least - 1, most + 1, least + 0.5, String(least), null]) {
      await refused(t, 'invalid_integer', `${name}: ${String(seconds)} s`, () => call({ json: { [field]: seconds } }))
    }
    for (const seconds of [least, most]) t.strictSame(await call({ json: { [field]: seconds } }), [], `${seconds} s`)
  }
  for (const rows of [-1, 100_001, 1.5, '7']) {
    const query = { max_results: rows } as never
    await refused(t, 'invalid_integer', `${rows} synchronous rows`, () => client.getTrafficFlows(query))
  }
})
