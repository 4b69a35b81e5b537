import type { CallerScopes } from './scopes.js'

/** Roles from least to most powerful. A caller whose groups map to several roles gets the highest. */
export const ROLES = ['reader', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** The mode for which the process is configured. It decides which gates exist, never what a gate does. */
export type Mode = 'stdio' | 'insecure' | 'shared' | 'per_user'

/** The caller of a tool. `iss` and `sub` are null if callers are not authenticated (stdio, dev-insecure). */
export interface Caller {
  mode: Mode
  role: Role | null
  iss: string | null
  sub: string | null
  /** What the caller may write to; absent if the operator has not limited it (MCP_SCOPES_FILE). */
  scopes?: CallerScopes
}

/**
 * The owner of stored data. Issuer and subject together form the key, because two identity providers may use the same
 * `sub`.
 */
export interface Owner {
  readonly iss: string
  readonly sub: string
}

/** A person or a service, as identified by a verified access token. */
export interface Identity extends Owner {
  /** The combined values of the groups claim and the roles claim: strings only, exactly as in the access token. */
  readonly groups: readonly string[]
  /**
   * True if the identity provider left the groups out because there are too many (Entra ID: `_claim_names.groups`,
   * `hasgroups`).
   */
  readonly hasGroupsOverage: boolean
  /**
   * The time at which the access token was issued or the browser session began, in seconds since the epoch; absent if
   * the token does not state it.
   */
  readonly issuedAt?: number
  /**
   * The person's name according to the identity provider, if it gives one. It is only shown beside `sub` and never used
   * for decisions.
   */
  readonly name?: string
  /** The client to which the access token was issued. It is only shown and never used for decisions. */
  readonly clientId?: string
}
