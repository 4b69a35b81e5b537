import type { Test } from 'tap'
import type { ObjectApi } from '../../../pce-client/types.js'
import type { PceObject } from '../../../schemas/pce/reference.js'
import type { KindRow } from './kind-row.js'
import { project } from './project.js'
import type { ContractPce, Json } from './start-contract-pce.js'

/** The life of one versioned object, step by step as P4 lists it. */
export async function proveLifeCycle(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  if (row.single) return proveSingleLifeCycle(t, pce, row, api)
  const { body } = row.creates!.at(-1)!
  const made = await api.create(unique(body), row.parent)
  const draft = made.href
  const active = draft.replace('/sec_policy/draft/', '/sec_policy/active/')
  const provision = () => {
    const { type, href } = row.provisions ?? { type: row.kind, href: draft }
    return pce.ask('POST', '/orgs/1/sec_policy', { update_description: 'x', change_subset: { [type]: [{ href }] } })
  }
  const reads = async (href: string) => {
    pce.simulator.clearRequests()
    const object = (await api.getByReference(href)) as Json
    pce.wire(t, { method: 'GET', path: href }, `GET ${href}`)
    return object
  }
  const gone = (href: string, what: string) =>
    pce.refused(t, () => api.getByReference(href), { status: 404, method: 'GET', path: href }, what)

  t.equal((await reads(draft)).update_type, 'create', 'a new draft')
  await gone(active, 'is not active')
  await provision()
  t.equal((await reads(draft)).update_type, null, 'has nothing pending once provisioned')
  const first = await reads(active)
  t.equal(first.href, active, 'and is active under its active href')
  t.equal(first.update_type ?? null, null)
  t.ok(
    (await activeList(api, row, active)).some(({ href }) => href === active),
    'and in the active list',
  )

  const { body: change, reads: shows = change as Json } = row.update!
  pce.simulator.clearRequests()
  await api.update(active, change)
  pce.wire(
    t,
    { method: 'PUT', path: draft, body: change, status: 204 },
    'a change by the active href goes to the draft',
  )
  const changed = await reads(draft)
  t.equal(changed.update_type, 'update', 'is pending')
  t.strictSame(project(changed, shows), shows)
  const old = await reads(active)
  t.notSame(project(old, shows), shows, 'the active version is as before')
  await provision()
  t.strictSame(project(await reads(active), shows), shows, 'until it is provisioned')

  await api.delete(active)
  pce.wire(t, { method: 'DELETE', path: draft, status: 204 }, 'a deletion by the active href marks the draft')
  t.equal((await reads(draft)).update_type, 'delete', 'which is still there')
  await reads(active)
  await api.update(draft, change)
  t.equal((await reads(draft)).update_type, 'delete', 'and no change takes it back')
  await provision()
  await gone(draft, 'a provisioned deletion: the draft is gone')
  await gone(active, 'and so is the active version')
}

async function proveSingleLifeCycle(t: Test, pce: ContractPce, row: KindRow, api: ObjectApi): Promise<void> {
  const { body, reads = body as Json } = row.update!
  const [draft] = (await api.get('draft')) as Json[]
  t.equal(draft?.update_type, 'update', 'the change is pending')
  const active = row.path.replace('/draft/', '/active/')
  pce.simulator.clearRequests()
  const [before] = (await api.get('active')) as Json[]
  pce.wire(t, { method: 'GET', path: active }, 'GET of the active version')
  t.notSame(project(before, reads), reads, 'which is as before')
  const change_subset = { [row.kind]: [{ href: row.path }] }
  await pce.ask('POST', '/orgs/1/sec_policy', { update_description: 'x', change_subset })
  t.strictSame(project((await api.get('active'))[0], reads), reads, 'until it is provisioned')
  pce.simulator.clearRequests()
}

/** Names must be unique where there are any. */
function unique(body: object): object {
  return 'name' in body ? { ...body, name: `${String(body.name)} in time` } : body
}

async function activeList(api: ObjectApi, row: KindRow, href: string): Promise<PceObject[]> {
  const parent = row.parent === undefined ? undefined : href.slice(0, href.lastIndexOf('/', href.lastIndexOf('/') - 1))
  return api.getAll('active', parent)
}
