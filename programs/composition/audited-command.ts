import { randomUUID } from 'node:crypto'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Owner } from '../../schemas/caller.js'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'

export interface AuditedCommandParts {
  /** Opens the audit log. It is called only when there is something to record. Throws StartupError. */
  openAudit: () => AuditLog | null
  /** The operating system user who runs the command. */
  osUser: string
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/** Adds a line to the report of a command. */
export type Say = ReturnType<typeof collectLines>['say']

/** Facts about a run of a command in its audit entries. */
type Outcome = Pick<AuditEntry, 'removed' | 'revoked_until'>

/** What a command does about one person. */
interface AuditedCommand<Done extends Outcome> {
  /** The name of the command. */
  name: string
  /** A word for what the command would do, for the message that there is no state. */
  verb: string
  owner: Owner
  /** Facts for the audit entry of the decision. */
  facts?: Outcome
  /** Does the work. If it rejects, the report says that the command must be run again. */
  run: (state: State) => Promise<Done>
  /** The beginning of the sentence in the report if `run` rejects. */
  failed: string
  /** Reports what was done. */
  tell: (done: Done, state: State, say: Say) => Promise<void>
}

/**
 * Runs a command about one person on the state, beside running servers. The decision is written to the audit log before
 * anything is changed, and the outcome afterwards.
 *
 * @throws {StartupError} (rejects) if there is no state, or the audit log cannot be written. In these cases, nothing is
 * changed.
 */
export async function runAudited<Done extends Outcome>(
  config: StateFileConfig,
  { name, verb, owner, facts, run, failed, tell }: AuditedCommand<Done>,
  { openAudit, osUser, now = () => Date.now() }: AuditedCommandParts,
): Promise<CommandReport> {
  requireState(config, verb)
  const { lines, say } = collectLines()
  const state = await openStateOf(config, now, say)
  let audit: AuditLog | null = null
  try {
    audit = openAudit()
    const of = { ...owner, command: name, request_id: randomUUID(), mode: config.mode, os_user: osUser }
    const record = recordWith(audit, now, of)
    await record({ phase: 'decision', decision: 'allowed', ...facts }).catch(refuseUnaudited)
    let done: Done
    try {
      done = await run(state)
    } catch (error) {
      await record({ phase: 'outcome', outcome: 'error' }).catch(() => undefined)
      say('error', `${failed}: ${(error as Error).message}. Run this again`)
      return { lines, ok: false }
    }
    await tell(done, state, say)
    try {
      await record({ phase: 'outcome', outcome: 'success', ...done })
      return { lines, ok: true }
    } catch (error) {
      say('error', `The outcome is missing from the audit log: ${(error as Error).message}`)
      return { lines, ok: false }
    }
  } finally {
    await state.close()
    audit?.close()
  }
}

/** Opens the state of the servers for a command. Rejects with StartupError. */
export async function openStateOf(config: StateFileConfig, now: () => number, say: Say): Promise<State> {
  const warn = (line: string) => say('warn', line)
  return config.database
    ? openDatabase(config.database, { now, warn })
    : openState(config.path, { now, variable: config.variable, warn })
}

/** Returns a person in words, for messages. */
export const describePerson = ({ iss, sub }: Owner): string => `'${sub}' of ${iss}`

/** Writes audit entries about this run of the command, and waits until they are on the disk. */
function recordWith(
  audit: AuditLog | null,
  now: () => number,
  facts: Pick<AuditEntry, 'iss' | 'sub' | 'command' | 'request_id' | 'mode' | 'os_user'>,
) {
  return async (entry: Pick<AuditEntry, 'phase' | 'decision' | 'outcome'> & Outcome): Promise<void> => {
    const ts = new Date(now()).toISOString()
    audit?.write({ ts, ...entry, role: null, transport: 'command', ...facts })
    await audit?.sync()
  }
}

function refuseUnaudited(cause: unknown): never {
  throw new StartupError({
    problem: `The audit log cannot be written: ${(cause as Error).message}`,
    remedy: 'Nothing was changed. Name a file in MCP_AUDIT_LOG_PATH that this user may write.',
  })
}

const PAGE = 500
const MOST_NAMED = 3

/** Finds persons whom the operator may have meant: with the same subject in other letter case, or at another issuer. */
export async function findNear({ credentials }: State, { iss, sub }: Owner): Promise<Owner[]> {
  const plain = (text: string) => text.trim().toLowerCase()
  const near: Owner[] = []
  let after: Owner | null = null
  do {
    const page = await credentials.page(after, PAGE)
    const alike = page.map(({ owner }) => owner).filter((owner) => plain(owner.sub) === plain(sub))
    near.push(...alike.filter((owner) => owner.iss !== iss || owner.sub !== sub))
    after = page.length < PAGE ? null : page.at(-1)!.owner
  } while (after !== null && near.length < MOST_NAMED)
  return near.slice(0, MOST_NAMED)
}
