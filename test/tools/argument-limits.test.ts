/** Every text and every list that a tool takes has a limit, which is named by the refusal; within the limits every call stays cheap (D83). */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { LONGEST_QUERY_DAYS } from '../../domain/traffic/read-parts.js'
import { MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { startService, type Json } from '../contract/authenticated-service.js'
import { INSTRUCTIONS } from '../../plugins/mcp/instructions.js'
import { tools } from '../../tools/index.js'

/** The processor time of the dearest call, in that of the usual one. */
const MOST_COST = 100
const CEILING = { characters: 16_384, entries: 10_000 }
/** A table that is sent as a text. */
const TABLES: Record<string, number> = { 'label-workloads /csv': 500_000, 'import-workloads /csv': 800_000 }

/** A place in the arguments of a tool: its schema, and arguments with a value there that is otherwise as the schema wants it. */
interface Place {
  path: string
  kind: 'text' | 'list'
  with: (value: unknown) => unknown
}

/** Every text and list of the schema, with the least that has to stand around it. */
function placesOf(schema: TSchema, path: string, around: (value: unknown) => unknown): Place[] {
  if (schema.anyOf !== undefined) return (schema.anyOf as TSchema[]).flatMap((one) => placesOf(one, path, around))
  if (schema.enum !== undefined || schema.const !== undefined) return []
  if (schema.type === 'string') return [{ path, kind: 'text', with: around }]
  if (schema.type === 'array') {
    const inner = placesOf(schema.items as TSchema, `${path}/0`, (value) => around([value]))
    return [{ path, kind: 'list', with: around }, ...inner]
  }
  if (schema.type !== 'object') return []
  if (schema.properties === undefined)
    return [{ path: `${path}/anything`, kind: 'text', with: (value) => around({ anything: value }) }]
  return Object.entries(schema.properties as Record<string, TSchema>).flatMap(([name, property]) =>
    placesOf(property, `${path}/${name}`, (value) => around({ [name]: value })),
  )
}

/** The longest value that the schema allows, of texts that name nothing; lists are as long as their limits, and short enough for a body. */
function longestOf(schema: TSchema, limits: Map<string, number>, path: string): unknown {
  const [first] = (schema.anyOf as TSchema[] | undefined) ?? [schema]
  const { type, properties, items, enum: values, const: only } = first!
  if (only !== undefined) return only
  if (values !== undefined) return (values as unknown[])[0]
  if (schema.anyOf !== undefined) return longestOf(first!, limits, path)
  if (type === 'string') return 'x'.repeat(limits.get(path) ?? 0)
  if (type === 'array') {
    const one = longestOf(items as TSchema, limits, `${path}/0`)
    const fit = Math.floor(100_000 / (JSON.stringify(one) ?? '').length)
    const count = Math.min(limits.get(path) ?? 0, fit)
    return Array.from({ length: count }, (_, n) =>
      typeof one === 'string' ? `${n}${one.slice(String(n).length)}` : structuredClone(one),
    )
  }
  if (type === 'object')
    return Object.fromEntries(
      Object.entries((properties ?? {}) as Record<string, TSchema>).map(([name, inner]) => [
        name,
        longestOf(inner, limits, `${path}/${name}`),
      ]),
    )
  if (type === 'boolean') return true
  return first!.maximum ?? first!.minimum ?? 1
}

t.test('every text and list argument of every tool', async (t) => {
  const { tokenOf, call } = await startService(t, {
    mode: 'shared',
    estate: { workloads: 200, flows: 500 },
    config: { offer: { toolsets: ['all'] } },
  })
  const ann = await tokenOf('ann')
  const limits = new Map<string, Map<string, number>>()

  await t.test('has a limit, and what is longer is refused with both', async (t) => {
    const unlimited: string[] = []
    for (const tool of tools) {
      const found = new Map<string, number>()
      limits.set(tool.name, found)
      for (const { path, kind, with: put } of placesOf(tool.input, '', (value) => value)) {
        const endless =
          kind === 'text'
            ? 'x'.repeat((TABLES[`${tool.name} ${path}`] ?? CEILING.characters) + 1)
            : Array<number>(CEILING.entries + 1).fill(0)
        const answer: Json = await call(ann, tool.name, put(endless) as object)
        const said = answer.problems?.find((problem: Json) => problem.path === path)?.message ?? ''
        const most = Number(/^at most (\d+) (?:characters|entries)$/.exec(said)?.[1])
        if (answer.error !== 'invalid_argument' || !(most > 0)) unlimited.push(`${tool.name} ${path}: ${said}`)
        found.set(path, Math.max(most, found.get(path) ?? 0))
      }
    }
    t.same(unlimited, [])
    const all = [...limits.values()].flatMap((found) => [...found].map(([path, most]) => [path, most] as const))
    const of = (name: RegExp) => [...new Set(all.flatMap(([path, most]) => (name.test(path) ? [most] : [])))].sort()
    t.same(of(/\/(name|value|key|app_name|env_name|new_name|hostname|fqdn|href)$/), [255])
    t.same(of(/\/(description)$/), [4096])
    t.ok(Math.max(...of(/\/0$/)) <= 1024, 'no entry of a list is longer')
  })

  await t.test('the longest legal call of every tool ends, and holds nobody up', async (t) => {
    const costs: [tool: string, us: number][] = []
    for (const tool of tools) {
      const args = longestOf(tool.input, limits.get(tool.name)!, '') as object
      const began = process.cpuUsage()
      const answer: Json = await call(ann, tool.name, args)
      const { user, system } = process.cpuUsage(began)
      t.notOk(['internal', 'payload_too_large'].includes(answer.error), `${tool.name}: ${answer.error ?? 'ok'}`)
      costs.push([tool.name, user + system])
    }
    costs.sort(([, one], [, other]) => one - other)
    const [, usual] = costs[Math.floor(costs.length / 2)]!
    t.same(
      costs.filter(([, cost]) => cost > MOST_COST * usual),
      [],
    )
  })
})

t.test('every bound of an argument that a text states is the one that holds', async (t) => {
  const texts = [
    ...INSTRUCTIONS,
    ...tools.flatMap(({ summary, input, output }) => [summary, ...textsOf([input, output])]),
  ]
  const numbers = (text: string) => (text.match(/\d[\d,]*/gu) ?? []).map((number) => Number(number.replaceAll(',', '')))
  const stated = texts.flatMap((text) =>
    [...text.matchAll(/\b([a-z]+(?:_[a-z]+)+) is at most ([^.:]*)/gu)].map(
      ([, name = '', bounds = '']) => [name, numbers(bounds)] as const,
    ),
  )
  t.same(
    stated.map(([name]) => name),
    ['lookback_days', 'max_results'],
  )
  for (const [name, bounds] of stated) {
    const found = tools.flatMap(({ input }) => (input.properties as Record<string, TSchema>)[name]?.maximum ?? [])
    t.same(
      [...new Set(found)].sort((a, b) => a - b),
      bounds,
      name,
    )
  }
})

/** Bounds that documents state, and those that hold: of arguments, of queries, and of a PCE or a site, which no code here has. */
const STATED: [text: RegExp, holds: (number | undefined)[] | 'of the PCE'][] = [
  [/A query returns (\d+) unless more is asked for and at most ([\d,]+), newest first/, [100, maximumOf('get-events')]],
  [/Rows of an asynchronous traffic query \| ([\d,]+)/, [MAX_TRAFFIC_ROWS]],
  [/Span of a traffic query \| (\d+) days/, [LONGEST_QUERY_DAYS]],
  [/Objects in one collection answer \| 500 unless more is asked for/, 'of the PCE'],
  [/serves up to about 10,000, a 4×2 up to about 25,000/, 'of the PCE'],
  [/a VEN reports at most 100 rules for a flow/, 'of the PCE'],
  [/at most one value of each key/, 'of the PCE'],
]

function maximumOf(tool: string): number | undefined {
  const { input } = tools.find(({ name }) => name === tool)!
  return (input.properties as Record<string, TSchema>)['max_results']?.maximum
}

t.test('every bound that a document or prompt states is the one that holds', (t) => {
  const folder = fileURLToPath(new URL('../../knowledge', import.meta.url))
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\/.*\.md$/.test(name))
  const texts = names.map((name) => [name, readFileSync(`${folder}/${name}`, 'utf8')] as const)
  const whole = texts.map(([, text]) => text).join('\n')
  for (const [stated, holds] of STATED) {
    const [found, ...numbers] = stated.exec(whole) ?? []
    t.ok(found, `${stated} is still there`)
    if (holds !== 'of the PCE')
      t.same(
        numbers.map((number) => Number(number.replaceAll(',', ''))),
        holds,
        found ?? '',
      )
  }
  for (const [name, text] of texts) {
    for (const [line] of text.matchAll(/.*\b(?:at most|up to|no more than|unless more|Rows of|Span of)\b.*\d.*/gu))
      t.ok(
        STATED.some(([stated]) => stated.test(line)),
        `${name}: who holds to this? ${line}`,
      )
    for (const [said, tool, argument, number] of text.matchAll(/\{\{([a-z-]+)\.([a-z_]+)\}\} `?(\d+)\b/gu)) {
      const { input } = tools.find(({ name: one }) => one === tool)!
      t.ok(Value.Check((input.properties as Record<string, TSchema>)[argument!]!, Number(number)), `${name}: ${said}`)
    }
  }
  t.end()
})

t.test('a description that the instructions quote is one that arguments have', (t) => {
  const quoted = INSTRUCTIONS.flatMap((line) =>
    [...line.matchAll(/without a description, or with "([^"]*)"/gu)].map(([, word]) => word),
  )
  t.same(quoted, ['Contains'])
  const described = new Set(tools.flatMap(({ input }) => textsOf(input)))
  t.same(
    quoted.filter((word) => !described.has(word as string)),
    [],
  )
  t.end()
})

/** Every description in schemas. */
function textsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'description' && typeof inner === 'string' ? [inner] : textsOf(inner),
  )
}
