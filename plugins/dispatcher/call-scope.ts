import { AsyncLocalStorage } from 'node:async_hooks'

/** Which request the code of the moment works for: one PCE client serves all calls and must still name each to the PCE. */
export interface CallScope {
  run<T>(requestId: string, work: () => T): T
  /** Undefined outside a call. */
  readonly requestId: () => string | undefined
}

export function createCallScope(): CallScope {
  const storage = new AsyncLocalStorage<string>()
  return { run: (requestId, work) => storage.run(requestId, work), requestId: () => storage.getStore() }
}
