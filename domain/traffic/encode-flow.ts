import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isOffNetwork } from '../inventory/off-network.js'
import { createFlowEnds, isBare, type FlowEnds, type Place } from './flow-ends.js'

/**
 * One aggregated row of a traffic query in numbers (T8): dictionary codes, counts and times. A missing port or protocol
 * is -1, and a missing time is NaN. The encoder reuses one object for all rows, so callers must not keep it.
 */
export interface FlowRow {
  src: number
  dst: number
  port: number
  proto: number
  process: number
  windowsService: number
  user: number
  decision: number
  /**
   * The decision that the PCE recorded, if `decision` holds the decision derived from the rules instead; otherwise
   * absent.
   */
  recorded?: number
  direction: number
  state: number
  rules: number
  draftDecision: number
  /** The network of the end that reported the flow, as a code for its name. */
  network: number
  clientType: number
  /**
   * One code for all remaining fields that make rows of a PCE distinct: transmission, ICMP type and code, and network
   * href.
   */
  variant: number
  /** How often this row counts: once, or 0 times if an earlier part of a divided query already contained it (D137). */
  count: 0 | 1
  /**
   * Number of rows of the PCE that were merged into this row: more than one if both ends reported the same
   * conversation.
   */
  reports: number
  connections: number
  /**
   * `bytesIn` is the number of bytes that the destination received, `bytesOut` the number of bytes that the destination
   * sent.
   */
  bytesIn: number
  bytesOut: number
  /** Times of the first and last observation, in milliseconds since the epoch. */
  first: number
  last: number
}

const DICTIONARIES = [
  'process',
  'windowsService',
  'user',
  'decision',
  'direction',
  'state',
  'rules',
  'draftDecision',
  'network',
  'clientType',
  'variant',
] as const
export type DictionaryName = (typeof DICTIONARIES)[number]

/** Encodes the flows of one or more queries as rows of numbers. Its dictionaries decode these numbers. */
export interface FlowEncoder {
  /** Encodes one flow. The returned row is valid until the next call. */
  encode(flow: TrafficFlow): FlowRow
  readonly ends: FlowEnds
  readonly dictionaries: Readonly<Record<DictionaryName, Dictionary>>
}

/**
 * Creates an encoder. `labels` resolves labels that a flow identifies by href alone. If it is null, these labels count
 * as missing.
 */
export function createFlowEncoder(labels: LabelIndex | null): FlowEncoder {
  const ends = createFlowEnds(labels)
  const dictionaries = Object.fromEntries(DICTIONARIES.map((name) => [name, createDictionary()])) as Record<
    DictionaryName,
    Dictionary
  >
  const {
    process,
    windowsService,
    user,
    decision,
    direction,
    state,
    rules,
    draftDecision,
    network,
    clientType,
    variant,
  } = dictionaries
  const row = emptyRow()
  return {
    ends,
    dictionaries,
    encode(flow) {
      const { service, timestamp_range: seen } = flow
      const places = placesOf(flow)
      row.src = ends.code(flow.src, places?.src)
      row.dst = ends.code(flow.dst, places?.dst)
      row.port = service.port ?? -1
      row.proto = service.proto ?? -1
      row.process = process.code(service.process_name)
      row.windowsService = windowsService.code(service.windows_service_name)
      row.user = user.code(service.user_name)
      row.decision = decision.code(flow.policy_decision ?? 'unknown')
      row.direction = direction.code(flow.flow_direction)
      row.state = state.code(flow.state)
      row.rules = rules.code(rulesOf(flow))
      row.draftDecision = draftDecision.code(flow.draft_policy_decision)
      row.network = network.code(networkOf(flow))
      row.clientType = clientType.code(clientTypeOf(flow))
      row.variant = variant.code(variantOf(flow))
      row.connections = flow.num_connections ?? 0
      row.bytesIn = flow.dst_bi ?? 0
      row.bytesOut = flow.dst_bo ?? 0
      row.first = seen?.first_detected === undefined ? NaN : Date.parse(seen.first_detected)
      row.last = seen?.last_detected === undefined ? NaN : Date.parse(seen.last_detected)
      return row
    },
  }
}

/** Creates a row with all values missing or zero. */
export const emptyRow = (): FlowRow => ({
  src: 0,
  dst: 0,
  port: -1,
  proto: -1,
  process: 0,
  windowsService: 0,
  user: 0,
  decision: 0,
  direction: 0,
  state: 0,
  rules: 0,
  draftDecision: 0,
  network: 0,
  clientType: 0,
  variant: 0,
  count: 1,
  reports: 1,
  connections: 0,
  bytesIn: 0,
  bytesOut: 0,
  first: NaN,
  last: NaN,
})

/**
 * Returns a string that is equal for two flows if and only if they have equal values in these fields. The types of the
 * values are not checked, because the string is only compared and never interpreted.
 */
function variantOf({ transmission, icmp_type: type, icmp_code: code, network }: TrafficFlow): string | null {
  const none = (transmission ?? type ?? code ?? network ?? null) === null
  return none ? null : JSON.stringify([transmission, type, code, network?.href])
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** Returns the network of the end that reported the flow: its name, or else its href. */
export const networkOf = ({ network }: TrafficFlow): string | null => {
  const name = textOf(network?.name)
  return name === null || name.trim() === '' ? textOf(network?.href) : name
}

/** Returns the type of the agent that reported the flow, such as `server` or `endpoint`. */
export const clientTypeOf = ({ client_type: type }: TrafficFlow): string | null => textOf(type)

/**
 * Determines for both ends of a flow whether the end was (or may have been) off the corporate network, or was seen only
 * by an end that was off this network. Returns null if the reporting end was on the corporate network, as in most rows.
 * The PCE names a network only for the reporting end.
 */
function placesOf(flow: TrafficFlow): { src: Place; dst: Place } | null {
  const { src, dst, network, flow_direction: direction } = flow
  const off = isOffNetwork([network], flow.client_type === 'endpoint')
  if (off === 'no') return null
  const reporters = [src, dst].filter(({ workload }) => workload != null && workload.managed !== false)
  // Without a direction, a row between two managed workloads does not show which of them reported it.
  const isReporter = (end: FlowNode) =>
    direction == null ? reporters.includes(end) : end === (direction === 'outbound' ? src : dst)
  const isSure = off === 'yes' && (direction != null || reporters.length === 1)
  const placeOf = (end: FlowNode): Place =>
    isReporter(end) ? (isSure ? 'off' : 'perhaps off') : isSure && isBare(end) ? 'seen from outside' : 'not said'
  return { src: placeOf(src), dst: placeOf(dst) }
}

/**
 * Returns the hrefs of the rules in a flow, joined into one string. A rule for an essential service has no href and is
 * represented by its name.
 */
function rulesOf({ rules }: TrafficFlow): string | null {
  if (rules === undefined || rules === null || rules.length === 0) return null
  return rules.flatMap((rule) => rule.href ?? rule.essential_service_rule ?? []).join(', ')
}

/** Maps strings to small integers (codes) and back. Code 0 stands for a missing string. */
interface Dictionary {
  /** Returns the code of a string. Surrounding white space is ignored, and an empty string counts as missing. */
  readonly code: (text: string | null | undefined) => number
  readonly value: (code: number) => string | null
}

export function createDictionary(): Dictionary {
  const values: (string | null)[] = [null]
  const codes = new Map<string, number>([['', 0]])
  return {
    code(text) {
      if (text === null || text === undefined) return 0
      const known = codes.get(text)
      if (known !== undefined) return known
      const trimmed = text.trim()
      const code = codes.get(trimmed) ?? values.push(trimmed) - 1
      codes.set(trimmed, code)
      codes.set(text, code)
      return code
    },
    value: (code) => values[code] ?? null,
  }
}

type Fields = Record<string, unknown>

/**
 * Returns true if a flow has the documented shape in all fields that this server reads. Other flows are counted and
 * otherwise ignored: an incomplete row would falsify the totals, and one bad row must not make the whole answer fail.
 */
export function isReadableFlow(flow: TrafficFlow): boolean {
  const { src, dst, service, timestamp_range: seen, rules } = flow as unknown as Fields
  return (
    isEnd(src) &&
    isEnd(dst) &&
    isService(service) &&
    isCount((flow as Fields)['num_connections']) &&
    isCount((flow as Fields)['dst_bi']) &&
    isCount((flow as Fields)['dst_bo']) &&
    isText((flow as Fields)['policy_decision']) &&
    isText((flow as Fields)['flow_direction']) &&
    isText((flow as Fields)['state']) &&
    isText((flow as Fields)['draft_policy_decision']) &&
    (isMissing(seen) || (isObject(seen) && isText(seen['first_detected']) && isText(seen['last_detected']))) &&
    isListOf(rules, isObject)
  )
}

function isEnd(end: unknown): boolean {
  if (!isObject(end)) return false
  const { workload } = end
  return (
    isText(end['ip']) &&
    isText(end['fqdn']) &&
    isText(end['fqdn_name']) &&
    isListOf(end['ip_lists'], isReference) &&
    (isMissing(workload) || (isReference(workload) && isText(workload['hostname']) && isText(workload['name']))) &&
    isLabelled(workload) &&
    isLabelled(end['virtual_service']) &&
    isLabelled(end['virtual_server']) &&
    isLabelled(end['cloud_resource'])
  )
}

function isService(service: unknown): boolean {
  return (
    isObject(service) &&
    isNumber(service['port']) &&
    isNumber(service['proto']) &&
    isText(service['process_name']) &&
    isText(service['windows_service_name']) &&
    isText(service['user_name'])
  )
}

const isMissing = (value: unknown): value is null | undefined => value === undefined || value === null
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => typeof value === 'string' || isMissing(value)
/** Returns true if a port or protocol is missing, or is a whole number that fits into 32 bits. */
const isNumber = (value: unknown) =>
  isMissing(value) || (Number.isInteger(value) && (value as number) === ((value as number) | 0))
const isCount = (value: unknown) => isMissing(value) || (Number.isSafeInteger(value) && (value as number) >= 0)
const isReference = (value: unknown): value is Fields => isObject(value) && typeof value['href'] === 'string'
const isLabelled = (value: unknown) => isMissing(value) || (isObject(value) && isListOf(value['labels'], isReference))

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return isMissing(value) || (Array.isArray(value) && value.every(isItem))
}
