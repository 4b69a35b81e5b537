import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { GUIDE_FIELDS, RECORDED_FIELDS } from '../../pce-simulator/recorded-fields.js'
import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import { partial } from '../partial.js'
import { createCaller } from './call-pce.js'
import { startPce } from './start-pce.js'

t.test('an unknown profile is refused with the names of the known ones', async (t) => {
  await t.rejects(startPce(t, { reality: 'core-9' as 'lab' }), {
    message: 'reality must be one of lab, core-25.2, not "core-9"',
  })
})

t.test('answers of core-25.2 have the fields that were recorded', async (t) => {
  const simulator = await createPceSimulator({ workloads: 120, flows: 2000, pods: true })
  t.teardown(() => simulator.close())
  await simulator.listen()
  const call = createCaller(simulator)
  const org = `/orgs/${simulator.orgId}`
  const list = async (path: string) => (await call('GET', `${org}/${path}`)).body as unknown[]

  await call('POST', `${org}/labels`, { key: 'app', value: 'recorded' })
  const cluster = (await list('container_clusters'))[0] as { href: string }
  await call('POST', `${org}/sec_policy/draft/label_groups`, { name: 'stages', key: 'env', labels: [], sub_groups: [] })
  const { body: query } = await call('POST', `${org}/traffic_flows/async_queries`, {
    query_name: 'recorded',
    start_date: new Date(Date.now() - 90 * 86_400_000).toISOString(),
    end_date: new Date().toISOString(),
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: 5000,
  })
  let result: string | undefined
  while (result === undefined) result = (await call('GET', query.href)).body.result
  const download = await fetch(`${simulator.url}/api/v2${result}`, {
    headers: {
      authorization: `Basic ${btoa(`${simulator.credentials.key}:${simulator.credentials.secret}`)}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
    },
  })
  t.equal(download.headers.get('content-encoding'), null, 'a traffic download is packed without a word about it')
  const flows = JSON.parse(gunzipSync(Buffer.from(await download.arrayBuffer())).toString()) as TrafficFlow[]

  const isPod = ({ workload }: FlowNode) => workload?.href.startsWith(`${org}/kubernetes_workloads/`) ?? false
  const ofPods = flows.filter(({ src, dst }) => isPod(src) && isPod(dst))
  t.equal(ofPods.length, 10, 'pods are ends, and both ends of a conversation report it')
  for (const { src, dst, num_connections, flow_direction } of ofPods) {
    partial(t, src.workload, { hostname: null, managed: true, labels: [{ key: 'app' }, { key: 'env' }] })
    const twin = ofPods.find(
      (row) => row.src.ip === src.ip && row.dst.ip === dst.ip && row.flow_direction !== flow_direction,
    )!
    const ratio = num_connections! / twin.num_connections!
    t.ok(ratio !== 1 && Math.abs(ratio - 1) < 0.02, 'with nearly equal counts')
  }

  const ruleSets = (await list('sec_policy/draft/rule_sets')) as { rules: unknown[] }[]
  const answers: Record<string, unknown[]> = {
    flow: flows,
    workload: await list('workloads?max_results=500'),
    ven: await list('vens?max_results=500'),
    event: await list('events'),
    container_cluster: await list('container_clusters'),
    container_workload_profile: (await call('GET', `${cluster.href}/container_workload_profiles`)).body,
    ip_list: await list('sec_policy/draft/ip_lists'),
    service: await list('sec_policy/draft/services'),
    label_group: await list('sec_policy/draft/label_groups'),
    pairing_profile: await list('pairing_profiles'),
    rule_set: ruleSets,
    rule: ruleSets.flatMap(({ rules }) => rules),
    virtual_service: await list('sec_policy/draft/virtual_services'),
  }
  t.same(Object.keys(answers).sort(), Object.keys(RECORDED_FIELDS).sort())
  for (const [kind, objects] of Object.entries(answers)) {
    t.ok(objects.length > 0, `there is a ${kind}`)
    t.same([...differences(kind, objects)], [], kind)
  }
})

interface Field {
  types: string[]
  isAlways: boolean
}

function fieldsOf(table: Readonly<Record<string, string>>): Map<string, Field> {
  return new Map(
    Object.entries(table).flatMap(([type, paths]) => {
      const field = { types: type.replace('?', '').split('|'), isAlways: !type.endsWith('?') }
      return paths
        .trim()
        .split(/\s+/)
        .map((path) => [path, field] as const)
    }),
  )
}

/** Finds out where objects have fields, or types of fields, that nobody recorded, and where they lack recorded ones. */
function differences(kind: string, objects: readonly unknown[]): Set<string> {
  const recorded = fieldsOf(RECORDED_FIELDS[kind]!)
  const guided = new Set((GUIDE_FIELDS[kind] ?? '').trim().split(/\s+/))
  const found = new Set<string>()
  const visit = (value: unknown, path: string): void => {
    if (Array.isArray(value)) for (const element of value) visit(element, `${path}[]`)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, { isAlways }] of recorded) {
      const rest = name.startsWith(prefix) ? name.slice(prefix.length) : ''
      if (isAlways && /^[^.[]+$/.test(rest) && !(rest in value)) found.add(`${name} is missing`)
    }
    for (const [key, inner] of Object.entries(value)) {
      const name = `${prefix}${recorded.has(`${prefix}*`) ? '*' : key}`
      if (guided.has(name)) continue
      const field = recorded.get(name)
      const type = typeOf(inner)
      if (field === undefined) found.add(`${name} was never recorded`)
      else if (type !== 'null' && !field.types.includes(type) && !field.types.includes('null'))
        found.add(`${name} is a ${type}`)
      else if (!name.endsWith('*')) visit(inner, name)
    }
  }
  for (const object of objects) visit(object, '')
  return found
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  return { string: 'text', number: 'number', boolean: 'flag' }[typeof value as string] ?? 'object'
}
