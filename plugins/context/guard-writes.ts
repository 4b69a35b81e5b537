import { guardClient, PceError, type PceClient, type PlannedWrite } from '../../pce-client/index.js'
import type { CallerScopes } from '../../schemas/scopes.js'

/** Maximum time, in milliseconds, for finding out whether a write is inside the scopes. */
const JUDGE_MS = 60_000

/** Returns the sentence with which a write outside of the scopes is refused; null if it is inside. */
export type JudgeWrite = (
  pce: PceClient,
  scopes: CallerScopes,
  write: PlannedWrite,
  signal: AbortSignal,
) => Promise<string | null>

/**
 * Creates the function that returns a client which sends only writes inside the given scopes. It returns the same client
 * for the same arguments, so that what is kept for a client is kept for its callers. Each write is judged by what the
 * PCE has at that moment. A write outside is not sent, and its operation rejects with PceError `write_refused`.
 */
export function createWriteGuard(judge: JudgeWrite): (pce: PceClient, scopes: CallerScopes) => PceClient {
  const guarded = new WeakMap<PceClient, WeakMap<CallerScopes, PceClient>>()
  return (pce, scopes) => {
    if (scopes.everything) return pce
    const known = guarded.get(pce) ?? new WeakMap<CallerScopes, PceClient>()
    guarded.set(pce, known)
    const client =
      known.get(scopes) ??
      guardClient(pce, async (write) => {
        const refusal = await judge(pce, scopes, write, AbortSignal.timeout(JUDGE_MS))
        if (refusal !== null) throw new PceError('write_refused', refusal)
      })
    known.set(scopes, client)
    return client
  }
}
