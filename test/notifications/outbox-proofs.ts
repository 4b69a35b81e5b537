/** What the outbox promises, over whichever store. */
import type { Test } from 'tap'
import type { State } from '../../schemas/state.js'

const LEASE_MS = 40_000

/** `open` opens the same store once more, as another process would; `clock` is the clock of all of them. */
export function proveOutbox(t: Test, open: (t: Test, clock: { now: number }) => Promise<() => Promise<State>>): void {
  const messageOf = (id: string, createdAt: number, body = `{"id":"${id}"}`) => ({ id, body, createdAt })

  t.test('each message is taken by one process, in the order in which they are due', async (t) => {
    const clock = { now: Date.now() }
    const another = await open(t, clock)
    const [one, other] = [(await another()).outbox, (await another()).outbox]
    const { now } = clock
    t.same(await one.look(), { waiting: 0, dueAt: null })
    t.equal(await one.take('one', LEASE_MS), null)
    t.equal(await one.add([messageOf('a', now - 2), messageOf('b', now - 1), messageOf('c', now + 60_000)]), 0)
    t.same(await other.look(), { waiting: 3, dueAt: now - 2 })
    t.same(await one.take('one', LEASE_MS), { ...messageOf('a', now - 2), attempts: 1 })
    t.equal(await other.take('other', LEASE_MS), null, 'the lease is of the first')
    t.same(await one.take('one', LEASE_MS), { ...messageOf('b', now - 1), attempts: 1 })
    t.equal(await one.take('one', LEASE_MS), null, 'the third is not due')
    await one.remove('a')
    await one.defer('b', now - 1)
    t.same(await other.look(), { waiting: 2, dueAt: now - 1 })
    t.same(await one.take('one', LEASE_MS), { ...messageOf('b', now - 1), attempts: 2 })
  })

  t.test('of many that take at once one gets each message', async (t) => {
    const clock = { now: Date.now() }
    const another = await open(t, clock)
    const holders = await Promise.all(['one', 'two', 'three'].map(async (name) => ({ name, state: await another() })))
    await holders[0]!.state.outbox.add([...Array(5).keys()].map((id) => messageOf(String(id), clock.now)))
    const taken = await Promise.all(
      [...Array(12).keys()].map(async (at) => {
        const { name, state } = holders[at % 3]!
        const message = await state.outbox.take(name, LEASE_MS)
        return message && { name, id: message.id }
      }),
    )
    const got = taken.filter((message) => message !== null)
    t.equal(new Set(got.map(({ name }) => name)).size, 1, 'one process has the lease')
    t.equal(new Set(got.map(({ id }) => id)).size, got.length, 'and no message twice')
    t.ok(got.length > 0)
  })

  t.test('a lease with a time that no lease can have is no lease', async (t) => {
    const clock = { now: Date.now() }
    const { outbox, notes } = await (await open(t, clock))()
    await outbox.add(['a', 'b', 'c', 'd'].map((id) => messageOf(id, clock.now)))
    for (const value of ['', 'x y', `${clock.now + 10 * LEASE_MS} other`, `${clock.now - 1} other`]) {
      await notes.set('outbox_lease', value)
      t.type((await outbox.take('one', LEASE_MS))?.id, 'string', value)
    }
  })

  t.test('there is room for 10,000 messages', async (t) => {
    const clock = { now: Date.now() }
    const { outbox } = await (await open(t, clock))()
    const many = (from: number, count: number) =>
      [...Array(count).keys()].map((at) => messageOf(String(from + at), clock.now))
    t.equal(await outbox.add(many(0, 9_998)), 0)
    t.equal(await outbox.add(many(10_000, 5)), 3)
    t.equal(await outbox.add(many(20_000, 1)), 1)
    t.equal((await outbox.look()).waiting, 10_000)
    await outbox.remove('10000')
    await outbox.remove('10001')
    t.equal((await outbox.look()).waiting, 9_998, 'the last ones found no room')
  })

  t.test('a body is stored as it is, and one that is far too long is read as none', async (t) => {
    const clock = { now: Date.now() }
    const { outbox } = await (await open(t, clock))()
    const body = JSON.stringify({ text: 'ä "quotes" \\ 😀' })
    await outbox.add([messageOf('a', clock.now - 1, body), messageOf('b', clock.now, 'x'.repeat(1024 * 1024 + 1))])
    t.equal((await outbox.take('one', LEASE_MS))?.body, body)
    t.equal((await outbox.take('one', LEASE_MS))?.body, '')
  })
}
