/** What runs in a worker thread answers as it would outside of one (D61). */
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tools } from '../../tools/index.js'
import { compiled } from '../suite-folder.js'
import { startPce } from './heavy-tools.js'
import { insecureApp, textOf } from './insecure-app.js'

const HEAVY = { max: 4, perCaller: 4, queue: 20, queuePerCaller: 20, memoryMb: 256 }
const WORKER = pathToFileURL(compiled('programs/worker.ts'))

t.test('a thread answers as the thread of everybody would', async (t) => {
  const pce = await startPce(t)
  const [inThread, here] = await Promise.all(
    [WORKER, undefined].map((worker) =>
      insecureApp(tools, { pce: pce.config, heavy: HEAVY, offer: { toolsets: ['all'] } }, { worker }),
    ),
  )
  for (const { app } of [inThread!, here!]) t.teardown(() => app.close())
  const heavy = tools.filter(({ isHeavy }) => isHeavy === true)
  t.ok(heavy.length > 10)
  const compare = async (name: string, args: object, isError = false) => {
    const [one, other] = await Promise.all([inThread!, here!].map((app) => app.call(name, args) as Promise<Answer>))
    t.same([one!.result.isError, other!.result.isError], [isError || undefined, isError || undefined], name)
    t.same(comparable(one!), comparable(other!), name)
  }
  const managed = await here!.call('get-workloads', { managed: true, max_results: 1, detail_level: 'full' })
  const [{ href, enforcement_mode: mode }] = textOf(managed).workloads
  // What examples name and the estate does not have: both sides would only refuse it, and little of the tools would be compared.
  const make = async (name: string, args: object) => {
    const answer: Answer = await here!.call(name, args)
    t.equal(answer.result.isError, undefined, name)
    return textOf(answer)
  }
  await make('create-label-dimension', { key: 'retired', display_name: 'Retired' })
  const ports = [{ port: 443, proto: 'tcp' }]
  const service = await make('create-virtual-service', { name: 'web frontend', service_ports: ports })
  await make('provision-policy', { hrefs: [service.href] })
  const ofVens = ['request-ven-support-reports', 'set-ven-status', 'unpair-vens', 'upgrade-vens']
  const own: Record<string, object> = Object.fromEntries(ofVens.map((name) => [name, { workloads: [href] }]))
  // Fewer at a time than one caller may have waiting for a place.
  for (let at = 0; at < heavy.length; at += 8)
    await Promise.all(
      heavy
        .slice(at, at + 8)
        .map(({ name, example, effect }) =>
          compare(name, { ...example, ...own[name], ...(effect !== 'read' && { dry_run: true }) }),
        ),
    )
  await Promise.all([
    compare('create-ringfence', { app_name: 'no-such-app', env_name: 'prod' }, true),
    compare('update-workload', { href, enforcement_mode: mode === 'full' ? 'selective' : 'full', dry_run: true }),
  ])
  const sent = pce.simulator.requests
  const ids = new Set(sent.map(({ headers }) => headers['x-request-id']))
  t.ok(ids.size >= 2 * heavy.length && !ids.has(undefined), 'each request carries the id of its call')
})

type Answer = Parameters<typeof textOf>[0] & { result: { isError?: boolean } }

/** Without what differs from call to call: the request id, the seal of a cursor, and the time that passes meanwhile. */
const comparable = (answer: Answer) =>
  JSON.parse(
    answer.result.content[0]!.text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then').replace(
      /"(request_id|next_cursor)":"[^"]+"/g,
      '"$1":""',
    ),
  )
