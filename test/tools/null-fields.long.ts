/**
 * Any field of what a PCE answers may be odd, except hrefs: null, missing, a number as text, a word that is not known, a
 * reference to what is deleted. That costs its own cell in the lists that tools show, and never the call, the row or
 * another row; and a tool that decides by the field refuses by name. Each field is spoiled in turn, at every depth.
 */
import t from 'tap'
import { tools } from '../../tools/index.js'
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

/** Ways in which a value may be odd: what stands in its place, or undefined where that way is not one for it. */
const WAYS: [what: string, way: (value: Json) => Json][] = [
  ['null', () => null],
  ['missing', () => MISSING],
  ['a number as text', (value) => (typeof value === 'number' ? String(value) : undefined)],
  ['an unknown word', (value) => (typeof value === 'string' ? 'brand_new' : undefined)],
  [
    'a deleted reference',
    (value) =>
      typeof value?.href === 'string' ? { ...value, href: value.href.replace(/[^/]+$/u, '999999') } : undefined,
  ],
]
const MISSING = Symbol('missing')

/** The object, or the last object of the list, with one field spoiled; undefined where there is no such field. */
function spoil(body: string, field: string, way: (value: Json) => Json): string | undefined {
  const whole = JSON.parse(body) as Json
  const steps = field.split('.')
  const last = steps.pop()!
  const object = Array.isArray(whole) ? whole.at(-1) : whole
  const holder = steps.reduce((inner: Json, step) => inner?.[step], object)
  if (typeof holder !== 'object' || holder === null || !(last in holder)) return undefined
  const odd = way(holder[last])
  if (odd === undefined) return undefined
  if (odd === MISSING) delete holder[last]
  else holder[last] = odd
  return JSON.stringify(whole)
}

t.test('an odd field costs its own cell', { timeout: 600_000 }, async (t) => {
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
      for (const [what, way] of WAYS) {
        let isSpoiled = false
        bench.twist(({ method, path }, { body }) => {
          if (method !== 'GET' || !collection.test(path)) return undefined
          const spoiled = spoil(body, field, way)
          isSpoiled ||= spoiled !== undefined
          return spoiled === undefined ? undefined : { status: 200, body: spoiled }
        })
        const after = rowsOf((await bench.ok(tool, args))[key])
        if (!isSpoiled) continue
        const changed = before.filter((row) => !after.includes(row))
        // A label that is read again under another name is read so in all rows.
        const isShared = what === 'an unknown word' || what === 'a deleted reference'
        t.ok(after.length === before.length && (isShared || changed.length < 2), `${tool}: ${field} is ${what}`)
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

/** Arguments where the example of a tool finds nothing in this estate. */
const ARGUMENTS: Record<string, object> = {
  'explain-flow': { source: 'app=ordering', destination: 'app=payments', port: 8443, proto: 'tcp' },
}
/** Of all that can be spoiled, one in so many is tried: SPOIL_EVERY=1 tries everything, which takes half an hour. */
const EVERY = Number(process.env.SPOIL_EVERY ?? 23)

t.test('no tool fails of an odd field without saying why', { timeout: 1_800_000 }, async (t) => {
  const bench = await startTwisted(t, { workloads: 30, flows: 60 })
  const kindOf = (path: string) => path.replace(/\/(\d+|[0-9a-f-]{36})(?=\/|$)/gu, '/*')
  let count = 0
  for (const { name, example, effect, requiresPce } of tools) {
    if (effect !== 'read' || !requiresPce) continue
    const args = { ...(example as object), ...ARGUMENTS[name] }
    const shapes = new Map<string, Json>()
    bench.twist(({ method, path }, { status, body }) => {
      const whole = method === 'GET' && status === 200 && body !== '' ? (JSON.parse(body) as Json) : null
      const object = Array.isArray(whole) ? whole.at(-1) : whole
      if (typeof object === 'object' && object !== null) shapes.set(kindOf(path), object)
      return undefined
    })
    const codeOf = () =>
      bench.ok(name, args).then(
        () => null,
        (error: Error) => /"error":"(\w+)"/u.exec(error.message)?.[1] ?? error.message,
      )
    await codeOf()
    for (const [kind, object] of shapes)
      for (const field of fieldsOf(object))
        for (const [what, way] of WAYS) {
          count += 1
          if (count % EVERY !== 0) continue
          bench.twist(({ method, path }, { status, body }) => {
            if (method !== 'GET' || status !== 200 || kindOf(path) !== kind || body === '') return undefined
            const spoiled = spoil(body, field, way)
            return spoiled === undefined ? undefined : { status, body: spoiled }
          })
          t.not(await codeOf(), 'internal', `${name}: ${field} of ${kind} is ${what}`)
        }
  }
  t.ok(count > 5000, `${count} can be spoiled`)
})
