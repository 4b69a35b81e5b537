/** Messages on their way: from the audit log over the outbox in a real file to a real receiver that fails, hangs, or is gone. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { signMessage } from '../../notifications/sign-message.js'
import { openState } from '../../storage/state/open-state.js'
import type { Json } from '../contract/authenticated-service.js'
import { directoryOf } from '../state/support.js'
import { guardOf, type Receiver, silence, startReceiver, status } from './receiver.js'
import { asked, entryOf, refused, START, startSending } from './sending-process.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

interface World {
  receiver: Receiver
  clock: { now: number }
  path?: string
  timeoutMs?: number
}

/** One process with its file. */
function startProcess(t: Test, { receiver, clock, path = join(directoryOf(t), 'state.db'), timeoutMs }: World) {
  const state = openState(path, { now: () => clock.now, variable: 'MCP_STATE_PATH' })
  t.teardown(() => state.close())
  const post = receiver.post(timeoutMs === undefined ? {} : { timeoutMs })
  return { ...startSending(t, { receiver, clock, state, post }), path }
}

const typesOf = ({ received }: Receiver) => received.map(({ type }) => type)

t.test('signed as in the test vector of Standard Webhooks', (t) => {
  const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' }
  t.same(signMessage(secret, message, 1614265330), {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
  t.end()
})

t.test('a message is sent once, signed, and is gone from the outbox', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, tick, waiting, fates } = startProcess(t, world)
  recorder.note(asked('a-1'))
  await tick()
  await tick()
  const [message, ...others]: Json[] = world.receiver.received
  t.same(others, [])
  t.equal(message?.isSigned, true)
  t.equal(message.seconds, START / 1000)
  t.same(JSON.parse(message.body), {
    type: 'approval.waiting',
    timestamp: '2026-06-15T12:00:00.000Z',
    data: {
      text: 'provision-policy of ann waits for approval.',
      server: 'https://mcp.example.test',
      replica: 'mcp-1',
      tool: 'provision-policy',
      reason: 'confirm_required',
      person: { iss: 'https://idp.example.test/', sub: 'ann' },
      approval_id: 'a-1',
      approval_url: 'https://mcp.example.test/approve/a-1',
      request_id: 'r-1',
    },
  })
  t.same([await waiting(), fates], [0, { sent: 1 }])
})

t.test('a receiver that answers 500, a redirect or nothing gets the same message again, later each time', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START }, timeoutMs: 300 }
  const { recorder, tick, waiting, fates, lines } = startProcess(t, world)
  const { receiver, clock } = world
  recorder.note(asked('a-1'))
  const elsewhere = await startReceiver(t)
  const answers = [status(500), status(307, { location: elsewhere.url }), silence]
  for (const [times, answer] of answers.entries()) {
    receiver.answer = answer
    await tick()
    t.equal(receiver.received.length, times + 1)
    clock.now += 5000 * 2 ** times - 1
    await tick()
    t.equal(receiver.received.length, times + 1, 'not before the pause is over')
    clock.now += 1
  }
  receiver.answer = status(202)
  await tick()
  t.same(new Set(receiver.received.map(({ id }) => id)).size, 1)
  t.same(
    receiver.received.map(({ isSigned, seconds }) => [isSigned, seconds - START / 1000]),
    [0, 5, 15, 35].map((seconds) => [true, seconds]),
  )
  t.same(elsewhere.received, [], 'a redirect is not followed')
  t.same([await waiting(), fates], [0, { failed: 3, sent: 1 }])
  t.same(
    lines.map((line) => [line.includes('path-is-secret'), line.includes('receiver.example.test')]),
    Array(3).fill([false, true]),
    'the log names the host, and not the path',
  )
})

t.test('a receiver that is refused by address is never connected to', async (t) => {
  const receiver = await startReceiver(t)
  const { port } = receiver
  const name = 'receiver.example.test'
  const post = (host: string, addresses: string[]) =>
    receiver.post({ url: `https://${host}:${port}/`, guard: guardOf(name, port, addresses) })('{}', {})
  const kinds = [
    ['127.0.0.1', 'a loopback address'],
    ['169.254.169.254', 'the address of a cloud metadata service'],
    ['::ffff:127.0.0.1', 'a loopback address'],
  ]
  for (const [address, kind] of kinds)
    t.same(await post(name, ['10.0.0.1', address!]), {
      failure: `the name of the receiver resolves to ${kind}, which is not allowed for a receiver`,
    })
  t.same(Object.keys(await post('127.0.0.1', [])), ['failure'], 'an address in the URL is no other than a name')
  t.same(receiver.received, [])
})

t.test('an endless answer is not read to its end', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, tick, waiting } = startProcess(t, world)
  let sent = 0
  const closed = new Promise<void>((resolve) => {
    world.receiver.answer = (answer) => {
      answer.on('close', resolve)
      answer.writeHead(200)
      const more = () => {
        while (!answer.destroyed && answer.write(Buffer.alloc(16_384))) sent += 16_384
      }
      answer.on('drain', more)
      more()
    }
  })
  recorder.note(asked('a-1'))
  await tick()
  await closed
  t.ok(sent < 32 * 1024 * 1024, `${sent} bytes, which are those in the buffers of the sockets`)
  t.equal(await waiting(), 0)
})

t.test('given up: at 410, and after 24 hours', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, tick, waiting, fates } = startProcess(t, world)
  const { receiver, clock } = world
  receiver.answer = status(410)
  recorder.note(asked('a-1'))
  await tick()
  t.same([await waiting(), fates.given_up, receiver.received.length], [0, 1, 1])
  receiver.answer = status(503)
  clock.now += HOUR
  recorder.note(asked('a-2'))
  await tick()
  clock.now += 24 * HOUR - 1
  await tick()
  t.same([await waiting(), receiver.received.length], [1, 3])
  clock.now += HOUR
  await tick()
  t.same([await waiting(), fates.given_up, receiver.received.length], [0, 2, 3], 'not even tried')
})

t.test('one process sends at a time, and another one goes on after it was killed', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const first = startProcess(t, world)
  const { receiver, clock } = world
  const second = startProcess(t, { ...world, path: first.path })
  first.recorder.note(asked('a-1'))
  first.recorder.note(asked('a-2'))
  await first.recorder.store()
  // The first process takes a message, and is heard of no more.
  const taken = await first.state.outbox.take('killed', 40_000)
  t.equal(taken?.attempts, 1)
  await second.tick()
  t.same(receiver.received, [], 'the other one waits for its lease')
  clock.now += 40_000
  await second.tick()
  t.same(receiver.received.map(({ data }) => data.approval_id as string).sort(), ['a-1', 'a-2'])
  t.ok(receiver.received.some(({ id }) => id === taken!.id))
  t.equal(await second.waiting(), 0)
})

t.test('equal refusals are told once in five minutes, and counted', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, tick, fates } = startProcess(t, world)
  const { receiver, clock } = world
  for (let time = 0; time < 100; time++) recorder.note(refused())
  recorder.note(refused({ sub: 'bob' }))
  recorder.note(refused({ tool: 'update-rule' }))
  await tick()
  t.equal(receiver.received.length, 3)
  clock.now += 5 * MINUTE
  await tick()
  const [, , , last, ...none] = receiver.received
  t.same(none, [])
  t.same([last?.type, last?.data.repeated], ['refused.out_of_scope', 99])
  t.equal(last?.data.text, 'provision-policy of ann was refused: out_of_scope. This has happened 99 more times since.')
  clock.now += 10 * MINUTE
  await tick()
  recorder.note(refused())
  await tick()
  t.same([receiver.received.length, fates], [5, { repeated: 99, sent: 5 }])
})

t.test('what finds no room is counted', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, state, waiting, fates, lines } = startProcess(t, world)
  const message = (id: number) => ({ id: `m-${id}`, body: '{}', createdAt: START })
  t.equal(await state.outbox.add([...Array(9999).keys()].map(message)), 0)
  recorder.note(asked('a-1'))
  recorder.note(asked('a-2'))
  recorder.note(asked('a-3'))
  await recorder.store()
  t.same([await waiting(), fates], [10_000, { dropped: 2 }])
  t.same(lines, ['notifications were dropped: the outbox is full {"count":2}'])
})

t.test('while the store takes nothing, messages go out from memory, and are not forgotten before', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, store, state, tick, waiting, fates } = startProcess(t, world)
  const { receiver, clock } = world
  store.outbox.add = () => Promise.reject(new Error('the disk is full'))
  recorder.noteAuditFailure('write')
  recorder.noteAuditFailure('check')
  receiver.answer = status(500)
  await tick()
  t.same(fates, { failed: 1 })
  receiver.answer = status(204)
  clock.now += 5000
  await tick()
  t.same(typesOf(receiver), ['audit.failed', 'audit.failed', 'audit.failed'])
  t.same(
    receiver.received.map(({ data }) => data.operation as string),
    ['write', 'write', 'check'],
  )
  t.equal(receiver.received[0]?.id, receiver.received[1]?.id)
  recorder.note(asked('a-1'))
  receiver.answer = status(500)
  await tick()
  store.outbox.add = state.outbox.add
  receiver.answer = status(204)
  await recorder.store()
  t.equal(await waiting(), 1)
  clock.now += 5000
  await tick()
  t.same([await waiting(), receiver.received.at(-1)?.data.approval_id], [0, 'a-1'])
})

t.test('a process that stops leaves its messages in the store, for the next start', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { receiver } = world
  receiver.answer = silence
  const first = startProcess(t, world)
  first.recorder.note(asked('a-1'))
  const sending = first.tick()
  first.recorder.note(asked('a-2'))
  await first.close()
  await sending
  world.clock.now += 40_000
  receiver.answer = status(204)
  receiver.received.length = 0
  const second = startProcess(t, { ...world, path: first.path })
  await second.tick()
  t.same(receiver.received.map(({ data }) => data.approval_id as string).sort(), ['a-1', 'a-2'])
})

t.test('hidden characters and long names of people are shown and clipped', async (t) => {
  const world = { receiver: await startReceiver(t), clock: { now: START } }
  const { recorder, tick } = startProcess(t, world)
  recorder.note(entryOf({ approval: 'denied', reason: 'approval_denied', sub: `eve\u202e${'x'.repeat(10_000)}` }))
  await tick()
  const [message] = world.receiver.received
  t.match(message?.data.text, /^eve⟨U\+202E⟩x{296}… denied provision-policy of eve⟨U\+202E⟩x{296}…\.$/)
  t.ok(message!.body.length < 2000)
})

t.test('names in a message take a bounded part of it, and what is left out is counted', async (t) => {
  const receiver = await startReceiver(t)
  const clock = { now: START }
  const state = openState(join(directoryOf(t), 'state.db'), { now: () => clock.now, variable: 'MCP_STATE_PATH' })
  t.teardown(() => state.close())
  const findApproval = () => Promise.resolve({ summary: 'long '.repeat(5000), expiresAt: START })
  const { recorder, tick } = startSending(t, { receiver, clock, state, names: true, findApproval })
  const hidden = '\u202e'.repeat(255)
  const people = { sub: hidden, asked_by: { iss: hidden, sub: hidden }, approved_by: { iss: hidden, sub: hidden } }
  const scopes = Array.from({ length: 5000 }, (_, n) => `app=${n} ${'x'.repeat(90)}`)
  recorder.note(refused({ ...people, scopes, outside: { kind: 'rule_sets', href: 'h'.repeat(100_000) } }))
  recorder.note(refused({ tool: 'b', scopes: scopes.slice(0, 3), note: 'n'.repeat(500) }))
  recorder.note({ ...asked('a-1'), ...people })
  await tick()
  const [cut, whole, waiting, ...none] = receiver.received
  t.same(none, [])
  for (const { body } of [cut!, whole!, waiting!]) t.ok(Buffer.byteLength(body) < 64 * 1024, `${body.length}`)
  t.equal(cut?.data.outside.href, `${'h'.repeat(499)}…`)
  t.same(cut?.data.scopes, scopes.slice(0, cut?.data.scopes.length))
  t.equal(cut?.data.scopes.length + cut?.data.names_left_out, 5000)
  t.ok(cut?.data.scopes.length > 50)
  t.same(
    [whole?.data.scopes, whole?.data.note, whole?.data.names_left_out],
    [scopes.slice(0, 3), 'n'.repeat(500), undefined],
  )
  t.match(waiting?.data.summary, /^(long ){399}lon…$|^(long ){399}long…$/)
})
