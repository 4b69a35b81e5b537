import type { PceClient } from '../../pce-client/index.js'
import { refuseReading } from '../../schemas/refuse-reading.js'

/** The limit of a client that judges policy for a caller who may read only objects inside of the caller's scopes. */
export interface LimitedReading {
  /** Returns true if an object with these labels, given by their hrefs, is inside. */
  readonly holds: (labels: readonly string[]) => Promise<boolean>
  /** The scopes in words, for messages. */
  readonly scopes: readonly string[]
}

const limits = new WeakMap<PceClient, LimitedReading>()

/** Notes that a client is limited. Only the client's maker calls this. */
export const limitReading = (pce: PceClient, limit: LimitedReading): void => void limits.set(pce, limit)

/**
 * Checks that a question is about something inside of the caller's scopes, if reading is limited. It is if all labels
 * in at least one of the lists `ends` are inside. A verdict about anything else would rest on only a part of its
 * traffic and policy.
 * @throws {ToolError} out_of_scope. The error does not reveal whether there is anything outside.
 */
export async function requireInside(
  pce: PceClient,
  what: string,
  ...ends: readonly (readonly string[])[]
): Promise<void> {
  const limit = limits.get(pce)
  if (limit === undefined) return
  for (const labels of ends) if (await limit.holds(labels)) return
  throw refuseReading(`${what} is not inside of your scopes, and you read only what is.`, limit.scopes)
}
