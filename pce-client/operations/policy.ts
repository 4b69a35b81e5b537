import {
  CHANGE_SUBSET_TYPES,
  type ChangeSubsetType,
  type PendingChange,
  type PendingChanges,
  type PolicyDependency,
  type PolicyImpact,
  type PolicyVersion,
  type TypedPendingChange,
} from '../../schemas/pce/policy.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { bodyOf, listOf } from '../read-answer.js'
import type { RequestOptions } from '../types.js'
import { toChangeSubset } from './change-subset.js'
import { below, type Calls } from './create-calls.js'
import { versionSegment } from './path-segment.js'
import { madeBy } from './read-outcome.js'

/** A bucket of pending changes this full may have been cut; asked for again, it is given whole. */
const PENDING_PAGE = 500
const MAX_PENDING = 10_000

/** Provisioning and what is asked before it (S9, P13, P27). */
export interface PolicyOperations {
  /**
   * Makes draft changes active, and answers the policy version that came of it. An active href stands for its draft, a rule's
   * href for its rule set, since rules are provisioned only through it; `firewall_settings` has no id. What the changes need
   * besides themselves must be named too: `getPolicyDependencies` tells.
   *
   * @throws {PceError} `invalid_href` before any request for what cannot be provisioned here, `invalid_argument` for no href.
   */
  provisionPolicyChanges(
    changeDescription: string,
    hrefs: readonly string[],
    options?: RequestOptions,
  ): Promise<PolicyVersion>
  /** Lists every pending draft change. The PCE answers an object of buckets; here it is one list, with `type` in each change. */
  getPendingPolicyChanges(options?: RequestOptions): Promise<TypedPendingChange[]>
  /**
   * Lists what a set of draft changes also needs to be provisioned; nothing when it is complete. `options.json`
   * `{operation: 'revert'}` asks what reverting it needs.
   */
  getPolicyDependencies(
    hrefs: readonly string[],
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<PolicyDependency[]>
  /** Counts what a set of draft changes would reach once it is provisioned. */
  analyzePolicyImpact(hrefs: readonly string[], options?: RequestOptions): Promise<PolicyImpact>
}

export function createPolicyOperations({ http, org, post, settings }: Calls): PolicyOperations {
  const base = `${org}/sec_policy`
  const subsetOf = (hrefs: readonly string[]) => toChangeSubset(hrefs, settings.address.orgId)

  async function pending(options: RequestOptions, maxResults?: number): Promise<TypedPendingChange[]> {
    const params = maxResults === undefined ? options.params : { ...options.params, max_results: maxResults }
    const answer = await http.send('GET', `${base}/pending`, below({ ...options, params }))
    return flatten(answer.json<PendingChanges | PendingChange[] | undefined>() ?? {})
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
      return bodyOf<PolicyImpact>(await post(`${base}/impact`, { change_subset: subsetOf(hrefs) }, options))
    },
  }
}

/**
 * The buckets as one list; an answer that is a plain list has its types in the hrefs. A type this client does not know is kept:
 * hiding a pending change would be a wrong answer.
 */
function flatten(answer: PendingChanges | PendingChange[]): TypedPendingChange[] {
  const typed = (type: string, bucket: PendingChange[] | PendingChange) =>
    (Array.isArray(bucket) ? bucket : [bucket])
      .filter((change) => typeof change === 'object' && change !== null)
      .map((change) => ({ ...change, type: type as ChangeSubsetType }))
  if (!Array.isArray(answer)) return Object.entries(answer).flatMap(([type, bucket]) => typed(type, bucket))
  return answer.flatMap((change) => typed(/\/sec_policy\/draft\/([a-z_]+)/.exec(change?.href)?.[1] ?? '', change))
}
