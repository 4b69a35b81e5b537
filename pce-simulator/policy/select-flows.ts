import type { TrafficQuery, TrafficSelector, TrafficServiceFilter } from '../../schemas/pce/traffic.js'
import { sameObjectKey, type Conversation, type PolicyView } from '../model.js'
import { compileFqdn, compileIpList, parseAddress } from './match-addresses.js'
import type { End } from './resolve-observations.js'

export type FlowTest = (conversation: Conversation, src: End, dst: End) => boolean

type EndTest = (end: End) => boolean

/**
 * Builds the filter of a traffic query by source, destination and service (P25).
 *
 * For sources and for destinations, `include` is a list of blocks of selectors. An endpoint is included if all
 * selectors of at least one block match it; an empty list and an empty block include everything.
 * `sources_destinations_query_op` says whether both ends of a flow must be included, or only one. A flow that matches
 * any entry of `exclude` is always left out. A selector that cannot be read matches nothing.
 */
export function compileFilters(query: TrafficQuery, policy: Pick<PolicyView, 'ipLists' | 'labelGroups'>): FlowTest {
  const compile = createSelectorCompiler(policy, query.exclude_workloads_from_ip_list_query !== false)
  const included = ({ include }: TrafficQuery['sources']): EndTest => {
    const blocks = include.map((block) => block.map(compile))
    return remember((end) => blocks.length === 0 || blocks.some((block) => block.every((test) => test(end))))
  }
  const excluded = ({ exclude }: TrafficQuery['sources']): EndTest => {
    const tests = exclude.filter(({ transmission }) => transmission === undefined).map(compile)
    return remember((end) => tests.some((test) => test(end)))
  }
  const source = { included: included(query.sources), excluded: excluded(query.sources) }
  const destination = { included: included(query.destinations), excluded: excluded(query.destinations) }
  const either = query.sources_destinations_query_op === 'or'
  const silenced = new Set(query.destinations.exclude.flatMap(({ transmission }) => transmission ?? []))
  const services = {
    include: query.services.include.map(compileService),
    exclude: query.services.exclude.map(compileService),
  }

  return (conversation, src, dst) => {
    const wanted = either
      ? source.included(src) || destination.included(dst)
      : source.included(src) && destination.included(dst)
    return (
      wanted &&
      !source.excluded(src) &&
      !destination.excluded(dst) &&
      !silenced.has(conversation.transmission ?? 'unicast') &&
      (services.include.length === 0 || services.include.some((test) => test(conversation.service))) &&
      !services.exclude.some((test) => test(conversation.service))
    )
  }
}

/** Caches the result of a test for each source or destination, because each of them occurs in many conversations. */
function remember(test: EndTest): EndTest {
  const results: (boolean | undefined)[] = []
  return (end) => (results[end.id] ??= test(end))
}

function createSelectorCompiler(policy: Pick<PolicyView, 'ipLists' | 'labelGroups'>, addressesOnly: boolean) {
  const ipLists = new Map([...policy.ipLists].map(([href, list]) => [sameObjectKey(href), list]))
  const groups = new Map([...policy.labelGroups].map(([href, members]) => [sameObjectKey(href), members]))
  const bearsAny = (hrefs: readonly string[]): EndTest => {
    const wanted = new Set(hrefs)
    return ({ workload }) => workload?.labels?.some(({ href }) => wanted.has(href)) ?? false
  }

  return (selector: TrafficSelector): EndTest => {
    const { label, label_group, workload, ip_list, ip_address, actors, fqdn } = selector
    if (label !== undefined) return bearsAny([label.href])
    if (label_group !== undefined) return bearsAny(groups.get(sameObjectKey(label_group.href)) ?? [])
    if (workload !== undefined) return (end) => end.workload?.href === workload.href
    if (actors === 'ams') return (end) => end.workload !== null
    if (ip_address !== undefined) {
      const wanted = parseAddress(ip_address)
      return ({ address }) => wanted !== null && address?.family === wanted.family && address.value === wanted.value
    }
    if (fqdn !== undefined) {
      const matches = compileFqdn(fqdn)
      return (end) => end.fqdn !== null && matches(end.fqdn)
    }
    const list = ipLists.get(sameObjectKey(ip_list?.href ?? ''))
    if (list === undefined) return () => false
    const covers = compileIpList(list)
    return (end) => !(addressesOnly && end.workload !== null) && covers(end.address, end.fqdn)
  }
}

/**
 * Builds a test for one entry of a service filter, all of whose fields must match. A process matches if its full path
 * contains the given text, ignoring case (an assumption, P25); a Windows service matches only if its whole name is the
 * given one. A port without a protocol matches any protocol.
 */
function compileService(filter: TrafficServiceFilter): (service: Conversation['service']) => boolean {
  const { port, to_port, proto, process_name, windows_service_name } = filter
  const process = process_name?.toLowerCase()
  const windowsService = windows_service_name?.toLowerCase()
  return (service) =>
    (proto === undefined || service.proto === proto) &&
    (port === undefined || (service.port != null && port <= service.port && service.port <= (to_port ?? port))) &&
    (process === undefined || (service.process_name?.toLowerCase().includes(process) ?? false)) &&
    (windowsService === undefined || service.windows_service_name?.toLowerCase() === windowsService)
}
