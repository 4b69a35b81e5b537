import type { PceClient } from '../../pce-client/index.js'
import { ANY_IP_LIST_NAME, ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { loadLabels, type ReadContext } from '../inventory/load-labels.js'
import { toDraftHref } from '../inventory/parse-href.js'

/** What rules are judged by: which list is every address, which service everything, and which key a label has. */
export interface PolicyFacts {
  anyIpLists: ReadonlySet<string>
  allServices: ReadonlySet<string>
  /** Of a label or label group; undefined where it is not known. */
  readonly keyOf: (href: string) => string | undefined
}

/** Reads the facts for judging `objects`, each only where they speak of it: rules carry hrefs alone (P20). */
export async function loadPolicyFacts(
  pce: PceClient,
  objects: readonly unknown[],
  context: ReadContext,
): Promise<PolicyFacts> {
  const { signal } = context
  const text = JSON.stringify(objects)
  const mentions = (kind: string) => text.includes(`/${kind}/`)
  const named = async (kind: 'ipLists' | 'services', name: string) => {
    const { items } = await fetchEvery({ api: pce[kind], params: { name }, signal })
    return new Set(items.filter((item) => item.name === name).map(({ href }) => toDraftHref(href)))
  }
  const [anyIpLists, allServices, labels, groups] = await Promise.all([
    mentions('ip_lists') ? named('ipLists', ANY_IP_LIST_NAME) : new Set<string>(),
    mentions('services') ? named('services', ALL_SERVICES_NAME) : new Set<string>(),
    mentions('labels') ? loadLabels(pce, context) : undefined,
    mentions('label_groups') ? fetchEvery<PceObject>({ api: pce.labelGroups, params: {}, signal }) : undefined,
  ])
  const groupKeys = new Map((groups?.items ?? []).map(({ href, key }) => [toDraftHref(href), key as string]))
  return {
    anyIpLists,
    allServices,
    keyOf: (href) => labels?.get(href)?.key ?? groupKeys.get(toDraftHref(href)),
  }
}
