import { guardClient, PceError, type PceClient, type PlannedWrite } from '../../pce-client/index.js'
import type { ToolError } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'

/** Maximum time, in milliseconds, for finding out whether a write is allowed. */
const JUDGE_MS = 60_000

/** Returns the error with which a write outside of the scopes is refused; null if it is inside. */
export type JudgeWrite = (
  pce: PceClient,
  scopes: CallerScopes,
  write: PlannedWrite,
  signal: AbortSignal,
) => Promise<ToolError | null>

/**
 * Creates the function that returns a client which sends only writes inside the given scopes. It returns the same client
 * for the same arguments, so that what is kept for a client is kept for its callers. Each write is judged by what the
 * PCE has at that moment. A write outside is not sent, and its operation rejects with PceError `write_refused`.
 */
export function createWriteGuard(judge: JudgeWrite): (pce: PceClient, scopes: CallerScopes) => PceClient {
  const guards = new WeakMap<CallerScopes, (pce: PceClient) => PceClient>()
  return (pce, scopes) => {
    if (scopes.everything) return pce
    const guard =
      guards.get(scopes) ??
      createRefusingGuard((asked, [write], signal) =>
        write === undefined ? Promise.resolve(null) : judge(asked, scopes, write, signal),
      )
    guards.set(scopes, guard)
    return guard(pce)
  }
}

/**
 * Creates the function that returns a client which sends only writes that `refuse` returns no error for. The same client
 * results in the same one. A write that is refused is not sent, and its operation rejects with PceError `write_refused`,
 * whose `reason` is the code of the error.
 */
export function createRefusingGuard(
  refuse: (pce: PceClient, writes: readonly PlannedWrite[], signal: AbortSignal) => Promise<ToolError | null>,
): (pce: PceClient) => PceClient {
  const guarded = new WeakMap<PceClient, PceClient>()
  return (pce) => {
    const client =
      guarded.get(pce) ??
      guardClient(pce, async (write) => {
        const refusal = await refuse(pce, [write], AbortSignal.timeout(JUDGE_MS))
        if (refusal !== null) throw new PceError('write_refused', refusal.message, { reason: refusal.code })
      })
    guarded.set(pce, client)
    return client
  }
}
