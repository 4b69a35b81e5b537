/** restore-policy-version and discard-draft-changes before a person confirms them: what is shown, and that exactly this is what runs. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import type { Json } from '../tools/harness.js'
import { startConfirming } from './harness.js'

const SET = '/orgs/1/sec_policy/draft/rule_sets/1'
const RULE = `${SET}/sec_rules/1`
const LIST = '/orgs/1/sec_policy/draft/ip_lists/2'
const PAY = { hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' } } }
const ESTATE = {
  ...PAY,
  ipLists: { Branches: ['203.0.113.0/24'] },
  ruleSets: [
    {
      name: 'Pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'iplist:Branches', to: 'ams', services: [{ port: 443, proto: 6 }] }],
    },
  ],
}

t.test('restore-policy-version', async (t) => {
  const TOOL = 'restore-policy-version'
  const bench = await startConfirming(t, { estate: handMade(ESTATE) })
  const { pce, simulator } = bench
  await pce.ipLists.update(LIST, { ip_ranges: [{ from_ip: '203.0.0.0/16' }] })
  await pce.provisionPolicyChanges('wider', [LIST])
  await pce.rules.update(RULE, { ingress_services: [{ port: 22, proto: 6 }] })
  const args = { version: 1, drop_pending: [SET] }
  const ask = async (as = 'ann'): Promise<Json> => {
    bench.writes()
    const asked = await bench.call(TOOL, args, { as })
    t.same(bench.writes(), [], 'looking writes nothing')
    return asked
  }

  await t.test('shows what the draft would then change, and what is lost', async (t) => {
    const asked = await ask()
    partial(t, asked, { error: 'confirm_required', reason: 'missing' })
    t.equal(
      asked.summary,
      'Makes the draft what version 1 was: 1 IP list updated. Affected: "Branches". Once provisioned, which this call does not do: ' +
        'It may permit less. First drops 1 pending change, lost for good: "Pay". ' +
        'Labels, workloads and their modes have no versions: they stay as they are now.',
    )
    partial(t, asked, {
      version: 1,
      in_force: 2,
      changes_total: 1,
      changes: [{ href: LIST, effect: 'narrowing' }],
      dropped_total: 1,
      dropped: [{ href: SET, update_type: 'update' }],
    })
  })

  await t.test('is for admin alone', async (t) => {
    partial(t, await ask('olga'), { error: 'forbidden' })
    partial(t, await ask('rita'), { error: 'forbidden' })
  })

  await t.test('a token is of what was shown: an edit or a provisioning in between makes it stale', async (t) => {
    const first = await ask()
    const { confirm_token: token } = await bench.mint(TOOL, first.params_hash)
    bench.clock.now += 1
    await pce.ruleSets.update(SET, { description: 'one more' })
    bench.writes()
    partial(t, await bench.call(TOOL, args, { token }), { error: 'confirm_required', reason: 'stale' })
    t.same(bench.writes(), [])

    const second = await ask()
    const { confirm_token: other } = await bench.mint(TOOL, second.params_hash)
    bench.clock.now += 1
    await pce.provisionPolicyChanges('in between', [SET])
    bench.clock.now += 1
    await pce.rules.update(RULE, { ingress_services: [{ port: 23, proto: 6 }] })
    bench.writes()
    partial(t, await bench.call(TOOL, args, { token: other }), { error: 'confirm_required', reason: 'stale' })
    t.same(bench.writes(), [])
  })

  await t.test('confirmed, it restores once, and provisions nothing', async (t) => {
    const asked = await ask()
    const { confirm_token: token } = await bench.mint(TOOL, asked.params_hash)
    partial(t, await bench.call(TOOL, args, { token }), { ok: true, verified: true, pending_total: 2 })
    t.equal(simulator.state.policyVersion, 3)
    partial(t, await bench.call(TOOL, args, { token }), { error: 'confirm_token_replay' })
  })

  await t.test('a dry run says that it is one, and what is refused is said along with the hash', async (t) => {
    const dry = { version: 1, drop_pending: simulator.state.pendingHrefs(), dry_run: true }
    const asked = await bench.call(TOOL, dry)
    t.match(asked.summary, /This is a dry run/)
    const { confirm_token: token } = await bench.mint(TOOL, asked.params_hash)
    bench.writes()
    partial(t, await bench.call(TOOL, dry, { token }), { ok: true, dry_run: true })
    t.same(bench.writes(), [])
    partial(t, await bench.call(TOOL, { version: 1 }), {
      preview_error: { error: 'pending_changes', pending_total: 2 },
    })
  })
})

t.test('discard-draft-changes', async (t) => {
  const TOOL = 'discard-draft-changes'
  const bench = await startConfirming(t, { estate: handMade(ESTATE) })
  const { pce, simulator } = bench
  const fresh = await pce.ipLists.create({ name: 'Fresh', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  await pce.rules.update(RULE, { consumers: [{ ip_list: { href: fresh.href } }] })
  const ask = async (args: object): Promise<Json> => {
    bench.writes()
    const asked = await bench.call(TOOL, args)
    t.same(bench.writes(), [], 'looking writes nothing')
    return asked
  }

  await t.test('shows what is lost, and what would be left without it', async (t) => {
    const asked = await ask({ hrefs: [fresh.href], include_dependencies: true })
    t.equal(
      asked.summary,
      'Discards 2 pending changes from the draft: 1 IP list created, 1 rule set updated. Lost: "Fresh", "Pay". ' +
        'Not named in the call, but left without what is: 1 of these. What was never provisioned is gone for good. ' +
        'Nothing changes for what VENs enforce. 0 others stay pending.',
    )
    partial(t, asked, { error: 'confirm_required', changes_total: 2, dependencies_total: 1 })
    partial(t, await ask({ hrefs: [fresh.href] }), { preview_error: { error: 'dependencies_required' } })
    partial(t, await ask({}), { preview_error: { error: 'missing_identifier' } })
  })

  await t.test('all is what was pending when it was shown: a later change makes the token stale', async (t) => {
    const asked = await ask({ all: true })
    const { confirm_token: token } = await bench.mint(TOOL, asked.params_hash)
    const { href } = await pce.ipLists.create({ name: 'Later', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
    bench.writes()
    partial(t, await bench.call(TOOL, { all: true }, { token }), { error: 'confirm_required', reason: 'stale' })
    t.same(bench.writes(), [])
    await pce.ipLists.delete(href)
  })

  await t.test('of named ones it is these: what else is added does not matter, and stays', async (t) => {
    const args = { hrefs: [SET] }
    const asked = await ask(args)
    const { confirm_token: token } = await bench.mint(TOOL, asked.params_hash)
    const { href } = await pce.ipLists.create({ name: 'Later', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
    partial(t, await bench.call(TOOL, args, { token }), { ok: true, discarded_hrefs: [SET], remaining_total: 2 })
    t.same(simulator.state.pendingHrefs().toSorted(), [fresh.href, href].toSorted())
  })
})
