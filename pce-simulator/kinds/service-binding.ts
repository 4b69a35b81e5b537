import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import { invalidInput, invalidUri } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { requireFreeExternalData, requireWorkload } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, pointsTo } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Port, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import type { PlainKind } from './plain-kind.js'
import { renderLabels } from './render-labels.js'

const Target = Type.Object({ href: Type.String() }, CLOSED)
const CREATE = new Shape(
  'service_bindings_post',
  Type.Object(
    {
      virtual_service: Target,
      workload: Type.Optional(Target),
      container_workload: Type.Optional(Target),
      port_overrides: Type.Optional(
        Type.Array(
          Type.Object(
            {
              port: Type.Optional(Port),
              proto: Type.Optional(Type.Union([Type.Literal(6), Type.Literal(17)])),
              new_port: Port,
              new_to_port: Type.Optional(Port),
            },
            CLOSED,
          ),
        ),
      ),
      ...EXTERNAL_DATA,
    },
    CLOSED,
  ),
)

/**
 * The object kind for service bindings. A binding makes a workload part of a virtual service. Either all bindings of a
 * request are created or none, and they are never changed (P23).
 */
export const serviceBinding: PlainKind = {
  segment: 'service_bindings',
  noun: 'service_binding',
  ids: 'uuid',
  store: (world) => world.store('service_bindings'),
  filters: {
    virtual_service: pointsTo('virtual_service'),
    workload: pointsTo('workload'),
    ...EXTERNAL_DATA_FILTERS,
  },
  arrayCreate: { minItems: 1 },

  build(world, body) {
    const { virtual_service, workload, container_workload, ...fields } = CREATE.read(body)
    if ((workload === undefined) === (container_workload === undefined)) {
      throw invalidInput('Exactly one of workload and container_workload is required')
    }
    requireProvisioned(world, virtual_service.href)
    if (workload) requireWorkload(world, workload.href)
    else if (!world.store('container_workloads').get(container_workload!.href))
      throw invalidUri(container_workload!.href)
    requireFreeExternalData(serviceBinding.store(world).live(), fields)
    return {
      virtual_service,
      ...(workload ? { workload } : { container_workload }),
      port_overrides: fields.port_overrides ?? [],
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
    }
  },

  revealOnce: () => ({ status: UNCERTAIN.bindingStatus }),

  remove: () => null,

  render(world, object) {
    const { virtual_service, workload, ...rest } = object as PceObject & { workload?: Reference }
    const service = serviceOf(world, (virtual_service as Reference).href)
    const bearer = workload && world.workloads.get(workload.href)
    return {
      ...rest,
      bound_service: {
        ...(virtual_service as Reference),
        name: service?.name,
        labels: renderLabels(world, service?.labels),
      },
      virtual_service,
      ...(workload ? { workload: { ...workload, name: bearer?.name, hostname: bearer?.hostname } } : {}),
    }
  },
}

/** Removes the bindings of a virtual service that has been deleted. */
export function endBindings(world: World, draftHref: string): void {
  const gone = toActive(draftHref)
  for (const { href, virtual_service } of serviceBinding.store(world).live()) {
    if ((virtual_service as Reference).href === gone) serviceBinding.store(world).remove(href)
  }
}

/** Removes the bindings of a workload that has been deleted. */
export function endBindingsOf(world: World, { href: gone }: PceObject): void {
  if (!UNCERTAIN.bindingsEndWithTheirWorkload) return
  for (const { href, workload } of serviceBinding.store(world).live()) {
    if ((workload as Reference | undefined)?.href === gone) serviceBinding.store(world).remove(href)
  }
}

/** Checks that the href is the active href of a virtual service that has been provisioned. Throws 406 invalid_uri. */
function requireProvisioned(world: World, href: string): void {
  if (!serviceOf(world, href)) throw invalidUri(href)
}

function serviceOf(world: World, href: string): Json | null | undefined {
  const draft = href.replace('/sec_policy/active/', '/sec_policy/draft/')
  return draft === href ? undefined : world.policy.get('virtual_services', draft)?.active
}

function toActive(href: string): string {
  return href.replace('/sec_policy/draft/', '/sec_policy/active/')
}
