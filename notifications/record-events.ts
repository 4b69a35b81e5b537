import { randomUUID } from 'node:crypto'
import { clipText, visibleJson } from '../domain/text/escape-text.js'
import type { AuditEntry } from '../schemas/audit.js'
import type { Meter } from '../schemas/metrics.js'
import type { Outbox, OutboxMessage } from '../schemas/state.js'
import { type NotifiedEvent, readEvent, type Teller } from './read-event.js'

export interface RecorderOptions extends Teller {
  outbox: Pick<Outbox, 'add'>
  /**
   * Returns the facts about an approval that waits for a decision: what the call would do, and when the approval
   * expires, in milliseconds since the epoch. Absent if calls need no approvals.
   */
  findApproval?: (id: string) => Promise<{ summary: string; expiresAt: number } | null>
  log: NotifyLog
  meter?: Pick<Meter, 'notification'>
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Called after messages have been added to the outbox. */
  added?: () => void
}

export interface NotifyLog {
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** Converts events to messages and puts these into the outbox. No method throws or delays a call. */
export interface EventRecorder {
  /** Examines an entry that is already in the audit log. If the entry describes an event, the event is recorded. */
  note(entry: AuditEntry): void
  /** Records the event that an operation of the audit log failed. */
  noteAuditFailure(operation: string): void
  /** Puts all recorded events into the outbox. Resolves with false if the store does not accept them. Never rejects. */
  store(): Promise<boolean>
  /**
   * Records one event for the repetitions that were suppressed, as soon as the quiet period of the original event is
   * over.
   */
  sweep(): void
  /**
   * Returns the oldest message that is missing from the outbox because the store did not accept it; null if there is
   * none.
   */
  firstUnstored(): OutboxMessage | null
  /** Drops a message that never got into the outbox, because the receiver has it now. */
  forget(id: string): void
}

/**
 * The time, in milliseconds, during which repetitions of a refusal or of an audit failure are only counted; the next
 * message gives their number. A model that repeats a refused call can therefore flood neither the receiver nor the
 * outbox.
 */
const QUIET_MS = 5 * 60_000
/** Maximum number of different refusals that are remembered at a time. Any other refusal is reported each time. */
const MOST_QUIET = 1000
/** Maximum number of characters of the summary of a call in a message. */
const LONGEST_SUMMARY = 2000
/** Maximum number of events that are kept in memory until the outbox accepts them. */
const MOST_UNSTORED = 1000

/** Creates the event recorder of one process. */
export function createRecorder(options: RecorderOptions): EventRecorder {
  const { outbox, findApproval, log, meter, now, added = () => {} } = options
  let unstored: OutboxMessage[] = []
  const fresh: NotifiedEvent[] = []
  let storing: Promise<boolean> | undefined
  let isScheduled = false
  let count = 0
  const quiet = new Map<string, { event: NotifiedEvent; until: number; repeated: number }>()

  function take(event: NotifiedEvent): void {
    if (unstored.length + fresh.length >= MOST_UNSTORED) return drop(1, 'the store does not take messages')
    fresh.push(event)
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => void store())
  }

  function takeUnlessRepeated(event: NotifiedEvent): void {
    const { tool, person, operation } = event.data
    const key = JSON.stringify([event.type, tool, person?.iss, person?.sub, operation])
    const earlier = quiet.get(key)
    if (earlier !== undefined && earlier.until > now()) {
      earlier.repeated += 1
      return meter?.notification('repeated')
    }
    if (quiet.size < MOST_QUIET) quiet.set(key, { event, until: now() + QUIET_MS, repeated: 0 })
    take(event)
  }

  function drop(count: number, why: string): void {
    if (count === 0) return
    meter?.notification('dropped', count)
    log.error({ count }, `notifications were dropped: ${why}`)
  }

  async function messageOf({ type, timestamp, data }: NotifiedEvent): Promise<OutboxMessage> {
    const { approval_id: id } = data
    const asked = type === 'approval.waiting' && id !== undefined ? await findApproval?.(id).catch(() => null) : null
    const known = asked && {
      expires_at: new Date(asked.expiresAt).toISOString(),
      ...(options.names && { summary: clipText(asked.summary, LONGEST_SUMMARY) }),
    }
    const body = visibleJson({ type, timestamp, data: { ...data, ...known } })
    const createdAt = now()
    // The id starts with the time and a counter, so that messages created in the same millisecond sort in the order of
    // their creation.
    const order = `${createdAt.toString(36)}${(count++ % 36 ** 4).toString(36).padStart(4, '0')}`
    return { id: `msg_${order}_${randomUUID()}`, body, createdAt }
  }

  async function storeAll(): Promise<boolean> {
    isScheduled = false
    for (const event of fresh.splice(0)) unstored.push(await messageOf(event))
    const messages = unstored
    if (messages.length === 0) return true
    unstored = []
    try {
      drop(await outbox.add(messages), 'the outbox is full')
      added()
      return true
    } catch (err) {
      unstored = [...messages, ...unstored]
      log.warn({ err, count: messages.length }, 'notifications cannot be stored')
      return false
    }
  }

  /** Stores one batch after the other. Two batches at the same time could store the same message twice. */
  function store(): Promise<boolean> {
    const before = storing ?? Promise.resolve(true)
    const mine = before.then(storeAll)
    storing = mine
    return mine
  }

  return {
    note(entry) {
      const event = readEvent(entry, options)
      if (event === null) return
      if (event.type.startsWith('refused.')) takeUnlessRepeated(event)
      else take(event)
    },
    noteAuditFailure(operation) {
      const { publicUrl: server, replica } = options
      const text = `The audit log of ${replica} cannot be used (${operation}): nothing is changed until it can.`
      const timestamp = new Date(now()).toISOString()
      takeUnlessRepeated({ type: 'audit.failed', timestamp, data: { text, server, replica, operation } })
    },
    store,
    sweep() {
      for (const [key, { event, until, repeated }] of quiet) {
        if (until > now()) continue
        quiet.delete(key)
        if (repeated === 0) continue
        quiet.set(key, { event, until: now() + QUIET_MS, repeated: 0 })
        const { data } = event
        const text = `${data.text} This has happened ${repeated} more ${repeated === 1 ? 'time' : 'times'} since.`
        take({ ...event, timestamp: new Date(now()).toISOString(), data: { ...data, text, repeated } })
      }
    },
    firstUnstored: () => unstored[0] ?? null,
    forget: (id) => void (unstored = unstored.filter((message) => message.id !== id)),
  }
}
