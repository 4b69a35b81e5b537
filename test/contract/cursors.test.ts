/** A cursor is good for whom it was given, for the call it was given with, at every replica, and nobody can make one up. */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeCursor } from '../../tools/answers/page-list.js'
import { cursorKeyOf, deriveCursorKey } from '../../plugins/dispatcher/cursor-keys.js'
import type { CallerContext } from '../../plugins/dispatcher/call.js'
import { partial } from '../partial.js'
import { startService, type Json } from './authenticated-service.js'

const ARGS = { key: 'app', max_results: 2 }
const REFUSED = { error: 'invalid_argument', argument: 'cursor', message: /^cursor was not issued to you/ }

const pack = (body: unknown) => Buffer.from(JSON.stringify(body)).toString('base64url')
const unpack = (cursor: string) => JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]

/** A cursor as anyone could make one who has read the code: signed with a digest that needs no key. */
function digested(position: unknown[]): string {
  const text = JSON.stringify(['get-labels', [['key', 'app']], position])
  return pack([...position, createHash('sha256').update(text).digest('hex').slice(0, 16)])
}

t.test('a cursor', async (t) => {
  const service = await startService(t, { mode: 'shared' })
  const { simulator } = service.pce
  const [ann, bob] = [await service.tokenOf('ann'), await service.tokenOf('bob')]
  const first = await service.call(ann, 'get-labels', ARGS)
  const cursor: string = first.next_cursor
  const next = await service.call(ann, 'get-labels', { ...ARGS, cursor })
  t.equal(next.labels.length, 2)

  await t.test('that was made up is refused, and the PCE is not asked', async (t) => {
    simulator.clearRequests()
    const [offset, after, href, parts, seal] = unpack(cursor)
    const forged = [
      digested([1_000_000, null, null, 0]),
      digested([offset, after, href, parts]),
      pack([1_000_000, after, href, parts, seal]),
      pack([offset, null, href, parts, seal]),
      pack([offset, after, '/orgs/1/labels/1', parts, seal]),
      pack([offset, after, href, 1, seal]),
      pack([offset, after, href, parts]),
      pack([offset, after, href, parts, null]),
      pack([offset, after, href, parts, '']),
      pack([offset, after, href, parts, `${String(seal).slice(0, -4)}AAAA`]),
      pack([offset, after, href, parts, randomBytes(32).toString('base64url')]),
    ]
    for (const one of forged) partial(t, await service.call(ann, 'get-labels', { ...ARGS, cursor: one }), REFUSED)
    t.same(simulator.requests, [])
  })

  await t.test('of another caller, tool or question is refused', async (t) => {
    partial(t, await service.call(bob, 'get-labels', { ...ARGS, cursor }), REFUSED)
    partial(t, await service.call(ann, 'get-labels', { ...ARGS, key: 'env', cursor }), REFUSED)
    partial(t, await service.call(ann, 'get-labels', { max_results: 2, cursor }), REFUSED)
    partial(t, await service.call(ann, 'get-iplists', { cursor }), REFUSED)
    const of = await service.call(bob, 'get-labels', ARGS)
    t.same(of.labels, first.labels)
    t.not(of.next_cursor, cursor)
    partial(t, await service.call(ann, 'get-labels', { ...ARGS, cursor: of.next_cursor }), REFUSED)
  })

  await t.test('of one replica is good at another, and at none with another key', async (t) => {
    const { pce } = service.config as Json
    const replica = await startService(t, { mode: 'shared', config: { pce } })
    t.same((await replica.call(await replica.tokenOf('ann'), 'get-labels', { ...ARGS, cursor })).labels, next.labels)
    partial(t, await replica.call(await replica.tokenOf('bob'), 'get-labels', { ...ARGS, cursor }), REFUSED)
    const confirm = { hmacKey: Buffer.alloc(32, 8), ttlSeconds: 120 }
    const stranger = await startService(t, { mode: 'shared', config: { pce, confirm } })
    partial(t, await stranger.call(await stranger.tokenOf('ann'), 'get-labels', { ...ARGS, cursor }), REFUSED)
  })

  await t.test('does not go on without end, even when it is signed', async (t) => {
    const caller = { mode: 'shared', role: 'admin', iss: service.oauth.issuer, sub: 'ann' } as const
    const { url: origin, orgId } = service.pce.simulator
    const context = { caller, pce: { origin, orgId: String(orgId) } } as CallerContext
    const cursorKey = () => cursorKeyOf(deriveCursorKey(service.config.confirm.hmacKey), context)
    const at = (offset: number) =>
      encodeCursor({ cursorKey }, 'get-labels', { key: 'app' }, { offset, after: null, within: null })
    const last = (await at(250_000))!
    partial(t, await service.call(ann, 'get-labels', { ...ARGS, cursor: last }), { labels: [], truncated: false })
    t.equal(await at(250_001), undefined)
    const signed = (offset: number) => {
      const body = [offset, null, null, 0]
      const text = JSON.stringify(['get-labels', [['key', 'app']], body])
      return pack([...body, createHmac('sha256', cursorKey()).update(text).digest('base64url')])
    }
    t.equal(signed(250_000), last, 'signed as the server does it')
    partial(t, await service.call(ann, 'get-labels', { ...ARGS, cursor: signed(250_001) }), REFUSED)
  })

  await t.test('says nothing of its key', async (t) => {
    const { hmacKey } = service.config.confirm
    const said = JSON.stringify([service.log, service.audit, first])
    for (const key of [hmacKey, deriveCursorKey(hmacKey)])
      for (const form of ['hex', 'base64', 'base64url'] as const)
        t.notOk(said.includes(Buffer.from(key).toString(form)))
  })
})
