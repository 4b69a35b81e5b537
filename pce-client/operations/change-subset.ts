import { CHANGE_SUBSET_TYPES, type ChangeSubset, type ChangeSubsetType } from '../../schemas/pce/policy.js'
import { PceError } from '../errors.js'

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
