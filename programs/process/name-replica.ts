import { hostname } from 'node:os'
import type { Config } from '../../schemas/config.js'

/** Which of several processes this is: by MCP_REPLICA_ID, otherwise by the name of the host, which in a pod is the pod's. */
export const replicaOf = ({ replicaId }: Pick<Config, 'replicaId'>): string => replicaId ?? hostname()
