import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import { startContractPce, type ContractPce } from '../start-contract-pce.js'

/** What the PCE says of itself, without an organisation (P1, P13). */
export async function statusOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, connect } = pce
  const { client: member } = await startContractPce(t, { nodeAvailable: false, supercluster: 'member' })
  const refused = async (t: Test, path: string, status: number, attempt: () => Promise<unknown>, what: string) => {
    pce.refuseNext('GET', path, status, 'some_error')
    await pce.refused(t, attempt, { status, method: 'GET', path, token: 'some_error' }, what)
  }

  await proveOperation(t, pce, 'get_product_version', async (t) => {
    const version = await client.getProductVersion()
    pce.wire(t, { method: 'GET', path: '/product_version' }, 'without an organisation')
    partial(t, version, { version: /^\d+\.\d+/, build: Number, product_name: /./ })
    checkResult(t, 'get_product_version', version)
    await refused(t, '/product_version', 404, () => client.getProductVersion(), 'not there')
  })

  await proveOperation(t, pce, 'get_node_available', async (t) => {
    const stranger = connect()
    stranger.setCredentials('nobody', 'wrong')
    t.strictSame(await stranger.getNodeAvailable(), { available: true }, 'an empty answer is a yes, for everybody')
    pce.wire(t, { method: 'GET', path: '/node_available' }, 'without an organisation')
    checkResult(t, 'get_node_available', await client.getNodeAvailable())
    t.strictSame(await member.getNodeAvailable(), { available: false }, '404 is how a node says no')
    await refused(t, '/node_available', 403, () => client.getNodeAvailable(), 'anything else decides nothing')
  })

  await proveOperation(t, pce, 'get_supercluster_leader', async (t) => {
    const leader = await client.getSuperclusterLeader()
    pce.wire(t, { method: 'GET', path: '/supercluster/leader' }, 'without an organisation')
    t.strictSame(leader, { leader: true }, 'an empty answer is a yes')
    checkResult(t, 'get_supercluster_leader', leader)
    t.strictSame(await member.getSuperclusterLeader(), { leader: false }, '404 is how a member says no')
    await refused(t, '/supercluster/leader', 403, () => client.getSuperclusterLeader(), 'anything else decides nothing')
  })
}
