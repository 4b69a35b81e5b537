/** `getInParts`: an object that passes by, each field once, and its lists in batches. */
import t from 'tap'
import { partial } from '../partial.js'
import { clientOf, rejection, startServer } from './support.js'

let text = ''
const server = await startServer(t, () => ({ headers: { 'content-type': 'application/json' }, body: text }))

async function read(answer: string) {
  text = answer
  const found: Record<string, unknown> = {}
  const batches: Record<string, number> = {}
  const { bytes } = await clientOf(server).getInParts('x', {
    onBegin: () => {},
    onField: (field, value) => void (found[field] = value),
    onItems(field, items) {
      const list = (found[field] ??= []) as unknown[]
      for (const item of items) list.push(item)
      batches[field] = (batches[field] ?? 0) + 1
    },
  })
  return { found, batches, bytes }
}

t.test('hands over what was sent', async (t) => {
  const tricky = {
    name: 'a "],}[{\\',
    'k,"]': [['],'], {}, [], '"', null],
    none: [],
    nested: { a: [1, { b: ']' }] },
    n: -1.5e3,
    x: null,
  }
  for (const object of [{}, tricky, { list: [0] }]) {
    for (const space of [0, 1]) {
      const json = ` ${JSON.stringify(object, null, space)}\n`
      const { found, bytes } = await read(json)
      t.same(found, object)
      t.equal(bytes, Buffer.byteLength(json))
    }
  }
  const long = {
    href: '/x',
    items: Array.from({ length: 20_000 }, (_, at) => ({ at, text: 'ä€😀"\\'.repeat(3) })),
    end: true,
  }
  const { found, batches } = await read(JSON.stringify(long))
  t.same(found, long)
  t.ok(batches.items! > 5, 'in batches')
})

t.test('refuses what is no object', async (t) => {
  const texts = [
    '',
    '[]',
    'null',
    '{',
    '{"a":1',
    '{"a":[1',
    '{"a":1}}',
    '{"a":1}x',
    '{"a":1,}',
    '{,}',
    '{"a":[1,]}',
    '{"a":[,1]}',
  ]
  const more = [
    '{"a":[1] 2}',
    '{"a":1 [2]}',
    '{"a":[1}',
    '{"a":1]',
    '{"a":1,"a":2}',
    '{"a":[],"a":[]}',
    '{"a" [1]}',
    '{"a":[1][2]}',
    '{:[1]}',
  ]
  for (const broken of [...texts, ...more])
    partial(t, await rejection(read(broken)), { code: 'invalid_response' }, JSON.stringify(broken))
  const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`
  for (const large of [deep, `{"a":"${'x'.repeat(9 * 1024 * 1024)}"}`, `{"a":[${'1,'.repeat(2_000_001)}1]}`])
    partial(t, await rejection(read(large)), { code: 'body_too_large' })
})
