import type { ServiceBackend } from '../../schemas/pce/container-cluster.js'
import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import type { Calls } from './create-calls.js'

/** Container clusters beyond their own objects (S9, P13). */
export interface ContainerOperations {
  /** Lists what stands behind the services of a container cluster. */
  getContainerServiceBackends(clusterHref: ReferenceLike, options?: RequestOptions): Promise<ServiceBackend[]>
}

export function createContainerOperations(calls: Calls): ContainerOperations {
  return {
    async getContainerServiceBackends(clusterHref, options) {
      const path = `${calls.href(KINDS.containerClusters, clusterHref)}/service_backends`
      return calls.list<ServiceBackend>(path, options)
    },
  }
}
