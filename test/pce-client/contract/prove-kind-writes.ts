import type { Test } from 'tap'
import type { ObjectApi } from '../../../pce-client/types.js'
import type { PceObject } from '../../../schemas/pce/reference.js'
import { checkObjects } from './check-object.js'
import { findNewest } from './find-newest.js'
import type { KindRow } from './kind-row.js'
import { project } from './project.js'
import type { ContractPce, Json } from './start-contract-pce.js'
import { partial } from '../../partial.js'

export async function proveCreation(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  for (const { body, reads = body as Json } of row.creates ?? []) {
    const made = await api.create(body, row.parent)
    const sent = row.arrayCreate && !Array.isArray(body) ? [body] : body
    pce.wire(t, { method: 'POST', path: row.path, body: withoutSecrets(sent), status: 201 }, 'POST, body as given')
    const first = (Array.isArray(made) ? made[0] : made) as PceObject
    partial(t, idOf(first.href, row), row.id ?? /./, `the new href ${first.href} ends in an id of the kind's form`)
    const read = await api.getByReference(first.href)
    pce.wire(t, { method: 'GET', path: first.href }, 'GET of the new href')
    checkObjects(t, row.kind, [read], row.fields)
    t.strictSame(project(read, reads), reads, 'the object is as it was asked for')
    if (row.secret !== undefined) {
      t.ok(dig(made, row.secret), `the answer of the POST has its ${row.secret}`)
      t.notOk(dig(read, row.secret), 'which is never shown again')
    }
  }
  if (row.chosen) {
    const href = `${row.path}/${row.chosen.id}`
    await api.update(href, row.chosen.body)
    pce.wire(t, { method: 'PUT', path: href, body: row.chosen.body, status: [201, 204] }, 'PUT of a chosen id')
    const read = await api.getByReference(href)
    const reads = row.chosen.reads ?? (row.chosen.body as Json)
    t.strictSame(project(read, reads), reads, 'made the object')
    pce.simulator.clearRequests()
  }
}

export async function proveChange(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const { body, reads = body as Json, of, passes } = row.update!
  const href = row.single ? row.path : of ? (await api.create(of)).href : (await findNewest(pce, row, api)).href
  if (!of) {
    const [before] = row.single ? await api.get('draft') : [await api.getByReference(href)]
    t.notSame(project(before, reads), reads, 'the change is one')
  }
  pce.simulator.clearRequests()
  const answer = await api.update(href, body)
  t.equal(answer, undefined, 'the PCE answers nothing')
  pce.wire(t, { method: 'PUT', path: href, body, status: 204 }, 'PUT of the href, body as given')
  if (row.single === 'list') {
    const after = await api.get()
    for (const item of body as Json[]) {
      t.ok(
        after.some((one) => JSON.stringify(project(one, item)) === JSON.stringify(item)),
        `${JSON.stringify(item)} is there`,
      )
    }
    return
  }
  const after = await api.getByReference(href)
  checkObjects(t, row.kind, [after], row.fields)
  if (passes) t.ok(passes(after), 'the change is there')
  else t.strictSame(project(after, reads), reads, 'the change is there')
}

export async function proveDeletion(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const object = await findNewest(pce, row, api)
  const answer = await api.delete(object)
  t.equal(answer, undefined, 'the PCE answers nothing')
  pce.wire(t, { method: 'DELETE', path: object.href, status: 204 }, 'DELETE of the href')
  const list = await api.getAll('draft', row.parent)
  t.notOk(
    list.some(({ href }) => href === object.href),
    'it is gone from the list',
  )
  pce.simulator.clearRequests()
}

/** The simulator keeps no secret on record, only that there was one. */
function withoutSecrets(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (key, value: unknown) =>
    key === 'bind_password' || key === 'credential' ? '[redacted]' : value,
  )
}

function idOf(href: string, { path }: KindRow): string {
  return href.startsWith(`${path}/`) ? href.slice(path.length + 1) : `${href} lies elsewhere`
}

function dig(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, key) => (at as Json | undefined)?.[key], value)
}
