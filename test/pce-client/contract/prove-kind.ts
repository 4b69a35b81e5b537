import type { Test } from 'tap'
import type { ObjectApi } from '../../../pce-client/types.js'
import type { KindRow } from './kind-row.js'
import { camelCase } from './names.js'
import { proveFilter, proveReading } from './prove-kind-reads.js'
import { proveLimits, proveRefusals } from './prove-kind-refusals.js'
import { proveChange, proveCreation, proveDeletion } from './prove-kind-writes.js'
import { proveLifeCycle } from './prove-life-cycle.js'
import { covered } from './record-coverage.js'
import type { ContractPce } from './start-contract-pce.js'

/** One kind, step by step, as its row says. */
export async function proveKind(t: Test, pce: ContractPce, row: KindRow): Promise<void> {
  await t.test(row.kind, async (t) => {
    const api = (pce.client as unknown as Record<string, ObjectApi>)[camelCase(row.kind)]
    if (!api) return t.fail(`the client has ${row.kind}`)
    const before = pce.tally()
    const step = (name: string, prove: (t: Test, pce: ContractPce, row: KindRow, api: ObjectApi) => Promise<void>) =>
      t.test(name, async (t) => {
        pce.simulator.faults.clear()
        pce.simulator.clearRequests()
        await prove(t, pce, row, api)
      })
    if (row.creates || row.chosen) await step('is made', proveCreation)
    await step('is listed', proveReading)
    if (row.filter) await step('is filtered', proveFilter)
    if (row.update) await step('is changed', proveChange)
    if (row.remove) await step('is deleted', proveDeletion)
    if (row.versioned) await step('has a draft and an active version', proveLifeCycle)
    await step('is refused by the PCE', proveRefusals)
    await step('is refused by the client', proveLimits)
    const { wires, refusals } = pce.tally()
    t.ok(wires > before.wires, 'its requests were looked at')
    t.ok(refusals > before.refusals, 'an error of the PCE was mapped')
    covered(t, 'kinds', row.kind)
  })
}
