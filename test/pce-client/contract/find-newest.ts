import type { ObjectApi } from '../../../pce-client/types.js'
import type { PceObject } from '../../../schemas/pce/reference.js'
import type { KindRow } from './kind-row.js'
import type { ContractPce } from './start-contract-pce.js'

/** The object that was made last: the one with the full body. */
export async function findNewest(pce: ContractPce, row: KindRow, api: ObjectApi): Promise<PceObject> {
  const list = await api.getAll('draft', row.parent)
  pce.simulator.clearRequests()
  const wanted = row.chosen ? `${row.path}/${row.chosen.id}` : undefined
  return list.find(({ href }) => href === wanted) ?? list.at(-1)!
}
