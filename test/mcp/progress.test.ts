/** Progress notifications by a clock of the test (MCP utilities/progress, D4). */
import t from 'tap'
import { startProgress } from '../../plugins/mcp/progress.js'
import type { ProgressUpdate } from '../../domain/call.js'
import { fakeClock } from '../fake-clock.js'
import { partial } from '../partial.js'

function record() {
  const clock = fakeClock()
  const sent: (ProgressUpdate & { at: number })[] = []
  const progress = startProgress((update) => sent.push({ ...update, at: clock.now() }), clock)
  return { clock, sent, progress }
}

const gaps = (sent: { at: number }[]) => sent.slice(1).map(({ at }, index) => at - sent[index]!.at)
const isRising = (sent: { progress: number }[]) =>
  sent.every(({ progress }, index) => index === 0 || progress > sent[index - 1]!.progress)

t.test('a silent tool', async (t) => {
  const { clock, sent, progress } = record()
  partial(t, sent, [{ at: 0, progress: 0 }], 'the start is told at once')
  clock.advance(30_000)
  t.ok(Math.max(...gaps(sent)) <= 2000, 'something is heard at least every 2 s')
  t.ok(isRising(sent), 'and always a greater number')
  progress.stop()
  const before = sent.length
  clock.advance(10_000)
  t.equal(sent.length, before, 'after the end nothing is')
  t.equal(clock.waiting, 0, 'and no timer is left')
})

t.test('a talkative tool', async (t) => {
  const { clock, sent, progress } = record()
  for (let step = 1; step <= 1000; step++) {
    clock.advance(10)
    progress.update({ progress: step, total: 1000, message: `step ${step}` })
  }
  t.ok(Math.min(...gaps(sent)) >= 1000, 'is heard at most once a second')
  t.ok(isRising(sent))
  t.ok(sent.length >= 9, 'but every second')
  partial(t, sent.at(-1), { message: /^step 9\d\d$|^step 1000$/, total: 1000 }, 'with its latest word')
  clock.advance(1000)
  partial(t, sent.at(-1), { progress: 1000, message: 'step 1000' }, 'the last word is not lost')
  progress.stop()
  progress.update({ progress: 2000 })
  clock.advance(5000)
  partial(t, sent.at(-1), { progress: 1000 })
})

t.test('a tool that goes back or stands still', async (t) => {
  const { clock, sent, progress } = record()
  for (const value of [50, 10, 10, 60, 0]) {
    progress.update({ progress: value, total: 100 })
    clock.advance(1000)
  }
  clock.advance(60_000)
  t.ok(isRising(sent), 'the numbers rise all the same')
  t.ok(
    sent.every(({ progress }) => progress < 100),
    'and a heartbeat never pretends to be done',
  )
  t.ok(Math.max(...gaps(sent)) <= 2000)
})
