import { parseHref } from '../inventory/parse-href.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import type { PolicyCatalog } from './load-snapshot.js'

/**
 * Returns the names of objects from a policy that has already been read, without further requests. Virtual services
 * remain hrefs unless the rule itself includes their names.
 * @param workloadName returns the names of workloads that were read.
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
