import type { Actor, RuleSet } from '../../schemas/pce/rule-set.js'
import type { TrafficQuery, TrafficSelector, TrafficServiceFilter } from '../../schemas/pce/traffic.js'
import { toActiveHref } from '../inventory/parse-href.js'
import type { CuttingRule } from './apply-change.js'
import type { PolicySnapshot } from './load-snapshot.js'
import { mayBeVirtual, type PlacedRule } from './match-rules.js'
import { portsOf } from './match-services.js'

/** The parts of a traffic query that select the traffic to which rules may apply. */
export interface TrafficOfRules {
  filters: Pick<TrafficQuery, 'sources' | 'destinations'>
  services: TrafficQuery['services']
}

type Side = 'providers' | 'consumers'
/** The alternatives for one side of a traffic query; null means that the query does not restrict this side. */
type Blocks = readonly TrafficSelector[][] | null

/**
 * Maximum number of alternatives for one side of a query or for its services. If there are more, the query leaves this
 * side or the services unrestricted.
 */
const MOST_BLOCKS = 200

/**
 * Builds the traffic filter for the connections to which any of the given rules may apply. If the PCE's query cannot
 * express a rule exactly, the filter is wider than the rule, never narrower.
 */
export function trafficOfRules(rules: readonly CuttingRule[]): TrafficOfRules {
  const join = (side: Side) => joinBlocks(rules.map(({ placed, policy }) => blocksOf(placed, side, policy)))
  const services = joinBlocks(rules.map(({ placed, policy }) => servicesOf(placed, policy)))
  const toSide = (blocks: Blocks) => ({ include: blocks === null ? [[]] : [...blocks], exclude: [] })
  return {
    filters: { sources: toSide(join('consumers')), destinations: toSide(join('providers')) },
    services: { include: [...(services ?? [])], exclude: [] },
  }
}

function joinBlocks<T>(lists: readonly (readonly T[] | null)[]): T[] | null {
  if (lists.some((list) => list === null)) return null
  const distinct = new Map(lists.flatMap((list) => list ?? []).map((one) => [JSON.stringify(one), one] as const))
  return distinct.size === 0 || distinct.size > MOST_BLOCKS ? null : [...distinct.values()]
}

function blocksOf({ scopes, rule }: PlacedRule, side: Side, policy: PolicySnapshot): Blocks {
  const isOdd =
    rule[`all_ips_except_for_in_${side}`] === true ||
    rule.use_workload_subnets?.includes(side) === true ||
    mayBeVirtual(rule, side)
  if (isOdd) return null
  const within = side === 'consumers' && rule.unscoped_consumers === true ? [[]] : scopes
  const blocks: TrafficSelector[][] = []
  const isLabel = ({ label, label_group: group }: Actor) => label !== undefined || group !== undefined
  for (const { ip_list: list, workload, ...actor } of rule[side]) {
    if (workload !== undefined) blocks.push([{ workload: { href: workload.href } }])
    else if (list !== undefined) {
      if (!isExact(list.href, policy)) return null
      blocks.push([{ ip_list: { href: toActiveHref(list.href) } }])
    } else if (!isLabel(actor) && actor.actors !== 'ams') return null
  }
  const labels = rule[side].some(({ actors }) => actors === 'ams') ? [] : rule[side].filter(isLabel)
  if (rule[side].some((actor) => isLabel(actor) || actor.actors === 'ams')) {
    for (const scope of within) {
      const found = multiplyOut([...scope, ...labels], policy)
      if (found === null) return null
      blocks.push(...found)
    }
  }
  return blocks
}

/**
 * Returns true if a query for an IP list selects exactly what a rule with this list selects, which is so if the list
 * has no pending change and contains only addresses.
 */
function isExact(href: string, policy: PolicySnapshot): boolean {
  const list = policy.listOf(href)
  return (
    list !== undefined && list.update_type == null && (list.fqdns ?? []).length === 0 && !policy.isAnyList(list.href)
  )
}

/**
 * Returns the alternative label selections that satisfy all entries. Labels with the same key are alternatives.
 * Exclusions are ignored, and so is every key that occurs in a group with several keys. Returns null if no selection is
 * left, if a label or group is not known, or if there are too many alternatives.
 */
function multiplyOut(
  entries: readonly RuleSet['scopes'][number][number][],
  { labelOf, membersOf }: PolicySnapshot,
): TrafficSelector[][] | null {
  const unclear = new Set<string>()
  const byKey = new Map<string, Set<string>>()
  for (const { label, label_group: group, exclusion } of entries) {
    if (exclusion === true) continue
    const one = label === undefined ? undefined : labelOf(label.href)
    const members = group === undefined ? (one === undefined ? undefined : [one]) : membersOf(group.href)
    // A label that is not known may be an alternative to the labels of any key.
    if (members === undefined || members.length === 0) return null
    for (const { key, href } of members) byKey.set(key, (byKey.get(key) ?? new Set()).add(href))
    if (new Set(members.map(({ key }) => key)).size > 1) for (const { key } of members) unclear.add(key)
  }
  let blocks: TrafficSelector[][] = [[]]
  for (const [key, hrefs] of byKey) {
    if (unclear.has(key)) continue
    blocks = blocks.flatMap((block) => [...hrefs].map((href) => [...block, { label: { href } }]))
    if (blocks.length > MOST_BLOCKS) return null
  }
  return blocks.some((block) => block.length === 0) ? null : blocks
}

function servicesOf({ rule }: PlacedRule, policy: PolicySnapshot): TrafficServiceFilter[] | null {
  // A virtual service has its own ports, so the query is not limited to the ports of the rule.
  if (mayBeVirtual(rule, 'providers') || mayBeVirtual(rule, 'consumers')) return null
  const found: TrafficServiceFilter[] = []
  for (const { proto, port, to_port: toPort } of portsOf(rule.ingress_services, policy)) {
    if (proto === null && port === null) return null
    found.push({
      ...(proto !== null && { proto }),
      ...(port !== null && { port }),
      ...(port !== null && toPort !== null && { to_port: toPort }),
    })
  }
  return found
}
