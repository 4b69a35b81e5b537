import { PceApiError, PceError } from '../../pce-client/index.js'
import { toActiveHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { mapBounded } from '../text/pace-work.js'
import { INSIDE, placeUnscoped, UNREADABLE, type PlacedObject } from './place-object.js'
import { placeRuleSets } from './place-rule-sets.js'
import { isShared, placeShared } from './place-shared.js'
import { IN_FLIGHT, placeVirtualService, readVersions, type Reader } from './read-around.js'
import { fieldsOf, hrefsIn, readTarget, type Target, type Write } from './read-write.js'

/**
 * Determines for the changes that a request provisions or discards whether they are inside; undefined for any other
 * action on the whole policy.
 */
export function placeSubset(
  reader: Reader,
  { method, body }: Write,
  { id, inner }: Target,
): Promise<PlacedObject[]> | undefined {
  const isProvisioning = method === 'POST' && id === undefined
  const isDiscarding = method === 'PUT' && id === 'delete'
  if (inner !== undefined || (!isProvisioning && !isDiscarding)) return undefined
  const hrefs = Object.values(fieldsOf(fieldsOf(body)['change_subset'])).flatMap(hrefsIn)
  // Without a subset, the PCE would provision or discard everything that is pending.
  if (hrefs.length === 0) return undefined
  return mapBounded(hrefs, IN_FLIGHT, (href) => placePending(reader, href))
}

/** Determines whether an object with pending changes is inside, in the draft as well as in the active policy. */
export async function placePending(reader: Reader, href: string): Promise<PlacedObject> {
  const { pce, signal, territory } = reader
  const { kind } = readTarget(href, pce.orgId)
  try {
    if (kind === 'rule_sets') {
      const found = await readVersions(pce.ruleSets, href, signal)
      const complete = await loadDenyRules(pce, found, signal)
      const isWhole = complete.every(({ error, hasNone }) => error === undefined || hasNone === true)
      if (found.length === 0 || !isWhole) return { kind, href, place: UNREADABLE }
      const place = await placeRuleSets(
        reader,
        complete.map(({ ruleSet }) => ruleSet),
      )
      return { kind, href, name: found[0]!.name, place }
    }
    if (kind === 'virtual_services')
      return { kind, href, place: (await placeVirtualService(reader, href)) ?? UNREADABLE }
    if (territory.shield !== undefined && isShared(kind)) return { kind, href, place: await placeShared(reader, href) }
    if (territory.create.has(kind) && (await isNew(reader, kind, href))) return { kind, href, place: INSIDE }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { kind, href, place: UNREADABLE }
  }
  return { kind, href, place: placeUnscoped(territory, kind) }
}

/** Returns true if the active policy does not have the object. */
async function isNew({ pce, signal }: Reader, kind: string, href: string): Promise<boolean> {
  const apis: Readonly<Record<string, { getByReference: (href: string, options: object) => Promise<unknown> }>> = {
    ip_lists: pce.ipLists,
    services: pce.services,
    label_groups: pce.labelGroups,
  }
  try {
    await apis[kind]?.getByReference(toActiveHref(href), { signal })
    return false
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) return true
    throw error
  }
}
