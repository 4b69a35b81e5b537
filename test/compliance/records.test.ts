/** The checks of compliance-check that weigh what the PCE has recorded. */
import t from 'tap'
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
    bench.simulator.faults.add({ kind: 'status', path: /\/events$/, method: 'GET', times: 1, status: 200, body })
    const { status, detail } = byId(await bench.ok('compliance-check', { framework: 'swift-csp', ...PAYMENTS }))[
      'SWIFT-6.4'
    ]
    said[count] = `${status}: ${/^(.*?) audit events?,/.exec(detail)?.[1]}`
  }
  t.same(said, { 1: 'PASS: 1', 999: 'PASS: 999', 1000: 'PASS: At least 1000' })
})
