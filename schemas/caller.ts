/** Roles in rising order of power; a group mapping that names several gives the highest. */
export const ROLES = ['reader', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** How the process was composed: decides which gates exist, never what one gate does. */
export type Mode = 'stdio' | 'insecure' | 'shared' | 'per_user'

/** Who is calling. `iss` and `sub` are null where nobody authenticates (stdio, dev-insecure). */
export interface Caller {
  mode: Mode
  role: Role | null
  iss: string | null
  sub: string | null
}

/** The owner of stored data: the key to everything that belongs to a caller. Two identity providers may use the same `sub`. */
export interface Owner {
  readonly iss: string
  readonly sub: string
}

/** A person or a service, as a checked access token names them. */
export interface Identity extends Owner {
  /** The values of the groups claim and the roles claim together, strings only, as the token has them. */
  readonly groups: readonly string[]
  /** The provider left the groups out because there are too many (Entra ID: `_claim_names.groups`, `hasgroups`). */
  readonly hasGroupsOverage: boolean
  /** What the provider calls them, where it says so: to be shown beside `sub`, and to decide nothing. */
  readonly name?: string
  /** The client that the access token was issued to: to be shown, and to decide nothing. */
  readonly clientId?: string
}
