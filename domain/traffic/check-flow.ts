import type { TrafficFlow } from '../../schemas/pce/traffic.js'

type Fields = Record<string, unknown>

/**
 * Whether a row has the shape the PCE documents, as far as it is read here. A row that has not is counted and left out whole: half
 * of it would make a wrong sum, and one of them must not cost the answer over all others.
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
/** Ports and protocols are kept in 32 bits. */
const isNumber = (value: unknown) =>
  isMissing(value) || (Number.isInteger(value) && (value as number) === ((value as number) | 0))
const isCount = (value: unknown) => isMissing(value) || (Number.isSafeInteger(value) && (value as number) >= 0)
const isReference = (value: unknown): value is Fields => isObject(value) && typeof value['href'] === 'string'
const isLabelled = (value: unknown) => isMissing(value) || (isObject(value) && isListOf(value['labels'], isReference))

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return isMissing(value) || (Array.isArray(value) && value.every(isItem))
}
