import type { PceClient } from '../../pce-client/index.js'
import { PceError } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'

/** The versions of the policy that a PCE lists. */
export interface VersionList {
  /** The versions, newest first. The first one is the active version. */
  versions: PolicyVersion[]
  /** Number of versions that exist. It is greater than the length of `versions` if the PCE did not list all of them. */
  total: number
}

/**
 * Reads all versions that were ever provisioned, as far as the PCE lists them (P100). Throws invalid_response if the
 * PCE's answer is not a list of versions, and the errors of the PCE client.
 */
export async function loadVersions(pce: PceClient, signal: AbortSignal): Promise<VersionList> {
  const first = await readVersions(pce, {}, signal)
  const { versions, total } =
    first.total > first.versions.length ? await readVersions(pce, { max_results: first.total }, signal) : first
  return { versions: versions.sort((a, b) => b.version - a.version), total }
}

async function readVersions(pce: PceClient, params: Record<string, number>, signal: AbortSignal): Promise<VersionList> {
  const answer = await pce.get('/sec_policy', { params, signal })
  const versions = answer.json<unknown>()
  if (!Array.isArray(versions) || !versions.every(isVersion))
    throw new PceError('invalid_response', 'the PCE answered something other than its policy versions')
  return {
    versions: versions.map(withNumbers),
    total: Math.max(versions.length, Number(answer.headers['x-total-count'] ?? 0) || 0),
  }
}

const isVersion = (one: unknown): one is PolicyVersion => {
  const { href, version } = (one ?? {}) as Partial<PolicyVersion>
  return typeof href === 'string' && Number.isInteger(version)
}

/** Converts counts from text, which the PCE sends, to numbers. Values that are not numbers are left out. */
function withNumbers(version: PolicyVersion): PolicyVersion {
  const { workloads_affected: affected, object_counts: counts, ...rest } = version as unknown as Record<string, unknown>
  const numbers = Object.entries(counts ?? {}).flatMap(([name, value]) => {
    const count = toCount(value)
    return count === null ? [] : [[name, count] as const]
  })
  const workloads = toCount(affected)
  return {
    ...rest,
    ...(workloads !== null && { workloads_affected: workloads }),
    ...(counts !== undefined && counts !== null && { object_counts: Object.fromEntries(numbers) }),
  } as unknown as PolicyVersion
}

const toCount = (value: unknown): number | null => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return Number.isSafeInteger(number) ? (number as number) : null
}

/** A version of the policy that the caller selected. */
export interface ChosenVersion {
  /**
   * The version number if it is known, even if the caller asked for `active`; otherwise the value that the caller gave.
   */
  selector: PolicyVersionSelector
  /** Details of the provisioned version; null for the draft. */
  facts: PolicyVersion | null
  /** The version in the words that sentences use, such as `version 12`, `the active policy` or `the draft`. */
  name: string
}

/**
 * Finds the version that the caller selected. Throws not_found {version, oldest, newest} if there is no version with
 * this number. If the PCE did not list all versions, a number below the listed ones is accepted. Only
 * reading that version will show whether it exists.
 */
export function chooseVersion({ versions, total }: VersionList, asked: PolicyVersionSelector): ChosenVersion {
  if (asked === 'draft') return { selector: asked, facts: null, name: 'the draft' }
  const [newest] = versions
  const oldest = versions.at(-1)
  if (newest === undefined || oldest === undefined) {
    if (asked === 'active') return { selector: asked, facts: null, name: 'the active policy' }
    throw new ToolError('not_found', 'Nothing was ever provisioned: there is no policy version.', { version: asked })
  }
  if (asked === 'active')
    return { selector: newest.version, facts: newest, name: `the active policy (version ${newest.version})` }
  const facts = versions.find(({ version }) => version === asked) ?? null
  const mayBeOlder = total > versions.length && asked < oldest.version
  if (facts !== null || mayBeOlder) return { selector: asked, facts, name: `version ${asked}` }
  throw new ToolError(
    'not_found',
    `There is no policy version ${asked}; the PCE has versions ${oldest.version} to ${newest.version}.`,
    { version: asked, oldest: oldest.version, newest: newest.version },
  )
}
