import type { ModifiedPolicyObject } from '../../schemas/pce/policy.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { RequestOptions } from '../types.js'
import { toChangeSubset } from './change-subset.js'
import type { Calls } from './create-calls.js'
import { versionSegment } from './path-segment.js'
import { saidBy } from './read-outcome.js'

/** Taking draft changes back, and going back to an earlier policy (S9, P36, P59). */
export interface PolicyDraftOperations {
  /**
   * Discards every pending draft change of the organisation, whoever made it: what was created is gone, what was changed or
   * marked for deletion is as in the active policy again.
   */
  discardPendingPolicyChanges(options?: RequestOptions): Promise<void>
  /**
   * Reverts the named pending draft changes. Despite its name it deletes nothing that has been provisioned: the PCE's path is
   * `sec_policy/delete`, and what it deletes are changes (P36). What is named here must be complete, as for `getPolicyDependencies`
   * with the operation `revert`.
   *
   * @throws {PceError} `invalid_href` before any request for what cannot be pending here; `invalid_argument` for no href, which
   *   the PCE would take for every change.
   */
  bulkDeletePolicyObjects(hrefs: readonly string[], options?: RequestOptions): Promise<void>
  /** Lists what a policy version changed; of the draft, what is changed now. */
  getModifiedPolicyObjects(
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<ModifiedPolicyObject[]>
  /**
   * Makes the draft changes that go back to an earlier policy version; they still have to be provisioned. A PCE restores
   * numbered versions only, so that the specification's default of `draft` is refused by a real one. `{}` where the PCE answers
   * nothing.
   */
  restorePolicy(policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<Record<string, unknown>>
}

export function createPolicyDraftOperations(calls: Calls): PolicyDraftOperations {
  const base = `${calls.org}/sec_policy`
  return {
    discardPendingPolicyChanges: (options) => calls.delete(`${base}/pending`, options),
    async bulkDeletePolicyObjects(hrefs, options) {
      const change_subset = toChangeSubset(hrefs, calls.settings.address.orgId)
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
