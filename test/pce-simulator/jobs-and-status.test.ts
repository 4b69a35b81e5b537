import t from 'tap'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'

type Org = Awaited<ReturnType<typeof startPce>>['org']

/** Reads a job as often as asked, and answers each status on the way. */
async function follow(org: Org, href: string, polls: number): Promise<string[]> {
  const statuses: string[] = []
  for (let count = 0; count < polls; count += 1) statuses.push((await org('GET', href)).body.status)
  return statuses
}

t.test('jobs: filtered, deleted, failing, endless, expired', async (t) => {
  const { simulator, org } = await startPce(t)
  const start = async () =>
    (await org('GET', '/labels', undefined, { prefer: 'respond-async' })).headers.get('location')!
  const fine = await start()
  const statuses = await follow(org, fine, 3)
  t.same(statuses, ['pending', 'running', 'done'])
  const { result } = (await org('GET', fine)).body
  t.equal((await org('GET', result.href)).body.length, 6)

  const labels = '/orgs/1/labels'
  simulator.faults.add({ kind: 'job-failed', path: labels, times: 1, body: 'Out of disk' })
  const failing = await start()
  t.equal((await follow(org, failing, 4)).at(-1), 'failed')
  partial(t, (await org('GET', failing)).body, { result: { message: 'Out of disk' }, terminated_at: String })

  simulator.faults.add({ kind: 'job-stuck', path: labels, times: 1 })
  const stuck = await start()
  t.equal((await follow(org, stuck, 20)).at(-1), 'running')
  t.notOk('terminated_at' in (await org('GET', stuck)).body)

  simulator.faults.add({ kind: 'job-expired', path: labels, times: 1 })
  const expired = await start()
  await follow(org, expired, 3)
  t.equal((await org('GET', (await org('GET', expired)).body.result.href)).status, 404)

  const list = async (query: string) => (await org('GET', `/jobs?${query}`)).body.length
  t.equal(await list(''), 4)
  t.equal(await list('job_type=:illumio/async_requests'), 4)
  t.equal(await list('job_type=other'), 0)
  t.equal(await list('max_results=2'), 2)
  t.equal((await org('DELETE', fine)).status, 204)
  t.equal((await org('GET', '/events?max_results=1')).body[0].event_type, 'job.delete')
  t.equal((await org('GET', result.href)).status, 404, 'its file goes with it')
  t.equal(START_OF_TEST, Date.parse((await org('GET', failing)).body.requested_at))
})

t.test('status of the PCE itself', async (t) => {
  const alone = await startPce(t)
  const status = async (call: typeof alone.call, path: string) => {
    const { status, text } = await call('GET', path)
    return [status, text]
  }
  t.same(await status(alone.call, '/node_available'), [200, ''])
  t.same(await status(alone.call, '/supercluster/leader'), [200, ''])
  t.same(await status(alone.call, '/noop'), [204, ''])
  t.equal((await alone.call('GET', '/product_version')).body.version, '25.2.10')
  partial(t, (await alone.call('GET', '/health')).body, [{ status: 'normal', type: 'standalone' }])

  const member = await startPce(t, { supercluster: 'member', nodeAvailable: false })
  t.equal((await status(member.call, '/supercluster/leader'))[0], 404)
  t.equal((await fetch(`${member.simulator.url}/api/v2/node_available`)).status, 404)
  partial(t, (await member.call('GET', '/health')).body, [{ status: 'critical', type: 'member' }])
  const leader = await startPce(t, { supercluster: 'leader' })
  t.equal((await status(leader.call, '/supercluster/leader'))[0], 200)
  partial(t, (await leader.call('GET', '/health')).body, [{ type: 'leader' }])
})
