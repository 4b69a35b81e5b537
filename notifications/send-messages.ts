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
  /** Host and port of the receiver, for the log. */
  host: string
  log: NotifyLog
  meter?: Pick<Meter, 'notification'>
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns a random number from 0 to 1, which varies the length of pauses. */
  random?: () => number
}

export interface Sender {
  /** Sends the messages that are due. If this is already in progress, waits until it has finished. Never rejects. */
  tick(): Promise<void>
  /**
   * Sends the messages that are due, but starts only after the current turn of the event loop and does not wait for the
   * result.
   */
  wake(): void
  /** Returns the number of messages that were in the outbox when it was last examined. */
  readonly waiting: () => number
  /**
   * Stops sending, and stores the events that are not in the outbox yet. The messages in the outbox are sent by another
   * process or after the next start.
   */
  close(): Promise<void>
}

const TICK_MS = 5000
/**
 * The time, in milliseconds, for which one process has the sole right to send. It is longer than any single attempt.
 */
const LEASE_MS = 40_000
const FIRST_PAUSE_MS = 5000
const LONGEST_PAUSE_MS = 5 * 60_000
/** The age, in milliseconds, at which a message is given up, because so old a message would mislead its readers. */
const GIVE_UP_MS = 24 * 60 * 60_000
/** The HTTP status by which a receiver says that it wants no more messages (Standard Webhooks). */
const GONE = 410

/**
 * Creates the message sender of one process. Of all processes that share a store, only one sends at a time, and only
 * one message at a time. After each failed attempt the sender pauses, longer each time. A message that failed is sent
 * again with the same id, until the receiver answers with a 2xx status or 24 hours have passed.
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

  /**
   * Returns the length of the pause after `times` failures in a row. Half of it is random, so that several senders do
   * not keep in step.
   */
  const pauseAfter = (times: number) =>
    Math.round(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 16)) * (0.5 + random() / 2))

  const send = ({ id, body }: OutboxMessage): Promise<PostResult> =>
    post(body, signMessage(secret, { id, body }, Math.floor(now() / 1000)), stopping.signal)

  /**
   * Records the result of an attempt. Returns true if the message need not be sent again, because the receiver either
   * accepted it or wants no more messages.
   */
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

  /** Sends one message from the outbox. Resolves with false if this process has nothing more to send for now. */
  async function sendStored(): Promise<boolean> {
    const { waiting: found, dueAt } = await outbox.look()
    waiting = found
    if (dueAt === null || dueAt > now()) return false
    const message = await outbox.take(holder, LEASE_MS)
    if (message === null) return false
    const { id, attempts } = message
    // The body is read as empty if it is far too long, which means that another program wrote it into the store.
    const isOver = now() - message.createdAt >= GIVE_UP_MS || message.body === ''
    if (isOver) giveUp(id, attempts - 1)
    if (isOver || judge(message, attempts, await send(message))) {
      await outbox.remove(id)
      waiting -= 1
    } else await outbox.defer(id, now() + pauseAfter(attempts))
    return pausedUntil <= now()
  }

  /** Sends one message that the store did not accept, perhaps because the message is about a failure of that store. */
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
