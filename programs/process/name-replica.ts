import { hostname } from 'node:os'
import type { Config } from '../../schemas/config.js'

/**
 * Returns the name that distinguishes this process from other replicas: MCP_REPLICA_ID or, if it is not set, the host
 * name (in Kubernetes, the name of the pod).
 */
export const replicaOf = ({ replicaId }: Pick<Config, 'replicaId'>): string => replicaId ?? hostname()
