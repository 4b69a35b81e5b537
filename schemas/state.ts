import type { Owner } from './caller.js'

/** Encrypted credentials: the data is sealed with a data key, which in turn is wrapped with the key-encryption key. */
export interface SealedCredentials {
  /**
   * A random value that is new for every registration. A PCE client that was created for an older registration is never
   * used again.
   */
  version: string
  /** Fingerprint of the key-encryption key that wrapped the data key; not the key itself. */
  kekId: string
  wrappedKey: Uint8Array
  sealed: Uint8Array
}

/**
 * A condition on notes (small named values) in the same store. `isMet` receives the value of each note named in
 * `notes`, in the order of `notes`; the value of a missing note is null.
 */
export interface PutCondition {
  notes: readonly string[]
  isMet: (values: readonly (string | null)[]) => boolean
}

/**
 * The records of the keystore. Promises resolve when the data is on disk, and reject with an Error if the store cannot
 * be read or written.
 */
export interface CredentialRecords {
  get(owner: Owner): Promise<SealedCredentials | null>
  /**
   * Stores a record. If `only` is given, the record is stored only if the notes meet this condition at the moment of
   * writing. Resolves with true if it was stored.
   */
  put(owner: Owner, record: SealedCredentials, only?: PutCondition): Promise<boolean>
  /**
   * Stores `record` only if the wrapped key in the owner's stored record is still `wrappedKey`. Resolves with true if
   * `record` was stored.
   */
  replace(owner: Owner, wrappedKey: Uint8Array, record: SealedCredentials): Promise<boolean>
  remove(owner: Owner): Promise<boolean>
  /**
   * Returns up to `limit` records that follow the record of the owner `after`, in a stable order of owners. If `after`
   * is null, it returns the first records.
   */
  page(after: Owner | null, limit: number): Promise<{ owner: Owner; record: SealedCredentials }[]>
}

/** The record of the confirm tokens that have been used. */
export interface UsedTokens {
  /**
   * Claims the id of a confirm token. Of all claims of one id, in any number of processes, exactly one resolves with
   * true, and only after the claim has been written to disk. `expiresAt` is the time at which the token expires, in
   * milliseconds since the epoch; some time after that, the store may forget the id.
   */
  claim(id: string, expiresAt: number): Promise<boolean>
  /** Resolves with true if any process has claimed the id. Changes nothing. */
  isUsed(id: string): Promise<boolean>
}

/**
 * The key under which a question about a call is stored: digests of the call's owner and of the call itself, 64 hex
 * digits each.
 */
export interface ChallengeKey {
  owner: string
  call: string
}

/**
 * What callers were shown when they were asked to confirm a call, as sealed digests. Each is kept for as long as a
 * confirm token for the call would be valid.
 */
export interface Challenges {
  /**
   * Stores the sealed digest of what was shown in a question. If one owner, or all owners together, have too many open
   * questions, the ones that expire first are forgotten.
   */
  put(key: ChallengeKey, boundTo: string, expiresAt: number): Promise<void>
  get(key: ChallengeKey): Promise<string | null>
  /** Forgets all questions to one owner. Resolves with their number, including expired ones. */
  removeAll(owner: ChallengeKey['owner']): Promise<number>
}

/**
 * The way in which an approval ended: the call was allowed to run (`used`), the call would now do something else or the
 * person who decided is no longer permitted to decide (`void`), the time ran out (`expired`), or an admin took the
 * question or its answer back (`revoked`).
 */
export type ApprovalEnding = 'used' | 'void' | 'expired' | 'revoked'

/**
 * A stored question about a call, which a person answers with a decision. Its contents are sealed, so that the store
 * cannot read them.
 */
export interface ApprovalRow {
  id: string
  key: ChallengeKey
  request: string
  /** The person's decision about the question; null if there is none yet. */
  decision: string | null
  /** The first approval of a call that needs two; null if there is none. The question is undecided with it alone. */
  firstDecision: string | null
  ending: ApprovalEnding | null
  /** Time of expiry in milliseconds since the epoch. */
  expiresAt: number
}

/** The position of an approval in the order of expiry. */
export type ApprovalPlace = Pick<ApprovalRow, 'expiresAt' | 'id'>

/**
 * The questions about calls that wait for a person, and the decisions about these calls. A row is kept for a day after
 * it has expired, or for an hour if nobody has decided.
 */
export interface Approvals {
  /**
   * Opens a question about a call, unless one is already open. If several processes try this at the same time, only one
   * opens its question, and all attempts resolve with that question. An earlier question about the same call is replaced
   * if it has ended or expired, or if its id is `instead`. The number of undecided questions is limited per owner and in
   * total; beyond the limit, the ones that expire first are ended immediately.
   */
  open(row: Pick<ApprovalRow, 'id' | 'key' | 'request' | 'expiresAt'>, instead?: string): Promise<ApprovalRow>
  get(id: string): Promise<ApprovalRow | null>
  /** Returns the latest question that was asked about the given call. */
  find(key: ChallengeKey): Promise<ApprovalRow | null>
  /**
   * Returns the open questions of one owner, or of all owners if `owner` is null, in the order of their expiry. A
   * question is open if it is undecided and has neither ended nor expired. At most `ofEach` questions of each owner and
   * `inAll` questions altogether are returned; `total` also counts the open questions that are not returned. The result
   * has a second question of any owner only if it has the first question of every owner, and so on, so that nobody can
   * push somebody else's questions off the list. Questions whose ids are in `except` are neither returned nor counted.
   */
  waiting(
    owner: ChallengeKey['owner'] | null,
    most: { inAll: number; ofEach: number; except?: readonly string[] },
  ): Promise<{ total: number; rows: ApprovalRow[] }>
  /**
   * Returns up to `limit` approvals of all owners that have neither ended nor expired, whether decided or not. They are
   * in the order of their expiry, beginning after `after` or with the first one.
   */
  live(after: ApprovalPlace | null, limit: number): Promise<ApprovalRow[]>
  /**
   * Stores a decision about an open question, if it is the first decision about it and, if `after` is given, this is
   * still the stored first approval. Resolves with true if it was stored, as soon as it is on disk.
   */
  decide(id: string, decision: string, after?: string): Promise<boolean>
  /**
   * Stores the first of two approvals of an open question, which stays open. Resolves with true if there was no first
   * approval before, as soon as this one is on disk.
   */
  approveFirst(id: string, decision: string): Promise<boolean>
  /**
   * Ends an approval. Of all attempts to end the approval with one id, in any number of processes, exactly one resolves
   * with true, and only after its change has been written to disk.
   */
  end(id: string, ending: ApprovalEnding): Promise<boolean>
  /**
   * Ends approvals that have expired: undecided questions at once, and decided ones an hour after their expiry, because
   * a call that began in time may still be running. Resolves with the ended rows, at most a hundred; each row is
   * returned only once across all processes. Deletes rows that expired more than a day ago, and undecided rows that
   * expired more than an hour ago.
   */
  expire(): Promise<ApprovalRow[]>
  /** Forgets all approvals of one owner. Resolves with their number. */
  removeAll(owner: ChallengeKey['owner']): Promise<number>
}

/** A message about an event, which waits in the outbox until its receiver has it. */
export interface OutboxMessage {
  /** Identifies the message. It stays the same over all attempts, so that a receiver can recognise repetitions. */
  id: string
  /** The message as JSON text, exactly as it is sent. */
  body: string
  /** Time of the event in milliseconds since the epoch. */
  createdAt: number
}

/** The messages that their receiver has not got yet, from all processes that share the store. */
export interface Outbox {
  /**
   * Adds messages, which become due at once. If there is not enough room, the last messages are dropped. Resolves with
   * the number of dropped messages.
   */
  add(messages: readonly OutboxMessage[]): Promise<number>
  /**
   * Returns the number of messages in the outbox, and the time at which the earliest of them is due (null if there are
   * none). Writes nothing.
   */
  look(): Promise<{ waiting: number; dueAt: number | null }>
  /**
   * Returns the message that has been due for longest, and gives the process `holder` the sole right to send for
   * `leaseMs` milliseconds. The attempt is counted, and the message becomes due again when that time is over. Resolves
   * with null if another process has the right to send, or if no message is due.
   */
  take(holder: string, leaseMs: number): Promise<(OutboxMessage & { attempts: number }) | null>
  /** Postpones a message to another time, in milliseconds since the epoch. */
  defer(id: string, dueAt: number): Promise<void>
  remove(id: string): Promise<void>
}

/** Small named values in the store, each called a note. They describe the store itself. */
export interface Notes {
  get(name: string): Promise<string | null>
  /**
   * Reads a note without a promise, for checks that every request needs. Returns undefined if that is not possible at
   * the moment; absent if the store always takes a round trip.
   */
  readonly getNow?: (name: string) => string | null | undefined
  /**
   * Returns an object that stays the same as long as no note has changed. The store is looked at once in each turn of
   * the event loop. Returns undefined if that is not possible at the moment; throws Error if the store cannot be read;
   * absent if the store always takes a round trip.
   */
  readonly edition?: () => object | undefined
  /** Returns up to `limit` notes whose names begin with `prefix` and follow `after`, in the order of the bytes of their names. */
  list(prefix: string, after: string, limit: number): Promise<{ name: string; value: string }[]>
  set(name: string, value: string): Promise<void>
  /** Removes a note. Resolves with true if it existed. */
  remove(name: string): Promise<boolean>
  /**
   * Writes `value` only if the note has no value yet; if several processes try this, only one succeeds. Resolves with
   * the value that is then stored.
   */
  setOnce(name: string, value: string): Promise<string>
}

/** The record of a revocation, which ends a person's access. Times are in milliseconds since the epoch. */
export interface Revocation {
  /**
   * The time until which every request of this person is refused. Tokens and sessions issued before that time are
   * refused even afterwards.
   */
  until: number
  /** The time at which the operator revoked the access. */
  at: number
  /** The name of the operating system user who revoked the access. */
  by: string
}

/** The revocations of people's access. Each person has at most one; a new one replaces it. */
export interface Revocations {
  /** Finds the revocation of a person. The result is not a promise if the store can be read at once. */
  find(owner: Owner): Revocation | null | Promise<Revocation | null>
  /**
   * Finds the revocation of a person whose request is arriving. All requests that arrive in one turn of the event loop
   * share one look at the store where it can be read at once. These requests had reached this machine before the look,
   * so a revocation that is made after it does not apply to them. Whatever is decided later needs `find`.
   */
  findOnArrival(owner: Owner): Revocation | null | Promise<Revocation | null>
  set(owner: Owner, revocation: Revocation): Promise<void>
  /** Returns the revocations of all people, in a stable order. */
  all(): AsyncIterable<{ owner: Owner; revocation: Revocation }>
}

/** A person's last use of a server, accurate to a few minutes, and the person's name at that time. */
export interface LastUse {
  /** The time of the last use, in milliseconds since the epoch. */
  at: number
  /** The person's name according to the identity provider, if it gives one. */
  name?: string
}

/**
 * The time at which a person registered PCE credentials, in milliseconds since the epoch, and the version of these
 * credentials.
 */
export interface Registration {
  version: string
  at: number
}

/** What the store knows about people, apart from their keys. Nothing is decided by it. */
export interface People {
  /** Returns the person's last use; null if the person has not been seen since servers began to note it. */
  lastUse(owner: Owner): Promise<LastUse | null>
  used(owner: Owner, use: LastUse): Promise<void>
  /** Returns all people who have been seen, in a stable order. */
  allUses(): AsyncIterable<{ owner: Owner; use: LastUse }>
  registered(owner: Owner, registration: Registration): Promise<void>
  registration(owner: Owner): Promise<Registration | null>
  /** Forgets a person. Resolves with true if anything was known about the person. */
  remove(owner: Owner): Promise<boolean>
}

/** The caller of a request, and the limits that apply to each caller. */
export interface AdmissionQuestion {
  owner: Owner
  /** Maximum number of requests per minute; 0 means no limit. */
  perMinute: number
  /** Maximum number of simultaneous requests of the caller; 0 means no limit. */
  atATime: number
  /**
   * If false, the request is counted only towards `atATime`, because it is counted towards its limit per minute
   * elsewhere. Default true.
   */
  isCounted?: boolean
}

/**
 * A request that has been admitted: it has been counted, and it occupies one of the concurrency slots (`atATime`) of
 * its caller.
 */
export interface Admission {
  /** The caller's current record in the keystore; null if there is none. */
  record: SealedCredentials | null
  /** The revocation of the caller's access; null if there is none. */
  revocation: Revocation | null
  /**
   * Releases the request's concurrency slot if `isHeld` is false. If `isHeld` is true, takes a slot again, for work
   * that continues after the answer. Never throws; a failed attempt is repeated later.
   */
  readonly holdPlace: (isHeld: boolean) => void
}

/** Limits that apply across all replicas. Every method rejects with an Error if the store does not respond. */
export interface Admissions {
  /**
   * Counts a request, gives it one of its caller's concurrency slots and reads the caller's keystore record and revocation, all in
   * one round trip.
   *
   * @throws {ToolError} `rate_limited {retry_after}` and `overloaded`.
   */
  admit(question: AdmissionQuestion): Promise<Admission>
  /**
   * Counts `times` events of one caller towards the limit named `limit`. Rejects with ToolError
   * `rate_limited {retry_after}` or `overloaded`.
   */
  readonly count: (limit: string, owner: Owner, perMinute: number, times: number) => Promise<void>
}

/** The connections to a database: how many exist and how many are free, and how many queries wait for one. */
export interface StatePoolFigures {
  total: number
  idle: number
  waiting: number
}

/**
 * The state that outlives a request in the authenticated modes (D24), behind interfaces so that the store can be
 * replaced.
 */
export interface State {
  readonly credentials: CredentialRecords
  readonly usedTokens: UsedTokens
  readonly challenges: Challenges
  readonly approvals: Approvals
  readonly outbox: Outbox
  readonly notes: Notes
  readonly revocations: Revocations
  /**
   * Limits that apply across all replicas. Absent if only this process uses the state, because the process then counts
   * requests itself.
   */
  readonly admissions?: Admissions
  /** Checks that the store can be written to at the moment. Rejects if not. */
  checkWritable(): Promise<void>
  /**
   * Returns the reason why the store cannot be used at the moment, or null if none is known. No query is sent for this.
   * A store in a file does not have this function, because querying the file shows whether it can be used.
   */
  readonly findProblem?: () => Error | null
  /** Returns the numbers of connections and waiting queries. Present only if the state is in a database. */
  readonly pool?: () => StatePoolFigures
  close(): void | Promise<void>
}
