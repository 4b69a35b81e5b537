import { randomUUID } from 'node:crypto'
import type { Meter } from '../schemas/metrics.js'
import type { Outbox, OutboxMessage } from '../schemas/state.js'
import type { Post, PostResult } from './post-message.js'
import type { EventRecorder, NotifyLog } from './record-events.js'
import { signMessage } from './sign-message.js'

export interface SenderOptions {
  outbox: Outbox
  recorder: Pick<EventRecorder, 'store' | 'sweep' | 'firstUnstored' | 'forget'>
  post: Post
  secret: Buffer
  /** The host of the receiver, for the log. */
  host: string
  log: NotifyLog
  meter?: Pick<Meter, 'notification'>
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns a number from 0 to 1, for the jitter. */
  random?: () => number
}

export interface Sender {
  /** Sends what is due; if this is going on already, waits for it. Never rejects. */
  tick(): Promise<void>
  /** Sends what is due soon, without waiting for it. */
  wake(): void
  /** Returns the number of messages that waited when the outbox was last looked at. */
  readonly waiting: () => number
  /** Stops sending, and stores what is not stored yet. What waits is sent by another process or after the next start. */
  close(): Promise<void>
}

const TICK_MS = 5000
/** The time for which a process alone may send; longer than one attempt can take. */
const LEASE_MS = 40_000
const FIRST_PAUSE_MS = 5000
const LONGEST_PAUSE_MS = 5 * 60_000
/** The age at which a message is given up: whoever reads it later is misled by it. */
const GIVE_UP_MS = 24 * 60 * 60_000
/** The status with which a receiver says that it wants no messages any more (Standard Webhooks). */
const GONE = 410

/**
 * Creates the sender of one process. Of all processes with the same store one sends at a time, and one message at a
 * time. After a failed attempt it pauses, longer each time; a failed message is repeated with the same id until the
 * receiver accepts it with a 2xx status, or is given up after 24 hours.
 */
export function createSender(options: SenderOptions): Sender {
  const { outbox, recorder, post, secret, host, log, meter, now, random = Math.random } = options
  const holder = randomUUID()
  const stopping = new AbortController()
  let waiting = 0
  let failures = 0
  let pausedUntil = 0
  let running: Promise<void> | undefined
  let isWoken = false

  /** Returns the pause after the n-th failure in a row, half of it random, so that senders do not keep in step. */
  const pauseAfter = (times: number) =>
    Math.round(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 16)) * (0.5 + random() / 2))

  const send = ({ id, body }: OutboxMessage): Promise<PostResult> =>
    post(body, signMessage(secret, { id, body }, Math.floor(now() / 1000)), stopping.signal)

  /** Notes the result of an attempt. Returns true if the message is done: the receiver has it, or wants none any more. */
  function judge({ id }: OutboxMessage, attempts: number, result: PostResult): boolean {
    if ('status' in result && result.status >= 200 && result.status < 300) {
      failures = 0
      meter?.notification('sent')
      return true
    }
    if (stopping.signal.aborted) return false
    failures += 1
    pausedUntil = now() + pauseAfter(failures)
    meter?.notification('failed')
    const pause = Math.round((pausedUntil - now()) / 1000)
    log.warn({ id, host, attempts, ...result, pause_seconds: pause }, 'a notification was not accepted')
    const isUnwanted = 'status' in result && result.status === GONE
    if (isUnwanted) giveUp(id, attempts)
    return isUnwanted
  }

  function giveUp(id: string, attempts: number): void {
    meter?.notification('given_up')
    log.error({ id, host, attempts }, 'a notification is given up')
  }

  /** Sends one message of the outbox. Resolves with false if this process has nothing more to send now. */
  async function sendStored(): Promise<boolean> {
    const { waiting: found, dueAt } = await outbox.look()
    waiting = found
    if (dueAt === null || dueAt > now()) return false
    const message = await outbox.take(holder, LEASE_MS)
    if (message === null) return false
    const { id, attempts } = message
    // The body is empty if somebody else wrote one into the store that is far too long.
    const isOver = now() - message.createdAt >= GIVE_UP_MS || message.body === ''
    if (isOver) giveUp(id, attempts - 1)
    if (isOver || judge(message, attempts, await send(message))) {
      await outbox.remove(id)
      waiting -= 1
    } else await outbox.defer(id, now() + pauseAfter(attempts))
    return pausedUntil <= now()
  }

  /** Sends one message that the store does not take. Perhaps it is about the very fault of the store. */
  async function sendUnstored(): Promise<boolean> {
    const message = recorder.firstUnstored()
    if (message === null) return false
    if (judge(message, 1, await send(message))) recorder.forget(message.id)
    return pausedUntil <= now()
  }

  async function work(): Promise<void> {
    try {
      recorder.sweep()
      const isStored = await recorder.store()
      if (pausedUntil > now()) return
      const next = isStored ? sendStored : sendUnstored
      while (!stopping.signal.aborted && (await next()));
    } catch (err) {
      log.warn({ err }, 'notifications cannot be read from the store')
    }
  }

  const tick = (): Promise<void> => (running ??= work().finally(() => (running = undefined)))

  const timer = setInterval(() => void tick(), TICK_MS).unref()
  return {
    tick,
    wake() {
      if (isWoken || stopping.signal.aborted) return
      isWoken = true
      setImmediate(() => {
        isWoken = false
        void tick()
      })
    },
    waiting: () => waiting,
    async close() {
      clearInterval(timer)
      stopping.abort()
      await running
      await recorder.store()
    },
  }
}
