/** Rules that are over are retired once a person has approved exactly these, and are asked about anew where one of them is edited. */
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { handMade } from '../tools/hand-made.js'
import { startApproving } from './bench.js'

const TOOL = 'retire-expired'
const RULES = '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules'

t.test('approved, it runs once; edited meanwhile, it is asked anew', async (t) => {
  const services = [{ port: 443, proto: 6 }]
  const bench = await startApproving(t, {
    estate: {
      estate: handMade({
        hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay', mode: 'full' } },
        ruleSets: [
          {
            name: 'Pay',
            scope: 'app=pay',
            allow: [
              { from: 'ams', to: 'ams', services, description: '[expires: 2026-06-01] trial' },
              { from: 'ams', to: 'ams', services },
            ],
          },
        ],
      }),
    },
    threads: {
      worker: pathToFileURL(compiled('programs/worker.ts')),
      heavy: { max: 1, perCaller: 1, queue: 4, queuePerCaller: 4, memoryMb: 512 },
    },
  })
  const written = () =>
    bench.simulator.requests
      .filter(({ method, path }) => method === 'PUT' && /_rules\/\d+$/u.test(path))
      .map(({ path, body }) => [path, body])

  const asked = await bench.call('ann', TOOL)
  partial(t, asked, {
    error: 'confirm_required',
    summary: /^Would disable, in draft, 1 rule of 1 rule set that is over\./u,
  })
  partial(t, (await bench.desk.find(asked.approval_id))?.request.shown, {
    objects_total: 1,
    objects: [
      {
        kind: 'allow rule',
        href: `${RULES}/1`,
        change: 'update',
        evidence: { says: 'No evidence in 30 days.' },
        fields: [{ path: 'enabled', before: true, after: false }],
        note: 'It ended after 2026-06-01.',
      },
    ],
  })
  await bench.decide(asked.approval_id, 'approved', bench.person('ann'))
  const edited = await bench.call('ann', 'update-sec-rule', { href: `${RULES}/1`, description: 'another trial' })
  t.notOk('error' in edited, JSON.stringify(edited))
  bench.simulator.clearRequests()
  const again = await bench.call('ann', TOOL)
  partial(t, again, { error: 'confirm_required', reason: 'stale' })
  t.same(written(), [], 'what was approved is not what would be written')

  await bench.decide(again.approval_id, 'approved', bench.person('ann'))
  partial(t, await bench.call('ann', TOOL), {
    message: 'Disabled 1 of 1 rule that is over, in draft. It takes effect when provisioned.',
    rules: [{ href: `${RULES}/1`, outcome: 'disabled' }],
  })
  t.same(written(), [[`/api/v2${RULES}/1`, { enabled: false }]])
  partial(t, bench.simulator.state.find(`${RULES}/1`), { enabled: false })
})
