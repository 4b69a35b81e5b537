import { ToolError } from '../../schemas/errors.js'

/** Fails closed: what cannot be recorded does not run (D24). */
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
