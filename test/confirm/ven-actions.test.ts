/** Actions on VENs are confirmed for exactly these VENs in the state that was shown. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import { startConfirming } from './harness.js'

const HREF = '/orgs/1/vens/00000000-0000-4000-8000-000000000001'
const ESTATE = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' as const },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
  },
  flows: [{ from: 'crm-1', to: 'db-1', port: 22, connections: 30 }],
}

t.test('what is unpaired is shown with what would pass, and what has changed since is asked again', async (t) => {
  const bench = await startConfirming(t, { estate: handMade(ESTATE) })
  const args = { workloads: ['db-1'], firewall_restore: 'disable' }
  const asked = await bench.call('unpair-vens', args)
  partial(t, asked, { error: 'confirm_required', reason: 'missing' })
  t.equal(
    asked.summary,
    'The VEN of "db-1" would be unpaired. 1 would stop enforcing policy. ' +
      'Of the traffic seen in the last 30 days, 30 connections blocked now would pass and 0 possibly; nothing would be blocked that passes now.',
  )
  t.same(asked.vens, [['db-1', HREF, 'full', 'active']])
  t.same(bench.writes(), [], 'looking writes nothing')
  const { confirm_token: token } = await bench.confirm(asked)

  await bench.pce.vens.update(HREF, { status: 'suspended' })
  partial(t, await bench.call('unpair-vens', args, { token }), { error: 'confirm_required', reason: 'stale' })
  t.equal(bench.simulator.requests.filter(({ path }) => path.endsWith('/unpair')).length, 0)

  const again = await bench.confirm(await bench.call('unpair-vens', args))
  partial(t, await bench.call('unpair-vens', args, { token: again.confirm_token }), { ok: true, outcomes: { done: 1 } })
})
