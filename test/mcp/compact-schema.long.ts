/** Schemas on the wire are shorter than those the server checks with, and accept exactly the same values. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import t from 'tap'
import { compactSchema } from '../../plugins/mcp/list-tools.js'
import { tools } from '../../tools/index.js'

const compile = (schema: unknown) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  return ajv.compile(JSON.parse(JSON.stringify(schema)) as object)
}
const text = { type: 'string', minLength: 2 }
const count = { type: 'integer', minimum: 3 }
const pair = { type: 'object', properties: { a: count }, required: ['a'], additionalProperties: false }
const list = { type: 'array', items: text, maxItems: 2 }
const nothing = { type: 'null' }

/** Values that lie on both sides of every bound above. */
const value = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom(null, true, '', 'a', 'ab', 'abc', 0, 2, 3, 3.5, -1),
    fc.record({ a: fc.constantFrom(2, 3, 'x') }, { requiredKeys: [] }),
    fc.record({ a: fc.constant(3), b: fc.constant(1) }),
  ),
  any: fc.oneof(tie('leaf'), fc.array(tie('leaf'), { maxLength: 3 }), fc.record({ a: tie('leaf') })),
})).any

t.test('alternatives of different types become one list of types', async (t) => {
  t.same(
    compactSchema({ type: 'object', patternProperties: { '^(.*)$': text } }),
    { type: 'object', additionalProperties: text },
    'a map says what its values are',
  )
  t.same(compactSchema({ anyOf: [text, nothing], description: 'd' }), {
    type: ['string', 'null'],
    minLength: 2,
    description: 'd',
  })
  t.same(
    compactSchema({
      anyOf: [{ type: 'string' }, { type: 'object' }, { type: 'array', items: { anyOf: [text, pair] } }],
    }),
    {
      type: ['string', 'object', 'array'],
      items: {
        type: ['string', 'object'],
        minLength: 2,
        properties: pair.properties,
        required: ['a'],
        additionalProperties: false,
      },
    },
  )
})

t.test('leaves a schema unchanged if compacting would change its meaning', async (t) => {
  for (const anyOf of [
    [count, { type: 'integer', maximum: 9 }],
    [count, { type: 'number' }],
    [{ type: 'string', enum: ['a'] }, nothing],
    [{ const: 1 }, text],
    [{ ...text, description: 'd' }, nothing],
    [text, { type: 'string', maxLength: 5 }],
    [pair, { type: 'object', properties: { b: text } }],
  ]) {
    t.same(compactSchema({ anyOf }), { anyOf }, JSON.stringify(anyOf))
  }
  t.same(compactSchema({ anyOf: [text, nothing], minLength: 1 }), { anyOf: [text, nothing], minLength: 1 })
  t.same(compactSchema({ type: 'string', anyOf: [text, nothing] }), { type: 'string', anyOf: [text, nothing] })
})

t.test('both forms accept the same values', async (t) => {
  const parts = [text, count, pair, list, nothing, { type: 'boolean' }, { type: 'number', maximum: 3 }]
  const schemas = fc.uniqueArray(fc.constantFrom(...parts), { minLength: 1, maxLength: 4 }).map((anyOf) => ({ anyOf }))
  fc.assert(
    fc.property(schemas, fc.array(value, { minLength: 1, maxLength: 20 }), (schema, values) => {
      const [whole, short] = [compile(schema), compile(compactSchema(schema))]
      return values.every((one) => whole(one) === short(one))
    }),
    { numRuns: 60 },
  )
  t.pass('60 schemas')
})

t.test('so do the schemas of all tools, for their examples and near misses', async (t) => {
  for (const tool of tools) {
    const [whole, short] = [compile(tool.input), compile(compactSchema(tool.input))]
    const example = tool.example as Record<string, unknown>
    const names = Object.keys(tool.input.properties)
    const verdicts = new Set<boolean>()
    for (const name of names) {
      for (const odd of [null, 1, 1.5, '', 'x', [], [[]], ['x'], [{}], {}, { key: 'app', value: 'x' }, true]) {
        const args = { ...example, [name]: odd }
        verdicts.add(whole(args))
        if (whole(args) !== short(args)) t.fail(`${tool.name}: ${JSON.stringify(args)}`)
      }
    }
    t.ok(names.length === 0 || verdicts.has(false), `${tool.name}: ${names.length} arguments`)
  }
})
