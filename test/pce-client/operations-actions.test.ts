import t from 'tap'
import type { PceClient, PceError } from '../../pce-client/index.js'
import { partial } from '../partial.js'
import { clientOf, startServer, type Reply, type Responder } from './support.js'

/* Operations on many objects: chunks, what is joined of their answers, what is known when a later one fails. */

let respond: Responder = () => ({})
const server = await startServer(t, (seen, index) => respond(seen, index))

function setup(answer: Responder | Reply): PceClient & { waits: number[] } {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server)
}

const bodies = () => server.seen.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
const href = (kind: string, index: number) =>
  `/orgs/1/${kind}/00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
const hrefs = (kind: string, count: number) => Array.from({ length: count }, (_, index) => href(kind, index))
const refs = (kind: string, count: number) => hrefs(kind, count).map((one) => ({ href: one }))
const ven = (index: number) => href('vens', index)
const problem = (index: number) => ({ token: 'no', message: `No ${index}`, hrefs: [ven(index)] })

t.test('the bodies as documented', async (t) => {
  const client = setup({ body: { errors: [] } })
  t.strictSame(await client.unpairVens([ven(1), { href: ven(2) }]), [])
  await client.unpairVens([ven(1)], 'saved')
  await client.upgradeVens([ven(1)], '22.2.0-166')
  await client.upgradeVens([ven(1)], '22.2.0-166', { json: { upgrade_timeout_seconds: 900 } })
  await client.venAuthRecovery([ven(1)])
  await client.venAuthRecovery([ven(1)], { json: { recovery_enabled: false, recovery_duration_seconds: 2_592_000 } })
  await client.venRemoteAction([ven(1)], 'restart')
  await client.unpairWorkloads(hrefs('workloads', 1))
  await client.unpairWorkloads(hrefs('workloads', 1), 'disable')
  t.strictSame(server.requests(), [
    'PUT /orgs/1/vens/unpair',
    'PUT /orgs/1/vens/unpair',
    'PUT /orgs/1/vens/upgrade',
    'PUT /orgs/1/vens/upgrade',
    'PUT /orgs/1/vens/authentication_recovery',
    'PUT /orgs/1/vens/authentication_recovery',
    'PUT /orgs/1/vens/remote_action',
    'PUT /orgs/1/workloads/unpair',
    'PUT /orgs/1/workloads/unpair',
  ])
  const vens = [{ href: ven(1) }]
  t.strictSame(bodies(), [
    { firewall_restore: 'default', vens: [{ href: ven(1) }, { href: ven(2) }] },
    { firewall_restore: 'saved', vens },
    { release: '22.2.0-166', vens },
    { release: '22.2.0-166', vens, upgrade_timeout_seconds: 900 },
    { recovery_enabled: true, recovery_duration_seconds: 86_400, vens },
    { recovery_enabled: false, recovery_duration_seconds: 2_592_000, vens },
    { action: 'restart', vens },
    { workloads: refs('workloads', 1), ip_table_restore: 'default' },
    { workloads: refs('workloads', 1), ip_table_restore: 'disable' },
  ])
})

t.test('the errors of an action, in either form', async (t) => {
  const forms: [string, Reply, unknown][] = [
    ['none in a 204', { status: 204 }, []],
    ['none in an empty 200', {}, []],
    ['an object without them', { body: {} }, []],
    ['null', { body: { errors: null } }, []],
    ['a list', { body: { errors: [problem(1)] } }, [problem(1)]],
    ['a bare list', { body: [problem(1)] }, [problem(1)]],
    ['references', { body: { errors: [{ ...problem(1), hrefs: [{ href: ven(1) }] }] } }, [problem(1)]],
    ['no hrefs at all', { body: { errors: [{ ...problem(1), hrefs: 'many' }] } }, [{ ...problem(1), hrefs: [] }]],
    ['a hole', { body: { errors: [{ ...problem(1), hrefs: [null, ven(1)] }] } }, [problem(1)]],
    ['parts missing', { body: { errors: [{ token: 'no', hrefs: null }] } }, [{ token: 'no', message: '', hrefs: [] }]],
  ]
  for (const [name, reply, expected] of forms) t.strictSame(await setup(reply).unpairVens([ven(1)]), expected, name)
  for (const body of ['<html>', { errors: 'many' }]) {
    const error = { code: 'outcome_unknown', message: /vens\/unpair was accepted \(status 200\)/ }
    await t.rejects(setup({ body }).unpairVens([ven(1)]), error, 'what cannot be read leaves the outcome unknown')
  }
})

t.test('chunks', async (t) => {
  const sizes = () => bodies().map((body) => Object.values(body).find(Array.isArray)?.length)
  let client = setup(({ body }) => ({ body: { errors: body.includes(ven(999)) ? [problem(999)] : [problem(1000)] } }))
  t.strictSame(await client.unpairVens(hrefs('vens', 2001)), [problem(999), problem(1000), problem(1000)], 'joined')
  t.strictSame(sizes(), [1000, 1000, 1])
  const all = bodies().flatMap(({ vens }) => vens)
  t.strictSame(all, refs('vens', 2001), 'each VEN once, in order')

  client = setup({ status: 204 })
  await client.upgradeVens(hrefs('vens', 25_001), '1')
  t.strictSame(sizes(), [25_000, 1], 'upgrades')
  client = setup({ status: 204 })
  await client.venAuthRecovery(hrefs('vens', 1001))
  t.strictSame(sizes(), [1000, 1], 'recoveries')
  client = setup({ status: 204 })
  await client.unpairWorkloads(hrefs('workloads', 1001))
  t.strictSame(sizes(), [1000, 1], 'workloads')
  client = setup({ status: 204 })
  t.equal(await client.bulkDeleteLabelMappingRules(hrefs('label_mapping_rules', 1001)), undefined)
  t.strictSame(sizes(), [1000, 1], 'label mapping rules')
  t.strictSame(server.requests()[0], 'PUT /orgs/1/label_mapping_rules/delete')
  t.strictSame(bodies()[1], { rules: [{ href: href('label_mapping_rules', 1000) }] })

  client = setup({ status: 204 })
  await client.venRemoteAction([ven(1), ven(2), ven(1)], 'restart')
  t.strictSame(
    bodies().map(({ vens }) => vens),
    [[{ href: ven(1) }], [{ href: ven(2) }]],
    'one VEN at a time, and none twice',
  )
})

t.test('a later chunk that fails', async (t) => {
  const failingAt = (at: number, failure: Reply): Responder => {
    return (_seen, index) => (index === at ? failure : { body: { errors: index === 0 ? [problem(3)] : [] } })
  }
  const failure = async (call: Promise<unknown>) => (await call.catch((error: unknown) => error)) as PceError

  let error = await failure(setup(failingAt(2, { status: 406 })).unpairVens(hrefs('vens', 2500)))
  partial(t, error, { name: 'PceApiError', status: 406 })
  t.equal(error.completed?.length, 2000, 'tells what the requests before it did')
  t.strictSame(error.completed?.[3], { href: ven(3), errors: [{ token: 'no', message: 'No 3' }] })
  t.equal(error.completed?.filter(({ errors }) => errors.length > 0).length, 1)

  error = await failure(setup(failingAt(0, { status: 503 })).upgradeVens([ven(1)], '1'))
  t.strictSame([error.code, error.completed, server.seen.length], ['outcome_unknown', [], 1], 'and is not repeated')
  error = await failure(setup(failingAt(1, { breaks: true })).venRemoteAction(hrefs('vens', 3), 'restart'))
  t.strictSame([error.code, server.seen.length], ['outcome_unknown', 2], 'a lost answer ends it')
  t.strictSame(error.completed, [{ href: ven(0), errors: [] }])

  const bare = setup((_seen, index) => (index === 1 ? { status: 406 } : { body: { errors: [{ token: 'no' }] } }))
  error = await failure(bare.venRemoteAction(hrefs('vens', 2), 'restart'))
  t.strictSame(
    error.completed,
    [{ href: ven(0), errors: [{ token: 'no', message: '' }] }],
    'an error without hrefs is that of the only VEN there was',
  )

  const client = setup((_seen, index) => (index === 1 ? { status: 429, headers: { 'retry-after': '7' } } : {}))
  t.strictSame(await client.unpairVens(hrefs('vens', 1500)), [], 'too many requests are waited for')
  t.strictSame([client.waits, server.seen.length], [[7000], 3])

  const rules = hrefs('label_mapping_rules', 1500)
  error = await failure(setup(failingAt(1, { status: 406 })).bulkDeleteLabelMappingRules(rules))
  t.equal(error.completed?.length, 1000)
})

t.test('an import', async (t) => {
  const client = setup({ body: [{ href: 'x', status: 'created', of_a_later_release: 1 }] })
  const rows = [
    { hostname: 'a', role: 'Web, outer', 'note "x"': 'said "so"' },
    { hostname: 'b\r\nc', online: true, cores: 4, role: null, description: undefined, text: ' blanks ' },
    {},
  ]
  const results = await client.bulkImportWorkloads(rows, { params: { create_labels: true, dry_run: false } })
  t.strictSame(results, [{ href: 'x', status: 'created', of_a_later_release: 1 }])
  t.strictSame(server.requests(), ['PUT /orgs/1/workloads/bulk_import?create_labels=true&dry_run=false'])
  t.equal(server.seen[0]?.headers['content-type'], 'text/csv')
  t.equal(
    server.seen[0]?.body,
    [
      'hostname,role,"note ""x""",online,cores,description,text',
      'a,"Web, outer","said ""so""",,,,',
      '"b\r\nc",,,true,4,," blanks "',
      ',,,,,,',
      '',
    ].join('\r\n'),
    'every field of any object is a column, quoted where it must be',
  )
  await setup({}).bulkImportWorkloads([{ name: '' }, { name: 'x' }])
  t.equal(server.seen[0]?.body, 'name\r\n""\r\nx\r\n', 'a row of one empty cell is no empty line')
  await setup({}).bulkImportWorkloads([{ a: 1 }], { headers: { 'Content-Type': 'text/csv; charset=utf-8' } })
  t.equal(server.seen[0]?.headers['content-type'], 'text/csv; charset=utf-8')
  t.strictSame(await setup({ status: 204 }).bulkImportWorkloads([{ a: 1 }]), [])
  t.strictSame(await setup({ body: { created: 1 } }).bulkImportWorkloads([{ a: 1 }]), [{ created: 1 }], 'an object')

  const refused = setup({})
  for (const data of [[], [{}], [{ labels: [{ key: 'app' }] }], [{ agent: { href: 'x' } }]]) {
    await t.rejects(refused.bulkImportWorkloads(data), { code: 'invalid_argument' }, JSON.stringify(data))
  }
  t.strictSame(server.requests(), [], 'before any request')
  await t.rejects(setup({ status: 502 }).bulkImportWorkloads([{ a: 1 }]), { code: 'outcome_unknown' })
  t.equal(server.seen.length, 1, 'an import is not repeated')
})

t.test('what is retried after a server error, and what is not', async (t) => {
  const rule = href('label_mapping_rules', 1)
  const repeated: Record<string, (client: PceClient) => Promise<unknown>> = {
    getTrafficFlows: (client) => client.getTrafficFlows({ max_results: 1 } as never),
    getVenStatistics: (client) => client.getVenStatistics([ven(1)]),
    searchRules: (client) => client.searchRules({}),
    verifyLdapConnection: (client) => client.verifyLdapConnection('/authentication_settings/ldap_configs/x'),
    setDefaultVenRelease: (client) => client.setDefaultVenRelease('1'),
    reorderLabelMappingRule: (client) => client.reorderLabelMappingRule(rule, 1),
    bulkUpdateLabelMappingRules: (client) => client.bulkUpdateLabelMappingRules([{ href: rule }]),
    deleteOrgApiKey: (client) => client.deleteOrgApiKey('k'),
  }
  const once: Record<string, (client: PceClient) => Promise<unknown>> = {
    generatePairingKey: (client) => client.generatePairingKey('/orgs/1/pairing_profiles/1'),
    createUserApiKey: (client) => client.createUserApiKey(1),
    createServiceAccountApiKey: (client) => client.createServiceAccountApiKey(href('service_accounts', 1)),
    createWorkloadInterface: (client) =>
      client.createWorkloadInterface(href('workloads', 1), { name: 'a', link_state: 'up' }),
    unpairVens: (client) => client.unpairVens([ven(1)]),
    upgradeVens: (client) => client.upgradeVens([ven(1)], '1'),
    venRemoteAction: (client) => client.venRemoteAction([ven(1)], 'restart'),
    venAuthRecovery: (client) => client.venAuthRecovery([ven(1)]),
    unpairWorkloads: (client) => client.unpairWorkloads([href('workloads', 1)]),
    runLabelMappingRules: (client) => client.runLabelMappingRules({}),
    assignLabelMappingLabels: (client) => client.assignLabelMappingLabels('x'),
    updateAsyncQueryRules: (client) => client.updateAsyncQueryRules('x'),
    restorePolicy: (client) => client.restorePolicy(81),
    discardPendingPolicyChanges: (client) => client.discardPendingPolicyChanges(),
    bulkDeletePolicyObjects: (client) => client.bulkDeletePolicyObjects(['/orgs/1/sec_policy/draft/ip_lists/1']),
    requestEnforcementInstructions: (client) => client.requestEnforcementInstructions(href('network_devices', 1)),
    multiEnforcementInstructionsRequest: (client) => client.multiEnforcementInstructionsRequest({ all_devices: true }),
  }
  const firstFails: Responder = (_seen, index) => (index === 0 ? { status: 503 } : { body: [] })
  for (const [name, call] of Object.entries(repeated)) {
    await call(setup(firstFails)).catch(() => undefined)
    t.equal(server.seen.length, 2, `${name} is repeated`)
  }
  for (const [name, call] of Object.entries(once)) {
    await t.rejects(call(setup(firstFails)), { code: 'outcome_unknown' }, `${name} may have happened`)
    t.equal(server.seen.length, 1, `${name} is not repeated`)
  }
})
