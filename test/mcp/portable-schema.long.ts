/** What the list says of arguments is taken, and what is answered is what the list says (D243). */
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import t from 'tap'
import { portableInput, portableOutput } from '../../tools/catalogue/portable-schema.js'
import { tools } from '../../tools/index.js'

const compile = (schema: unknown) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  return ajv.compile(JSON.parse(JSON.stringify(schema)) as object)
}
const object = (properties: object) => ({ type: 'object', properties })
const text = { type: 'string' }
const count = { type: 'integer' }
const pair = { type: 'object', properties: { a: count }, required: ['a'] }
const list = { type: 'array', items: text }
const nothing = { type: 'null' }
const map = { type: 'object', patternProperties: { '^(.*)$': count } }

/** Values that lie on both sides of every schema above. */
const value = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom(null, true, '', 'a', 0, 2, 3.5, -1),
    fc.record({ a: fc.constantFrom(2, 3, 'x') }, { requiredKeys: [] }),
  ),
  any: fc.oneof(tie('leaf'), fc.array(tie('leaf'), { maxLength: 3 }), fc.record({ a: tie('leaf') })),
})).any

t.test('of alternatives an argument lists the first, with the words of all of it', async (t) => {
  const input = (properties: object) => portableInput(object(properties)).properties
  t.same(input({ x: { anyOf: [{ anyOf: [text, list] }, count], description: 'd', default: 'free' } }), {
    x: { description: 'd', type: 'string' },
  })
  t.same(
    input({
      lookback_days: { type: 'integer', minimum: 1, default: 30, description: 'Days' },
      keys: { type: 'array', items: { anyOf: [text, pair] }, default: ['app', 'env'], description: 'Of groups' },
      exact: { type: 'boolean', default: false, description: 'Whole' },
      name: { ...text, minLength: 1, description: 'Contains' },
      kind: { ...text, enum: ['a', 'b'], default: 'b' },
      direction: { ...text, enum: ['in', 'both'], default: 'both', description: 'Of the flow', listed: '' },
      author: { ...text, description: 'By exact name or href', listed: 'Last editor' },
      complete: { type: 'boolean', description: 'Past row limit' },
      dry_run: { type: 'boolean', description: 'No write' },
    }),
    {
      lookback_days: { type: 'integer' },
      keys: { description: 'Of groups; default app, env', type: 'array', items: text },
      exact: { description: 'Whole', type: 'boolean' },
      name: text,
      kind: { description: 'default b', type: 'string', enum: ['a', 'b'] },
      direction: { type: 'string', enum: ['in'] },
      author: { description: 'Last editor', type: 'string' },
      complete: { type: 'boolean' },
      dry_run: { type: 'boolean' },
    },
  )
  t.same(input({ name: { ...text, description: 'Contains' } }), { name: { ...text, description: 'Contains' } })
  for (const odd of [{}, { type: 'object' }, { type: 'array' }, nothing])
    t.throws(() => input({ x: odd }), { message: /the schema of x has no portable form/ })
})

t.test('a part of an answer is any value, or alternatives of one type each', async (t) => {
  const output = (part: object) => (portableOutput(object({ x: part })).properties as { x: object }).x
  t.same(output({ ...text, description: 'd' }), text)
  t.same(output({ anyOf: [{ anyOf: [text, nothing] }, { ...text, description: 'd' }], description: 'd' }), {
    anyOf: [text, nothing],
  })
  t.same(output({ anyOf: [text, text] }), text)
  t.same(output(map), { type: 'object', additionalProperties: count })
  t.same(output({ type: 'object', properties: {}, additionalProperties: {} }), { type: 'object' })
  t.same(output({ const: 'a', type: 'string' }), { type: 'string', enum: ['a'] })
  t.equal((output({}) as { anyOf: object[] }).anyOf.length, 6)
  t.same(output({ anyOf: [text, {}] }), output({}))
})

t.test('both forms of an answer accept the same values', async (t) => {
  const parts = [text, count, pair, list, nothing, map, { type: 'boolean' }, { type: 'number' }]
  const schemas = fc
    .uniqueArray(fc.constantFrom(...parts, { anyOf: [list, nothing] }), { minLength: 1, maxLength: 4 })
    // Each three times, so that it is shared.
    .map((anyOf) => object({ x: { anyOf }, y: { type: 'array', items: { anyOf } }, z: { anyOf } }))
  fc.assert(
    fc.property(schemas, fc.array(value, { minLength: 1, maxLength: 20 }), (schema, values) => {
      const [whole, short] = [compile(schema), compile(portableOutput(schema))]
      return values.every((x) => [{ x }, { y: x }, { z: x }].every((one) => whole(one) === short(one)))
    }),
    { numRuns: 60 },
  )
  t.pass('60 schemas')
})

/** What the list leaves to the errors. */
const BOUNDS = [
  'additionalProperties',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'pattern',
]
const withoutBounds = (schema: object) =>
  JSON.parse(JSON.stringify(schema, (key, part: unknown) => (BOUNDS.includes(key) ? undefined : part))) as object

t.test('what the list says of the arguments of a tool, the server takes', async (t) => {
  for (const tool of tools) {
    const [taken, listed] = [compile(withoutBounds(tool.input)), compile(portableInput(tool.input))]
    const example = tool.example as Record<string, unknown>
    t.ok(listed(example), `${tool.name}: its example`)
    const names = Object.keys(tool.input.properties)
    const verdicts = new Set<boolean>()
    for (const name of names) {
      for (const odd of [null, 1, 1.5, 'x', ['x'], [['x']], [{}], {}, { key: 'app', value: 'x' }, true]) {
        const args = { ...example, [name]: odd }
        const isListed = listed(args)
        verdicts.add(isListed)
        if (isListed && !taken(args)) t.fail(`${tool.name}: ${JSON.stringify(args)}`)
      }
    }
    t.ok(names.length === 0 || verdicts.size === 2, `${tool.name}: ${names.length} arguments`)
  }
})
