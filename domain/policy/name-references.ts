import type { PceClient } from '../../pce-client/index.js'
import type { Rule } from '../../schemas/pce/rule-set.js'
import { parseHref } from '../inventory/parse-href.js'
import { loadUserGroups, type ReferenceNames } from '../inventory/reference-names.js'
import type { PolicyCatalog } from './load-snapshot.js'

/**
 * Creates a function that returns the names of objects in a policy that was already read, without further requests.
 * Virtual services are shown by href unless the rule itself contains their names.
 *
 * @param workloadName returns the name of a workload, if it was read.
 */
export function namesOf(
  { labelOf, listOf, serviceOf, groupOf }: Pick<PolicyCatalog, 'labelOf' | 'listOf' | 'serviceOf' | 'groupOf'>,
  workloadName: (href: string) => string | undefined,
): ReferenceNames {
  return (href) => {
    const kind = parseHref(href)?.kind
    if (kind === 'labels') {
      const label = labelOf(href)
      return label === undefined ? {} : { key: label.key, value: label.value }
    }
    const name =
      kind === 'ip_lists'
        ? listOf(href)?.name
        : kind === 'services'
          ? serviceOf(href)?.name
          : kind === 'label_groups'
            ? groupOf(href)?.name
            : kind === 'workloads'
              ? workloadName(href)
              : undefined
    return name === undefined ? {} : { name }
  }
}

/**
 * Adds to `names` the names of user groups in the conditions of rules. User groups are not part of the policy, so each
 * is read separately; those that this account may not read are shown by href.
 */
export async function withUserGroups(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  names: ReferenceNames,
  rules: readonly object[],
): Promise<ReferenceNames> {
  const hrefs = rules.flatMap((rule) => {
    const { consuming_security_principals: groups } = rule as Partial<Rule>
    return (groups ?? []).map(({ href }) => href)
  })
  if (hrefs.length === 0) return names
  const groups = await loadUserGroups(pce, hrefs, signal)
  return Object.assign((href: string) => (groups.has(href) ? { name: groups.get(href) } : names(href)), {
    ...(names.isShared !== undefined && { isShared: names.isShared }),
  })
}
