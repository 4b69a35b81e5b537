import type { Test } from 'tap'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const DEVICES = '/orgs/1/network_devices'
const UNKNOWN = `${DEVICES}/00000000-dead-4000-8000-000000000000`

/** Network devices (P55). What these answer is not documented: an empty 202 or 204, or JSON. */
export async function networkDeviceOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const [node] = await pce.list('/orgs/1/network_enforcement_nodes')
  const device = async (name: string) =>
    (
      await ask<{ href: string }>('POST', `${node?.href}/network_devices`, {
        name,
        device_type: 'switch',
        manufacturer: 'Cisco',
        model: '9000',
        ip_address: '192.0.2.20',
      })
    ).href
  const one = await device('Operation switch')
  const two = await device('Operation switch two')
  const find = (href: string) => simulator.state.find(href)!

  const refused = async (t: Test, path: string, attempt: () => Promise<unknown>) => {
    pce.refuseNext('POST', path, 406, 'invalid_uri')
    await pce.refused(t, attempt, { status: 406, method: 'POST', path, token: 'invalid_uri' }, 'an unknown device')
  }

  await proveOperation(t, pce, 'request_enforcement_instructions', async (t) => {
    const path = `${one}/enforcement_instructions_request`
    const result = await client.requestEnforcementInstructions(one)
    pce.wire(t, { method: 'POST', path, body: {}, status: [200, 202, 204] }, 'an empty body')
    t.type(result, 'object', 'a result, even of an empty answer')
    checkResult(t, 'request_enforcement_instructions', result)
    const { enforcement_instructions_data_href: data, enforcement_instructions_generation_in_progress: busy } =
      find(one)
    t.ok(data !== undefined || busy === true, 'the device makes them')
    const facts = { status: 404, method: 'POST', path: `${UNKNOWN}/enforcement_instructions_request` }
    await pce.refused(t, () => client.requestEnforcementInstructions(UNKNOWN), facts, 'an unknown device')
  })

  await proveOperation(t, pce, 'apply_enforcement_instructions', async (t) => {
    const path = `${one}/enforcement_instructions_applied`
    const data = { enforcement_instructions_data_href: find(one).enforcement_instructions_data_href as string }
    await client.applyEnforcementInstructions(one, data)
    pce.wire(t, { method: 'POST', path, body: data, status: 204 }, 'the data as given')
    t.ok(find(one).enforcement_instructions_ack_timestamp, 'the device knows')
    const facts = { status: 404, method: 'POST', path: `${UNKNOWN}/enforcement_instructions_applied` }
    await pce.refused(t, () => client.applyEnforcementInstructions(UNKNOWN, data), facts, 'an unknown device')
  })

  await proveOperation(t, pce, 'multi_enforcement_instructions_request', async (t) => {
    const path = `${DEVICES}/multi_enforcement_instructions_request`
    const data = { network_devices: [{ href: two }] }
    await client.multiEnforcementInstructionsRequest(data)
    pce.wire(t, { method: 'POST', path, body: data, status: [200, 202, 204] }, 'the data as given')
    const state = (href: string): Json => find(href)
    const { enforcement_instructions_data_href: made, enforcement_instructions_generation_in_progress: busy } =
      state(two)
    t.ok(made !== undefined || busy === true, 'the device makes them')
    await refused(t, path, () => client.multiEnforcementInstructionsRequest({ network_devices: [{ href: UNKNOWN }] }))
  })

  await proveOperation(t, pce, 'multi_enforcement_instructions_applied', async (t) => {
    const path = `${DEVICES}/multi_enforcement_instructions_applied`
    const data = { all_devices: true }
    await client.multiEnforcementInstructionsApplied(data)
    pce.wire(t, { method: 'POST', path, body: data, status: 204 }, 'the data as given')
    t.ok(find(two).enforcement_instructions_ack_timestamp, 'every device knows')
    await refused(t, path, () => client.multiEnforcementInstructionsApplied({ network_devices: [{ href: UNKNOWN }] }))
  })
}
