import type { PolicyVersionSelector } from '../../schemas/common.js'
import type {
  PolicyDependency,
  PolicyImpact,
  PolicyVersion,
  TypedPendingChange,
  ModifiedPolicyObject,
  ChangeSubset,
} from '../../schemas/pce/policy.js'
import { type ChangeSubsetType, CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { PceError } from '../errors.js'
import { bodyOf, isRecord, listOf } from '../transport.js'
import type { RequestOptions } from '../types.js'
import { below, versionSegment, madeBy, saidBy, type Calls } from './create-calls.js'

/**
 * The number of pending changes of one type from which on the PCE's answer may be truncated. A second request then asks
 * for up to MAX_PENDING changes.
 */
const PENDING_PAGE = 500
const MAX_PENDING = 10_000

/** Operations that provision policy, or answer questions before a provisioning (S9, P13, P27). */
export interface PolicyOperations {
  /**
   * Makes draft changes active and returns the resulting policy version. The href of an active object stands for the
   * draft of the same object. A rule's href stands for its rule set, since rules can only be provisioned with their
   * rule set. The href of `firewall_settings` has no id. Everything else on which the changes depend must be passed
   * too: `getPolicyDependencies` lists it.
   *
   * @throws {PceError} before any request: `invalid_href` for objects of another organisation and for objects that
   *   cannot be provisioned, `invalid_argument` for an empty list.
   */
  provisionPolicyChanges(
    changeDescription: string,
    hrefs: readonly string[],
    options?: RequestOptions,
  ): Promise<PolicyVersion>
  /**
   * Lists every pending draft change. The PCE groups the changes by type; this operation returns one list, with `type`
   * in each change.
   */
  getPendingPolicyChanges(options?: RequestOptions): Promise<TypedPendingChange[]>
  /**
   * Lists what else must be provisioned together with a set of draft changes; empty if the set is complete. With
   * `options.json` set to `{operation: 'revert'}`, it lists what else must be reverted together with the set.
   */
  getPolicyDependencies(
    hrefs: readonly string[],
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<PolicyDependency[]>
  /** Counts the objects that a set of draft changes would affect when provisioned. */
  analyzePolicyImpact(hrefs: readonly string[], options?: RequestOptions): Promise<PolicyImpact>
}

export function createPolicyOperations({ http, org, post, settings }: Calls): PolicyOperations {
  const base = `${org}/sec_policy`
  const subsetOf = (hrefs: readonly string[]) => subsetOfHrefs(hrefs, settings.address.orgId)

  async function pending(options: RequestOptions, maxResults?: number): Promise<TypedPendingChange[]> {
    const params = maxResults === undefined ? options.params : { ...options.params, max_results: maxResults }
    const answer = await http.send('GET', `${base}/pending`, below({ ...options, params }))
    return flatten(answer.json<unknown>())
  }

  return {
    async provisionPolicyChanges(changeDescription, hrefs, options) {
      const body = { update_description: changeDescription, change_subset: subsetOf(hrefs) }
      return madeBy<PolicyVersion>(await post(base, body, options), 'the provisioning', 'href')
    },
    async getPendingPolicyChanges(options = {}) {
      const changes = await pending(options)
      const isFull = CHANGE_SUBSET_TYPES.some(
        (type) => changes.filter((change) => change.type === type).length >= PENDING_PAGE,
      )
      return isFull && options.params?.max_results === undefined ? pending(options, MAX_PENDING) : changes
    },
    async getPolicyDependencies(hrefs, policyVersion = 'draft', options) {
      const endpoint = `${base}/${versionSegment(policyVersion)}/dependencies`
      const body = { operation: 'commit', change_subset: subsetOf(hrefs) }
      return listOf<PolicyDependency>(await post(endpoint, body, options), endpoint)
    },
    async analyzePolicyImpact(hrefs, options) {
      const endpoint = `${base}/impact`
      return bodyOf<PolicyImpact>(await post(endpoint, { change_subset: subsetOf(hrefs) }, options), endpoint)
    },
  }
}

/**
 * Turns the pending changes, which the PCE groups by type, into one list. If the answer is a plain list, the types are
 * taken from the hrefs. Types that this client does not know are kept, because hiding a pending change would be wrong.
 * It would also be wrong to report "no changes" for an unreadable answer, so only `{}` is read as "no changes" (D70,
 * P64).
 *
 * @throws {PceError} `invalid_response` for anything that is not a change with an href.
 */
function flatten(answer: unknown): TypedPendingChange[] {
  const changes = Array.isArray(answer)
    ? (answer as unknown[]).map((change) => toChange(change, typeInHref(change)))
    : Object.entries(isRecord(answer) ? answer : refusePending()).flatMap(([type, bucket]) => {
        // The PCE may send null in place of an empty list (P43).
        const list = Array.isArray(bucket) ? (bucket as unknown[]) : bucket === null ? [] : [bucket]
        return list.map((change) => toChange(change, type))
      })
  return changes.length > 0 || (isRecord(answer) && Object.keys(answer).length === 0) ? changes : refusePending()
}

/** Optional text properties of a change; null counts as absent (P43). */
const TEXTS: readonly string[] = ['name', 'update_type', 'change_type', 'updated_at']

function toChange(change: unknown, type: string): TypedPendingChange {
  if (!isRecord(change) || typeof change.href !== 'string') return refusePending()
  const fields = Object.entries(change).filter(([field, value]) => {
    if (field === 'updated_by') return isRecord(value) && typeof value.href === 'string'
    if (!TEXTS.includes(field) || value === null) return !TEXTS.includes(field)
    return typeof value === 'string' || refusePending()
  })
  return { ...(Object.fromEntries(fields) as { href: string }), type: type as ChangeSubsetType }
}

function typeInHref(change: unknown): string {
  const href = isRecord(change) ? String(change.href) : ''
  return /\/sec_policy\/draft\/([a-z_]+)/.exec(href)?.[1] ?? ''
}

function refusePending(): never {
  throw new PceError(
    'invalid_response',
    'the PCE answered something other than its pending changes: they are not known',
  )
}

/** Operations that revert draft changes or return to an earlier policy (S9, P36, P59). */
export interface PolicyDraftOperations {
  /**
   * Discards every pending draft change of the organisation, no matter who made it: created objects disappear, changed
   * or deleted ones are restored from the active policy.
   */
  discardPendingPolicyChanges(options?: RequestOptions): Promise<void>
  /**
   * Reverts the given pending draft changes. Despite its name, this operation deletes no provisioned object: the name
   * is that of the PCE's path, `sec_policy/delete`, and only the changes are deleted (P36). The set of changes must be
   * complete; `getPolicyDependencies` with the operation `revert` lists what is missing.
   *
   * @throws {PceError} before any request: `invalid_href` for objects of another organisation and for objects that
   *   cannot have pending changes; `invalid_argument` for an empty list, which the PCE would read as "every change".
   */
  bulkDeletePolicyObjects(hrefs: readonly string[], options?: RequestOptions): Promise<void>
  /** Lists the objects that a policy version changed; for the draft, the objects that have pending changes. */
  getModifiedPolicyObjects(
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<ModifiedPolicyObject[]>
  /**
   * Creates the draft changes that restore an earlier policy version; they still have to be provisioned. A real PCE
   * restores numbered versions only and refuses the specification's default of `draft`. Returns `{}` if the PCE's
   * answer is empty.
   */
  restorePolicy(policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<Record<string, unknown>>
}

export function createPolicyDraftOperations(calls: Calls): PolicyDraftOperations {
  const base = `${calls.org}/sec_policy`
  return {
    discardPendingPolicyChanges: (options) => calls.delete(`${base}/pending`, options),
    async bulkDeletePolicyObjects(hrefs, options) {
      const change_subset = subsetOfHrefs(hrefs, calls.settings.address.orgId)
      await calls.put(`${base}/delete`, { change_subset }, options)
    },
    async getModifiedPolicyObjects(policyVersion = 'draft', options) {
      return calls.list<ModifiedPolicyObject>(`${base}/${versionSegment(policyVersion)}/modified_objects`, options)
    },
    async restorePolicy(policyVersion = 'draft', options) {
      const path = `${base}/${versionSegment(policyVersion)}/restore`
      return saidBy(await calls.post(path, {}, options), 'the restoration')
    },
  }
}

/**
 * Groups hrefs by type, as the PCE expects. Each object is included only once, by the href of its draft. The href of a
 * rule is replaced with that of its rule set, because rules can only be provisioned with their rule set.
 *
 * @throws {PceError} `invalid_href` for an href of another organisation or an object that is not provisioned;
 *   `invalid_argument` for an empty list, because without a subset the PCE would act on every pending change.
 */
export function subsetOfHrefs(hrefs: readonly string[], orgId: string): ChangeSubset {
  if (hrefs.length === 0)
    throw new PceError('invalid_argument', 'name at least one href: none would mean every pending change')
  const subset: ChangeSubset = {}
  const seen = new Set<string>()
  for (const given of hrefs) {
    const { type, href } = readProvisionable(given, orgId)
    if (seen.has(href)) continue
    seen.add(href)
    ;(subset[type] ??= []).push({ href })
  }
  return subset
}

function readProvisionable(given: string, orgId: string): { type: ChangeSubsetType; href: string } {
  const pattern =
    /^\/orgs\/(\d+)\/sec_policy\/(?:draft|active)\/([a-z_]+)(?:\/([A-Za-z0-9-]+)(?:\/(?:sec_rules|deny_rules)\/[A-Za-z0-9-]+)?)?$/
  const [, org, type, id] = pattern.exec(given) ?? []
  const known = CHANGE_SUBSET_TYPES.find((candidate) => candidate === type)
  const isWhole = known === 'firewall_settings' || id !== undefined
  const isNestedRule = /\/(?:sec_rules|deny_rules)\//.test(given)
  if (org !== orgId || known === undefined || !isWhole || (isNestedRule && known !== 'rule_sets')) {
    const shown = JSON.stringify(String(given).slice(0, 200))
    throw new PceError('invalid_href', `${shown} cannot be provisioned in organisation ${orgId}`)
  }
  return { type: known, href: `/orgs/${orgId}/sec_policy/draft/${known}${id === undefined ? '' : `/${id}`}` }
}
