import type { LabelMappingRun, LabelMappingRunRequest, LabelRef } from '../../schemas/pce/label.js'
import type { Reference } from '../../schemas/pce/reference.js'
import { toBulkResults, actInChunks } from '../bulk.js'
import { PceError } from '../errors.js'
import { KINDS, type Kind } from '../kinds.js'
import { integerIn } from '../settings.js'
import type { BulkResultItem, ReferenceLike, RequestOptions } from '../types.js'
import { createDownload, segment, madeBy, type Calls, type DownloadOptions } from './create-calls.js'

/** Maximum number of label mapping rules that one request can delete (P49). */
const MOST_DELETED = 1000

/**
 * Operations on label mapping rules that go beyond the generic ones, and operations on the jobs that run these rules
 * (S9, P58).
 */
export interface LabelMappingOperations {
  /**
   * Moves a label mapping rule to another position in the order of evaluation.
   *
   * @throws {PceIntegerError} unless `position` is a whole number of 0 or more.
   */
  reorderLabelMappingRule(ruleHref: ReferenceLike, position: number, options?: RequestOptions): Promise<void>
  /**
   * Deletes label mapping rules, up to 1,000 per request. If a later request fails, the error's `completed` lists the
   * rules of the earlier requests.
   *
   * @throws {PceError} `invalid_href` for anything that is not a label mapping rule of this organisation,
   *   `invalid_argument` for an empty list.
   */
  bulkDeleteLabelMappingRules(hrefs: readonly ReferenceLike[], options?: RequestOptions): Promise<void>
  /**
   * Changes label mapping rules, each given as an object with its href and the fields to change. Returns the PCE's
   * results, if any.
   */
  bulkUpdateLabelMappingRules(
    rules: readonly (Reference & { [field: string]: unknown })[],
    options?: RequestOptions,
  ): Promise<BulkResultItem[]>
  /**
   * Starts a job that finds the labels which label mapping rules would assign, and assigns them if `assign_labels` is
   * true. Without `workloads` or `rules`, the job covers all workloads or all rules.
   *
   * @throws {PceError} `invalid_argument` for an empty list, which the PCE would read as "all".
   */
  runLabelMappingRules(data: LabelMappingRunRequest, options?: RequestOptions): Promise<LabelMappingRun>
  /** Returns the progress of a job that `runLabelMappingRules` has started. */
  getLabelMappingJob(jobUuid: string, options?: RequestOptions): Promise<LabelMappingRun>
  /**
   * Assigns the labels that a finished job of `runLabelMappingRules` has found. `data` is sent as the body, for which
   * the PCE documents no fields.
   */
  assignLabelMappingLabels(jobUuid: string, data?: object, options?: RequestOptions): Promise<void>
  /**
   * Downloads the results of a job that `runLabelMappingRules` has started, as JSON. Returns the bytes, or passes them
   * on piece by piece to `options.sink` and returns their number.
   */
  downloadLabelMappingResults(jobUuid: string, options: DownloadOptions): Promise<{ bytes: number }>
  downloadLabelMappingResults(jobUuid: string, options?: RequestOptions): Promise<Uint8Array>
}

export function createLabelMappingOperations(calls: Calls): LabelMappingOperations {
  const base = `${calls.org}/label_mapping_rules`
  const rule = (reference: ReferenceLike) => calls.href(KINDS.labelMappingRules, reference)
  const job = (uuid: string) => `${base}/run/${segment('job_uuid', uuid)}`

  /** Refuses an empty list, which the PCE would take for "no restriction". */
  function checkList(name: string, kind: Kind, list: readonly Reference[] | undefined): void {
    if (list === undefined) return
    if (calls.hrefs(kind, list).length > 0) return
    throw new PceError('invalid_argument', `${name} is empty; leave it out to mean all`)
  }

  return {
    async reorderLabelMappingRule(ruleHref, position, options) {
      const path = `${rule(ruleHref)}/reorder`
      await calls.put(path, { position: integerIn('position', position, 0) }, options)
    },
    async bulkDeleteLabelMappingRules(hrefs, options) {
      await actInChunks('delete', calls.hrefs(KINDS.labelMappingRules, hrefs), MOST_DELETED, async (rules) => {
        await calls.put(`${base}/delete`, { rules }, options)
        return []
      })
    },
    async bulkUpdateLabelMappingRules(rules, options) {
      if (rules.length === 0) throw new PceError('invalid_argument', 'update: name at least one rule')
      const body = rules.map((change) => ({ ...change, href: rule(change) }))
      const answer = await calls.put(`${base}/update`, body, options)
      return answer.text.trim() === '' ? [] : toBulkResults('update', answer, body.length)
    },
    async runLabelMappingRules(data, options) {
      checkList('workloads', KINDS.workloads, data.workloads)
      checkList('rules', KINDS.labelMappingRules, data.rules)
      return madeBy<LabelMappingRun>(await calls.post(`${base}/run`, data, options), 'the run', 'href')
    },
    async getLabelMappingJob(jobUuid, options) {
      return calls.get<LabelMappingRun>(job(jobUuid), options)
    },
    async assignLabelMappingLabels(jobUuid, data = {}, options) {
      await calls.put(`${job(jobUuid)}/assign_labels`, data, options)
    },
    downloadLabelMappingResults: createDownload(calls, (uuid: string) => `${job(uuid)}/download`),
  }
}

/**
 * Operations that show what a label group contains and which groups contain it (S9, P13). The policy version that is
 * read is the one in the group's href.
 */
export interface LabelGroupOperations {
  /** Lists the labels of a label group and of every label group inside it. */
  getLabelGroupAllLabels(lgHref: ReferenceLike, options?: RequestOptions): Promise<LabelRef[]>
  /** Lists the label groups that contain a label group, directly or through other groups. */
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
