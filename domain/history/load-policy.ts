import { PceApiError, PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { readEnds, readRuleSets, requireServiceShapes } from '../inventory/require-rule-shape.js'
import { type Steps, mapBounded, workInTurns } from '../text/pace-work.js'

/**
 * The types of versioned objects that are read. Secure connect gateways are missing, because the PCE client does not
 * support them.
 */
const KINDS = {
  rule_sets: 'ruleSets',
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
  enforcement_boundaries: 'enforcementBoundaries',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
  firewall_settings: 'firewallSettings',
} as const satisfies Partial<Record<ChangeSubsetType, keyof PceClient>>
export type ReadType = keyof typeof KINDS

/** The types that the PCE supports in every release. */
const IN_EVERY_RELEASE: ReadonlySet<ReadType> = new Set(['rule_sets', 'ip_lists', 'services', 'label_groups'])

/** The types of objects that are read, in the order in which people read a policy. */
export const READ_TYPES = Object.keys(KINDS) as ReadType[]

/**
 * All objects of one version of the policy, by type and draft href. All hrefs inside the objects are draft hrefs,
 * whatever the version.
 */
export type WholePolicy = Readonly<Record<ReadType, ReadonlyMap<string, PceObject>>>

const IN_FLIGHT = 4

/**
 * Reads one version of the policy. Objects of the draft that are marked for deletion are left out. Throws the errors of
 * the PCE client, because an incomplete policy would be misleading. Throws not_found {version, type} if the PCE answers
 * 404 for the objects of a type, because the version is then unreadable, not empty. Only a type that does not exist in
 * the release of this PCE counts as empty, and a type that is not among `types`, for callers that do not need it.
 */
export async function loadPolicy(
  pce: PceClient,
  version: PolicyVersionSelector,
  signal: AbortSignal,
  types: readonly ReadType[] = READ_TYPES,
): Promise<WholePolicy> {
  const read = await mapBounded(READ_TYPES, IN_FLIGHT, async (type) => {
    if (!types.includes(type)) return new Map<string, PceObject>()
    const objects = await readKind(pce, type, version, signal)
    return workInTurns(index(type, objects, version, `/orgs/${pce.orgId}/sec_policy/draft/${type}`), signal)
  })
  return Object.fromEntries(READ_TYPES.map((type, at) => [type, read[at]])) as unknown as WholePolicy
}

async function readKind(
  pce: PceClient,
  type: ReadType,
  policyVersion: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<PceObject[]> {
  const api = pce[KINDS[type]] as unknown as ObjectApi<PceObject>
  try {
    const { items } = await fetchEvery({ api, policyVersion, params: {}, signal })
    if (type === 'services') requireServiceShapes(items as Service[])
    if (type === 'enforcement_boundaries') return readEnds(items as EnforcementBoundary[], 'an enforcement boundary')
    if (type !== 'rule_sets') return items
    const complete = await loadDenyRules(pce, readRuleSets(items as RuleSet[]), signal)
    const unread = complete.find(({ error }) => error !== undefined)?.error
    if (unread !== undefined) throw new PceError('invalid_response', unread)
    return complete.map(({ ruleSet }) => ruleSet)
  } catch (error) {
    if (!isNotFound(error)) throw error
    if (!IN_EVERY_RELEASE.has(type) && (policyVersion === 'draft' || (await isUnknownKind(api, signal)))) return []
    const list = type.replaceAll('_', ' ')
    throw new ToolError(
      'not_found',
      `The PCE has no ${list} of ${nameOf(policyVersion)} (404): this version of the policy cannot be read.`,
      { version: policyVersion, type },
    )
  }
}

const isNotFound = (error: unknown) => error instanceof PceApiError && error.status === 404

const nameOf = (version: PolicyVersionSelector) =>
  typeof version === 'number' ? `version ${version}` : `the ${version} policy`

async function isUnknownKind(api: ObjectApi<PceObject>, signal: AbortSignal): Promise<boolean> {
  try {
    await api.getPage('draft', undefined, { params: { max_results: 1 }, signal })
    return false
  } catch (error) {
    if (isNotFound(error)) return true
    throw error
  }
}

/**
 * Indexes objects by draft href. `single` is the href to use for the firewall settings, which exist only once and have
 * no id (P12).
 */
function* index(
  type: ReadType,
  objects: readonly PceObject[],
  version: PolicyVersionSelector,
  single: string,
): Steps<Map<string, PceObject>> {
  const byHref = new Map<string, PceObject>()
  for (const object of objects) {
    yield
    if (version === 'draft' && object.update_type === 'delete') continue
    const own = type === 'firewall_settings' ? { ...object, href: single } : object
    const draft = inDraftForm(own) as PceObject
    byHref.set(draft.href, draft)
  }
  return byHref
}

const VERSIONED = /^(\/orgs\/\d+\/sec_policy)\/(?:draft|active|\d+)\//

/**
 * Converts the href of an object in any version to its draft href. The id of an object is the same in all versions
 * (P4).
 */
export const draftHrefOf = (href: string): string => href.replace(VERSIONED, '$1/draft/')

/** Returns a JSON value in which every versioned `href` is replaced by its draft href. */
export function inDraftForm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inDraftForm)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [
      field,
      field === 'href' && typeof inner === 'string' ? draftHrefOf(inner) : inDraftForm(inner),
    ]),
  )
}
