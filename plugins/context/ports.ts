import type { PceClient } from '../../pce-client/index.js'
import type { Owner } from '../../schemas/caller.js'
import type { PceCredentials } from '../../schemas/credentials.js'

/** What a keystore holds of one owner. */
export interface StoredCredentials {
  /** New with every registration. */
  version: string
  /** Decrypts. Throws ToolError `credentials_unreadable`. */
  open(): PceCredentials
}

/** The encrypted credentials of all. Rejects with ToolError `keystore_unavailable`. */
export interface Keystore {
  find(owner: Owner): Promise<StoredCredentials | null>
  /** Replaces what was there; resolves with the new version once it is on the disk. */
  write(owner: Owner, credentials: PceCredentials): Promise<string>
  /** Resolves with whether there was something. */
  remove(owner: Owner): Promise<boolean>
}

/** Where PCEs of users may be. */
export interface HostPolicy {
  /** The host in its one spelling, or why not, in words that follow the field's name. */
  admit(host: string, port: number): { host: string } | { problem: string }
  /**
   * Why what the name leads to is refused; null when it is not, or cannot be found out. Rejects with ToolError `pce_unreachable` when
   * nobody answers in the time, by default or in `patienceMs`, and that decides it.
   */
  inspect(host: string, port: number, patienceMs?: number): Promise<string | null>
}

export interface ConnectOptions {
  /** A single try: no request is repeated. */
  once?: boolean
  /** Its errors do not say why a connection failed. */
  isTerse?: boolean
}

/** A client for the credentials; connects nothing yet. Throws ToolError where the host is not admitted or the server's own settings fail. */
export type Connect = (credentials: PceCredentials, options?: ConnectOptions) => PceClient

export interface ContextLog {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}
