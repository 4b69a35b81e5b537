import { ownerKey } from '../../plugins/confirm/confirmed-call.js'
import type { Owner } from '../../schemas/caller.js'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { lastChecks } from '../../storage/keystore/last-checks.js'
import {
  type AuditedCommandParts,
  describePerson,
  findNear,
  openStateOf,
  runAudited,
  type Say,
} from './audited-command.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'
import { describe } from './forget-user.js'

/** The options of the command, as the operator wrote them. */
export interface RevokeOptions {
  /**
   * The time until which the access is revoked: `now`, or a time with its time zone. Without it, the access is revoked
   * for a day.
   */
  until?: string
  /** If true, the person's PCE key is deleted, too. */
  deleteKey?: boolean
  /** If true, nothing is changed, and the report says what the command would change. */
  dryRun?: boolean
}

/**
 * The duration of a revocation, in milliseconds, if the operator gives no time. It is the longest lifetime of an access
 * token.
 */
const DEFAULT_MS = 24 * 60 * 60 * 1000
/** Maximum number of characters of the subject in an access token (S10). */
const LONGEST_SUB = 255

/**
 * Runs `svc-mcp-http revoke-user --iss ISSUER --sub SUBJECT`: until a given time, every server that shares the state
 * refuses all requests of one person. Whatever the person has begun is ended (D282). The revocation is stored first, so
 * that the person can begin nothing new while the rest is removed. A second run replaces the time, and completes the
 * work of a run that was interrupted.
 *
 * @throws {StartupError} (rejects) for an option that cannot be used, and as `runAudited` does.
 */
export async function revokeUser(
  config: StateFileConfig,
  owner: Owner,
  options: RevokeOptions,
  parts: AuditedCommandParts,
): Promise<CommandReport> {
  const now = parts.now ?? (() => Date.now())
  const at = now()
  checkOwner(owner)
  const until = options.until === undefined ? at + DEFAULT_MS : readUntil(options.until, at)
  const person = describePerson(owner)
  const untilText = new Date(until).toISOString()
  if (options.dryRun === true) return preview(config, owner, { ...options, untilText }, now)
  return runAudited(
    config,
    {
      name: 'revoke-user',
      verb: 'revoke',
      owner,
      facts: { revoked_until: untilText },
      async run(state) {
        await state.revocations.set(owner, { until, at, by: parts.osUser })
        return { revoked_until: untilText, removed: await endAll(state, owner, options) }
      },
      failed: `The access of ${person} may not have been revoked, or not all of what they had begun has ended`,
      async tell({ removed }, state, say) {
        say('info', `The access of ${person} is revoked until ${untilText}: ${describe(removed)}`)
        say('info', MEANING)
        await tellDoubts(config, owner, state, say)
      },
    },
    parts,
  )
}

const MEANING =
  'Tokens and sessions from before that time are refused after it too; calls that are running send no further change'

async function endAll(
  { credentials, challenges, approvals, notes }: State,
  owner: Owner,
  { deleteKey = false }: RevokeOptions,
): Promise<Record<string, number>> {
  return {
    challenges: await challenges.removeAll(ownerKey(owner)),
    approvals: await approvals.removeAll(ownerKey(owner)),
    ...(deleteKey && {
      credentials: Number(await credentials.remove(owner)),
      last_checks: Number(await lastChecks(notes).remove(owner)),
    }),
  }
}

/** Reports what the command would change. Nothing is changed, and nothing is written to the audit log. */
async function preview(
  config: StateFileConfig,
  owner: Owner,
  { deleteKey = false, untilText }: RevokeOptions & { untilText: string },
  now: () => number,
): Promise<CommandReport> {
  requireState(config, 'revoke')
  const { lines, say } = collectLines()
  const state = await openStateOf(config, now, say)
  try {
    const found = await state.revocations.find(owner)
    const before = found === null ? 'is not revoked now' : `is revoked until ${timeOf(found.until)} now`
    const hasKey = (await state.credentials.get(owner)) !== null
    const key = hasKey ? `the stored PCE key would be ${deleteKey ? 'deleted' : 'kept'}` : 'no PCE key is stored'
    say(
      'info',
      `Nothing was changed. The access of ${describePerson(owner)} ${before}, would be until ${untilText}, and ${key}`,
    )
    await tellDoubts(config, owner, state, say)
    return { lines, ok: true }
  } finally {
    await state.close()
  }
}

/** Formats the time at which a revocation ends. A revocation that another program wrote has no end. */
export const timeOf = (until: number): string => (until <= LATEST ? new Date(until).toISOString() : 'further notice')

/** The latest time that a Date can hold, in milliseconds since the epoch. */
const LATEST = 8.64e15

/** Warns the operator if the given person is perhaps not the one who was meant. */
async function tellDoubts(config: StateFileConfig, owner: Owner, state: State, say: Say): Promise<void> {
  if (config.issuer !== undefined && owner.iss !== config.issuer)
    say('warn', `MCP_OAUTH_ISSUER is ${config.issuer}: servers with this setting know nobody of ${owner.iss}`)
  for (const near of await findNear(state, owner)) say('warn', `There is also ${describePerson(near)}`)
}

/** Throws StartupError unless an access token can have this issuer and subject. */
function checkOwner({ iss, sub }: Owner): void {
  if (iss.trim() === '' || UNSAFE.test(iss))
    throw refusal(`--iss ${JSON.stringify(iss)} is not an issuer`, 'Write it as MCP_OAUTH_ISSUER has it.')
  if (sub === '' || sub.length > LONGEST_SUB || UNSAFE.test(sub))
    throw refusal(
      `--sub ${JSON.stringify(sub.slice(0, LONGEST_SUB))} cannot be the subject of an access token`,
      'It is in the audit log, and at /setup and /approve below the name of the person.',
    )
}

/** Matches the characters that a `sub` in an access token must not contain (plugins/auth/read-claims.ts). */
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u

const TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/**
 * Reads the time until which an access is revoked. Returns milliseconds since the epoch. Throws StartupError if the
 * string is not a time with its zone, or if the time is over.
 *
 * @param now the current time, in milliseconds since the epoch.
 */
function readUntil(text: string, now: number): number {
  if (text === 'now') return now
  const [, day] = TIME.exec(text) ?? []
  const time = day === undefined ? NaN : Date.parse(text)
  // Date.parse would read 31 June as 1 July.
  const isDay = day !== undefined && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
  if (!Number.isFinite(time) || !isDay)
    throw refusal(
      `--until ${JSON.stringify(text)} is not a time with its zone`,
      'Write it as 2030-01-31T18:00:00Z or 2030-01-31T18:00+02:00, or write now.',
    )
  if (time < now) throw refusal(`--until ${text} is over`, 'Write a time to come, or write now.')
  return time
}

const refusal = (problem: string, remedy: string) => new StartupError({ problem, remedy })
