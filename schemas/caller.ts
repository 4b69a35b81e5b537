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
