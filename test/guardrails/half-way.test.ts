/** A guardrail that comes while a call sends its requests: the error is the guardrail's own, and says what exists. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import { startGuarded, windows } from './guarded-service.js'

/** One more than label-workloads sends in one request. */
const MANY = 1001
const BEFORE = Date.parse('2026-11-27T16:59:00Z')
const IN_THE_FREEZE = Date.parse('2026-11-27T17:01:00Z')

t.test('a freeze that begins between two requests of a call', async (t) => {
  const names = Array.from({ length: MANY }, (_, at) => `w${at}`)
  const hosts = Object.fromEntries(
    names.map((name, at) => [name, { ip: `10.1.${at >> 8}.${at & 255}`, labels: 'app=a env=prod' }]),
  )
  /** The number of requests after the first of which the freeze begins. */
  let sent: () => number = () => 0
  const service = await startGuarded(
    t,
    { freezes: windows('Fri 18:00 - Mon 06:00 Europe/Berlin') },
    {
      now: () => (sent() < 1 ? BEFORE : IN_THE_FREEZE),
      of: handMade({ hosts, labels: ['env=dev'], flows: [] }),
    },
  )
  const { simulator } = service.pce
  const bulk = () => simulator.requests.filter(({ path }) => path.endsWith('/bulk_update')).length
  const made = () =>
    simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/labels')).length

  sent = made
  const args = { selection: { labels: ['app=a'] }, max_matches: MANY, set: ['env=new'], create_missing_labels: true }
  const none = await service.call('label-workloads', args)
  partial(t, none, { error: 'frozen', partial: undefined, http_status: undefined })
  t.equal(made(), 1)
  t.equal(bulk(), 0, 'after the new label, whose creation a freeze lets through')
  const label = await service.call('get-labels', { key: 'env', value: 'new' })
  t.equal(label.labels?.length ?? label.total, 0, 'which was removed again')

  sent = bulk
  const half = await service.call('label-workloads', { ...args, set: ['env=dev'], create_missing_labels: false })
  partial(t, half, {
    error: 'frozen',
    message: /^Changes that take effect at once are frozen \(Fri 18:00 - Mon 06:00 Europe\/Berlin\)\./,
    outcomes: { updated: 1000, not_done: 1 },
    hint: /1000 of 1001 workloads are changed, 1 are as they were/,
  })
  t.equal(bulk(), 1)
})
