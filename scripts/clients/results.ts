import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Step } from './judge-session.js'

/** What was found with one client, as it is kept in git. */
export interface ClientResult {
  title: string
  versions: Record<string, string>
  /** The versions of Node.js that the client's package needs. */
  node: string
  /** The word for each step, by transport. */
  steps: Partial<Record<'stdio' | 'http', Record<Step, string>>>
}

/** The file that `npm run clients -- --write` writes, below the root. */
export const RESULTS_FILE = 'test/clients/results.json'

/** Reads the results in git, by the name of the client's program. */
export const readResults = (): Record<string, ClientResult> =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../../${RESULTS_FILE}`, import.meta.url)), 'utf8')) as Record<
    string,
    ClientResult
  >
