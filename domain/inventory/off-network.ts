import { EXTERNAL_NETWORK } from '../../schemas/pce/words.js'

/** A network as given in an interface of a workload or in a traffic row. */
type Network = { name?: string | null } | null | undefined

/** The answer to the question whether the source or destination of a connection is off the corporate network (P107). */
export type OffNetwork = 'yes' | 'no' | 'perhaps'

/**
 * Determines from a host's networks whether the host is off the corporate network (P107): `yes` if all of them are the
 * external network, `perhaps` if only some are. If no network has a name, the answer is `perhaps` for an endpoint,
 * because endpoints move between networks. In all other cases it is `no`.
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
