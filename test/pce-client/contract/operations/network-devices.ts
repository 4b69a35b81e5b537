import type { Test } from 'tap'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce } from '../start-contract-pce.js'

const DEVICES = '/orgs/1/network_devices'
const ONE = `${DEVICES}/00000000-0000-4000-8000-000000000001`
const DATA = '/orgs/1/datafiles/00000000-0000-4000-8000-000000000002'

/** Network devices (P55). What these answer is not documented: an empty 202 or 204, or JSON. The simulator makes no instructions. */
export async function networkDeviceOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client } = pce
  const refused = async (t: Test, path: string, attempt: () => Promise<unknown>) => {
    pce.refuseNext('POST', path, 406, 'invalid_uri')
    await pce.refused(t, attempt, { status: 406, method: 'POST', path, token: 'invalid_uri' }, 'an unknown device')
  }

  await proveOperation(t, pce, 'request_enforcement_instructions', async (t) => {
    const path = `${ONE}/enforcement_instructions_request`
    pce.answerNext('POST', path, {}, 202)
    const result = await client.requestEnforcementInstructions(ONE)
    pce.wire(t, { method: 'POST', path, body: {}, status: 202 }, 'an empty body')
    t.type(result, 'object', 'a result, even of an empty answer')
    checkResult(t, 'request_enforcement_instructions', result)
    await refused(t, path, () => client.requestEnforcementInstructions(ONE))
  })

  await proveOperation(t, pce, 'apply_enforcement_instructions', async (t) => {
    const path = `${ONE}/enforcement_instructions_applied`
    const data = { enforcement_instructions_data_href: DATA }
    pce.answerNext('POST', path, {}, 204)
    await client.applyEnforcementInstructions(ONE, data)
    pce.wire(t, { method: 'POST', path, body: data, status: 204 }, 'the data as given')
    await refused(t, path, () => client.applyEnforcementInstructions(ONE, data))
  })

  await proveOperation(t, pce, 'multi_enforcement_instructions_request', async (t) => {
    const path = `${DEVICES}/multi_enforcement_instructions_request`
    const data = { network_devices: [{ href: ONE }] }
    pce.answerNext('POST', path, {}, 202)
    await client.multiEnforcementInstructionsRequest(data)
    pce.wire(t, { method: 'POST', path, body: data, status: 202 }, 'the data as given')
    await refused(t, path, () => client.multiEnforcementInstructionsRequest(data))
  })

  await proveOperation(t, pce, 'multi_enforcement_instructions_applied', async (t) => {
    const path = `${DEVICES}/multi_enforcement_instructions_applied`
    const data = { all_devices: true }
    pce.answerNext('POST', path, {}, 204)
    await client.multiEnforcementInstructionsApplied(data)
    pce.wire(t, { method: 'POST', path, body: data, status: 204 }, 'the data as given')
    await refused(t, path, () => client.multiEnforcementInstructionsApplied(data))
  })
}
