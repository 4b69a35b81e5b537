import type { Test } from 'tap'
import type { ObjectApi } from '../../../pce-client/types.js'
import { checkObjects } from './check-object.js'
import type { KindRow } from './kind-row.js'
import type { ContractPce } from './start-contract-pce.js'

export async function proveReading(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const list = await api.get('draft', row.parent)
  pce.wire(t, { method: 'GET', path: row.path }, 'GET of the collection')
  t.ok(list.length > 0, 'there is something to read')
  checkObjects(t, row.kind, list.slice(0, 50), row.fields)
  const page = await api.getPage('draft', row.parent)
  t.strictSame(page.items.length, list.length)
  pce.simulator.clearRequests()
  if (row.single === 'list') return
  const object = list.at(-1)!
  const href = row.single === 'object' ? row.path : object.href
  const forms = row.single === 'object' ? [href, { href }] : [href, { href }, object]
  for (const form of forms) {
    const read = await api.getByReference(form)
    pce.wire(t, { method: 'GET', path: href }, `GET by ${typeof form === 'string' ? 'href' : 'object'}`)
    checkObjects(t, row.kind, [read], row.fields)
    t.strictSame(read, object, 'the item is the one of the list')
  }
}

export async function proveFilter(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const { params, wire, keeps, none = false } = row.filter!
  const all = await api.getAll('draft', row.parent)
  pce.simulator.clearRequests()
  const kept = await api.get('draft', row.parent, { params })
  pce.wire(t, { method: 'GET', path: row.path, query: wire }, 'GET with the parameter')
  const expected = all.filter(keeps)
  const isTelling = expected.length < all.length && expected.length > 0 !== none
  t.ok(isTelling, `${expected.length} of ${all.length} objects pass`)
  t.strictSame(
    kept.map(({ href }) => href),
    expected.map(({ href }) => href),
    'and no others',
  )
}
