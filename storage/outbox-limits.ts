/**
 * Maximum number of messages in the outbox. Even at one message a second, far more than people cause, this is enough
 * for almost three hours.
 */
export const MOST_MESSAGES = 10_000

/**
 * The name of the note that says which process may send messages, and until when. Its form is `milliseconds holder`.
 */
export const LEASE = 'outbox_lease'

export interface StoredMessage {
  id: string
  body: string
  /** The column contains a number in a file, and a string of digits in a database. */
  created_at: number | string
  attempts: number
}

/** Converts a row of the outbox table to a message. */
export const messageOf = ({ id, body, created_at: createdAt, attempts }: StoredMessage) => ({
  id,
  body,
  createdAt: Number(createdAt),
  attempts,
})
