import type { PceClient } from '../../pce-client/index.js'
import { refuseReading } from '../../schemas/refuse-reading.js'

/** What is known of a client with which policy is judged for a caller who sees only what is inside of the caller's scopes. */
export interface LimitedReading {
  /** Returns true if an object with these labels, given by their hrefs, is inside. */
  readonly holds: (labels: readonly string[]) => Promise<boolean>
  /** The scopes for people. */
  readonly scopes: readonly string[]
}

const limits = new WeakMap<PceClient, LimitedReading>()

/** Notes that a client is limited. Only the client's maker calls this. */
export const limitReading = (pce: PceClient, limit: LimitedReading): void => void limits.set(pce, limit)

/**
 * Checks that a question is about something inside of the caller's scopes, where reading is limited: that all objects of
 * one of the lists of labels are inside. Without this, a verdict about something outside would be one of a part of its
 * traffic and policy.
 * @throws {ToolError} out_of_scope. The error says nothing about whether there is something outside.
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
