import { createHash } from 'node:crypto'
import type { Owner } from '../../schemas/caller.js'
import type { ConfirmedCall, ConfirmingContext } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { ChallengeKey } from '../../schemas/state.js'

/**
 * Describes the call that is to be confirmed, and its caller. Throws ToolError `server_misconfigured` if nobody has
 * logged in.
 */
export function describeCall(
  { name }: { name: string },
  { caller: { iss, sub }, pce }: ConfirmingContext,
  paramsHash: string,
): ConfirmedCall {
  if (iss === null || sub === null)
    throw new ToolError('server_misconfigured', 'Only an authenticated caller can confirm a call.')
  return { owner: { iss, sub }, tool: name, paramsHash, ...(pce && { pce: `${pce.origin} org ${pce.orgId}` }) }
}

/** Returns the key under which the store keeps data of a caller. It has a fixed length, whatever the `sub` contains. */
export const ownerKey = ({ iss, sub }: Owner): string => digest([iss, sub])

/** Returns the key under which the store keeps data of a call. */
export const keyOf = ({ owner, tool, paramsHash, pce }: ConfirmedCall): ChallengeKey => ({
  owner: ownerKey(owner),
  call: digest([owner.iss, owner.sub, tool, paramsHash, pce ?? null]),
})

/** Returns the SHA-256 digest of a list of facts, in hexadecimal. */
export const digest = (facts: readonly unknown[]) => createHash('sha256').update(JSON.stringify(facts)).digest('hex')
