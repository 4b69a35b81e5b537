/**
 * Any field of what a PCE answers may be null or missing, except hrefs. That costs its own cell in the lists that tools
 * show, and never the call, the row or another row. Each field of an object is taken away in turn, at every depth.
 */
import t from 'tap'
import type { Json } from './harness.js'
import { startTwisted } from './twisted.js'

/** A tool, its list, and the collection of the PCE from which an object loses a field. */
const LISTS: [tool: string, key: string, collection: RegExp, args?: object][] = [
  ['get-workloads', 'workloads', /\/workloads$/, { detail_level: 'full' }],
  ['get-vens', 'vens', /\/vens$/],
  ['get-vens', 'vens', /\/workloads$/],
  ['get-labels', 'labels', /\/labels$/],
  ['get-label-groups', 'label_groups', /\/label_groups$/],
  ['get-iplists', 'ip_lists', /\/ip_lists$/],
  ['get-services', 'services', /\/services$/],
  ['get-rulesets', 'rulesets', /\/rule_sets$/],
  ['get-events', 'events', /\/events$/],
  ['get-pairing-profiles', 'pairing_profiles', /\/pairing_profiles$/],
  ['get-container-clusters', 'container_clusters', /\/container_clusters$/],
  ['get-kubernetes-workloads', 'kubernetes_workloads', /\/kubernetes_workloads$/],
  ['get-virtual-services', 'virtual_services', /\/virtual_services$/],
  ['find-rules', 'rules', /\/rule_sets$/, { detail_level: 'full' }],
]
/** The field without which a row is rightly gone: a rule set without its list of rules has no rule to show. */
const TELLS_WHAT_IT_IS: Record<string, string> = { 'find-rules': 'rules' }

const CHANGES: [string, (holder: Json, field: string) => void][] = [
  ['null', (holder, field) => (holder[field] = null)],
  ['missing', (holder, field) => delete holder[field]],
]

t.test('a field that is null or missing costs its own cell', { timeout: 600_000 }, async (t) => {
  const bench = await startTwisted(t, { workloads: 60, flows: 0 })
  await bench.ok('create-iplist', {
    name: 'zones',
    ip_ranges: [{ from_ip: '192.0.2.0/24', description: 'all' }],
    fqdns: ['a.example'],
  })
  await bench.direct.pce.labelGroups.create({ name: 'stages', key: 'env', labels: [], sub_groups: [] })
  for (const [tool, key, collection, args = {}] of LISTS) {
    let fields: string[] = []
    bench.twist(({ method, path }, { body }) => {
      if (method === 'GET' && collection.test(path)) fields = fieldsOf((JSON.parse(body) as Json[]).at(-1))
      return undefined
    })
    const before = rowsOf((await bench.ok(tool, args))[key])
    t.ok(before.length > 0 && fields.length > 3, `${tool} has rows, from objects with fields`)
    for (const field of fields.filter((name) => name !== TELLS_WHAT_IT_IS[tool])) {
      for (const [what, change] of CHANGES) {
        bench.twist(({ method, path }, { body }) => {
          if (method !== 'GET' || !collection.test(path)) return undefined
          const list = JSON.parse(body) as Json[]
          const steps = field.split('.')
          const last = steps.pop() as string
          change(
            steps.reduce((holder, step) => holder[step], list.at(-1)),
            last,
          )
          return { status: 200, body: JSON.stringify(list) }
        })
        const after = rowsOf((await bench.ok(tool, args))[key])
        const changed = before.filter((row) => !after.includes(row))
        t.ok(after.length === before.length && changed.length < 2, `${tool}: ${field} is ${what}`)
      }
    }
  }
})

const rowsOf = (list: Json[]) => list.map((row) => JSON.stringify(row))

/** The paths of all fields of an object: not of elements of its lists, but of their fields, and not of hrefs. */
function fieldsOf(object: Json, prefix = ''): string[] {
  return Object.entries(object).flatMap(([key, value]) => {
    const path = prefix + key
    const below = typeof value === 'object' && value !== null ? fieldsOf(value, `${path}.`) : []
    return key === 'href' || Array.isArray(object) ? below : [path, ...below]
  })
}
