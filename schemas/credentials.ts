import type { Owner } from './caller.js'
import type { SealedCredentials } from './state.js'

/** One PCE key of one user, with the PCE that it is for. Decrypted it lives in memory only. */
export interface PceCredentials {
  /** Host name or IP address, without scheme, port and brackets. */
  host: string
  port: number
  orgId: number
  apiKey: string
  apiSecret: string
  tlsVerify: boolean
  /** The owner's name for it. */
  label?: string
}

/** What may be shown of credentials. `tlsVerify` is whether the certificate is checked in the end, whatever was registered. */
export type CredentialFacts = Omit<PceCredentials, 'apiKey' | 'apiSecret'>

/** The result of trying the PCE with fresh credentials. `error` is one of our codes with a message for people. */
export interface ConnectionReport {
  ok: boolean
  error?: { code: string; message: string }
}

/** When the PCE was last tried with stored credentials, and what came of it. */
export interface LastCheck {
  /** Milliseconds since the epoch. */
  at: number
  ok: boolean
  /** Why not, in words of ours: no text of the PCE. */
  message?: string
}

/** The PCE credentials of one caller, for the tools that manage them. */
export interface CredentialsPort {
  /**
   * What the caller has. `facts` only where the caller has credentials of their own, `lastCheck` where these have been tried. Rejects with
   * ToolError `credentials_unreadable` or `keystore_unavailable`.
   */
  status(): Promise<{ registered: boolean; message: string; facts?: CredentialFacts; lastCheck?: LastCheck }>
  /**
   * Stores the caller's first credentials, then tries the PCE with them (D18). Where others are stored the PCE is tried first, and only
   * what it accepts takes their place (D110); `replaceAnyway` stores as for the first time. Rejects with ToolError `pce_error` or
   * `pce_unreachable` with `kept: true` for what it does not accept, `invalid_argument` with `problems` for a host that the policy does
   * not admit, `shared_mode`, or `keystore_unavailable`; in all these cases nothing is stored.
   */
  register(
    credentials: PceCredentials,
    options?: { replaceAnyway?: boolean },
  ): Promise<{ facts: CredentialFacts; connection: ConnectionReport }>
  /** Remembers how a try of the caller's PCE went; `problem` says why it failed. Never rejects. */
  noteCheck(problem?: string): Promise<void>
  /** Resolves with whether there was something to remove. Rejects with ToolError `shared_mode` or `keystore_unavailable`. */
  remove(): Promise<boolean>
}

/** What an owner has stored. */
export interface StoredCredentials {
  /** New with every registration: names this one, also for a client that was made from it. */
  version: string
  /** Decrypts at every call. Throws ToolError `credentials_unreadable`. */
  readonly open: () => PceCredentials
}

/** The last check of each user's credentials, beside them. Everything rejects when the store cannot be used. */
export interface LastChecks {
  /** Null where these credentials, by the version of their registration, have not been tried. */
  readonly find: (owner: Owner, version: string) => Promise<LastCheck | null>
  readonly put: (owner: Owner, version: string, check: LastCheck) => Promise<void>
  /** Resolves with whether there was one. */
  readonly remove: (owner: Owner) => Promise<boolean>
}

/** The encrypted credentials of all users. Everything rejects with ToolError `keystore_unavailable` when the store cannot be used. */
export interface Keystore {
  /** Only reads; null where the owner has none. `fetched` is the owner's record where it has just been read with something else. */
  readonly find: (owner: Owner, fetched?: SealedCredentials | null) => Promise<StoredCredentials | null>
  /** Replaces earlier ones; resolves with the new version once they are on the disk. */
  readonly write: (owner: Owner, credentials: PceCredentials) => Promise<string>
  /** Resolves with whether there was something to remove, once that is on the disk and known to every process. */
  readonly remove: (owner: Owner) => Promise<boolean>
}
