import type { PceClient } from '../../pce-client/index.js'
import { PceError } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'

/** The versions of the policy that a PCE lists. */
export interface VersionList {
  /** Newest first: the first one is in force. */
  versions: PolicyVersion[]
  /** How many there are; more than in `versions` where the PCE cut its answer. */
  total: number
}

/**
 * Every version that was ever provisioned, as far as the PCE lists them (P100). Throws invalid_response for anything but versions, and what the
 * PCE client throws.
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
  return { versions, total: Math.max(versions.length, Number(answer.headers['x-total-count'] ?? 0) || 0) }
}

const isVersion = (one: unknown): one is PolicyVersion => {
  const { href, version } = (one ?? {}) as Partial<PolicyVersion>
  return typeof href === 'string' && Number.isInteger(version)
}

/** A version that was asked for. */
export interface ChosenVersion {
  /** A number where one is known: `active` is the newest version. */
  selector: PolicyVersionSelector
  /** What was provisioned; null for the draft. */
  facts: PolicyVersion | null
  /** `version 12`, `the active policy`, `the draft`: as sentences call it. */
  name: string
}

/**
 * The version that a caller means among all there are. Throws not_found {version, oldest, newest} for a number that none has. A list that the
 * PCE cut is no proof that an older one is missing: reading it tells.
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
