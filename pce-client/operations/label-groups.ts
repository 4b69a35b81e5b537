import type { LabelRef } from '../../schemas/pce/label.js'
import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import type { Calls } from './create-calls.js'

/** How label groups contain each other (S9, P13). Answers are of the policy version in the href. */
export interface LabelGroupOperations {
  /** Lists the labels of a group and of every group inside it. */
  getLabelGroupAllLabels(lgHref: ReferenceLike, options?: RequestOptions): Promise<LabelRef[]>
  /** Lists the groups that contain a group, directly or through others. */
  getLabelGroupMemberOf(lgHref: ReferenceLike, options?: RequestOptions): Promise<{ href: string; name?: string }[]>
}

export function createLabelGroupOperations(calls: Calls): LabelGroupOperations {
  return {
    async getLabelGroupAllLabels(lgHref, options) {
      return calls.list<LabelRef>(`${calls.href(KINDS.labelGroups, lgHref)}/all_labels`, options)
    },
    async getLabelGroupMemberOf(lgHref, options) {
      return calls.list(`${calls.href(KINDS.labelGroups, lgHref)}/member_of`, options)
    },
  }
}
