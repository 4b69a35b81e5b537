/**
 * Any field of what a PCE answers may be odd, except hrefs: null, missing, a number as text, a word that is not known, a
 * reference to what is deleted. That costs its own cell in the lists that tools show, and never the call, the row or
 * another row; and a tool that decides by the field refuses by name. Each field is spoiled, at every depth, several in
 * different objects at a time.
 */
import t from 'tap'
import { tools } from '../../tools/index.js'
import type { Json } from './harness.js'
import { startTwisted } from './twisted.js'

/** A tool, its list, and the collection of the PCE from which an object loses a field. */
const LISTS: [tool: string, key: string, collection: RegExp, args?: object][] = [
  ['get-workloads', 'workloads', /\/workloads$/, { detail_level: 'full', max_results: 100 }],
  ['get-vens', 'vens', /\/vens$/, { max_results: 100 }],
  ['get-vens', 'vens', /\/workloads$/, { max_results: 100 }],
  ['get-labels', 'labels', /\/labels$/, { max_results: 100 }],
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

/** Only these tools, by their names with commas between them. */
const ONLY = process.env.SPOIL_TOOLS?.split(',')

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

/** A field of the objects of one kind, and how it is spoiled. */
interface Spoil {
  field: string
  what: string
  way: (value: Json) => Json
}

/**
 * Spoils fields of what a PCE answers, each in another object of a list as long as there are any, from the last one on;
 * undefined where there is nothing to spoil.
 */
function spoil(body: string, spoils: readonly Spoil[]): string | undefined {
  const whole = JSON.parse(body) as Json
  const objects: Json[] = Array.isArray(whole) ? whole.toReversed() : [whole]
  const touched = new Set<Json>()
  let isSpoiled = false
  for (const { field, way } of spoils) {
    const steps = field.split('.')
    const last = steps.pop()!
    const holderIn = (object: Json) => {
      const holder = steps.reduce((inner: Json, step) => inner?.[step], object)
      return typeof holder === 'object' && holder !== null && last in holder ? holder : undefined
    }
    const having = objects.filter((object) => holderIn(object) !== undefined)
    const object = having.find((one) => !touched.has(one)) ?? having[0]
    if (object === undefined) continue
    const holder = holderIn(object)
    const odd = way(holder[last])
    if (odd === undefined) continue
    touched.add(object)
    isSpoiled = true
    if (odd === MISSING) delete holder[last]
    else holder[last] = odd
  }
  return isSpoiled ? JSON.stringify(whole) : undefined
}

/** Every field spoiled in every way, in groups whose fields are not inside one another and spoiled in one way. */
function groupsOf(fields: readonly string[], size: number): Spoil[][] {
  return WAYS.flatMap(([what, way]) => {
    const groups: Spoil[][] = []
    for (const field of fields) {
      const fits = groups.find(
        (group) =>
          group.length < size &&
          !group.some((one) => `${field}.`.startsWith(`${one.field}.`) || `${one.field}.`.startsWith(`${field}.`)),
      )
      if (fits === undefined) groups.push([{ field, what, way }])
      else fits.push({ field, what, way })
    }
    return groups
  })
}

t.test('an odd field costs its own cell', { timeout: 600_000, skip: ONLY !== undefined }, async (t) => {
  const bench = await startTwisted(t, { workloads: 60, flows: 0, budget: 800_000, remembers: true })
  await bench.ok('create-iplist', {
    name: 'zones',
    ip_ranges: [{ from_ip: '192.0.2.0/24', description: 'all' }],
    fqdns: ['a.example'],
  })
  await bench.direct.pce.labelGroups.create({ name: 'stages', key: 'env', labels: [], sub_groups: [] })
  for (const [tool, key, collection, args = {}] of LISTS) {
    const seen: string[] = []
    bench.twist(({ method, path }, { body }) => {
      if (method === 'GET' && collection.test(path)) seen.push(...fieldsOfAll(JSON.parse(body)))
      return undefined
    })
    const unspoiled = await bench.ok(tool, args)
    const before = rowsOf(unspoiled[key])
    const fields = [...new Set(seen)]
    t.ok(before.length > 0 && fields.length > 3, `${tool} has rows, from objects with fields`)
    t.equal(unspoiled.next_cursor, undefined, `${tool} shows the last objects, which are spoiled first`)
    const tried = async (group: readonly Spoil[]): Promise<string[]> => {
      let isSpoiled = false
      bench.twist(({ method, path }, { body }) => {
        if (method !== 'GET' || !collection.test(path)) return undefined
        const spoiled = spoil(body, group)
        isSpoiled ||= spoiled !== undefined
        return spoiled === undefined ? undefined : { status: 200, body: spoiled }
      })
      const after = await bench.ok(tool, args).then(
        (answer) => rowsOf(answer[key]),
        (): string[] => [],
      )
      const changed = before.filter((row) => !after.includes(row))
      // A label that is read again under another name is read so in all rows.
      const isShared = group[0]!.what === 'an unknown word' || group[0]!.what === 'a deleted reference'
      if (!isSpoiled || (after.length === before.length && (isShared || changed.length <= group.length))) return []
      if (group.length === 1) return [`${group[0]!.field} is ${group[0]!.what}`]
      const each: string[] = []
      for (const one of group) each.push(...(await tried([one])))
      return each.length > 0 ? each : [`together: ${group.map(({ field }) => field).join(', ')}: ${group[0]!.what}`]
    }
    for (const group of groupsOf(
      fields.filter((name) => name !== TELLS_WHAT_IT_IS[tool]),
      TOGETHER,
    ))
      t.same(await tried(group), [], `${tool}: fields that cost more than their own cells`)
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

/** The fields that any of the objects of an answer has: of the elements of an inner list, each field once. */
function fieldsOfAll(whole: Json): string[] {
  const fields = [whole].flat().flatMap((one: Json) => (typeof one === 'object' && one !== null ? fieldsOf(one) : []))
  return [...new Map(fields.map((field) => [field.replace(/\.\d+(?=\.|$)/gu, '.*'), field])).values()]
}

/** Arguments where the example of a tool finds nothing in this estate. */
const ARGUMENTS: Record<string, object> = {
  'explain-flow': { source: 'app=ordering', destination: 'app=payments', port: 8443, proto: 'tcp' },
  'get-events': { event_type: undefined },
  'get-rulesets': { name: undefined },
  'get-virtual-services': { name: undefined },
  'compare-draft-active': { resource_type: undefined },
}
/** How many fields are spoiled in one call: where it fails, each of them alone. */
const TOGETHER = 12
/** Of the groups of fields, one in so many is tried: SPOIL_EVERY=1 tries all, which takes half an hour. */
const EVERY = Number(process.env.SPOIL_EVERY ?? 5)

t.test('no tool fails of an odd field without saying why', { timeout: 7_200_000 }, async (t) => {
  const bench = await startTwisted(t, { workloads: 60, flows: 60, queryTimeout: 1, remembers: true })
  await bench.ok('create-iplist', { name: 'pending', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  await bench.ok('create-ruleset', { name: 'pending', scopes: [['app=ordering', 'env=prod']] })
  const kindOf = (method: string, path: string) => `${method} ${path.replace(/\/(\d+|[0-9a-f-]{36})(?=\/|$)/gu, '/*')}`
  let count = 0
  for (const { name, example, effect, requiresPce } of tools) {
    if (effect !== 'read' || !requiresPce || ONLY?.includes(name) === false) continue
    const asked = Object.entries({ ...(example as object), ...ARGUMENTS[name] })
    const args = Object.fromEntries(asked.filter(([, value]) => value !== undefined))
    const shapes = new Map<string, Set<string>>()
    bench.twist(({ method, path }, { status, body }) => {
      if (status < 200 || status > 299 || !/^[[{]/u.test(body)) return undefined
      const kind = kindOf(method, path)
      shapes.set(kind, new Set([...(shapes.get(kind) ?? []), ...fieldsOfAll(JSON.parse(body))]))
      return undefined
    })
    const codeOf = () =>
      bench.ok(name, args).then(
        () => null,
        (error: Error) => /"error":"(\w+)"/u.exec(error.message)?.[1] ?? error.message,
      )
    t.equal(await codeOf(), null, `${name} answers`)
    const internal = async (kind: string, group: readonly Spoil[]): Promise<string[]> => {
      bench.twist(({ method, path }, { status, body }) => {
        if (status < 200 || status > 299 || kindOf(method, path) !== kind || !/^[[{]/u.test(body)) return undefined
        const spoiled = spoil(body, group)
        return spoiled === undefined ? undefined : { status, body: spoiled }
      })
      const code = await codeOf()
      if (code === null) return []
      if (group.length === 1) return code === 'internal' ? [`${group[0]!.field} of ${kind} is ${group[0]!.what}`] : []
      // A refusal hides what the other fields would have done.
      const each: string[] = []
      for (const one of group) each.push(...(await internal(kind, [one])))
      return each
    }
    for (const [kind, fields] of shapes)
      for (const group of groupsOf([...fields], TOGETHER)) {
        count += 1
        if (count % EVERY === 0) t.same(await internal(kind, group), [], `${name} is not internal`)
      }
  }
  t.ok(count > (ONLY ? 0 : 500), `${count} groups can be spoiled`)
})
