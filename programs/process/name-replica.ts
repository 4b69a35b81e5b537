import { hostname } from 'node:os'
import type { Config } from '../../schemas/config.js'

/**
 * Returns the name of this process among several: MCP_REPLICA_ID, or else the host name (in Kubernetes, the name of the
 * pod).
 */
export const replicaOf = ({ replicaId }: Pick<Config, 'replicaId'>): string => replicaId ?? hostname()
