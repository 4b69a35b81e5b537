import { randomUUID } from 'node:crypto'
import { ownerKey } from '../../plugins/confirm/confirmed-call.js'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Owner } from '../../schemas/caller.js'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { lastChecks } from '../../storage/keystore/last-checks.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'

export interface ForgetUserParts {
  /** Opens the audit log. It is called only when there is something to record. Throws StartupError. */
  openAudit: () => AuditLog | null
  /** The operating system user who runs the command. */
  osUser: string
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/**
 * Runs `svc-mcp-http forget-user SUBJECT`: removes everything that the state contains about one person. Servers may be
 * running, and then find nothing when the person sends the next request. The decision is written to the audit log
 * before anything is removed, and the outcome afterwards. If nothing is stored for the subject, the report says so and
 * names similar subjects.
 *
 * @throws {StartupError} (rejects) if there is no state, or the audit log cannot be written. In these cases, nothing is
 * removed.
 */
export async function forgetUser(
  config: StateFileConfig,
  owner: Owner,
  { openAudit, osUser, now = () => Date.now() }: ForgetUserParts,
): Promise<CommandReport> {
  requireState(config, 'remove')
  const { lines, say } = collectLines()
  const warn = (line: string) => say('warn', line)
  const state = config.database
    ? await openDatabase(config.database, { now, warn })
    : openState(config.path, { now, variable: config.variable, warn })
  let audit: AuditLog | null = null
  try {
    audit = openAudit()
    const record = recordWith(audit, now, { ...owner, request_id: randomUUID(), mode: config.mode, os_user: osUser })
    await record({ phase: 'decision', decision: 'allowed' }).catch(refuseUnaudited)
    const person = `'${owner.sub}' of ${owner.iss}`
    let removed: Record<string, number>
    try {
      removed = await removeAll(state, owner)
    } catch (error) {
      await record({ phase: 'outcome', outcome: 'error' }).catch(() => undefined)
      say('error', `The records of ${person} may not have been removed: ${(error as Error).message}. Run this again`)
      return { lines, ok: false }
    }
    if (Object.values(removed).some((count) => count > 0)) say('info', `Removed for ${person}: ${describe(removed)}`)
    else {
      say('warn', `Nothing is stored for ${person}`)
      for (const { iss, sub } of await findNear(state, owner)) say('warn', `There is '${sub}' of ${iss}`)
    }
    say('info', 'People who can still log in, or who have a valid access token, can register again')
    try {
      await record({ phase: 'outcome', outcome: 'success', removed })
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

/** Writes audit entries about this run of the command, and waits until they are on the disk. */
function recordWith(
  audit: AuditLog | null,
  now: () => number,
  facts: Pick<AuditEntry, 'iss' | 'sub' | 'request_id' | 'mode' | 'os_user'>,
) {
  return async (entry: Pick<AuditEntry, 'phase' | 'decision' | 'outcome' | 'removed'>): Promise<void> => {
    const ts = new Date(now()).toISOString()
    audit?.write({ ts, ...entry, command: 'forget-user', role: null, transport: 'command', ...facts })
    await audit?.sync()
  }
}

function refuseUnaudited(cause: unknown): never {
  throw new StartupError({
    problem: `The audit log cannot be written: ${(cause as Error).message}`,
    remedy: 'Nothing was removed. Name a file in MCP_AUDIT_LOG_PATH that this user may write.',
  })
}

async function removeAll(
  { credentials, challenges, approvals, notes }: State,
  owner: Owner,
): Promise<Record<string, number>> {
  return {
    credentials: Number(await credentials.remove(owner)),
    last_checks: Number(await lastChecks(notes).remove(owner)),
    challenges: await challenges.removeAll(ownerKey(owner)),
    approvals: await approvals.removeAll(ownerKey(owner)),
  }
}

/** The words for the types of records in messages. Each word is used for one record and for several. */
const NAMES: Record<string, string> = {
  credentials: 'PCE credentials',
  last_checks: 'last check',
  challenges: 'open confirmation',
  approvals: 'approval',
}

const describe = (removed: Record<string, number>): string =>
  Object.entries(removed)
    .map(([what, count]) => `${NAMES[what]}: ${count}`)
    .join(', ')

const PAGE = 500
const MOST_NAMED = 3

/** Finds persons whom the operator may have meant: with the same subject in other letter case, or at another issuer. */
async function findNear({ credentials }: State, { sub }: Owner): Promise<Owner[]> {
  const plain = (text: string) => text.trim().toLowerCase()
  const near: Owner[] = []
  let after: Owner | null = null
  do {
    const page = await credentials.page(after, PAGE)
    near.push(...page.map(({ owner }) => owner).filter((owner) => plain(owner.sub) === plain(sub)))
    after = page.length < PAGE ? null : page.at(-1)!.owner
  } while (after !== null && near.length < MOST_NAMED)
  return near.slice(0, MOST_NAMED)
}
