import type { pceGate } from '../plugins/dispatcher/gates/pce.js'
import type { Session } from '../plugins/dispatcher/session.js'
import type { Identity, Role } from '../schemas/caller.js'
import type { State } from '../schemas/state.js'

/** Where the callers' PCEs come from in one of the two modes. */
export interface PceSource {
  state: State
  /** Never rejects: what is wrong with one caller's PCE is theirs to hear. */
  find(identity: Identity, role: Role | null): Promise<Pick<Session, 'pce' | 'pceProblem' | 'credentials'>>
  /** What `no_pce_credentials` says where there are none. */
  gate: ReturnType<typeof pceGate>
  close(): void
}
