/** Approvals of calls of scoped callers: what is asked of a person, who may decide, and what a decision does not change. */
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { handMade } from '../tools/hand-made.js'
import { isWrite, startScoped } from './scoped-service.js'

const GROUPS = {
  payments: { scopes: [{ app: 'payments' }] },
  shop: { scopes: [{ app: 'shop' }] },
  core: { scopes: '*' },
}
const PAGE = { approval: { method: 'page', ttlSeconds: 900, maxAgeSeconds: 0 } as const, tools: ['update-workload'] }
const change = (name: string, description = 'x') => ({ name, description })

t.test('approvals', async (t) => {
  const estate = handMade({
    hosts: {
      pay1: { ip: '10.0.0.1', labels: 'app=payments' },
      shop1: { ip: '10.0.0.2', labels: 'app=shop' },
    },
  })
  const service = await startScoped(t, GROUPS, estate, undefined, { confirmed: PAGE })
  const { simulator } = service.pce
  const ask = async (group: string, args: object) =>
    service.sendCall(await service.tokenOf(group), 'update-workload', args)
  const writes = () => simulator.requests.filter(isWrite).length

  await t.test('nobody is asked about a call outside of the scopes of who calls', async (t) => {
    const { error, rule, approval_id: id } = await ask('payments', change('shop1'))
    t.same([error, rule, id, writes()], ['out_of_scope', 'workload_labels', undefined, 0])
  })

  await t.test('who approves needs the role, and no scope: the scopes are those of who calls', async (t) => {
    for (const approver of ['payments', 'shop', 'strangers', 'core']) {
      const args = change('pay1', `approved by ${approver}`)
      const asked = await ask('payments', args)
      t.equal(asked.error, 'confirm_required', asked.message)
      await service.confirmAs('payments', asked, approver)
      t.equal((await ask('payments', args)).error, undefined, approver)
      t.equal(writes(), 1)
      simulator.clearRequests()
    }
  })

  await t.test('an approval is for the call of who asked, and gives its scopes to nobody else', async (t) => {
    const args = change('shop1', 'of the platform team')
    const asked = await ask('core', args)
    await service.confirmAs('core', asked)
    t.equal((await ask('payments', args)).error, 'out_of_scope')
    t.equal(writes(), 0)
    t.equal((await ask('core', args)).error, undefined)
    simulator.clearRequests()
  })

  await t.test('an approved call is refused if its scopes have become narrower since', async (t) => {
    const args = change('pay1', 'too late')
    await service.confirmAs('payments', await ask('payments', args), 'core')
    writeFileSync(service.path, JSON.stringify({ groups: { ...GROUPS, payments: { scopes: [{ app: 'hr' }] } } }))
    await service.app.reloadScopes?.()
    const { error, rule } = await ask('payments', args)
    t.same([error, rule, writes()], ['out_of_scope', 'workload_labels', 0])
  })
})
