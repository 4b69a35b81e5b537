import { EXTERNAL_NETWORK } from '../../schemas/pce/words.js'

/** A network as it occurs in an interface of a workload or in a traffic row. */
type Network = { name?: string | null } | null | undefined

/** The answer to whether one end of a connection is off the corporate network (P107). */
export type OffNetwork = 'yes' | 'no' | 'perhaps'

/**
 * Determines whether a host is off the corporate network, from the networks that it is on (P107). An endpoint moves
 * between networks, so it may be off the corporate network if none of its networks has a name.
 */
export function isOffNetwork(networks: readonly Network[], isEndpoint: boolean): OffNetwork {
  const names = networks.flatMap((network) => nameOf(network) ?? [])
  const outside = names.filter((name) => name === EXTERNAL_NETWORK.toLowerCase())
  if (outside.length > 0) return outside.length === networks.length ? 'yes' : 'perhaps'
  return names.length === 0 && isEndpoint ? 'perhaps' : 'no'
}

function nameOf(network: Network): string | null {
  const name: unknown = network?.name
  return typeof name === 'string' && name.trim() !== '' ? name.trim().toLowerCase() : null
}
