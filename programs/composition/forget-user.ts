import { ownerKey } from '../../plugins/confirm/confirmed-call.js'
import type { Owner } from '../../schemas/caller.js'
import type { StateFileConfig } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { lastChecks } from '../../storage/keystore/last-checks.js'
import { people } from '../../storage/people.js'
import { type AuditedCommandParts, describePerson, findNear, runAudited } from './audited-command.js'
import type { CommandReport } from './command-report.js'

/**
 * Runs `svc-mcp-http forget-user SUBJECT`: removes everything that the state contains about one person, except for a
 * revocation of the person's access. This is possible while servers are running; they then find nothing when the person
 * sends the next request. If nothing is stored for the subject, the report says so and names similar subjects. Rejects
 * as `runAudited` does.
 */
export function forgetUser(config: StateFileConfig, owner: Owner, parts: AuditedCommandParts): Promise<CommandReport> {
  const person = describePerson(owner)
  return runAudited(
    config,
    {
      name: 'forget-user',
      verb: 'remove',
      owner,
      run: async (state) => ({ removed: await removeAll(state, owner) }),
      failed: `The records of ${person} may not have been removed`,
      async tell({ removed }, state, say) {
        if (Object.values(removed).some((count) => count > 0))
          say('info', `Removed for ${person}: ${describe(removed)}`)
        else {
          say('warn', `Nothing is stored for ${person}`)
          for (const near of await findNear(state, owner)) say('warn', `There is ${describePerson(near)}`)
        }
        if ((await state.revocations.find(owner)) === null)
          say('info', 'People who can still log in, or who have a valid access token, can register again')
        else say('info', 'That their access was revoked is not removed: revoke-user --dry-run says until when')
      },
    },
    parts,
  )
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
    last_uses: Number(await people(notes).remove(owner)),
  }
}

/**
 * The word for each kind of record in messages. It is followed by a number, and the same for one record and for
 * several.
 */
const NAMES: Record<string, string> = {
  credentials: 'PCE credentials',
  last_checks: 'last check',
  challenges: 'open confirmation',
  approvals: 'approval',
  last_uses: 'last use',
}

/** Describes in one line how many records of each kind were removed, such as `PCE credentials: 1, approval: 2`. */
export const describe = (removed: Record<string, number>): string =>
  Object.entries(removed)
    .map(([what, count]) => `${NAMES[what]}: ${count}`)
    .join(', ')
