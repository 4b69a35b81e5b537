import type { Test } from 'tap'
import type { ObjectApi } from '../../../pce-client/types.js'
import { findNewest } from './find-newest.js'
import type { KindRow } from './kind-row.js'
import type { ContractPce } from './start-contract-pce.js'

export async function proveRefusals(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const { path } = row
  if (row.unknown !== undefined) {
    const href = `${path}/${row.unknown}`
    const facts = { status: 404, path: href }
    await pce.refused(t, () => api.getByReference(href), { ...facts, method: 'GET' }, 'GET of an unknown id')
    if (row.update && !row.chosen) {
      const attempt = () => api.update(href, row.update!.body)
      await pce.refused(t, attempt, { ...facts, method: 'PUT' }, 'PUT of an unknown id')
    }
    if (row.remove)
      await pce.refused(t, () => api.delete(href), { ...facts, method: 'DELETE' }, 'DELETE of an unknown id')
  }
  if (row.bad) {
    const [method, target] = row.creates
      ? ['POST', path]
      : ['PUT', row.single ? path : row.chosen ? `${path}/${row.chosen.id}` : (await findNewest(pce, row, api)).href]
    const attempt = () => (row.creates ? api.create(row.bad!, row.parent) : api.update(target, row.bad!))
    const token = 'input_validation_error'
    await pce.refused(t, attempt, { status: 406, method: method, path: target, token }, `a bad body`)
  }
  if (row.conflict) {
    const { body, token } = row.conflict
    const [method, attempt] = row.creates
      ? (['POST', () => api.create(body, row.parent)] as const)
      : (['PUT', () => api.update(path, body)] as const)
    await pce.refused(t, attempt, { status: 406, method, path, token }, 'a conflict')
  }
  pce.refuseNext('GET', path, 403, 'forbidden_error')
  const attempt = () => api.get('draft', row.parent)
  await pce.refused(
    t,
    attempt,
    { status: 403, method: 'GET', path, token: 'forbidden_error' },
    'a list that is forbidden',
  )
}

/** What the kind cannot do, and hrefs that are not its own, never reach the PCE. */
export async function proveLimits(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const here = (attempt: () => Promise<unknown>, what: string, code = 'unsupported') =>
    pce.refusedHere(t, attempt, code, what)
  const href = row.single ? row.path : `${row.path}/${row.unknown ?? row.chosen?.id}`
  if (!row.creates) await here(() => api.create({ name: 'x' }, row.parent), 'create')
  if (!row.update) await here(() => api.update(href, { name: 'x' }), 'update')
  if (!row.remove) await here(() => api.delete(href), 'delete')
  const bulk: Record<string, readonly string[]> = {
    workloads: ['create', 'update', 'delete'],
    virtual_services: ['create', 'update'],
    security_principals: ['create'],
  }
  const offered = bulk[row.kind] ?? []
  if (!offered.includes('create')) await here(() => api.bulkCreate([{ name: 'x' }]), 'bulk_create')
  if (!offered.includes('update')) await here(() => api.bulkUpdate([{ href, name: 'x' }]), 'bulk_update')
  if (!offered.includes('delete')) await here(() => api.bulkDelete([href]), 'bulk_delete')
  if (row.parent !== undefined) {
    await here(() => api.get('draft'), 'a list without a parent', 'invalid_argument')
    if (row.creates) await here(() => api.create(row.creates![0]!.body), 'create without a parent', 'invalid_argument')
  }
  if (row.single === 'list') return
  const foreign = row.path.startsWith('/orgs/') ? [href.replace('/orgs/1/', '/orgs/2/')] : []
  for (const bad of [...foreign, '/orgs/1/no_such_kind/1', 'https://evil.example/x', `${href}/../1`, '']) {
    await here(() => api.getByReference(bad), `the href ${JSON.stringify(bad)}`, 'invalid_href')
  }
}
