import type { TSchema } from '@sinclair/typebox'
import type { Test } from 'tap'
import { OPERATION_RESULTS } from './operation-results.js'
import { checkValue } from './check-object.js'
import { camelCase } from './names.js'
import { covered } from './record-coverage.js'
import type { ContractPce } from './start-contract-pce.js'

/**
 * One named operation: its request as it reached the PCE, its result, its effect there and one error as mapped. A proof that
 * looked at no request or met no refusal counts for nothing.
 */
export async function proveOperation(
  t: Test,
  pce: ContractPce,
  name: string,
  prove: (t: Test) => Promise<void>,
): Promise<void> {
  await t.test(name, async (t) => {
    t.type((pce.client as unknown as Record<string, unknown>)[camelCase(name)], 'function', `the client has ${name}`)
    const before = pce.tally()
    pce.simulator.faults.clear()
    pce.simulator.clearRequests()
    await prove(t)
    const { wires, refusals } = pce.tally()
    t.ok(wires > before.wires, 'its request was looked at')
    t.ok(refusals > before.refusals, 'an error of the PCE was mapped')
    covered(t, 'named operations', name)
  })
}

/** The result passes the operation's schema; for lists, every item does. */
export function checkResult(t: Test, name: string, value: unknown): void {
  const schema = (OPERATION_RESULTS as Record<string, TSchema>)[camelCase(name)]
  if (!schema) return void t.fail(`there is a schema of the result of ${name}`)
  checkValue(t, schema, value, name)
}
