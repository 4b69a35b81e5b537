import { PceError, type PceClient } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { IncompleteListError, scanWhole } from '../inventory/fetch-every.js'
import { createAddressTest } from '../inventory/parse-addresses.js'
import { countOf } from '../text/describe-numbers.js'

/** The names and addresses that a workload is about to have. */
export interface WantedIdentity {
  /** The workload's name, its host name, or both. */
  names?: readonly (string | undefined)[]
  addresses?: readonly string[]
}

/**
 * Maximum number of IPv4 addresses that are looked up one by one; for more, and for IPv6, all workloads are read once.
 */
const ASKED_ONE_BY_ONE = 5
/** Maximum number of workloads named in a warning. */
const MOST_NAMED = 5

/**
 * Warns of other workloads that have one of these addresses, or one of these names as their own name or their host
 * name. The PCE allows both (P16), but then a name does not identify a workload, or one machine has the policy of two
 * workloads. `own` is the href of the workload that changes.
 */
export async function warnOfNamesakes(
  pce: Pick<PceClient, 'workloads'>,
  { names = [], addresses = [] }: WantedIdentity,
  signal: AbortSignal,
  own?: string,
): Promise<string[]> {
  const wantedNames = [...new Set(names.flatMap((name) => name ?? []))]
  const tests = addresses.map((address) => ({ address, isSame: createAddressTest(address) }))
  const byName = new Map<string, Map<string, Workload>>()
  const byAddress = new Map<string, Map<string, Workload>>()
  const note = (found: Map<string, Map<string, Workload>>, text: string, { href, name, hostname }: Workload) =>
    found.set(text, (found.get(text) ?? new Map<string, Workload>()).set(href, { href, name, hostname }))
  const see = (workload: Workload) => {
    if (workload.href === own) return
    for (const name of wantedNames)
      if (workload.name === name || workload.hostname === name) note(byName, name, workload)
    const theirs = (workload.interfaces ?? []).flatMap((one) => one?.address ?? [])
    for (const { address, isSame } of tests) if (theirs.some(isSame)) note(byAddress, address, workload)
  }
  if (wantedNames.length === 0 && addresses.length === 0) return []
  const isAsked = addresses.length <= ASKED_ONE_BY_ONE && !addresses.some((address) => address.includes(':'))
  const questions = isAsked
    ? [
        ...wantedNames.flatMap((name) => [{ name }, { hostname: name }]),
        ...addresses.map((address) => ({ ip_address: address })),
      ]
    : [{}]
  signal.throwIfAborted()
  const unread: string[] = []
  try {
    for (const params of questions)
      await scanWhole({ api: pce.workloads, params, signal }, { onItems: (items) => items.forEach(see) })
  } catch (error) {
    if (!(error instanceof PceError || error instanceof IncompleteListError) || signal.aborted) throw error
    unread.push(`Whether another workload has this name or one of these addresses is not known: ${error.message}`)
  }
  return [
    ...unread,
    ...[...byName].map(([name, found]) => {
      return `The PCE allows it, but the name ${name} is already used by ${listed(found)}: from then on it names neither.`
    }),
    ...[...byAddress].map(([address, found]) => {
      return `The address ${address} is already that of ${listed(found)}: traffic and rules cannot tell them apart.`
    }),
  ]
}

function listed(found: ReadonlyMap<string, Workload>): string {
  const shown = [...found.values()].slice(0, MOST_NAMED).map(({ href, name, hostname }) => {
    const known = name || hostname
    return known == null || known === '' ? href : `${known} (${href})`
  })
  const more = found.size - shown.length
  return more > 0 ? `${shown.join(', ')} and ${countOf(more, 'more workload')}` : shown.join(', ')
}
