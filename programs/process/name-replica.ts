import { hostname } from 'node:os'
import type { Config } from '../../schemas/config.js'

/** Names this process among several: MCP_REPLICA_ID, otherwise the host name, which in Kubernetes is the pod's name. */
export const replicaOf = ({ replicaId }: Pick<Config, 'replicaId'>): string => replicaId ?? hostname()
