/** However large a change is, the page is not; whatever names say, they are text (D155). */
import t from 'tap'
import { MOST_SHOWN_BYTES, type ShownCall, type ShownObject } from '../../schemas/approvals.js'
import { contains } from '../partial.js'
import { startPages } from './pages-service.js'
import { SMALL } from './desk.js'
import { WIDE } from './samples.js'

const MIB = 1024 * 1024

t.test('a change of 5,000 objects', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const object = (at: number): ShownObject => ({
    kind: 'service',
    name: `service ${at}`,
    href: `/orgs/1/sec_policy/draft/services/${at}`,
    change: 'update',
    effect: at % 2 === 0 ? 'neutral' : 'widening',
    fields: [{ path: 'description', before: 'old', after: 'new' }],
  })
  const objects = Array.from({ length: 5000 }, (_, at) => object(at))
  const { id } = await ask({ shown: { ...SMALL, objects, objects_total: 6000 } })
  const { body } = await (await loggedIn()).get(`/approve/${id}`)
  t.ok(Buffer.byteLength(body) < MIB, `${Buffer.byteLength(body)} bytes`)
  t.equal([...body.matchAll(/<details class="object/g)].length, 200, 'the first 200')
  t.equal([...body.matchAll(/service \d*[02468]</g)].length, 0, 'are those that open more')
  t.match(body, /This is not all of it[^]*Of 6000 objects 200 are shown here[^]*Approving approves the whole/)
  t.match(body, /… and 2300 more of these, not shown here/)
  t.match(body, /Same traffic as before <span class="count">2500<\/span>/, 'the rest is counted')
})

t.test('objects that open nothing are folded where there are many', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const many = Array.from({ length: 21 }, (_, at): ShownObject => {
    const effect = at === 0 ? 'widening' : 'neutral'
    return { kind: 'service', name: `s${at}`, change: 'update', effect, fields: [] }
  })
  const { id } = await ask({ shown: { ...SMALL, objects: many, objects_total: many.length } })
  const { body } = await (await loggedIn()).get(`/approve/${id}`)
  t.equal([...body.matchAll(/<details class="object[^>]*\bopen\b[^>]*>/g)].length, 1)
  t.equal([...body.matchAll(/<details class="object/g)].length, 21)
})

t.test('what is left out inside an object is said at the top as well', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const alice = await loggedIn()
  const said = async (after: unknown) => {
    const object: ShownObject = { kind: 'service', name: 's', change: 'update', fields: [{ path: 'x', after }] }
    const { id } = await ask({ shown: { ...SMALL, objects: [object], objects_total: 1 } })
    const { body } = await alice.get(`/approve/${id}`)
    return /This is not all of it[^]*details of the objects[^]*Approving approves the whole/.test(body)
  }
  t.equal(await said('a'.repeat(4000)), false, 'a text that is there whole')
  t.equal(await said('<span class="cut">'), false, 'a text that looks like ours')
  t.equal(await said('a'.repeat(4001)), true)
  t.equal(await said({ list: Array.from({ length: 41 }, () => 1) }), true)
  t.equal(await said(Array.from({ length: 5000 }, (_, at) => `entry ${at}`)), true)
})

t.test('the worst that fits into what is stored', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const alice = await loggedIn()
  const share = Math.floor(MOST_SHOWN_BYTES / 4)
  const markup = '<'.repeat(share)
  const deep = JSON.parse(`${'{"a":['.repeat(500)}"<"${']}'.repeat(500)}`)
  const list = Array.from({ length: share / 4 }, () => '<')
  const widely: ShownObject = { kind: '<', change: 'update', fields: [], parts: [] }
  const changes: Record<string, Partial<ShownCall>> = {
    'one name': { objects: [{ ...widely, name: markup, href: markup, updated_by: markup }] },
    'one field': { objects: [{ ...widely, fields: [{ path: markup, before: markup, after: markup }] }] },
    'long lists': { objects: [{ ...widely, fields: [{ path: 'x', before: list, after: [...list, 'y'] }] }] },
    'many fields': {
      objects: [{ ...widely, fields: list.slice(0, 4000).map((path) => ({ path, after: '<'.repeat(40) })) }],
    },
    'many parts': { objects: [{ ...widely, parts: list.slice(0, 3000).map((name) => ({ ...widely, name })) }] },
    'deep values': { objects: [{ ...widely, fields: [{ path: 'x', after: deep }] }], facts: { deep } },
    'a wide object': { facts: { x: Object.fromEntries(list.slice(0, 9000).map((_, at) => [`k${at}`, '<'])) } },
    'many facts': { facts: Object.fromEntries(list.slice(0, 9000).map((_, at) => [`k${at}`, '<'])) },
    'many warnings': { warnings: list },
    'one summary': { summary: markup },
    'many dependencies': {
      dependencies: list.slice(0, 3000).map((name) => ({ kind: '<', name, href: '<', required_by: ['<'] })),
    },
    'much that is not part of it': {
      not_included: {
        total: 9000,
        objects: list.slice(0, 4000).map((name) => ({ kind: '<', name, change: 'update' })),
      },
    },
    'many authors': { draft: { first_edit: markup, last_edit: '', by: list } },
  }
  for (const [what, change] of Object.entries(changes)) {
    const { id } = await ask({ shown: { ...SMALL, ...change } })
    const { body, statusCode } = await alice.get(`/approve/${id}`)
    t.equal(statusCode, 200, what)
    t.ok(Buffer.byteLength(body) < MIB, `${what}: ${Buffer.byteLength(body)} bytes`)
    contains(t, body, 'Approve this call', 'and can still be decided')
  }
})

t.test('what is cut is said', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const { id } = await ask({ shown: { ...WIDE, truncated: true } })
  const { body } = await (await loggedIn()).get(`/approve/${id}`)
  t.match(body, /This is not all of it[^]*too large to be kept in full/)
  t.match(body, /Pending as well, but no part of this <span class="count">3<\/span>[^]*… and 1 more, not shown here/)
})

t.test('hidden characters are seen, and what was escaped stays', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const names = {
    'pay\u202Etnemyap': 'pay⟨U+202E⟩tnemyap',
    'pay⟨U+200B⟩ments': 'pay⟨U+200B⟩ments',
    'x⟨U+27E8⟩U+200B⟩': 'x⟨U+27E8⟩U+200B⟩',
  }
  const alice = await loggedIn()
  for (const [name, shown] of Object.entries(names)) {
    const [object] = SMALL.objects
    const { id } = await ask({ client: name, shown: { ...SMALL, summary: name, objects: [{ ...object!, name }] } })
    const { body } = await alice.get(`/approve/${id}`)
    t.equal(body.split(`<bdi>${shown}</bdi>`).length - 1, 3, name)
    t.notMatch(body, /[\u202E\u200B]/)
  }
})
