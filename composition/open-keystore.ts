import { openKeystore, type Keystore } from '../storage/keystore/open-keystore.js'
import { openState } from '../storage/state/open-state.js'
import type { PerUserConfig } from '../schemas/config.js'
import type { State } from '../schemas/state.js'

export interface KeystoreFile {
  state: State
  keystore: Keystore
}

const IF_NEW =
  'it is a new, empty keystore, and nobody is registered. If there was one before, check the path and the mount'

/**
 * Opens the file at MCP_KEYSTORE_PATH, or makes it, and the keystore in it. `now` in milliseconds since the epoch; `warn` takes lines for
 * the operator. Rejects with StartupError in one line.
 */
export async function openKeystoreFile(
  { path, kek, previousKek }: PerUserConfig['keystore'],
  { now, warn }: { now: () => number; warn?: (line: string) => void },
): Promise<KeystoreFile> {
  const state = openState(path, { now, variable: 'MCP_KEYSTORE_PATH', warn, ifNew: IF_NEW })
  try {
    const { credentials: records, notes } = state
    return { state, keystore: await openKeystore({ records, notes, kek, previousKek, path }) }
  } catch (error) {
    state.close()
    throw error
  }
}
