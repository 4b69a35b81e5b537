import { PceError, type PceClient } from '../../pce-client/index.js'
import { fieldsOf, hrefsIn, listOf, readTarget, type Write } from '../scopes/read-write.js'
import { takesEffect } from './takes-effect.js'

/**
 * The number of workloads whose policy, enforcement or labels change at once because of requests; null if it is not
 * known. A change of the draft affects none; only its provisioning does.
 */
export type Affected = number | null

/**
 * Counts the workloads that the requests of one call affect. A workload that several requests name counts once. For a
 * provisioning, the PCE is asked how many workloads with a VEN and container workloads it affects.
 * @throws the errors of the PCE client if `signal` is aborted.
 */
export async function countAffected(
  pce: PceClient,
  requests: readonly Write[],
  signal: AbortSignal,
): Promise<Affected> {
  const named = new Set<string>()
  let unnamed = 0
  for (const request of requests) {
    if (!takesEffect(request, pce.orgId)) continue
    const found = await findAffected(pce, request, signal)
    if (found === null) return null
    if (typeof found === 'number') unnamed += found
    else for (const href of found) named.add(href)
  }
  return named.size + unnamed
}

/** Returns the hrefs of the workloads that a request affects, or their number; null if neither is known. */
function findAffected(
  pce: PceClient,
  { method, path, body }: Write,
  signal: AbortSignal,
): readonly string[] | number | null | Promise<Affected> {
  const { kind, id, href, inner, rest } = readTarget(path, pce.orgId)
  if (rest.length > 0) return null
  switch (kind) {
    case 'workloads':
    case 'vens':
      if (inner !== undefined) return inner.kind === 'interfaces' && href !== undefined ? [href] : null
      if (id === undefined) return 1
      if (id === 'bulk_create') return listOf(body).length
      if (id === 'bulk_update' || id === 'bulk_delete') return hrefsIn(body)
      if (id === 'unpair' || id === 'upgrade') return hrefsIn(fieldsOf(body)[kind])
      return (method === 'PUT' || method === 'DELETE') && href !== undefined ? [href] : null
    case 'service_bindings':
      if (method !== 'POST') return 1
      return (Array.isArray(body) ? listOf(body) : [body]).flatMap((row) => hrefsIn([fieldsOf(row)['workload']]))
    case 'sec_policy':
      return method === 'POST' && id === undefined ? askImpact(pce, body, signal) : null
    default:
      return null
  }
}

/**
 * Asks the PCE how many workloads the provisioning affects. Returns null if the PCE gives no number or only an
 * approximate one.
 */
async function askImpact(pce: PceClient, body: unknown, signal: AbortSignal): Promise<Affected> {
  const subset = fieldsOf(fieldsOf(body)['change_subset'])
  const hrefs = Object.values(subset).flatMap(hrefsIn)
  if (hrefs.length === 0) return null
  try {
    const impact = await pce.analyzePolicyImpact(hrefs, { signal })
    const { num_managed_workloads: managed, num_container_workloads: containers = 0 } = impact
    if (impact.all_workloads_optimization === true || !Number.isInteger(managed) || !Number.isInteger(containers))
      return null
    return managed + containers
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}
