import { StartupError } from '../../schemas/config.js'

/** What is wrong according to a StartupError, in its order and without the remedies, of which each must be there; nothing where none is thrown. */
export function problemsOf(read: () => unknown): string[] {
  try {
    read()
    return []
  } catch (error) {
    if (!(error instanceof StartupError) || !error.faults.every(({ remedy }) => remedy !== '')) throw error
    return error.faults.map(({ problem }) => problem)
  }
}
