import {
  CHANGE_SUBSET_TYPES,
  type ChangeSubset,
  type ChangeSubsetType,
  type PendingChange,
  type PendingChanges,
  type PolicyDependency,
  type PolicyImpact,
  type PolicyVersion,
} from '../../schemas/pce/policy.js'
import { PceError } from '../errors.js'
import type { ClientSettings } from '../settings.js'
import type { Http } from '../transport.js'
import type { PolicyOperations, RequestOptions, TypedPendingChange } from '../types.js'

/** A bucket of pending changes this full may have been cut; asked for again, it is given whole. */
const PENDING_PAGE = 500
const MAX_PENDING = 10_000

/** Provisioning and what is asked before it (specification 4.3, pce-api d and e.14). */
export function createPolicyOperations(http: Http, settings: ClientSettings): PolicyOperations {
  const { orgId } = settings.address
  const base = `/orgs/${orgId}/sec_policy`
  const subsetOf = (hrefs: readonly string[]) => toChangeSubset(hrefs, orgId)

  async function pending(options: RequestOptions, maxResults?: number): Promise<TypedPendingChange[]> {
    const params = maxResults === undefined ? options.params : { ...options.params, max_results: maxResults }
    const answer = await http.send('GET', `${base}/pending`, { ...options, params, includeOrg: false })
    return flatten(answer.json<PendingChanges | PendingChange[] | undefined>() ?? {})
  }

  return {
    async provisionPolicyChanges(changeDescription, hrefs, options = {}) {
      const json = { update_description: changeDescription, change_subset: subsetOf(hrefs) }
      const answer = await http.send('POST', base, { ...options, json: withOwn(json, options), includeOrg: false })
      try {
        return answer.json<PolicyVersion>()
      } catch (cause) {
        const text = `the PCE accepted the provisioning (status ${answer.status}), but its answer cannot be read`
        throw new PceError('outcome_unknown', text, { cause })
      }
    },
    async getPendingPolicyChanges(options = {}) {
      const changes = await pending(options)
      const isFull = CHANGE_SUBSET_TYPES.some(
        (type) => changes.filter((change) => change.type === type).length >= PENDING_PAGE,
      )
      return isFull && options.params?.max_results === undefined ? pending(options, MAX_PENDING) : changes
    },
    async getPolicyDependencies(hrefs, policyVersion = 'draft', options = {}) {
      const json = { operation: 'commit', change_subset: subsetOf(hrefs) }
      const endpoint = `${base}/${policyVersion}/dependencies`
      const answer = await http.send('POST', endpoint, { ...options, json: withOwn(json, options), includeOrg: false })
      return answer.json<PolicyDependency[] | undefined>() ?? []
    },
    async analyzePolicyImpact(hrefs, options = {}) {
      const json = { change_subset: subsetOf(hrefs) }
      const answer = await http.send('POST', `${base}/impact`, {
        ...options,
        json: withOwn(json, options),
        includeOrg: false,
      })
      return answer.json<PolicyImpact>()
    },
  }
}

/**
 * Hrefs grouped by type as the PCE wants them: drafts, each once, a rule as its rule set (rules are provisioned only through
 * it).
 *
 * @throws {PceError} `invalid_href` for an href of another organisation or of something that is not provisioned;
 *   `invalid_argument` for no href at all, because an absent subset would mean every pending change.
 */
export function toChangeSubset(hrefs: readonly string[], orgId: string): ChangeSubset {
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
    throw new PceError('invalid_href', `${shown} is nothing that can be provisioned in organisation ${orgId}`)
  }
  return { type: known, href: `/orgs/${orgId}/sec_policy/draft/${known}${id === undefined ? '' : `/${id}`}` }
}

/** Fields of the documented body that are no arguments have a default, which the caller's own body overrides. */
function withOwn(body: object, { json }: RequestOptions): object {
  return { ...body, ...(typeof json === 'object' ? json : {}) }
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
  return answer.flatMap((change) => typed(/\/sec_policy\/draft\/([a-z_]+)/.exec(change.href)?.[1] ?? '', change))
}
