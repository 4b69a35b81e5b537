import type { AuditFacts } from '../../schemas/audit.js'
import type { CallScope } from './call-scope.js'

/** Runs a part of a call that may ask the PCE, under the id of its request, and notes the ids that the PCE gave its answers. */
export function runInScope<T>(
  requestId: string,
  work: () => Promise<T>,
  { scope, note }: { scope: CallScope; note: (facts: AuditFacts) => void },
): Promise<T> {
  return scope.run(requestId, () =>
    work().finally(() => {
      const ids = scope.upstreamIds()
      if (ids.length > 0) note({ upstream_request_ids: [...ids] })
    }),
  )
}
