import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { EXTERNAL_NETWORK } from '../../schemas/pce/words.js'
import { sameObjectKey, type Conversation, type PolicyView } from '../model.js'
import { DEFAULT_REALITY, type Reality } from '../options.js'
import type { Verdict } from './judge-end.js'
import { compileIpList, countAddresses } from './match-addresses.js'
import { isManaged, osType, type End, type Resolved } from './resolve-observations.js'

/** The observations that make up one row of the answer. Times are in milliseconds since the epoch. */
export interface Row {
  /**
   * The first of the conversations that make up this row. The others differ from it only in their states and in the
   * values that are added up.
   */
  conversation: Conversation
  resolved: Resolved
  verdict: Verdict
  connections: number
  bytesIn: number
  bytesOut: number
  first: number
  last: number
  /** The state of the connection in the latest of these observations. */
  state: Conversation['state']
}

/**
 * Creates a function that renders the source or destination of a row (P25): workloads with their current labels, and
 * addresses with the IP lists that contain them.
 */
export function createNodeDescriber(
  active: Pick<PolicyView, 'ipLists'>,
  labels: ReadonlyMap<string, Label>,
  reality: Reality = DEFAULT_REALITY,
): (end: End) => FlowNode {
  const lists = [...active.ipLists.values()].map((list) => ({
    reference: describeIpList(list, reality),
    covers: compileIpList(list),
  }))
  const nodes = new Map<End, FlowNode>()

  const describe = (end: End): FlowNode => {
    const { workload } = end
    if (workload === null) {
      const inLists = lists.filter(({ covers }) => covers(end.address, end.fqdn)).map(({ reference }) => reference)
      return {
        ip: end.ip,
        ...(end.fqdn === null ? {} : { fqdn: end.fqdn }),
        ...(inLists.length === 0 ? {} : { ip_lists: inLists }),
      }
    }
    return {
      ip: end.ip,
      workload: {
        href: workload.href,
        hostname: workload.hostname,
        name: workload.name ?? workload.hostname,
        os_type: osType(workload),
        managed: isManaged(end),
        ...(isManaged(end) && !isPod(workload) ? { managed_by: 'ven' } : {}),
        enforcement_mode: workload.enforcement_mode ?? 'visibility_only',
        endpoint: isEndpoint(end),
        labels: (workload.labels ?? []).map(({ href, key, value }) => {
          const label = labels.get(href)
          return { href, key: label?.key ?? key, value: label?.value ?? value }
        }),
      },
    }
  }

  return (end) => {
    let node = nodes.get(end)
    if (node === undefined) nodes.set(end, (node = describe(end)))
    return node
  }
}

/**
 * The settings for rendering rows: the profile that determines the form of a row, and the network of a row whose
 * reporting host has no known network.
 */
export interface RowForm {
  reality?: Reality
  corporate?: TrafficFlow['network']
}

/** Renders one row. Without a draft verdict, the row lacks the fields that `update_rules` adds (P39). */
export function describeFlow(
  row: Row,
  node: (end: End) => FlowNode,
  draft: Verdict | null,
  { reality = DEFAULT_REALITY, corporate = null }: RowForm = {},
): TrafficFlow {
  const { conversation, resolved: known, verdict } = row
  const network = networkOf(known[conversation.flowDirection === 'inbound' ? 'dst' : 'src']) ?? corporate
  const isOutside = reality === 'core-25.2' && network?.name === EXTERNAL_NETWORK
  const resolved = isOutside ? seenFromOutside(known, conversation) : known
  const { service, flowDirection, transmission } = conversation
  const flow: TrafficFlow = {
    src: node(resolved.src),
    dst: node(resolved.dst),
    service: {
      port: service.port ?? 0,
      proto: service.proto ?? null,
      process_name: service.process_name ?? null,
      windows_service_name: service.windows_service_name ?? null,
      user_name: service.user_name ?? null,
    },
    num_connections: row.connections,
    state: row.state,
    policy_decision: verdict.decision,
    boundary_decision: boundaryDecision(verdict),
    flow_direction: flowDirection,
    timestamp_range: { first_detected: timestamp(row.first), last_detected: timestamp(row.last) },
    dst_bi: row.bytesIn,
    dst_bo: row.bytesOut,
    client_type: clientType(conversation, known),
    caps: NO_CAPS,
  }
  if (network !== null) flow.network = network
  if (transmission !== undefined) flow.transmission = transmission
  if (service.proto === 1 || service.proto === 58) {
    flow.icmp_type = conversation.icmpType ?? null
    flow.icmp_code = conversation.icmpCode ?? null
  }
  return draft === null ? flow : Object.assign(flow, describeDraft(draft))
}

/** Returns the network of the first interface of a source or destination; null if it is not known. */
const networkOf = ({ workload }: End) => workload?.interfaces?.[0]?.network ?? null

/**
 * Adapts a conversation that a host outside the corporate network has reported. The PCE then looks up no workload for
 * the address at the other end, so this end gets none (P107).
 */
function seenFromOutside({ src, dst, ...rest }: Resolved, { flowDirection }: Conversation): Resolved {
  const bare = (end: End): End => ({ ...end, workload: null })
  return flowDirection === 'inbound' ? { ...rest, src: bare(src), dst } : { ...rest, src, dst: bare(dst) }
}

/**
 * Determines which type of agent reported the conversation, as a value of `data_sources`. If neither the source nor the
 * destination runs a VEN, a network device reported it.
 */
export function clientType(
  { flowDirection }: Conversation,
  { src, dst }: Resolved,
): 'server' | 'endpoint' | 'flowlink' {
  const reporter = flowDirection === 'inbound' ? dst : src
  return !isManaged(reporter) ? 'flowlink' : isEndpoint(reporter) ? 'endpoint' : 'server'
}

/**
 * Returns the value of `boundary_decision`. The field was made for enforcement boundaries, but now shows the effect of
 * deny rules, which have replaced them (P25).
 */
export function boundaryDecision({ decision, decidedBy }: Verdict): 'blocked' | 'blocked_by_override_deny' | null {
  if (decision === 'unknown') return null
  if (decidedBy === 'override_deny') return 'blocked_by_override_deny'
  return decidedBy === 'deny' ? 'blocked' : null
}

function describeDraft({ draftDecision, allowRules, denyRules, overrideDenyRules }: Verdict) {
  const references = (hrefs: readonly string[]) => hrefs.map((href) => ({ href }))
  return {
    draft_policy_decision: draftDecision,
    rules: references(allowRules),
    enforcement_boundaries: references(denyRules),
    override_deny_rules: references(overrideDenyRules),
  }
}

const NO_CAPS: string[] = []

const isPod = ({ href }: Workload) => href.includes('/kubernetes_workloads/')

const isEndpoint = ({ workload }: End) => workload?.ven?.ven_type === 'endpoint'

/**
 * Describes an IP list that contains the source or destination of a row. In rows captured from a real PCE, the list has
 * its draft href and the number of its addresses.
 */
function describeIpList(list: IpList, reality: Reality) {
  const version = reality === 'core-25.2' ? 'draft' : 'active'
  const reference = { href: sameObjectKey(list.href).replace('/*/', `/${version}/`), name: list.name }
  return reality === 'core-25.2' ? { ...reference, size: countAddresses(list) } : reference
}

const DAY_MS = 86_400_000

/**
 * Formats a time in whole seconds, as in real rows. Dates are cached, because an answer repeats them a hundred thousand
 * times.
 */
function timestamp(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  let date = dates.get(day)
  if (date === undefined) dates.set(day, (date = new Date(ms).toISOString().slice(0, 11)))
  const second = Math.floor((ms % DAY_MS) / 1000)
  return `${date}${twoDigits(second / 3600)}:${twoDigits((second / 60) % 60)}:${twoDigits(second % 60)}Z`
}

const dates = new Map<number, string>()

const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))

const twoDigits = (number: number) => TWO_DIGITS[Math.floor(number)]!
