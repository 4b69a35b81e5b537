/** A receiver that is not well, over whichever store: what it missed it gets once, under the id of the first attempt, also from the next process. */
import type { Test } from 'tap'
import type { State } from '../../schemas/state.js'
import { type Receiver, silence, startReceiver, status } from './receiver.js'
import { asked, startSending } from './sending-process.js'

const TICK_MS = 5000

interface Fault {
  begin: (receiver: Receiver) => unknown
  end: (receiver: Receiver) => unknown
  /** How long it lasts. */
  seconds: number
}

const answers = (answer: Receiver['answer']): Fault => ({
  begin: (receiver) => (receiver.answer = answer),
  end: (receiver) => (receiver.answer = status(204)),
  seconds: 30,
})
const isGone: Omit<Fault, 'seconds'> = { begin: (receiver) => receiver.stop(), end: (receiver) => receiver.start() }

const FAULTS: Record<string, Fault> = {
  'refuses connections': { ...isGone, seconds: 30 },
  'takes the message and hangs': answers(silence),
  'answers 500': answers(status(500)),
  'is gone for ten minutes': { ...isGone, seconds: 600 },
}

/** `open` opens the same store once more, as another process would; `clock` is the clock of all of them. */
export function proveDelivery(t: Test, open: (t: Test, clock: { now: number }) => Promise<() => Promise<State>>): void {
  for (const [name, { begin, end, seconds }] of Object.entries(FAULTS))
    t.test(`a receiver that ${name} has each message once afterwards`, async (t) => {
      const clock = { now: Date.now() }
      const another = await open(t, clock)
      const receiver = await startReceiver(t)
      let isFaulty = true
      // Only what is not answered at all is ended by time.
      const post: ReturnType<Receiver['post']> = (...message) =>
        receiver.post({ timeoutMs: isFaulty ? 200 : 600_000 })(...message)
      const first = startSending(t, { receiver, clock, state: await another(), post })
      await begin(receiver)
      const expected: string[] = []
      for (let passed = 0; passed < seconds; passed += TICK_MS / 1000) {
        if (passed % 10 === 0) {
          expected.push(`a-${passed}`)
          first.recorder.note(asked(`a-${passed}`))
        }
        await first.tick()
        clock.now += TICK_MS
      }
      const tried = first.lines.map((line) => /"id":"([^"]*)"/.exec(line)![1]!)
      t.ok(tried.length >= 3, `${tried.length} attempts failed`)
      t.ok(tried.length <= 12, 'with longer and longer pauses')
      t.same(first.fates, { failed: tried.length })
      await first.close()

      const before = receiver.received.length
      await end(receiver)
      isFaulty = false
      const next = startSending(t, { receiver, clock, state: await another(), post })
      t.equal(await next.waiting(), expected.length, 'the next process finds them all')
      // The right of the first process to send is over, by the clock of the store.
      await next.state.notes.set('outbox_lease', '0 first')
      clock.now += 40_000
      await next.tick()
      for (let passed = 0; passed <= 300_000; passed += TICK_MS) {
        clock.now += TICK_MS
        await next.tick()
      }
      const got = receiver.received.slice(before)
      t.same([await next.waiting(), next.fates], [0, { sent: expected.length }])
      t.same(got.map(({ data }) => data.approval_id as string).sort(), expected.sort(), 'each event once')
      const ids = got.map(({ id }) => id)
      t.equal(new Set(ids).size, expected.length)
      t.same(
        tried.filter((id) => !ids.includes(id)),
        [],
        'under the id of the attempts that failed',
      )
      t.ok(receiver.received.every(({ isSigned }) => isSigned))
    })
}
