import { guardClient, PceError, type PceClient, type PlannedWrite } from '../../pce-client/index.js'
import type { ToolError } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'

/** Maximum time, in milliseconds, for finding out whether a write is allowed. */
const JUDGE_MS = 60_000

/** Returns the error with which a write outside the caller's scopes is refused, or null if the write is inside. */
export type JudgeWrite = (
  pce: PceClient,
  scopes: CallerScopes,
  write: PlannedWrite,
  signal: AbortSignal,
) => Promise<ToolError | null>

/**
 * Creates a function that wraps a PCE client, so that only writes inside the given scopes are sent. Each write is
 * checked against the current state of the PCE. A write outside is not sent, and its operation rejects with PceError
 * `write_refused`. The same client and scopes always give the same wrapper, so that data cached for a client stays
 * usable.
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
 * Creates a function that wraps a PCE client, so that only writes for which `refuse` returns no error are sent. A
 * refused write is not sent, and its operation rejects with PceError `write_refused`, whose `reason` is the code of
 * that error. The same client always gives the same wrapper.
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
