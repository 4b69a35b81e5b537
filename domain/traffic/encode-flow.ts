import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import { createDictionary, type Dictionary } from './dictionary.js'
import { createFlowEnds, type FlowEnds } from './store-ends.js'

/**
 * One aggregated row of a traffic query as numbers (tools contract, A8): codes of the encoder's dictionaries, -1 for a missing
 * port or protocol, NaN for a missing time. The encoder fills the same row again and again, so nobody may keep it.
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
  direction: number
  state: number
  rules: number
  draftDecision: number
  connections: number
  /** Bytes into and out of the destination. */
  bytesIn: number
  bytesOut: number
  /** Milliseconds since the epoch. */
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
] as const
export type DictionaryName = (typeof DICTIONARIES)[number]

/** Turns the flows of one or several queries into rows of numbers, with the dictionaries that turn them back. */
export interface FlowEncoder {
  /** The row is valid until the next call. */
  encode(flow: TrafficFlow): FlowRow
  readonly ends: FlowEnds
  readonly dictionaries: Readonly<Record<DictionaryName, Dictionary>>
}

/** `labels` names the labels that flows give by href alone; without it these count as missing. */
export function createFlowEncoder(labels: LabelIndex | null): FlowEncoder {
  const ends = createFlowEnds(labels)
  const dictionaries = Object.fromEntries(DICTIONARIES.map((name) => [name, createDictionary()])) as Record<
    DictionaryName,
    Dictionary
  >
  const { process, windowsService, user, decision, direction, state, rules, draftDecision } = dictionaries
  const row: FlowRow = {
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
    connections: 0,
    bytesIn: 0,
    bytesOut: 0,
    first: NaN,
    last: NaN,
  }
  return {
    ends,
    dictionaries,
    encode(flow) {
      const { service, timestamp_range: seen } = flow
      row.src = ends.code(flow.src)
      row.dst = ends.code(flow.dst)
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
      row.connections = flow.num_connections ?? 0
      row.bytesIn = flow.dst_bi ?? 0
      row.bytesOut = flow.dst_bo ?? 0
      row.first = seen?.first_detected === undefined ? NaN : Date.parse(seen.first_detected)
      row.last = seen?.last_detected === undefined ? NaN : Date.parse(seen.last_detected)
      return row
    },
  }
}

/** A rule by href, or an essential one that only has a name. */
function rulesOf({ rules }: TrafficFlow): string | null {
  if (rules === undefined || rules === null || rules.length === 0) return null
  return rules.flatMap((rule) => rule.href ?? rule.essential_service_rule ?? []).join(', ')
}
