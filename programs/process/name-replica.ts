import { hostname } from 'node:os'
import type { Config } from '../../schemas/config.js'

/**
 * Returns the name of this process among several: MCP_REPLICA_ID, or else the host name, which in Kubernetes is the
 * pod's.
 */
export const replicaOf = ({ replicaId }: Pick<Config, 'replicaId'>): string => replicaId ?? hostname()
