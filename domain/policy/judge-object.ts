import type { ChangeEffect } from '../../schemas/policy-changes.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import { diffFields } from './diff-fields.js'
import { combineEffects } from './diff-rule-set.js'
import type { Use } from '../inventory/find-uses.js'
import { combineExtents, compareEnds, compareServices, compareSets, type Extent } from './compare-extents.js'
import { OPPOSITE } from './diff-rule-set.js'
import type { PolicyFacts } from './load-snapshot.js'
import { toDraftHref } from '../inventory/parse-href.js'

/** Fields that touch no traffic. */
const HARMLESS = [
  'name',
  'description',
  'description_url',
  'external_data_set',
  'external_data_reference',
  'risk_details',
]

/** Objects that rules refer to only by href, with the fields that say what they stand for. */
const JUDGED: Record<string, readonly string[]> = {
  ip_lists: ['ip_ranges', 'fqdns'],
  services: SERVICE_LISTS,
  label_groups: ['labels', 'sub_groups'],
  enforcement_boundaries: ['providers', 'consumers', 'ingress_services', 'enabled'],
}

/**
 * What a change of an object other than a rule set does to permitted traffic. Such objects act only through the rules that use
 * them, so `usesOf` is asked when one has changed. Undefined: it cannot be determined.
 */
export async function judgeObject(
  type: string,
  draft: PceObject | null,
  active: PceObject | null,
  facts: PolicyFacts,
  usesOf: (href: string) => Promise<readonly Use[] | undefined>,
): Promise<ChangeEffect | undefined> {
  const judged = JUDGED[type]
  if (type === 'enforcement_boundaries' && (draft === null || active === null)) {
    const [now, before] = [draft, active].map((boundary) => boundary !== null && boundary.enabled !== false)
    return now === before ? 'neutral' : now === true ? 'narrowing' : 'widening'
  }
  // A rule that uses a new object is a change of its own, and the PCE lets nothing be deleted that a rule uses. Virtual services
  // and servers are found by their labels too.
  if (draft === null || active === null) return judged === undefined ? undefined : 'neutral'
  const changed = diffFields(draft, active).map(({ field }) => field)
  if (changed.every((field) => HARMLESS.includes(field))) return 'neutral'
  if (judged === undefined) return undefined
  const known = changed.every((field) => HARMLESS.includes(field) || judged.includes(field))
  if (type === 'enforcement_boundaries') return known ? judgeBoundary(draft, active, facts) : undefined
  const extent = known ? extentOf(type, draft, active) : undefined
  if (extent === 'same') return 'neutral'
  const uses = await usesOf(draft.href)
  if (uses?.length === 0) return 'neutral'
  if (extent === undefined || uses === undefined || uses.includes('unclear')) return undefined
  return combineEffects(uses.map((use) => ((use === 'allow') === (extent === 'wider') ? 'widening' : 'narrowing')))
}

/** A boundary blocks whatever no rule allows between its ends. */
function judgeBoundary(draft: PceObject, active: PceObject, facts: PolicyFacts): ChangeEffect | undefined {
  const on = (boundary: PceObject) => boundary.enabled !== false
  if (on(draft) !== on(active)) return on(draft) ? 'narrowing' : 'widening'
  if (!on(draft)) return 'neutral'
  const ends = (side: 'providers' | 'consumers') => compareEnds(active[side] as Actor[], draft[side] as Actor[], facts)
  const services = compareServices(
    active.ingress_services as IngressService[],
    draft.ingress_services as IngressService[],
    facts,
  )
  const extent = combineExtents([ends('providers'), ends('consumers'), services])
  return extent === undefined ? undefined : OPPOSITE[extent]
}

/** Whether the set that an object stands for has grown. */
function extentOf(type: string, draft: PceObject, active: PceObject): Extent {
  if (type === 'ip_lists') {
    const [before, after] = [addressesOf(active as IpList), addressesOf(draft as IpList)]
    // What a list of only exceptions means is not documented.
    if ([before, after].some(({ included, exceptions }) => included.size === 0 && exceptions.size > 0)) return undefined
    // Exceptions narrow.
    return combineExtents([
      compareSets(before.included, after.included),
      compareSets(after.exceptions, before.exceptions),
    ])
  }
  if (type === 'services') return compareSets(portsOf(active as Service), portsOf(draft as Service))
  const [before, after] = [membersOf(active), membersOf(draft)]
  // Neither is the meaning of a group without members.
  return before.size === 0 || after.size === 0 ? undefined : compareSets(before, after)
}

function addressesOf({ ip_ranges: ranges, fqdns }: IpList) {
  const text = ({ from_ip: from, to_ip: to }: { from_ip: string; to_ip?: string | null }) => `${from}-${to ?? ''}`
  const pick = (excluded: boolean) =>
    (ranges ?? []).filter(({ exclusion }) => (exclusion === true) === excluded).map(text)
  return {
    included: new Set([...pick(false), ...(fqdns ?? []).map(({ fqdn }) => fqdn)]),
    exceptions: new Set(pick(true)),
  }
}

function portsOf(service: Service): Set<string> {
  return new Set(
    SERVICE_LISTS.flatMap((list) =>
      (service[list] ?? []).map((entry) => {
        const fields = Object.entries(entry).filter(([, value]) => value !== null && value !== undefined)
        return JSON.stringify([list, ...fields.sort(([a], [b]) => (a < b ? -1 : 1))])
      }),
    ),
  )
}

function membersOf(group: PceObject): Set<string> {
  const hrefs = (list: unknown) => ((list ?? []) as { href: string }[]).map(({ href }) => toDraftHref(href))
  return new Set([...hrefs(group.labels), ...hrefs(group.sub_groups)])
}
