import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { quote } from '../text/escape-text.js'
import { findNamesakes, findObject } from './find-object.js'
import { readKubernetesWorkloads, tellUnread } from './kubernetes-workloads.js'
import { ambiguousName, type Namesake } from './tell-apart.js'

/**
 * Finds the workload with this exact name among the names and host names of workloads and the names of Kubernetes
 * workloads.
 *
 * @throws {ToolError} ambiguous_name if several workloads have the name; not_found.
 */
export async function findNamedWorkload(pce: PceClient, name: string, signal: AbortSignal): Promise<Workload> {
  const pods = await readKubernetesWorkloads({ pce, signal }, { name }, (workload, place) =>
    workload.name === name ? { ...workload, place } : undefined,
  )
  const [pod, ...others] = pods.items
  if (pod === undefined)
    try {
      return await findObject(pce, 'workloads', { name }, signal)
    } catch (error) {
      throw withUnread(error, pods.unread)
    }
  const { exact: hosts } = await findNamesakes(pce, 'workloads', name, 'draft', signal)
  if (hosts.length === 0 && others.length === 0) return withoutPlace(pod)
  const found: Namesake[] = [...hosts, ...pods.items.map(({ href, place }) => ({ href, name, place }))]
  throw ambiguousName(`${found.length} workloads are named ${quote(name)}.`, found, { kind: 'workloads', name })
}

const withoutPlace = ({ place: _place, ...workload }: Workload & { place: unknown }): Workload => workload

/** Adds a note to a not_found error if Kubernetes workloads could not be searched. */
function withUnread(error: unknown, unread: string | null): unknown {
  if (!(error instanceof ToolError) || error.code !== 'not_found' || unread === null) return error
  const { code, message, details, hint } = error
  return new ToolError(code, [message, ...tellUnread(unread)].join(' '), details, { hint })
}
