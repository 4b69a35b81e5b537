import { Type } from '@sinclair/typebox'
import type { Service } from '../../schemas/pce/service.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { byLabels, exact, partial } from '../validate/query-filters.js'
import { CLOSED, Name, Shape } from '../validate/shape.js'
import { checkRule } from './check-rule.js'
import { collectHrefs } from './find-usage.js'
import { requireFreeName } from './policy-version.js'
import { bareReferences } from './rule-kind.js'
import { BOUNDARY_SIDES } from './rule-shapes.js'
import { byPort, byProtocol, byService } from './service-filters.js'
import type { VersionedKind } from './versioned-kind.js'

const CREATE = new Shape(
  'sec_policy_enforcement_boundaries_post',
  Type.Object({ name: Name, enabled: Type.Optional(Type.Boolean()), ...BOUNDARY_SIDES }, CLOSED),
)
const UPDATE = new Shape(
  'sec_policy_enforcement_boundaries_put',
  Type.Partial(Type.Object({ name: Name, enabled: Type.Boolean(), ...BOUNDARY_SIDES }), CLOSED),
)

/**
 * The object kind for enforcement boundaries. A boundary says what is blocked in selective mode unless a rule allows it
 * (P22).
 */
export const enforcementBoundary: VersionedKind = {
  type: 'enforcement_boundaries',
  noun: 'enforcement_boundary',
  ids: 'int',
  filters: {
    name: partial('name'),
    labels: byLabels((object) => [collectHrefs([object.providers, object.consumers])]),
    service: byService(ingressServices),
    'service_ports.port': byPort(portsOf),
    'service_ports.proto': byProtocol(portsOf),
    network_type: exact('network_type'),
  },

  build(world, body) {
    const fields = CREATE.read(body)
    requireFreeName(world, 'enforcement_boundaries', fields.name, null)
    const { name, enabled = true, providers, consumers, ingress_services } = fields
    checkRule(world, fields)
    return { name, enabled, ...bareReferences({ providers, consumers, ingress_services }), network_type: 'brn' }
  },

  change(world, { draft }, body) {
    const fields = UPDATE.read(body)
    if (fields.name !== undefined) requireFreeName(world, 'enforcement_boundaries', fields.name, draft.href)
    checkRule(world, { ...draft, ...fields })
    return bareReferences(fields)
  },

  refuseRemoval() {
    // No object refers to a boundary, so its deletion is never refused.
  },
}

function ingressServices(object: PceObject): readonly IngressService[] {
  return (object as unknown as { ingress_services: IngressService[]; providers: Actor[] }).ingress_services
}

/** Returns the ports that the boundary itself lists, without the ports of the service objects to which it refers. */
function portsOf(object: PceObject): NonNullable<Service['service_ports']> {
  return ingressServices(object).flatMap((entry) => ('href' in entry ? [] : [entry]))
}
