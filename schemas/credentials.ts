import type { Owner } from './caller.js'
import type { SealedCredentials } from './state.js'

/** One user's API key, and the PCE to which it belongs. The decrypted key exists in memory only. */
export interface PceCredentials {
  /** Host name or IP address, without scheme, port or brackets. */
  host: string
  port: number
  orgId: number
  apiKey: string
  apiSecret: string
  tlsVerify: boolean
  /** A name that the owner chose for these credentials. */
  label?: string
}

/**
 * The part of credentials that may be shown to people. `tlsVerify` says whether the certificate is actually verified,
 * whatever the owner registered.
 */
export type CredentialFacts = Omit<PceCredentials, 'apiKey' | 'apiSecret'>

/**
 * The result of testing new credentials at the PCE. `error` is one of this server's error codes, with a message for
 * people.
 */
export interface ConnectionReport {
  ok: boolean
  error?: { code: string; message: string }
}

/** The last attempt to use stored credentials at the PCE, and its result. */
export interface LastCheck {
  /** Time of the attempt to use the credentials, in milliseconds since the epoch. */
  at: number
  ok: boolean
  /** The reason for a failure, in this server's own words, without text from the PCE. */
  message?: string
}

/** The interface through which tools manage the PCE credentials of one caller. */
export interface CredentialsPort {
  /**
   * Returns the credentials that the caller has registered, without secrets. `facts` is present only if the caller has
   * their own credentials, `lastCheck` only if these have been tried. Rejects with ToolError `credentials_unreadable`
   * or `keystore_unavailable`.
   */
  status(): Promise<{ registered: boolean; message: string; facts?: CredentialFacts; lastCheck?: LastCheck }>
  /**
   * Registers credentials. The caller's first credentials are stored and then tried at the PCE (D18). If the caller
   * already has stored credentials, the new ones are tried first and replace the old ones only if the PCE accepts them
   * (D110); with `replaceAnyway`, the new ones are stored first and then tried. Nothing is stored if this method
   * rejects: with ToolError `pce_error` or `pce_unreachable` with `kept: true` if the PCE does not accept the new
   * credentials, `invalid_argument` with `problems` for a host that is not permitted, `shared_mode`, or
   * `keystore_unavailable`.
   */
  register(
    credentials: PceCredentials,
    options?: { replaceAnyway?: boolean },
  ): Promise<{ facts: CredentialFacts; connection: ConnectionReport }>
  /** Records the result of an attempt to use the caller's PCE; `problem` says why it failed. Never rejects. */
  noteCheck(problem?: string): Promise<void>
  /**
   * Removes the caller's credentials. Resolves with true if there were any. Rejects with ToolError `shared_mode` or
   * `keystore_unavailable`.
   */
  remove(): Promise<boolean>
}

/** The stored, encrypted PCE credentials of one owner. */
export interface StoredCredentials {
  /**
   * The version of the credentials, which changes with every registration. It identifies this registration and every
   * PCE client that was created with these credentials.
   */
  version: string
  /** Decrypts the credentials, anew each time that it is called. Throws ToolError `credentials_unreadable`. */
  readonly open: () => PceCredentials
}

/**
 * The results of the last check of each user's credentials, stored beside the credentials. Every method rejects if the
 * store cannot be used.
 */
export interface LastChecks {
  /** Finds the result of the last check; null if the credentials of this version have not been tried yet. */
  readonly find: (owner: Owner, version: string) => Promise<LastCheck | null>
  readonly put: (owner: Owner, version: string, check: LastCheck) => Promise<void>
  /** Removes the result of the last check. Resolves with true if there was one. */
  readonly remove: (owner: Owner) => Promise<boolean>
}

/**
 * The encrypted credentials of all users. Every method rejects with ToolError `keystore_unavailable` if the store
 * cannot be used.
 */
export interface Keystore {
  /**
   * Finds the owner's credentials without changing anything; null if there are none. If the owner's record has already
   * been read, it is passed as `fetched`, and the store is not read again.
   */
  readonly find: (owner: Owner, fetched?: SealedCredentials | null) => Promise<StoredCredentials | null>
  /** Stores credentials in place of earlier ones. Resolves with the new version when they are on disk. */
  readonly write: (owner: Owner, credentials: PceCredentials) => Promise<string>
  /**
   * Removes the credentials. Resolves when the removal is on disk and known to every process, with true if there was
   * something to remove.
   */
  readonly remove: (owner: Owner) => Promise<boolean>
}
