import type { Owner } from './caller.js'

/** Credentials at rest: a data key wrapped by the key-encryption key, and what that data key has sealed. */
export interface SealedCredentials {
  /** Random, new with every registration: names this registration, so that a client made for an older one is never used again. */
  version: string
  /** Which key-encryption key wrapped the data key: a fingerprint, not the key. */
  kekId: string
  wrappedKey: Uint8Array
  sealed: Uint8Array
}

/** A condition on notes of the same file; `isMet` is given their values in the same order, null where there is none. */
export interface PutCondition {
  notes: readonly string[]
  isMet: (values: readonly (string | null)[]) => boolean
}

/** The records of the keystore. A promise that resolves is on the disk. Rejects with an Error when the file cannot be read or written. */
export interface CredentialRecords {
  get(owner: Owner): Promise<SealedCredentials | null>
  /** With `only`, nothing is put unless the notes meet it at that very moment. Resolves with whether it was put. */
  put(owner: Owner, record: SealedCredentials, only?: PutCondition): Promise<boolean>
  /** Puts `record` only while the stored wrapped key is still `wrappedKey`; resolves with whether it did. */
  replace(owner: Owner, wrappedKey: Uint8Array, record: SealedCredentials): Promise<boolean>
  remove(owner: Owner): Promise<boolean>
  /** Up to `limit` records after `after` in a stable order; null for the first page. */
  page(after: Owner | null, limit: number): Promise<{ owner: Owner; record: SealedCredentials }[]>
}

/** Which confirm tokens have been used. */
export interface UsedTokens {
  /**
   * Of all the calls for one id, in any number of processes, exactly one ever resolves with true; then it is on the disk.
   * `expiresAt`, in milliseconds since the epoch, is when the token itself expires: some time after it the id may be forgotten.
   */
  claim(id: string, expiresAt: number): Promise<boolean>
  /** Whether the id has been claimed, in any process. Only reads. */
  isUsed(id: string): Promise<boolean>
}

/** Whose question it is and of which call: 64 hex digits each. */
export interface ChallengeKey {
  owner: string
  call: string
}

/** What callers have been asked to confirm, for as long as a token for it would live. */
export interface Challenges {
  /** Beyond what one owner, or all of them, may have open, the challenges that expire first are forgotten. */
  put(key: ChallengeKey, boundTo: string, expiresAt: number): Promise<void>
  get(key: ChallengeKey): Promise<string | null>
  /** Forgets all of one owner; resolves with how many there were, expired ones included. */
  removeAll(owner: ChallengeKey['owner']): Promise<number>
}

/** How an approval ended: its call was let run, or it was for something else, or its time was over. */
export type ApprovalEnding = 'used' | 'void' | 'expired'

/** One question to a person, as it is stored. What it is about is sealed, and nothing to the store. */
export interface ApprovalRow {
  id: string
  key: ChallengeKey
  request: string
  /** Null until somebody has decided. */
  decision: string | null
  ending: ApprovalEnding | null
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** Calls that wait for a person, and what was decided about them. Rows stay for a day after they have expired, for an hour where nobody decided. */
export interface Approvals {
  /**
   * Opens a question for its call, unless one is open: of several at a time, in any number of processes, one opens, and all resolve with that.
   * A question of the same call that has ended or expired makes room, and so does `instead`. Of one owner, and of all, those that nobody has
   * decided are bounded: the ones that expire first expire at once.
   */
  open(row: Pick<ApprovalRow, 'id' | 'key' | 'request' | 'expiresAt'>, instead?: string): Promise<ApprovalRow>
  get(id: string): Promise<ApprovalRow | null>
  /** What was opened last for the call. */
  find(key: ChallengeKey): Promise<ApprovalRow | null>
  /** Those that nobody has decided and that have neither ended nor expired, of one owner or of all: the newest, and how many there are. */
  waiting(owner: ChallengeKey['owner'] | null, limit: number): Promise<{ total: number; rows: ApprovalRow[] }>
  /** Keeps the first decision about a question that is open; resolves with whether this was it. It is on the disk then. */
  decide(id: string, decision: string): Promise<boolean>
  /** Of all the calls for one id, in any number of processes, exactly one ever resolves with true; then it is on the disk. */
  end(id: string, ending: ApprovalEnding): Promise<boolean>
  /**
   * Ends what has expired: questions at once, and decided ones an hour later, since a call that came in time may still be at work. Resolves with
   * those that it ended, in any number of processes each once; at most a hundred at a time. Forgets what expired a day ago, and after an hour what nobody decided.
   */
  expire(): Promise<ApprovalRow[]>
  /** Forgets all of one owner; resolves with how many there were. */
  removeAll(owner: ChallengeKey['owner']): Promise<number>
}

/** Small facts about the file itself. */
export interface Notes {
  get(name: string): Promise<string | null>
  set(name: string, value: string): Promise<void>
  /** Resolves with whether it was there. */
  remove(name: string): Promise<boolean>
  /** Writes `value` only where there is none yet; of several processes one succeeds. Resolves with what stands there now. */
  setOnce(name: string, value: string): Promise<string>
}

/** Whose request it is, and what one such caller may have. */
export interface AdmissionQuestion {
  owner: Owner
  /** Requests per minute; 0 for no limit. */
  perMinute: number
  /** Requests at a time; 0 for no limit. */
  atATime: number
  /** False where the request is counted elsewhere and only takes a place. */
  isCounted?: boolean
}

/** A request that has been counted and has its place. */
export interface Admission {
  /** What the keystore has of the caller, as of now. */
  record: SealedCredentials | null
  /** Gives the place back, or takes it again for work that goes on. Never rejects; what fails is repeated later. */
  readonly holdPlace: (isHeld: boolean) => void
}

/** Limits that hold over all replicas. Everything rejects with Error where the store does not answer. */
export interface Admissions {
  /**
   * Counts a request, takes a place for it and reads its caller's record, in one round trip.
   *
   * @throws {ToolError} `rate_limited {retry_after}` and `overloaded`.
   */
  admit(question: AdmissionQuestion): Promise<Admission>
  /** Counts `times` against a limit of its own. Rejects with ToolError `rate_limited {retry_after}`. */
  readonly count: (limit: string, owner: Owner, perMinute: number, times: number) => Promise<void>
}

/** The connections to a database: how many there are, how many of them are free, and how many queries wait for one. */
export interface StatePoolFigures {
  total: number
  idle: number
  waiting: number
}

/** What outlives a request in the authenticated modes (D24): behind ports, so that another store can take their place. */
export interface State {
  readonly credentials: CredentialRecords
  readonly usedTokens: UsedTokens
  readonly challenges: Challenges
  readonly approvals: Approvals
  readonly notes: Notes
  /** Absent where one process has the state to itself: it counts by itself. */
  readonly admissions?: Admissions
  /** Rejects when nothing can be written now. */
  checkWritable(): Promise<void>
  /** Why the store cannot be used now, as far as that is known without asking it; absent for a file, which is asked. */
  readonly findProblem?: () => Error | null
  /** Where the state is in a database with several connections. */
  readonly pool?: () => StatePoolFigures
  close(): void | Promise<void>
}
