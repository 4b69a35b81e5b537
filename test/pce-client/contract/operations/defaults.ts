import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const ANY = 'Any (0.0.0.0/0 and ::/0)'
const ACTIVE = '/orgs/1/sec_policy/active'

/** Defaults and pairing keys (P13). */
export async function defaultsOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, ask } = pce
  await ask('POST', '/orgs/1/sec_policy/draft/ip_lists', { name: `${ANY} but one` })
  await ask('POST', '/orgs/1/sec_policy/draft/services', { name: 'Not All Services', service_ports: [{ proto: 17 }] })
  await ask('POST', '/orgs/1/sec_policy', { update_description: 'Names that contain the built-in ones' })

  await proveOperation(t, pce, 'get_default_ip_list', async (t) => {
    const list = await client.getDefaultIpList()
    pce.wire(t, { method: 'GET', path: `${ACTIVE}/ip_lists`, query: { name: ANY } }, 'by its name')
    t.strictSame([list.name, list.href], [ANY, `${ACTIVE}/ip_lists/1`], 'the built-in one, not one like it')
    checkResult(t, 'get_default_ip_list', list)
    pce.refuseNext('GET', `${ACTIVE}/ip_lists`, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path: `${ACTIVE}/ip_lists`, token: 'forbidden_error' }
    await pce.refused(t, () => client.getDefaultIpList(), facts, 'forbidden')
  })

  await proveOperation(t, pce, 'get_default_service', async (t) => {
    const service = await client.getDefaultService()
    const queries = pce.simulator.requests.map(({ query }) => ({ ...query }))
    t.ok(queries.length > 0 && queries.every(({ name }) => name === 'All Services'), 'by its name')
    const wire = { method: 'GET', path: `${ACTIVE}/services` }
    pce.wire(
      t,
      queries.map((query) => ({ ...wire, query })),
      'every request is for the services, in as many as it takes to see all of that name',
    )
    t.equal(service.name, 'All Services', 'the built-in one, not one like it')
    partial(t, service.service_ports, [{ proto: -1 }])
    checkResult(t, 'get_default_service', service)
    pce.refuseNext('GET', `${ACTIVE}/services`, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path: `${ACTIVE}/services`, token: 'forbidden_error' }
    await pce.refused(t, () => client.getDefaultService(), facts, 'forbidden')
  })

  await proveOperation(t, pce, 'generate_pairing_key', async (t) => {
    const profile = await ask<{ href: string }>('POST', '/orgs/1/pairing_profiles', { enabled: true, name: 'Keys' })
    const key = await client.generatePairingKey(profile.href)
    pce.wire(t, { method: 'POST', path: `${profile.href}/pairing_key`, body: {}, status: 201 }, 'an empty body')
    t.match(key, /^[0-9a-f]{16,}$/, 'the activation code as a string')
    t.not(await client.generatePairingKey(profile.href), key, 'another one each time')
    const after = await ask<Json>('GET', profile.href)
    t.ok(after.last_pairing_key_generated_at, 'the profile knows')
    const unknown = '/orgs/1/pairing_profiles/999999'
    const facts = { status: 404, method: 'POST', path: `${unknown}/pairing_key` }
    await pce.refused(t, () => client.generatePairingKey(unknown), facts, 'an unknown profile')
  })
}
