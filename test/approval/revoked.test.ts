/** What a call hears whose approval an admin has revoked, through the service (D295). */
import t from 'tap'
import { partial } from '../partial.js'
import { ALL, FROM, startApproving } from './bench.js'

t.test('revoked before or after the yes: the call is refused until it may be asked again', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const adam = bench.person('adam')
  for (const isApproved of [false, true]) {
    const { approval_id: id } = await bench.call('ann', ALL)
    if (isApproved) await bench.decide(id, 'approved', bench.person('ann'))
    const { watch } = bench.composed.approvals!
    const waits = watch.awaitDecision(id, AbortSignal.timeout(60_000))
    partial(t, await bench.desk.revoke(id, adam, FROM), { won: true, approval: { state: 'revoked' } })
    await waits
    for (let times = 0; times < 2; times++)
      partial(t, await bench.call('ann', ALL), {
        error: 'approval_denied',
        reason: 'revoked',
        message: 'An admin has revoked the request to approve this call. Nothing was changed.',
        approval_id: id,
        denied_until: new Date(bench.clock.now + 900_000).toISOString(),
      })
    t.same(
      bench
        .entries(id)
        .flatMap(({ outcome, approval, sub }) => (outcome === undefined && approval ? [`${approval} ${sub}`] : [])),
      ['asked ann', ...(isApproved ? ['approved ann'] : []), 'revoked adam'],
    )
    bench.clock.now += 900_000
    partial(t, await bench.call('ann', ALL), { error: 'confirm_required', reason: 'expired' })
    bench.clock.now += 900_000
  }
  t.equal(bench.provisioned(), 0)
})

t.test('it holds for what was asked, not for what the call would do by now', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const { approval_id: id } = await bench.call('ann', ALL)
  await bench.desk.revoke(id, bench.person('adam'), FROM)
  await bench.draft('two')
  const anew = await bench.call('ann', ALL)
  partial(t, anew, { error: 'confirm_required', reason: 'stale', changes_total: 2 })
  t.not(anew.approval_id, id)
})
