/** What a yes to pending changes is bound to: their content and the names in it, not the time of the last edit alone (D234). */
import t from 'tap'
import { partial } from '../partial.js'
import { startConfirming } from './harness.js'

t.test('with the same time of the last edit', async (t) => {
  const bench = await startConfirming(t)
  const { pce } = bench
  const { href, rule } = await bench.draft('Payments')
  const list = await pce.ipLists.create({ name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
  const [app] = await pce.labels.get('draft', null, { params: { key: 'app', value: 'payments' } })
  const put = (object: string, json: object) => pce.put(object, { json, includeOrg: false })
  const stamps = async () =>
    (await pce.getPendingPolicyChanges()).map(({ href: object, updated_at: at }) => `${object} ${at}`).sort()

  const CHANGES: Record<string, () => Promise<unknown>> = {
    'another rule': () => put(rule, { ingress_services: [{ port: 22, proto: 6 }] }),
    'other addresses in a list': () => put(list.href, { ip_ranges: [{ from_ip: '0.0.0.0/0' }] }),
    'another name of a label in the scope': () => put(app!.href, { value: 'everything' }),
  }
  const TOOLS = { 'provision-policy': {}, 'discard-draft-changes': { all: true } }
  for (const [name, args] of Object.entries(TOOLS))
    for (const [what, change] of Object.entries(CHANGES))
      await t.test(`${name}: ${what} is asked about anew`, async (t) => {
        const token = await bench.tokenFor(name, args)
        const before = await stamps()
        await change()
        t.same(await stamps(), before)
        bench.writes()
        partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' })
        t.same(bench.writes(), [])
        // As it was, for the next tool.
        await put(rule, { ingress_services: [{ port: 443, proto: 6 }] })
        await put(list.href, { ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
        await put(app!.href, { value: 'payments' })
      })

  await t.test('unchanged, it runs', async (t) => {
    const token = await bench.tokenFor('provision-policy', {})
    partial(t, await bench.call('provision-policy', {}, { token }), { ok: true, provisioned_hrefs: [href, list.href] })
  })
})

t.test('with more names than are read one by one', async (t) => {
  const bench = await startConfirming(t)
  const { pce } = bench
  const { rule } = await bench.draft('Payments')
  const labels: string[] = []
  for (let at = 0; at < 101; at++) labels.push((await pce.labels.create({ key: 'app', value: `many-${at}` })).href)
  // Rules name labels by href alone, scopes with their values.
  const consumers = labels.sort().map((label) => ({ label: { href: label } }))

  await t.test('every label is bound', async (t) => {
    await pce.put(rule, { json: { consumers }, includeOrg: false })
    const token = await bench.tokenFor('provision-policy', {})
    await pce.put(labels.at(-1)!, { json: { value: 'everything' }, includeOrg: false })
    partial(t, await bench.call('provision-policy', {}, { token }), { error: 'confirm_required', reason: 'stale' })
  })

  await t.test('of workloads it is said how many were not read', async (t) => {
    const workloads = await pce.workloads.get('draft', null, { params: { max_results: 120 } })
    const named = workloads.map((workload) => ({ workload: { href: workload.href } }))
    await pce.put(rule, { json: { consumers: named }, includeOrg: false })
    const asked = [await bench.call('provision-policy', {}), await bench.call('discard-draft-changes', { all: true })]
    for (const { summary } of asked) t.match(summary, /of which \d+ were read\. A change of the others/)
  })
})

t.test('what is edited while the content is read for the last time is asked about anew', async (t) => {
  const bench = await startConfirming(t)
  const { pce } = bench
  const { href, rule } = await bench.draft('Payments')
  const put = (port: number) => pce.put(rule, { json: { ingress_services: [{ port, proto: 6 }] }, includeOrg: false })
  await pce.provisionPolicyChanges('first', [href])
  bench.clock.now += 1000
  await put(80)
  const [look, scan] = [pce.getPendingPolicyChanges.bind(pce), pce.labels.scan.bind(pce.labels)]
  const TOOLS = { 'provision-policy': {}, 'restore-policy-version': { version: 1, drop_pending: [href] } }
  for (const [name, args] of Object.entries(TOOLS))
    await t.test(name, async (t) => {
      const token = await bench.tokenFor(name, args)
      let looks = 0
      pce.getPendingPolicyChanges = (...given) => {
        looks += 1
        return look(...given)
      }
      // The labels are read last, after both versions of each change.
      pce.labels.scan = async (...given) => {
        if (looks === 3) {
          looks = Infinity
          bench.clock.now += 1000
          await put(22)
          bench.writes()
        }
        return scan(...given)
      }
      partial(t, await bench.call(name, args, { token }), { error: 'confirm_required', reason: 'stale' })
      t.equal(looks, Infinity, 'it was edited')
      t.same(bench.writes(), [])
      Object.assign(pce, { getPendingPolicyChanges: look })
      Object.assign(pce.labels, { scan })
    })
})
