/**
 * Maximum number of messages in the outbox. At one message a second, which is far more than people cause, it holds the
 * messages of almost three hours.
 */
export const MOST_MESSAGES = 10_000

/** The name of the note with the process that may send, and until when: `milliseconds holder`. */
export const LEASE = 'outbox_lease'

export interface StoredMessage {
  id: string
  body: string
  /** A number in a file, and its digits in a database. */
  created_at: number | string
  attempts: number
}

/** Converts a stored row to a message. */
export const messageOf = ({ id, body, created_at: createdAt, attempts }: StoredMessage) => ({
  id,
  body,
  createdAt: Number(createdAt),
  attempts,
})
