import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { quote } from '../text/escape-text.js'

/**
 * Parses the policy version that a caller names: `draft` (the default), `active`, or a version number, given as a
 * number or string. `argument` is the name of the argument, for the error.
 *
 * @throws {ToolError} invalid_argument for any other value.
 */
export function readPolicyVersion(
  asked: string | number | undefined,
  argument = 'policy_version',
): PolicyVersionSelector {
  const text = String(asked ?? 'draft').trim()
  if (text === 'draft' || text === 'active') return text
  const number = /^[1-9]\d*$/.test(text) ? Number(text) : NaN
  if (Number.isSafeInteger(number)) return number
  throw new ToolError(
    'invalid_argument',
    `${argument} ${quote(text)} is not valid: use draft, active or the number of a version.`,
    { argument },
  )
}

/**
 * Returns the field that ties a pagination cursor to a policy version; an empty object for draft, the default version.
 */
export const versionInCursor = (version: PolicyVersionSelector): { policy_version?: PolicyVersionSelector } =>
  version === 'draft' ? {} : { policy_version: version }

/**
 * Checks that a numbered policy version exists. This is needed before lists of that version are read, because it is not
 * documented how a PCE answers for a version that does not exist (P90).
 *
 * @throws {ToolError} not_found with the newest version number if the version does not exist.
 */
export async function requirePolicyVersion(
  pce: PceClient,
  version: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<void> {
  if (typeof version !== 'number') return
  const versions = `/orgs/${pce.orgId}/sec_policy`
  try {
    await pce.get(`${versions}/${version}`, { includeOrg: false, signal })
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
    const newest = await findNewest(pce, versions, signal)
    const there =
      newest === undefined ? '' : newest === 0 ? ' Nothing has been provisioned yet.' : ` The newest is ${newest}.`
    throw new ToolError(
      'not_found',
      `There is no policy version ${version}.${there}`,
      { argument: 'policy_version', policy_version: version, ...(newest && { newest }) },
      { cause: error },
    )
  }
}

/** Returns the highest version number, 0 if nothing has been provisioned yet, or undefined if the PCE does not say. */
async function findNewest(pce: PceClient, path: string, signal: AbortSignal): Promise<number | undefined> {
  try {
    const listed = (await pce.get(path, { includeOrg: false, signal })).json<unknown>()
    const numbers = (Array.isArray(listed) ? (listed as { version?: unknown }[]) : []).map((one) => one?.version)
    return Array.isArray(listed) ? Math.max(0, ...numbers.filter((one) => typeof one === 'number')) : undefined
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return undefined
  }
}
