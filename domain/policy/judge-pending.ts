import { PceError, type TypedPendingChange } from '../../pce-client/index.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { describeChanges } from './describe-changes.js'

/** What of a pending change weighs when it is to be approved. */
export type JudgedChange = Pick<PolicyChange, 'href' | 'effect' | 'risks' | 'updated_by' | 'updated_at'>

/** Each is two objects to read, and nobody reads on for ever before they decide. */
const MOST_JUDGED = 20

/**
 * Whether the first of these changes widen or narrow what is permitted, their risks and their authors, by href. It helps to decide
 * and nothing depends on it: empty where the PCE does not tell. A cancelled call rejects.
 */
export async function judgePending(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  changes: readonly TypedPendingChange[],
): Promise<Map<string, JudgedChange>> {
  try {
    const described = await describeChanges(ctx, changes.slice(0, MOST_JUDGED))
    return new Map(described.map((change) => [change.href, change]))
  } catch (error) {
    if (!(error instanceof PceError) || ctx.signal.aborted) throw error
    return new Map()
  }
}
