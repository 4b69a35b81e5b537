/**
 * Calls of several writes, or of one that takes the draft away, when the PCE fails after the first: the answer says exactly what is there, and
 * the same call completes it. Those that take back what they wrote are in after-the-write.long.ts, chunks of labels in label-workloads.long.ts.
 */
import t, { type Test } from 'tap'
import type { Fault } from '../../pce-simulator/http/inject-faults.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

type Strike = Partial<Fault> & Pick<Fault, 'kind'>
const STRIKES: Strike[] = [
  { kind: 'retry-after', status: 429 },
  { kind: 'status', status: 503 },
  { kind: 'status', status: 406, body: [{ token: 'odd_token', message: 'no' }] },
  { kind: 'reset' },
  { kind: 'commit-then-drop', times: 1 },
  { kind: 'truncate', times: 1 },
]
const wordOf = ({ kind, status }: Strike) => `${kind} ${status ?? ''}`.trim()

/** The answer, or the body of the error. */
async function attempt(bench: Bench, name: string, args: object): Promise<Json> {
  try {
    return await bench.ok(name, args)
  } catch (error) {
    const text = (error as Error).message
    return JSON.parse(text.slice(text.indexOf('{')))
  } finally {
    bench.simulator.faults.clear()
  }
}

t.test('set-enforcement-mode, in three requests', async (t) => {
  const HOSTS = 2100
  const PAY = { app_name: 'pay', env_name: 'prod' }
  const hosts = Object.fromEntries(
    Array.from({ length: HOSTS }, (_, at) => {
      return [`w-${at}`, { ip: `10.1.${at >> 8}.${at & 255}`, labels: 'app=pay env=prod', mode: 'full' as const }]
    }),
  )
  const bench = await startBench(t, { estate: handMade({ hosts }), budget: 500_000 })
  const hrefs = (await bench.pce.workloads.getAll()).map(({ href }) => href)
  const inMode = (mode: string) => hrefs.filter((href) => bench.simulator.state.find(href)!.enforcement_mode === mode)
  let [from, to] = ['full', 'selective']
  for (const skip of [0, 1, 2])
    for (const strike of STRIKES)
      await t.test(`${wordOf(strike)} at request ${skip + 1}`, async (t) => {
        bench.simulator.faults.add({ path: /bulk_update$/, times: 20, ...strike, skip })
        const answer = await attempt(bench, 'set-enforcement-mode', { ...PAY, enforcement_mode: to })
        const done = inMode(to)
        t.equal(done.length + inMode(from).length, HOSTS)
        t.ok(done.length >= skip * 1000, 'what was done before stands')
        if (answer.outcomes === undefined) {
          t.equal(done.length, 0, `nothing was written, and so the error says no more: ${answer.error}`)
          t.equal(skip, 0)
        } else {
          const { changed, failed, unverified, not_attempted: left, differs } = answer.outcomes
          t.equal(changed, done.length, 'what it calls changed is changed')
          t.equal(failed + unverified + left + differs, HOSTS - done.length, 'and the rest is not')
          if (answer.written !== undefined)
            t.same(answer.written.map(({ href }: Json) => href).toSorted(), done.toSorted(), 'each by its href')
          if (done.length < HOSTS && skip < 2) t.ok(left > 0, 'nothing is begun after what failed')
        }
        await bench.ok('set-enforcement-mode', { ...PAY, enforcement_mode: to })
        t.equal(inMode(to).length, HOSTS, 'the same call completes it')
        ;[from, to] = [to, from]
      })
})

/** Two versions that differ in two lists, and one list that is edited in the draft. */
async function startDraft(t: Test): Promise<Bench> {
  const ipLists = { Office: ['10.0.0.0/8'], Branch: ['172.16.0.0/12'], Guests: ['192.168.0.0/16'] }
  const bench = await startBench(t, { estate: handMade({ ipLists }) })
  for (const id of [2, 3]) await bench.pce.ipLists.update(listAt(id), { description: 'later' })
  await bench.pce.provisionPolicyChanges('later', bench.simulator.state.pendingHrefs())
  return bench
}
const listAt = (id: number) => `/orgs/1/sec_policy/draft/ip_lists/${id}`
const descriptionsOf = ({ simulator }: Bench) => [2, 3, 4].map((id) => simulator.state.find(listAt(id))!.description)

t.test('restore-policy-version, after what was pending is dropped', async (t) => {
  for (const strike of STRIKES)
    await t.test(wordOf(strike), async (t) => {
      const bench = await startDraft(t)
      await bench.pce.ipLists.update(listAt(4), { description: 'pending' })
      const args = { version: 1, drop_pending: [listAt(4)] }
      bench.simulator.faults.add({ path: /restore$/, times: 20, ...strike })
      const answer = await attempt(bench, 'restore-policy-version', args)
      const isDone = bench.simulator.state.pendingHrefs().length > 0
      t.same(descriptionsOf(bench), isDone ? [null, null, null] : ['later', 'later', null], 'all of it, or none')
      t.same(answer.dropped_hrefs ?? answer.dropped.map(({ href }: Json) => href), [listAt(4)], 'what is lost is told')
      if (answer.error === undefined) t.same([answer.verified, answer.pending_total, isDone], [true, 2, true])
      else {
        const none = answer.restored === false || answer.read_back?.state === 'unchanged'
        t.equal(none, !isDone, `${answer.error}: ${answer.hint}`)
        t.same((await bench.ok('restore-policy-version', { version: 1 })).verified, true, 'and then the call does it')
      }
    })
})

t.test('discard-draft-changes', async (t) => {
  for (const strike of STRIKES)
    await t.test(wordOf(strike), async (t) => {
      const bench = await startDraft(t)
      for (const id of [3, 4]) await bench.pce.ipLists.update(listAt(id), { description: 'pending' })
      bench.simulator.faults.add({ path: /sec_policy\/delete$/, times: 20, ...strike })
      const answer = await attempt(bench, 'discard-draft-changes', { hrefs: [listAt(3)] })
      const isDone = !bench.simulator.state.pendingHrefs().includes(listAt(3))
      t.ok(bench.simulator.state.pendingHrefs().includes(listAt(4)), 'what was not named stays')
      if (answer.error === undefined)
        t.same([answer.discarded_hrefs, answer.remaining_total, isDone], [[listAt(3)], 1, true])
      else {
        t.equal(isDone, false, `${answer.error}: ${answer.message}`)
        if (answer.error === 'outcome_unknown')
          t.same(answer.read_back, { state: 'unchanged', still_pending: [listAt(3)] })
        await bench.ok('discard-draft-changes', { hrefs: [listAt(3)] })
        t.same(bench.simulator.state.pendingHrefs(), [listAt(4)])
      }
    })
})
