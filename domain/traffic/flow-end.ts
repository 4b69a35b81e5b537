import { ANY_IP_LIST_NAMES } from '../../schemas/pce/ip-list.js'

/** One end of a flow. Missing values are null; an empty string counts as missing. */
export interface FlowEnd {
  ip: string | null
  fqdn: string | null
  /** The workload's host name, else its name; of a virtual service or server its name. */
  hostname: string | null
  /** Href of the workload, managed or not. */
  workload: string | null
  /** A workload with an agent of this PCE. */
  managed: boolean
  /** Enforcement mode of a workload, where the row says. */
  mode: string | null
  /** Names of the IP lists the PCE says the address is in. */
  lists: readonly string[]
  /** Values by key, without a prototype; of a virtual service, virtual server or cloud resource too. */
  labels: Readonly<Record<string, string>>
  /** Hrefs of the labels, by key. */
  labelHrefOf: Readonly<Record<string, string>>
}

/**
 * What one end is called in lists of endpoints: its FQDN, else its host name, else its address with the IP lists it is in,
 * else `app (env)`. Two hosts of one IP list stay two endpoints.
 */
export function endpointLabel(end: FlowEnd): string {
  if (end.fqdn !== null) return end.fqdn
  if (end.hostname !== null) return end.hostname
  const lists = listsThatName(end)
  if (end.ip !== null) return lists === null ? end.ip : `${end.ip} (${lists})`
  return lists ?? identityFromLabels(end, ['app', 'env']) ?? 'unknown'
}

/** What one end is to an application map: `app (env)` by the chosen label keys, else `external:<name>`, else `unlabelled`. */
export function endpointIdentity(end: FlowEnd, keys: readonly string[]): string {
  const labelled = identityFromLabels(end, keys)
  if (labelled !== null) return labelled
  const outside = end.fqdn ?? listsThatName(end)
  return outside === null ? 'unlabelled' : `external:${outside}`
}

/** Names of all IP lists of an end joined with ", ", or null (tools contract, A8). */
export const joinedLists = ({ lists }: FlowEnd): string | null => (lists.length === 0 ? null : lists.join(', '))

function identityFromLabels(end: FlowEnd, keys: readonly string[]): string | null {
  const [first, ...rest] = keys.flatMap((key) => end.labels[key] ?? [])
  if (first === undefined) return null
  return rest.length === 0 ? first : `${first} (${rest.join(', ')})`
}

/** Names of the IP lists that say anything about an end: every address is in the Any list. */
export const tellingLists = ({ lists }: FlowEnd): string[] => lists.filter((name) => !ANY_IP_LIST_NAMES.includes(name))

/** The Any list names an end only when no other list does. */
function listsThatName(end: FlowEnd): string | null {
  const telling = tellingLists(end)
  return telling.length > 0 ? telling.join(', ') : joinedLists(end)
}
