import type { Test } from 'tap'
import { covered } from '../record-coverage.js'
import type { ContractPce } from '../start-contract-pce.js'

/** One generic operation, over several kinds, with its requests as they reached the PCE. */
export async function proveGeneric(
  t: Test,
  pce: ContractPce,
  name: string,
  prove: (t: Test) => Promise<void>,
): Promise<void> {
  await t.test(name, async (t) => {
    const before = pce.tally()
    pce.simulator.faults.clear()
    pce.simulator.clearRequests()
    await prove(t)
    t.ok(pce.tally().wires > before.wires, 'its requests were looked at')
    t.ok(pce.tally().refusals > before.refusals, 'an error of the PCE was mapped')
    covered(t, 'generic operations', name)
  })
}
