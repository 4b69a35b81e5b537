import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { startContractPce, type ContractPce, type Json } from '../start-contract-pce.js'
import { proveGeneric } from './prove-generic.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const ACTIVE = '/orgs/1/sec_policy/active'

/** The operations that read (S9, P8, P9, P10); `pce` has more than 500 workloads. */
export async function readingOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const [label] = await pce.list('/orgs/1/labels')
  const workloads = await pce.list('/orgs/1/workloads?max_results=100000')
  t.ok(workloads.length > 500, `${workloads.length} workloads`)
  const managed = workloads.filter((workload) => workload.managed === true)

  await proveGeneric(t, pce, 'get_by_reference', async (t) => {
    for (const form of [label!.href, { href: label!.href }, label!]) {
      t.strictSame(await client.labels.getByReference(form), label, 'an href, a reference, a whole object')
      pce.wire(t, { method: 'GET', path: label!.href }, 'GET of the href')
    }
    for (const version of [DRAFT, ACTIVE]) {
      const list = await client.ipLists.getByReference(`${version}/ip_lists/1`)
      t.equal(list.href, `${version}/ip_lists/1`, 'of the version that the href names')
      pce.wire(t, { method: 'GET', path: `${version}/ip_lists/1` }, 'GET of the href')
    }
    partial(t, await client.users.getByReference('/users/1'), { href: '/users/1' }, 'without an organisation')
    pce.wire(t, { method: 'GET', path: '/users/1' }, 'GET of the href')
    partial(t, await client.roles.getByReference('/orgs/1/roles/owner'), { href: '/orgs/1/roles/owner' }, 'by a name')
    simulator.clearRequests()
    const odd = { ...label!, external_data_set: null, of_a_later_release: { deep: [null, 1] } }
    simulator.faults.add({ kind: 'status', path: label!.href, times: 1, status: 200, body: odd })
    t.strictSame(await client.labels.getByReference(label!.href), odd, 'fields nobody knows are kept, nulls too')
    for (const bad of [
      '/orgs/2/labels/1',
      '/orgs/1/workloads/1',
      `${DRAFT}/ip_lists/1`,
      'labels/1',
      '/orgs/1/labels',
    ]) {
      await pce.refusedHere(t, () => client.labels.getByReference(bad), 'invalid_href', `${bad} is no label`)
    }
    const path = '/orgs/1/labels/999999'
    await pce.refused(t, () => client.labels.getByReference(path), { status: 404, method: 'GET', path }, 'unknown')
  })

  await proveGeneric(t, pce, 'get_by_name', async (t) => {
    for (const name of ['Generic', 'Generic two']) await ask('POST', `${DRAFT}/ip_lists`, { name })
    partial(t, await client.ipLists.getByName('Generic'), { name: 'Generic', update_type: 'create' })
    const query = { name: 'Generic' }
    pce.wire(t, { method: 'GET', path: `${DRAFT}/ip_lists`, query }, 'a filter that also lets "Generic two" through')
    t.equal(await client.ipLists.getByName('Generic', 'active'), null, 'absent')
    pce.wire(t, { method: 'GET', path: `${ACTIVE}/ip_lists`, query }, 'in the active version')
    t.equal(await client.ipLists.getByName('generic'), null, 'the name is exact')
    t.equal(await client.ipLists.getByName('Gener'), null)
    const odd = 'A & B = 100 % /ü'
    await ask('POST', '/orgs/1/pairing_profiles', { enabled: true, name: odd })
    partial(t, await client.pairingProfiles.getByName(odd), { name: odd }, 'whatever stands in it')
    pce.wire(t, { method: 'GET', path: '/orgs/1/pairing_profiles', query: { name: odd } }, 'encoded')
    const named = workloads.find(({ name }) => typeof name === 'string')!
    partial(t, await client.workloads.getByName(String(named.name)), { href: named.href })
    simulator.clearRequests()
    for (let index = 0; index < 2; index++) {
      await ask('POST', `${DRAFT}/services`, { name: 'Twice', service_ports: [{ port: 1, proto: 6 }] })
    }
    await t.rejects(client.services.getByName('Twice'), { name: 'PceError', code: 'ambiguous_name' }, 'ambiguous')
    await pce.refusedHere(t, () => client.labels.getByName('x'), 'unsupported', 'a label has no name')
    pce.refuseNext('GET', `${DRAFT}/ip_lists`, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path: `${DRAFT}/ip_lists`, token: 'forbidden_error' }
    await pce.refused(t, () => client.ipLists.getByName('Generic'), facts, 'forbidden')
  })

  await proveGeneric(t, pce, 'get', async (t) => {
    t.equal((await client.workloads.get()).length, 500, 'the PCE cuts a plain list at 500')
    pce.wire(t, { method: 'GET', path: '/orgs/1/workloads' }, 'no parameter unless one is given')
    const params = { labels: [[label!.href]], managed: true, max_results: 7, name: undefined }
    const found = await client.workloads.get('draft', null, { params })
    const query = { labels: `[["${label!.href}"]]`, managed: 'true', max_results: '7' }
    pce.wire(t, { method: 'GET', path: '/orgs/1/workloads', query }, 'lists as JSON, undefined left out')
    t.ok(found.length <= 7)
    const nulls = [{ href: `${DRAFT}/ip_lists/7`, name: 'Nulls', ip_ranges: null, fqdns: null }]
    simulator.faults.add({ kind: 'status', path: `${DRAFT}/ip_lists`, times: 1, status: 200, body: nulls })
    t.strictSame(await client.ipLists.get(), nulls, 'null where a list may be')
    simulator.clearRequests()
    await client.events.get('draft', null, { params: { 'timestamp[gte]': '2026-03-01T00:00:00+01:00' } })
    const since = { 'timestamp[gte]': '2026-03-01T00:00:00+01:00' }
    pce.wire(t, { method: 'GET', path: '/orgs/1/events', query: since }, 'brackets and plus signs survive')
    const active = await client.ruleSets.get('active')
    pce.wire(t, { method: 'GET', path: `${ACTIVE}/rule_sets` }, 'of the active version')
    t.ok(active.length > 0 && active.every(({ href }) => href.startsWith(`${ACTIVE}/rule_sets/`)))
    const withRules = active.find(({ rules }) => (rules?.length ?? 0) > 0)!
    const rules = await client.rules.get('active', withRules)
    pce.wire(t, { method: 'GET', path: `${withRules.href}/sec_rules` }, 'below a parent')
    t.equal(rules.length, withRules.rules?.length)
    const draftParent = withRules.href.replace('/active/', '/draft/')
    await client.rules.get('active', draftParent)
    pce.wire(
      t,
      { method: 'GET', path: `${withRules.href}/sec_rules` },
      'the version that was asked for, not the parent’s',
    )
    const settings = await client.orgSettings.get()
    pce.wire(t, { method: 'GET', path: '/orgs/1/settings' }, 'of a single object')
    t.equal(settings.length, 1, 'a list of one')
    await pce.refusedHere(t, () => client.rules.get('draft'), 'invalid_argument', 'rules without a rule set')
    const attempt = () => client.workloads.get('draft', null, { params: { labels: 'env:prod' } })
    const facts = { status: 406, method: 'GET', path: '/orgs/1/workloads', token: 'invalid_uri' }
    await pce.refused(t, attempt, facts, 'a label filter in another form')
  })

  await proveGeneric(t, pce, 'get_all', (t) => proveGetAll(t, pce, workloads, managed))

  await proveGeneric(t, pce, 'get_async', async (t) => {
    const all = await client.workloads.getAsync()
    const [first, second, third, ...more] = pce.look()
    t.strictSame(
      [first?.line, first?.headers.prefer, first?.status],
      ['GET /orgs/1/workloads', 'respond-async', 202],
      'asks for a job',
    )
    t.match(second?.line, /^GET \/orgs\/1\/jobs\/[0-9a-f-]{36}$/, 'reads the job')
    t.match(third?.line, /^GET \/orgs\/1\/datafiles\/[0-9a-f-]{36}$/, 'and its file')
    t.ok(
      more.every(({ line }) => line.startsWith('DELETE /orgs/1/jobs/')),
      'and nothing else but perhaps its deletion',
    )
    t.strictSame(
      all.map(({ href }) => href),
      workloads.map(({ href }) => href),
      'every object, without the limit of 500',
    )
    const filtered = await client.workloads.getAsync('draft', null, { params: { managed: true } })
    t.equal(filtered.length, managed.length, 'that passes the filter')
    t.strictSame(pce.look()[0]?.query, { managed: 'true' })
    t.ok((await client.ipLists.getAsync('active')).every(({ href }) => href.startsWith(`${ACTIVE}/`)))
    simulator.clearRequests()
    const path = '/orgs/1/labels'
    simulator.faults.add({ kind: 'status', path, times: 1, status: 200, body: [label] })
    t.strictSame(await client.labels.getAsync(), [label], 'a PCE may answer at once')
    pce.refuseNext('GET', path, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path, token: 'forbidden_error' }
    await pce.refused(t, () => client.labels.getAsync(), facts, 'forbidden')
  })
}

/** A release whose X-Total-Count ignores the filters: more is asked for than needed, never less. */
async function proveUnfilteredTotal(t: Test, size: number): Promise<void> {
  const { client, list, look } = await startContractPce(t, { workloads: size, totalCount: 'all' })
  const managed = await list('/orgs/1/workloads?managed=true&max_results=100000')
  const found = await client.workloads.getAll('draft', null, { params: { managed: true } })
  t.strictSame(
    found.map(({ href }) => href),
    managed.map(({ href }) => href),
    'an unfiltered total',
  )
  const [, second] = look()
  t.ok(Number(second?.query.max_results) >= managed.length)
  const { totalCount } = await client.workloads.getPage('draft', null, { params: { managed: true } })
  t.ok(totalCount !== null && totalCount >= managed.length)
}

/** Two requests, whatever X-Total-Count means with filters (P6, P8). */
async function proveGetAll(t: Test, pce: ContractPce, workloads: Json[], managed: Json[]): Promise<void> {
  const { client, simulator } = pce
  const path = '/orgs/1/workloads'
  const hrefs = (objects: readonly object[]) => objects.map((object) => (object as Json).href)
  t.strictSame(hrefs(await client.workloads.getAll()), hrefs(workloads), 'every object')
  const count = { method: 'GET', path, query: { max_results: '0' } }
  const rest = { method: 'GET', path, query: { max_results: String(workloads.length) } }
  pce.wire(t, [count, rest], 'the count first, then max_results set to it')

  const params = { managed: true }
  t.strictSame(hrefs(await client.workloads.getAll('draft', null, { params })), hrefs(managed), 'that pass a filter')
  const [first, second] = pce.look()
  t.strictSame(first?.query, { managed: 'true', max_results: '0' }, 'the filter goes with both requests')
  t.equal(second?.query.managed, 'true')
  t.ok(Number(second?.query.max_results) >= managed.length)

  simulator.faults.add({ kind: 'headers', path, times: 1, headers: { 'x-total-count': null } })
  t.strictSame(hrefs(await client.workloads.getAll()), hrefs(workloads), 'when the PCE sends no X-Total-Count')
  simulator.faults.add({ kind: 'headers', path, times: 1, headers: { 'x-total-count': '3' } })
  t.strictSame(hrefs(await client.workloads.getAll()), hrefs(workloads), 'when X-Total-Count is too small')
  simulator.clearRequests()
  simulator.faults.add({ kind: 'status', path, times: 1, status: 200, body: workloads.slice(0, 2) })
  t.strictSame(
    hrefs(await client.workloads.getAll()),
    hrefs(workloads.slice(0, 2)),
    'an endpoint that ignores max_results',
  )
  pce.wire(t, count, 'has told everything at once')
  await proveUnfilteredTotal(t, workloads.length)
  const lists = await client.ipLists.getAll('active')
  t.ok(lists.length > 0 && hrefs(lists).every((href) => String(href).includes('/sec_policy/active/ip_lists/')))
  simulator.clearRequests()
  pce.refuseNext('GET', path, 403, 'forbidden_error')
  const facts = { status: 403, method: 'GET', path, token: 'forbidden_error' }
  await pce.refused(t, () => client.workloads.getAll(), facts, 'forbidden')
}
