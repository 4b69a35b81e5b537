/** The checks of compliance-check that weigh what the PCE has recorded. */
import t from 'tap'
import { createKnowledge } from '../../knowledge/index.js'
import { byId, PAIR, PAYMENTS, start } from './judge-estates.js'

t.test('as many audit events as are read at most may not be all there are', async (t) => {
  const bench = await start(t, { hosts: PAIR('full') })
  const said: Record<number, string> = {}
  for (const count of [1, 999, 1000]) {
    const body = Array.from({ length: count }, (_, at) => ({
      href: `/orgs/1/events/${at}`,
      event_type: 'user.login',
      timestamp: '2026-06-14T00:00:00Z',
      severity: 'info',
      status: 'success',
    }))
    bench.simulator.faults.add({
      kind: 'status',
      path: /\/orgs\/1\/events$/,
      method: 'GET',
      times: 1,
      status: 200,
      body,
    })
    const { status, detail } = byId(await bench.ok('compliance-check', { framework: 'swift-csp', ...PAYMENTS }))[
      'SWIFT-6.4'
    ]
    said[count] = `${status}: ${/^(.*?) audit events?,/.exec(detail)?.[1]}`
  }
  t.same(said, { 1: 'PASS: 1', 999: 'PASS: 999', 1000: 'PASS: At least 1000' })
})

t.test('every framework names its document, which resources/read serves', async (t) => {
  const bench = await start(t, { hosts: PAIR('full') })
  const named = async (framework: string) => {
    const { resource_uri: uri } = await bench.ok('compliance-check', { framework, ...PAYMENTS })
    return uri.replace('illumio://compliance/', '')
  }
  const documents = {
    'pci-dss': 'pci-dss',
    dora: 'dora',
    nist: 'nist-800-53',
    cis: 'cis-controls',
    'iso-27001': 'iso-27001',
    'swift-csp': 'swift-csp',
    hipaa: 'hipaa',
    general: 'segmentation-methodology',
  }
  const knowledge = createKnowledge({
    tools: [],
    server: { changelog: async () => null },
    limits: { responseBudgetBytes: 80_000 },
    now: Date.now,
  })
  const served = new Set(knowledge.listResources().map(({ uri }) => uri))
  for (const [framework, document] of Object.entries(documents)) {
    t.equal(await named(framework), document, framework)
    t.ok(served.has(`illumio://compliance/${document}`), document)
  }
})
