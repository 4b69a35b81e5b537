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
  /** Opens the audit log; called only if there is something to record. Throws StartupError. */
  openAudit: () => AuditLog | null
  /** The name of the operating system user who runs the command. */
  osUser: string
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/** Adds a line to the report of a command. */
export type Say = ReturnType<typeof collectLines>['say']

/** The facts about a run of the command that its audit entries contain. */
type Outcome = Pick<AuditEntry, 'removed' | 'revoked_until' | 'listed'>

/** A command that concerns one person, or all of them. */
interface AuditedCommand<Done extends Outcome> {
  /** The name of the command, such as `forget-user`. */
  name: string
  /** The verb for what the command does. The error for missing state says that there is nothing to `<verb>`. */
  verb: string
  /** The person; absent if the command concerns nobody in particular. */
  owner?: Owner
  /** Facts for the audit entry that is written before the work. */
  facts?: Outcome
  /** Does the work. If it rejects, the report tells the operator to run the command again. */
  run: (state: State) => Promise<Done>
  /** The beginning of the sentence that the report contains if `run` rejects. */
  failed: string
  /** Adds lines to the report that say what was done. */
  tell: (done: Done, state: State, say: Say) => Promise<void>
}

/**
 * Runs a command that concerns people and reads or changes the state, even while servers are running. One audit entry is
 * written before anything is changed, and another one with the outcome afterwards.
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
    const of = {
      iss: owner?.iss ?? null,
      sub: owner?.sub ?? null,
      command: name,
      request_id: randomUUID(),
      mode: config.mode,
      os_user: osUser,
    }
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

/** Opens the state that the servers use. Rejects with StartupError. */
export async function openStateOf(config: StateFileConfig, now: () => number, say: Say): Promise<State> {
  const warn = (line: string) => say('warn', line)
  return config.database
    ? openDatabase(config.database, { now, warn })
    : openState(config.path, { now, variable: config.variable, warn })
}

/** Returns the subject and issuer of a person, for use in messages. */
export const describePerson = ({ iss, sub }: Owner): string => `'${sub}' of ${iss}`

/**
 * Returns a function that writes an audit entry about this run of the command, and waits until the entry is on the
 * disk.
 */
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

/**
 * Finds the people whom the operator may have meant: those with the same subject at another issuer, or with a subject
 * that differs only in upper and lower case.
 */
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
