/** What a yes does not cover is looked up for the question alone, not again where the yes is redeemed (D232). */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { startConfirming } from './harness.js'

t.test('what is only shown is not looked up again', async (t) => {
  const chosen = ['create-rule', 'update-iplist', 'update-workload', 'update-container-workload-profile']
  const confirmed = tools.map((tool) => (chosen.includes(tool.name) ? { ...tool, requiresConfirm: true } : tool))
  const bench = await startConfirming(t, { tools: confirmed, pollsUntilDone: 1, retryAfter: 0 })
  const { pce, simulator } = bench
  const { href: ruleSet } = await bench.draft('Payments')
  const { href: list } = await pce.ipLists.create({ name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
  const [cluster] = await pce.containerClusters.getAll()
  const profiles = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
  const profile = profiles.find(({ managed, enforcement_mode: mode }) => managed === true && mode !== 'full')!
  const [workload] = (await pce.workloads.getAll()).filter(
    ({ managed, enforcement_mode: mode }) => managed === true && mode === 'visibility_only',
  )
  const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 8443, proto: 'tcp' }] }

  /** The requests that each call sends for what it only shows: of the question, and of the run, whose handler warns as well. */
  const CASES: [name: string, args: object, path: RegExp, question: number, run: number][] = [
    ['create-rule', { ruleset_href: ruleSet, ...rule }, /\/draft\/rule_sets$/, 1, 1],
    ['update-iplist', { href: list, ip_ranges: [{ from_ip: '203.0.113.0/25' }] }, /\/draft\/ip_lists$/, 3, 1],
    ['update-workload', { href: workload!.href, enforcement_mode: 'full' }, /\/async_queries$/, 2, 0],
    [
      'update-container-workload-profile',
      { profile_href: profile.href, enforcement_mode: 'full' },
      /\/async_queries$/,
      2,
      0,
    ],
  ]
  for (const [name, args, path, question, run] of CASES)
    await t.test(name, async (t) => {
      const count = () => simulator.requests.filter((request) => path.test(request.path)).length
      simulator.clearRequests()
      const token = await bench.tokenFor(name, args)
      const asked = count()
      simulator.clearRequests()
      partial(t, await bench.call(name, args, { token }), { ok: true })
      t.same([asked, count()], [question, run])
    })
})
