import { PceError, type PceClient } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { scanEvery } from '../inventory/fetch-every.js'
import { createAddressTest, usualSpelling } from '../inventory/parse-addresses.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'

/** The names and addresses that a workload is about to have. */
export interface WantedIdentity {
  /** The workload's name, its host name, or both. */
  names?: readonly (string | undefined)[]
  addresses?: readonly string[]
}

/**
 * Maximum number of IPv4 addresses that are looked up one by one. For more of them, and for IPv6, one request for all
 * workloads is tried first.
 */
const ASKED_AT_ONCE = 5
/** Maximum number of addresses that are looked up one by one if the workloads do not fit into one answer. */
const MOST_ASKED = 12
/** Maximum number of workloads read with one request, which is the most that a PCE sends in one answer (P8). */
const MOST_READ = 500
/** Maximum number of workloads named in a warning. */
const MOST_NAMED = 5

/**
 * Warns of other workloads that have one of these addresses, or one of these names as their name or host name. The PCE
 * accepts such duplicates (P16), but a duplicate name no longer identifies one workload, and a machine whose address
 * two workloads have gets the policy of both. `own` is the href of the workload that changes.
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
  signal.throwIfAborted()
  const unread: string[] = []
  /**
   * Reads the workloads that match a filter and remembers those with a wanted name or address. Returns true if all
   * matching workloads were read.
   */
  const look = async (params: Record<string, string>): Promise<boolean> => {
    const query = { api: pce.workloads, params, signal }
    return (await scanEvery(query, { most: MOST_READ, onItems: (items) => items.forEach(see) })).isWhole
  }
  try {
    const isFew = addresses.length <= ASKED_AT_ONCE && !addresses.some(isIpv6)
    if (isFew || !(await look({}))) unread.push(...(await lookUp(look, wantedNames, addresses)))
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    unread.push(`Whether another workload has this name or one of these addresses is not known: ${error.message}`)
  }
  return [
    ...unread,
    ...[...byName].map(([name, found]) => {
      return `The PCE allows it, but the name ${quote(name)} is already used by ${listed(found)}: from then on it names neither.`
    }),
    ...[...byAddress].map(([address, found]) => {
      return `The address ${address} is already that of ${listed(found)}: traffic and rules cannot tell them apart.`
    }),
  ]
}

const isIpv6 = (address: string) => address.includes(':')

/** Looks up the names and a limited number of addresses one by one. Returns sentences that say what remains unknown. */
async function lookUp(
  look: (params: Record<string, string>) => Promise<boolean>,
  names: readonly string[],
  addresses: readonly string[],
): Promise<string[]> {
  const unknown: string[] = []
  for (const name of names) {
    const isWhole = [await look({ name }), await look({ hostname: name })]
    if (isWhole.includes(false))
      unknown.push(
        `Too many names contain ${quote(name)} to read them all: whether another workload has it is not known.`,
      )
  }
  // The PCE compares addresses as strings (P8), so it finds an IPv6 address only if both are spelled the same way.
  const asked = addresses.slice(0, MOST_ASKED)
  for (const address of asked) {
    const isWhole = await look({ ip_address: isIpv6(address) ? usualSpelling(address) : address })
    if (!isWhole)
      unknown.push(
        `Too many addresses contain ${address} to read them all: whether another workload has it is not known.`,
      )
  }
  if (asked.some(isIpv6)) unknown.push('IPv6 addresses were looked for in their usual spelling alone.')
  const left = addresses.length - asked.length
  if (left > 0) {
    const which = left === 1 ? 'the last address' : `one of the last ${left} addresses`
    unknown.push(`Whether another workload has ${which} is not known.`)
  }
  return unknown
}

function listed(found: ReadonlyMap<string, Workload>): string {
  const shown = [...found.values()].slice(0, MOST_NAMED).map(({ href, name, hostname }) => {
    const known = name || hostname
    return known == null || known === '' ? href : `${quote(known)} (${href})`
  })
  const more = found.size - shown.length
  return more > 0 ? `${shown.join(', ')} and ${countOf(more, 'more workload')}` : shown.join(', ')
}
