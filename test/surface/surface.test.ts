/**
 * The public surface of the tools: what tools/list says, who may call, which gates. Expectations are typed out in contract.json and
 * here; none is taken from the code under test.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t, { type Test } from 'tap'
import { measureList, type ListSize } from './measure-list.js'
import { validateArguments } from '../../plugins/dispatcher/validate-arguments.js'
import { renderSnapshot, snapshots } from '../../scripts/generate/snapshots.js'
import { surfaceOf } from '../../scripts/generate/tool-surface.js'
import { OPEN_FIELDS } from '../../schemas/synonyms.js'
import { isInDefault, TOOLSETS } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { EXAMPLE_CALLS, GOOD_CALLS, PLACE_OF_CALLS, REFUSED_CALLS } from '../acceptance/calls.js'
import { partial } from '../partial.js'
import { CONTRACT, CONTRACT_FILE, DEFAULT_NAMES, NAMES, namesOf, placeOf } from './contract.js'

interface Schema {
  type?: string
  enum?: unknown[]
  default?: unknown
  usual?: unknown
  description?: string
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  allOf?: Schema[]
  $ref?: string
  $defs?: Record<string, Schema>
}

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const read = (path: string) => JSON.parse(readFileSync(pathOf(path), 'utf8')) as unknown
const TEST_FILES = readdirSync(pathOf('..'), { recursive: true, encoding: 'utf8' }).filter((file) =>
  /\.(?:test|long)\.ts$/.test(file),
)

const surfaces = tools.map(surfaceOf)
/** What is found of each item, by its name, so that one comparison judges all of them. */
const each = <Item extends { name: string }, Found>(items: readonly Item[], find: (item: Item) => Found) =>
  Object.fromEntries(items.map((item) => [item.name, find(item)]))
/** The tools that have an entry in the contract. */
const known = surfaces.filter(({ name }) => name in CONTRACT)

t.test('the contract has exactly these tools, sorted by name', async (t) => {
  const listed = surfaces.map(({ name }) => name)
  for (const name of listed)
    if (!(name in CONTRACT))
      t.fail(`${placeOf(name)}: ${name} has no entry; write its toolset, roles, gates and arguments`)
  for (const name of NAMES)
    if (!listed.includes(name))
      t.fail(`${placeOf(name)}: ${name} is not in tools/index.ts; add it there or remove the entry`)
  t.same(listed, [...listed].sort(), 'tools/index.ts: the list is sorted by name')
  t.same(NAMES, [...NAMES].sort(), `${CONTRACT_FILE}: the entries are sorted by name`)
})

t.test('every tool has a test', async (t) => {
  const texts = TEST_FILES.map((file) => readFileSync(pathOf(`../${file}`), 'utf8'))
  for (const { name } of surfaces)
    if (!texts.some((text) => text.includes(`'${name}'`)))
      t.fail(`test/tools/${name}.test.ts:1: no test names ${name}; write one`)
  t.ok(texts.length > 100, 'the tests were read')
})

t.test('every tool of `default` is called over both transports', async (t) => {
  const called = new Set([...GOOD_CALLS, ...EXAMPLE_CALLS, ...REFUSED_CALLS].map(([name]) => name))
  for (const name of DEFAULT_NAMES)
    if (!called.has(name))
      t.fail(`${PLACE_OF_CALLS}: no call of ${name}; write one in GOOD_CALLS, and one that takes back what it wrote`)
  t.same(
    [...called].filter((name) => !DEFAULT_NAMES.includes(name)),
    [],
    'and no others',
  )
})

t.test('the toolsets are those of the contract', async (t) => {
  t.same(
    Object.keys(TOOLSETS).filter((toolset) => namesOf((tool) => tool.toolset === toolset).length > 0).length,
    new Set(Object.values(CONTRACT).map(({ toolset }) => toolset)).size,
    'each has a purpose in tools/define.ts',
  )
  const inContract = tools.filter(({ name }) => name in CONTRACT)
  const misplaced = inContract.filter(({ name, toolset }) => toolset !== CONTRACT[name]!.toolset)
  t.same(
    misplaced.map(({ name, toolset }) => `${placeOf(name)}: the toolset of ${name} is ${toolset}`),
    [],
  )
  t.same(
    each(inContract, isInDefault),
    each(inContract, ({ name }) => CONTRACT[name]!.beyond !== true),
    'whether `default` has it',
  )
})

t.test('each tool keeps its contract: names, types, roles and gates', async (t) => {
  for (const surface of known) {
    const expected = CONTRACT[surface.name]!
    // What the server takes; the list has one form of it (D243).
    const input = tools.find(({ name }) => name === surface.name)!.input as Schema
    const { properties = {} } = input
    const wanted = Object.entries(expected.arguments)
    t.same(
      {
        roles: surface.roles,
        requires_pce: surface.requires_pce,
        requires_confirm: surface.requires_confirm,
        annotations: surface.annotations,
        required: [...(input.required ?? [])].sort(),
        arguments: Object.keys(properties).sort(),
        listed: Object.keys(surface.inputSchema.properties ?? {}),
        takesFields: 'fields' in expected.arguments,
        misfits: wanted.flatMap(([name, argument]) => findMisfits(name, argument, properties[name])),
      },
      {
        roles: expected.roles,
        requires_pce: expected.requires_pce,
        requires_confirm: expected.requires_confirm,
        annotations: {
          readOnlyHint: !expected.mutating,
          destructiveHint: expected.destructive,
          idempotentHint: expected.idempotent,
          openWorldHint: expected.requires_pce,
          title: surface.title,
        },
        required: wanted.flatMap(([name, argument]) => (argument.required === true ? [name] : [])).sort(),
        arguments: Object.keys(expected.arguments).sort(),
        listed: Object.keys(properties),
        takesFields: expected.rows !== undefined,
        misfits: [],
      },
      `${placeOf(surface.name)}: ${surface.name} is what its entry says`,
    )
  }
})

/** In what an argument is not as its entry in the contract has it. */
function findMisfits(
  name: string,
  argument: (typeof CONTRACT)[string]['arguments'][string],
  property: Schema | undefined,
): string[] {
  if (property === undefined) return [`there is no argument ${name}`]
  const element = argument.items === undefined ? undefined : elementOf(property)
  const usual = property.default ?? property.usual
  const isOther = (found: unknown, wanted: unknown) => JSON.stringify(found) !== JSON.stringify(wanted)
  const sorted = (list: readonly unknown[] = []) => [...list].sort()
  return [
    ...splitUnion(argument.type).map((type) => !accepts(property, type) && `${name} takes no ${type}`),
    argument.enum !== undefined &&
      isOther(sorted(enumOf(property)), sorted(argument.enum)) &&
      `${name} takes the values ${sorted(enumOf(property)).join(', ')}`,
    usual !== undefined && isOther(usual, argument.default) && `${name} has the default ${JSON.stringify(usual)}`,
    ...(argument.items ?? []).map((key) => element?.properties?.[key] === undefined && `there is no ${name}[].${key}`),
    argument.items_required !== undefined &&
      isOther(sorted(element?.required), argument.items_required) &&
      `${name}[] requires ${sorted(element?.required).join(', ')}`,
  ].filter((misfit) => misfit !== false)
}

/**
 * What a result may hold without a sentence about it: names of the PCE's own, of a request, and of a flow. Anything else says what
 * it is; inputs always do.
 */
const SELF_EXPLANATORY = new Set(
  (
    'href name key value description hostname enabled managed online status created_at updated_at enforcement_mode is_default ' +
    'exclusion from_ip to_ip fqdn fqdns ip_ranges port to_port proto process_name service_name service_ports windows_services ' +
    'windows_egress_services rule_type providers consumers services egress_services unscoped_consumers resolve_labels_as ' +
    'method path body field sent stored previous_value connections bytes_in bytes_out first_detected last_detected process ' +
    'policy from to start end by_process external_destinations blocked app_to_app distinct_processes destination_count user_count ' +
    'timestamp severity kind namespace node_count allow deny override_deny was_override override_deny_warning note message ' +
    'warning examples non_windows_consumer_count app env lookback_days'
  ).split(' '),
)

t.test('every property at every depth is described, and unknown input is refused at every depth', async (t) => {
  const taking = surfaces.filter(({ inputSchema }) => inputSchema.additionalProperties !== false)
  t.same(
    taking.map(({ name }) => name),
    [],
    'the list says that unknown arguments are refused',
  )
  // The list of tools leaves what is refused below the arguments to the error, and the descriptions of outputs to the documentation.
  const found = each(tools, ({ input, output }) => ({
    undescribedInput: undescribed(input as Schema),
    /** Objects that would take unknown properties beside their own. */
    openObjects: openObjects(input),
    undescribedOutput: undescribed(output as Schema).filter((path) => !SELF_EXPLANATORY.has(path.split('.').at(-1)!)),
  }))
  t.same(
    found,
    each(tools, () => ({ undescribedInput: [], openObjects: [], undescribedOutput: [] })),
  )
})

/** The keywords of the portable core beside those that say what a value is. */
const BESIDE = { input: ['description'], output: ['$defs'] }
const OF_TYPE: Record<string, readonly string[]> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items'],
  string: ['enum'],
}

/** What a schema has that is not portable (D243): other keywords, no type or several, objects and lists of nothing. */
function unportable(schema: Schema, side: 'input' | 'output'): string[] {
  const parts = [schema, ...Object.values(schema.$defs ?? {})].flatMap((root) => [...walk(root)])
  return parts.flatMap(([path, part]) => {
    const { type, anyOf, $ref: reference, enum: values = [], properties = {}, required = [], items } = part
    const said = side === 'input' ? [type] : [type, anyOf, reference]
    const allowed = [...BESIDE[side], ...(type === undefined ? ['anyOf', '$ref'] : ['type', ...(OF_TYPE[type] ?? [])])]
    const faults = [
      said.filter((one) => one !== undefined).length !== 1 && 'not exactly one type',
      type !== undefined && typeof type !== 'string' && 'a list of types',
      ...Object.keys(part).map((key) => !allowed.includes(key) && key),
      anyOf !== undefined && anyOf.length < 2 && 'one alternative',
      values.some((value) => typeof value !== 'string' || value === '') && 'an odd value',
      required.some((name) => !(name in properties)) && 'requires what it has not',
      side === 'input' && path !== '' && type === 'object' && Object.keys(properties).length === 0 && 'any object',
      side === 'input' && type === 'array' && items === undefined && 'a list of anything',
      side === 'input' && path !== '' && part.additionalProperties !== undefined && 'additionalProperties',
    ]
    return faults.flatMap((fault) => (fault === false ? [] : [`${path}: ${fault}`]))
  })
}

t.test('the schemas of the list are within the portable core', async (t) => {
  const found = each(surfaces, ({ inputSchema, outputSchema }) => ({
    input: unportable(inputSchema as Schema, 'input'),
    output: unportable(outputSchema as Schema, 'output'),
  }))
  t.same(
    found,
    each(surfaces, () => ({ input: [], output: [] })),
  )
  for (const [why, part] of Object.entries<object>({
    'a list of types': { type: ['string', 'array'], items: { type: 'string' } },
    nothing: {},
    alternatives: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    'a bound': { type: 'string', minLength: 1 },
    'any object': { type: 'object' },
    'a list of anything': { type: 'array' },
  }))
    t.not(unportable({ type: 'object', properties: { part: part as Schema } }, 'input').length, 0, why)
})

t.test('what is counted in traffic means the same wherever it is answered, by either of its names', async (t) => {
  const fields = tools.flatMap(({ output }) =>
    [...walk(output as Schema)].flatMap(([, { properties = {} }]) => Object.entries(properties)),
  )
  for (const names of [
    'pce_flows total_pce_flows',
    'rows rows_analysed total_flows_analyzed',
    'row_limit truncated_at',
    'raw_observations',
    'unparseable',
    'data_span',
    'window',
    'coverage_note',
    'bytes_in',
    'unknown',
    'potentially_blocked',
  ].map((line) => line.split(' '))) {
    const found = fields.filter(([name, { description }]) => names.includes(name) && description !== undefined)
    t.same([...new Set(found.map(([name]) => name))].sort(), names.sort(), 'each is answered')
    t.equal(new Set(found.map(([, { description }]) => description)).size, 1, `${names.join(' and ')}: one meaning`)
  }
})

t.test('tools/list leaves output descriptions to the documentation', async (t) => {
  const described = each(surfaces, ({ outputSchema }) =>
    [...walk(outputSchema as Schema)].filter(([, { description }]) => description !== undefined),
  )
  t.same(
    described,
    each(surfaces, () => []),
  )
})

/** Most bytes for each tool of a toolset, on average: of what a model reads, and of the whole entry. */
const MOST_EACH = { model: 1536, whole: 6144 }
/** Most bytes of the toolset `default` together, which every conversation pays for that names no other. */
const MOST_DEFAULT = { model: 31 * 1024, whole: 112 * 1024 }
/** Most bytes of all tools together, for each of them: 46 KiB of what a model reads for seventy (D258). */
const MOST_ALL = { model: (46 * 1024) / 70, whole: 2560 }

/** Fails where entries of the list take more than they may, with the largest of them. */
function withinBudget(t: Test, what: string, sizes: readonly ListSize[], most: Record<'model' | 'whole', number>) {
  for (const part of ['model', 'whole'] as const) {
    const used = sizes.reduce((sum, size) => sum + size[part], 0)
    const largest = sizes.toSorted((one, other) => other[part] - one[part]).slice(0, 3)
    const named = largest.map((size) => `${size.name} ${size[part]}`).join(', ')
    t.ok(used <= most[part], `${what}, ${part}: ${used} of ${most[part]} bytes; the largest: ${named}`)
  }
}

t.test('the list of tools stays within what every conversation can afford', async (t) => {
  const sizes = measureList(tools)
  for (const toolset of Object.keys(TOOLSETS)) {
    const own = sizes.filter((size) => size.toolset === toolset)
    const { model, whole } = MOST_EACH
    withinBudget(t, `toolset ${toolset}`, own, { model: model * own.length, whole: whole * own.length })
  }
  withinBudget(t, 'toolset default', measureList(tools.filter(isInDefault)), MOST_DEFAULT)
  const all = { model: Math.floor(MOST_ALL.model * tools.length), whole: MOST_ALL.whole * tools.length }
  withinBudget(t, 'all toolsets', sizes, all)
})

t.test('what was there before the newer arguments has not grown', async (t) => {
  const first = known.filter(({ name }) => DEFAULT_NAMES.includes(name))
  const sizes = first.map(({ name, description, inputSchema }): [string, number] => {
    const properties = Object.fromEntries(
      Object.entries(inputSchema.properties as object).filter(
        ([argument]) => CONTRACT[name]!.arguments[argument]?.added !== 'later',
      ),
    )
    return [name, Buffer.byteLength(JSON.stringify({ name, description, inputSchema: { ...inputSchema, properties } }))]
  })
  const total = sizes.reduce((sum, [, size]) => sum + size, 0)
  const largest = sizes.toSorted(([, one], [, other]) => other - one).slice(0, 3)
  const named = largest.map(([name, size]) => `${name} ${size}`).join(', ')
  t.ok(total <= 29 * 1024, `${total} of ${29 * 1024} bytes; the largest: ${named}`)
  t.ok(total > 25 * 1024, `${total} bytes: what was measured`)
})

t.test('schemas are JSON Schema 2020-12, and each example is valid', async (t) => {
  // One for all tools, because each would compile the schema of schemas once more.
  const ajv = new Ajv2020({ strict: true, validateFormats: false })
  const found = each(tools, (tool) => {
    const { inputSchema, outputSchema } = surfaceOf(tool)
    // Throws for a schema that is none, or that has words ajv does not know.
    ajv.compile(outputSchema!)
    const validate = ajv.compile(inputSchema)
    return {
      types: [inputSchema.type, outputSchema?.type],
      example: validate(tool.example) ? 'valid' : ajv.errorsText(validate.errors),
      takesUnknown: validate({ ...tool.example, no_such_argument: 1 }),
    }
  })
  t.same(
    found,
    each(tools, () => ({ types: ['object', 'object'], example: 'valid', takesUnknown: false })),
  )
})

interface Asked {
  request: string
  tool: string
  arguments: Record<string, unknown>
}

t.test('what operators ask for can be called as it is written', async (t) => {
  const [first, beyond] = ['requests.json', 'requests-beyond.json'].map((name) => read(name) as Asked[])
  t.same([first!.length, beyond!.length], [40, 40])
  const asked = [...first!, ...beyond!]
  const ajv = new Ajv2020({ strict: true, validateFormats: false })
  for (const { request, tool, arguments: args } of asked) {
    const called = tools.find(({ name }) => name === tool)!
    partial(t, validateArguments(called, args), args, request)
    t.ok(ajv.validate(surfaceOf(called).inputSchema, args), `${request} ${ajv.errorsText()}`)
  }
})

t.test("the arguments of a call have the defaults of the schema, by TypeBox's own walk", async (t) => {
  t.same(
    each(tools, (tool) => validateArguments(tool, tool.example as Record<string, unknown>)),
    each(tools, (tool) => Value.Default(tool.input, structuredClone(tool.example))),
  )
})

t.test('a description says what to expect of a call that changes the PCE', async (t) => {
  const found = each(known, ({ description = '' }) => ({
    hasLength: description.length > 20 && description.length < 600,
    warns: / Don't retry\./.test(description),
    saysTwoSteps: / May need approval\./.test(description),
  }))
  t.same(
    found,
    each(known, ({ name, requires_confirm: saysTwoSteps }) => {
      return { hasLength: true, warns: CONTRACT[name]!.mutating, saysTwoSteps }
    }),
  )
})

t.test('the snapshots match the surface', async (t) => {
  const found = readdirSync(pathOf('../snapshots')).map((name) => `test/snapshots/${name}`)
  const wanted = await snapshots.files()
  for (const [path, text] of wanted) {
    const is = found.includes(path) ? readFileSync(pathOf(`../../${path}`), 'utf8') : ''
    const lines = text.split('\n')
    const at = is.split('\n').findIndex((line, index) => line !== lines[index])
    if (is !== text) t.fail(`${path}:${at + 1}: it is not what the tool is; \`npm run generate\` writes it`)
  }
  t.same(
    found.filter((path) => !wanted.has(path)),
    [],
    'and there are no others',
  )
})

t.test('a snapshot shows every property, bound, default and part of a surface', async (t) => {
  const pceRefs = { href: Type.String(), n: Type.Integer({ minimum: 1, maximum: 9 }) }
  const tool = {
    ...tools[0]!,
    input: Type.Object(
      {
        name: Type.String({ minLength: 1, description: 'Whole' }),
        kind: Type.Optional(Type.Unsafe({ type: 'string', enum: ['a', 'b'], default: 'a' })),
        rows: Type.Optional(
          Type.Array(Type.Object({ inner: Type.Object(pceRefs, { description: 'Of it' }) }), { maxItems: 3 }),
        ),
      },
      { additionalProperties: false },
    ),
  }
  const text = renderSnapshot(tool)
  for (const part of [
    'name: string',
    '— Whole',
    'kind?: "a" | "b" — default a',
    'rows?: array<',
    'inner: ',
    '— Of it',
    'n: integer',
  ])
    t.ok(text.includes(part), part)
  t.not(renderSnapshot({ ...tool, roles: ['admin'] }), text, 'who may call it')
  t.not(renderSnapshot({ ...tool, requiresConfirm: !tool.requiresConfirm }), text, 'what it asks for first')
  t.not(renderSnapshot({ ...tool, effect: tool.effect === 'destroy' ? 'write' : 'destroy' }), text, 'what it does')
})

/** `string | array<object>` → both; the `|` inside brackets belongs to the element. */
const splitUnion = (type: string) => (type.includes('<') ? [type] : type.split('|').map((part) => part.trim()))

/** Whether a schema takes values of a type of the contract: string, integer, array, array<string>, array<array<string|object>> … */
function accepts(schema: Schema, type: string): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.some((choice) => accepts(choice, type))
  const [, element] = /^array(?:<(.*)>)?$/.exec(type) ?? []
  if (type.startsWith('array')) {
    return (
      schema.type === 'array' &&
      (element === undefined || element.split(/\|(?![^<]*>)/).every((part) => accepts(schema.items!, part)))
    )
  }
  return schema.type === type
}

function elementOf(schema: Schema): Schema | undefined {
  if (schema.anyOf !== undefined) return schema.anyOf.map(elementOf).find((found) => found !== undefined)
  if (schema.type === 'array') return elementOf(schema.items!)
  return schema.properties === undefined ? undefined : schema
}

const enumOf = (schema: Schema): unknown[] | undefined =>
  schema.enum ?? (schema.items === undefined ? undefined : enumOf(schema.items))

/** Every schema inside a schema, itself included, with where it stands. */
function* walk(schema: Schema, path = ''): Generator<[string, Schema]> {
  yield [path, schema]
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* walk(property, `${path}.${name}`)
  for (const property of Object.values(schema.patternProperties ?? {})) yield* walk(property, `${path}.*`)
  if (typeof schema.additionalProperties === 'object') yield* walk(schema.additionalProperties, `${path}.*`)
  if (schema.items !== undefined) yield* walk(schema.items, `${path}[]`)
  for (const choice of [...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) yield* walk(choice, path)
}

const undescribed = (schema: Schema) =>
  [...walk(schema)].flatMap(([path, { properties = {} }]) =>
    Object.entries(properties).flatMap(([name, property]) =>
      (property.description ?? '').trim() === '' ? [`${path}.${name}`] : [],
    ),
  )

/**
 * What is unknown is refused where it is resolved (tests of the tools): references in object form, and the entries of a service,
 * whose error says which of the three lists a field belongs to.
 */
const isLeftToResolver = (path: string, part: Schema) =>
  OPEN_FIELDS in part || /^\.(?:service_ports|windows_services|windows_egress_services)\[\]$/.test(path)

const openObjects = (schema: Schema) =>
  [...walk(schema)].flatMap(([path, part]) =>
    part.type === 'object' && part.additionalProperties !== false && !isLeftToResolver(path, part)
      ? [path === '' ? '(root)' : path]
      : [],
  )
