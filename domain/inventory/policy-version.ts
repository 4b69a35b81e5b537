import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'

/**
 * The policy version that a caller names: `draft` (also where none is named), `active`, or the number of a past one, as a number or in
 * digits. Throws invalid_argument for anything else.
 */
export function readPolicyVersion(asked: string | number | undefined): PolicyVersionSelector {
  const text = String(asked ?? 'draft').trim()
  if (text === 'draft' || text === 'active') return text
  const number = /^[1-9]\d*$/.test(text) ? Number(text) : NaN
  if (Number.isSafeInteger(number)) return number
  throw new ToolError(
    'invalid_argument',
    `policy_version "${text}" is none: give draft, active or the number of one.`,
    {
      argument: 'policy_version',
    },
  )
}

/** The version as part of what a cursor is bound to: the draft is what is listed without one. */
export const versionInCursor = (version: PolicyVersionSelector): { policy_version?: PolicyVersionSelector } =>
  version === 'draft' ? {} : { policy_version: version }

/**
 * Throws not_found for a number that no policy version of this PCE has, with the newest one. Asked before anything is read there: how a
 * collection below such a number answers is not documented (P90).
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

/** The highest number there is, 0 where there is none; undefined where the PCE does not say. */
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
