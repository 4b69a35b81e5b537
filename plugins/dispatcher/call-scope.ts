import { AsyncLocalStorage } from 'node:async_hooks'

/** Which request the code of the moment works for: one PCE client serves all calls and must still name each to the PCE. */
export interface CallScope {
  run<T>(requestId: string, work: () => T): T
  /** Undefined outside a call. */
  readonly requestId: () => string | undefined
  /** Notes an id of its own that the PCE gave one of its answers; only the first ones of a call are kept. */
  noteUpstream(id: string): void
  /** The noted ids of the call that runs now, in their order. */
  readonly upstreamIds: () => readonly string[]
}

/** Of one call. */
export const MOST_UPSTREAM_IDS = 20

export function createCallScope(): CallScope {
  const storage = new AsyncLocalStorage<{ requestId: string; upstream: string[] }>()
  return {
    run: (requestId, work) => storage.run({ requestId, upstream: [] }, work),
    requestId: () => storage.getStore()?.requestId,
    noteUpstream(id) {
      const { requestId, upstream } = storage.getStore() ?? {}
      // A PCE that answers under the id it was sent has said nothing new.
      if (upstream === undefined || id === requestId || upstream.includes(id)) return
      if (upstream.length < MOST_UPSTREAM_IDS) upstream.push(id)
    },
    upstreamIds: () => storage.getStore()?.upstream ?? [],
  }
}
