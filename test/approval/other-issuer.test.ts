/** The same subject at another identity provider is another person, also for what was asked and approved before the change. */
import t from 'tap'
import { partial } from '../partial.js'
import { ALL, startApproving } from './bench.js'

t.test('approvals of one issuer are nothing to the same subject at another', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const asked = await bench.call('ann', ALL)
  const { approval_id: id } = asked
  const elsewhere = { ...bench.person('ann', null), iss: 'https://other.example' }
  t.same(await bench.desk.waitingFor(elsewhere), { total: 0, approvals: [] })
  await t.rejects(bench.desk.decide(id, { verdict: 'approved', by: elsewhere }, { requestId: 'r' }), {
    code: 'not_found',
  })
  await bench.decide(id, 'approved', bench.person('ann'))

  // The server is moved to the other provider, which signs with the same key here, and keeps its state.
  const { service } = bench
  const { oauth } = service.config
  const moved = await startApproving(t, {
    after: {
      ...bench,
      service: {
        ...service,
        config: { ...service.config, oauth: { ...oauth, issuer: elsewhere.iss } },
      } as typeof service,
    },
  })
  const token = await service.tokenOf('ann', 'admin', { iss: elsewhere.iss })
  const answer = await moved.service.call(token, ALL, {})
  partial(t, answer, { error: 'confirm_required', reason: 'missing' })
  t.not(answer.approval_id, id)
  t.equal(bench.provisioned(), 0)
  // Back at the first one, the yes is still its own.
  partial(t, await bench.call('ann', ALL), { verified: true })
})
