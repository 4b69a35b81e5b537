import { firstByName } from './first-by-name.js'
import { tellingLists, type FlowEnd } from './flow-end.js'

/** Names of one address that are written out. */
const NAMES_SHOWN = 10

/** What an address without app label is: a workload somebody has to label, part of a known network, or neither. */
export const UNLABELLED_KINDS = ['unlabelled_workload', 'ip_list', 'unknown_ip'] as const
export type UnlabelledKind = (typeof UNLABELLED_KINDS)[number]

/** An address without app label as answers describe it; what the PCE does not know of it is absent. */
export interface UnlabelledAddress {
  kind: UnlabelledKind
  hostname?: string
  fqdn?: string
  /** Names of all IP lists that cover it, but for the built-in Any list. */
  ip_lists?: string[]
}

/** An address without app label, and what to call it in one word: host name, else FQDN, else its IP lists. */
interface Description {
  kind: UnlabelledKind
  name?: string
  facts: UnlabelledAddress
}

/**
 * One address from all the ends it was seen as: the same address can be a workload in one network and nobody in another, or
 * have several names. A workload, managed or not, outweighs an IP list (tools contract, B2).
 */
export function describeUnlabelled(ends: readonly FlowEnd[]): Description {
  const lists = [...new Set(ends.flatMap(tellingLists))].sort()
  const hostname = joinNames(ends.flatMap((end) => end.hostname ?? []))
  const fqdn = joinNames(ends.flatMap((end) => end.fqdn ?? []))
  const isWorkload = ends.some(({ workload }) => workload !== null)
  const kind = isWorkload ? 'unlabelled_workload' : lists.length > 0 ? 'ip_list' : 'unknown_ip'
  const name = hostname || fqdn || joinNames(lists)
  return {
    kind,
    ...(name !== '' && { name }),
    facts: {
      kind,
      ...(hostname !== '' && { hostname }),
      ...(fqdn !== '' && { fqdn }),
      ...(lists.length > 0 && { ip_lists: lists }),
    },
  }
}

/** The first of them by name, and how many more there are. */
function joinNames(texts: readonly string[]): string {
  const names = [...new Set(texts)]
  const first = firstByName(names, NAMES_SHOWN).join(', ')
  return names.length > NAMES_SHOWN ? `${first} and ${names.length - NAMES_SHOWN} more` : first
}
