import { ToolError } from '../../schemas/errors.js'

/**
 * Runs an operation on the store and converts its errors. If the store fails, the call is refused, because a call that
 * cannot be recorded must not run (D24).
 */
export async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new ToolError(
      'confirm_unavailable',
      'The record of confirmations cannot be read or written, so no confirmed call may run.',
      {},
      { cause },
    )
  }
}
