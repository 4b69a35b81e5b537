import { Type } from '@sinclair/typebox'
import type { ServiceBinding } from '../../schemas/pce/virtual-service.js'

/** Maximum number of bound workloads that an answer lists. */
const MOST_LISTED = 50

/** The workloads that are bound to a virtual service. */
export const BoundOut = {
  bound: Type.Optional(
    Type.Array(
      Type.Object({
        workload: Type.String({ description: 'Name, or href' }),
        port_overrides: Type.Optional(
          Type.Array(Type.Object({}), { description: 'Its own ports, each as {port, proto, new_port, new_to_port?}' }),
        ),
      }),
      { description: `Workloads bound to it then, the first ${MOST_LISTED}` },
    ),
  ),
  bound_total: Type.Optional(Type.Integer({ description: 'All of them' })),
}

interface Bound {
  bound: { workload: string; port_overrides?: object[] }[]
  bound_total: number
}

/** Shows the workloads of bindings, by name. A bound container workload is shown by href. */
export function showBound(bindings: readonly ServiceBinding[]): Bound {
  return {
    bound: bindings.slice(0, MOST_LISTED).map(({ workload, container_workload: container, port_overrides: ports }) => ({
      workload: workload?.name ?? workload?.hostname ?? workload?.href ?? container?.href ?? '',
      ...((ports ?? []).length > 0 && { port_overrides: [...(ports ?? [])] }),
    })),
    bound_total: bindings.length,
  }
}
