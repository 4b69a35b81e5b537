import type { PolicyObjects } from '../policy/match-rules.js'
import { both, unknown, type Answer } from '../policy/three-valued.js'

/** The program that listens at the destination, as far as the caller named it. */
export interface AskedProgram {
  process?: string | undefined
  windowsService?: string | undefined
}

/**
 * Builds a test of whether the program in a service object is the one that the caller asked about. Returns undefined if
 * the caller named no program. Names of Windows services must be equal. Process paths may contain variables that depend
 * on the host, so only different file names prove that two processes differ. If only the folders differ, the answer is
 * undecided.
 */
export function matchProgram({ process, windowsService }: AskedProgram): PolicyObjects['runs'] | undefined {
  if (process === undefined && windowsService === undefined) return undefined
  return ({ process_name: ofProcess, service_name: ofService }) =>
    both(compareServices(ofService, windowsService), comparePaths(ofProcess, process))
}

const UNKNOWN = unknown('process')
const isSaid = (text: string | null | undefined): text is string => text !== null && text !== undefined && text !== ''

function compareServices(wanted: string | null | undefined, asked: string | undefined): Answer {
  if (!isSaid(wanted)) return 'yes'
  if (asked === undefined) return UNKNOWN
  return wanted.toLowerCase() === asked.toLowerCase() ? 'yes' : 'no'
}

function comparePaths(wanted: string | null | undefined, asked: string | undefined): Answer {
  if (!isSaid(wanted)) return 'yes'
  if (asked === undefined) return UNKNOWN
  const [a, b] = [wanted.toLowerCase(), asked.toLowerCase()]
  if (a === b) return 'yes'
  const last = (path: string) => path.split(/[\\/]/u).at(-1)
  return last(a) === last(b) ? UNKNOWN : 'no'
}
