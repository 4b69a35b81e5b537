import { Type, type Static } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { DiscoveredVirtualServer } from '../../schemas/pce/virtual-service.js'
import type { Json } from '../model.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import {
  requireDraft,
  requireFreeExternalData,
  requireLabel,
  requireLabels,
  requireWorkload,
} from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, byLabels, exact, partial, pointsTo } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Href, Name, OneOf, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { collectHrefs, findPolicyUsage, isInUse } from './find-usage.js'
import { requireFreeName } from './policy-version.js'
import { renderLabels } from './render-labels.js'
import { bareReferences } from './rule-kind.js'
import type { VersionedKind } from './versioned-kind.js'

const Provider = Type.Union([Type.Object({ label: Href }, CLOSED), Type.Object({ workload: Href }, CLOSED)])
const REQUIRED = {
  name: Name,
  labels: Type.Array(Href),
  service: Href,
  providers: Type.Array(Provider),
  discovered_virtual_server: Href,
  mode: OneOf('unmanaged', 'enforced'),
}
const OPTIONAL = { description: Type.Optional(Text), ...EXTERNAL_DATA }
const CREATE = new Shape('sec_policy_virtual_servers_post', Type.Object({ ...REQUIRED, ...OPTIONAL }, CLOSED))
const Change = Type.Partial(Type.Object({ ...REQUIRED, ...OPTIONAL }), CLOSED)
const UPDATE = new Shape('sec_policy_virtual_servers_put', Change)

/**
 * The object kind for virtual servers: addresses of load balancers that policy manages. Each is based on a discovered
 * virtual server (P23).
 */
export const virtualServer: VersionedKind = {
  type: 'virtual_servers',
  noun: 'virtual_server',
  ids: 'uuid',
  filters: {
    name: partial('name'),
    mode: exact('mode'),
    labels: byLabels((object) => [collectHrefs(object.labels)]),
    discovered_virtual_server: pointsTo('discovered_virtual_server'),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const { description, external_data_set, external_data_reference, ...fields } = CREATE.read(body)
    check(world, fields, null)
    return {
      ...bareReferences(fields),
      description: description ?? null,
      external_data_set: external_data_set ?? null,
      external_data_reference: external_data_reference ?? null,
    }
  },

  change(world, { draft }, body) {
    const fields = UPDATE.read(body)
    check(world, fields, draft)
    return bareReferences(fields)
  },

  refuseRemoval(world, { draft }) {
    const { token, message } = UNCERTAIN.virtualServerInUse
    if (isInUse(findPolicyUsage(world, draft.href))) throw notAcceptable(token, message)
  },

  render(world, body) {
    const discovered = findDiscovered(world, body)
    return {
      ...body,
      labels: renderLabels(world, body.labels),
      discovered_virtual_server: discovered ? describeDiscovered(discovered) : null,
    }
  },
}

function check(world: World, fields: Static<typeof Change>, own: PceObject | null): void {
  const { name, labels, service, providers, discovered_virtual_server: discovered } = fields
  const others = world.policy.entries('virtual_servers').flatMap(({ draft }) => (draft === own ? [] : [draft]))
  if (name !== undefined) requireFreeName(world, 'virtual_servers', name, own?.href ?? null)
  requireFreeExternalData(others, { ...own, ...fields })
  if (labels) requireLabels(world, labels)
  if (service) requireDraft(world, 'services', service.href)
  for (const provider of providers ?? []) {
    if ('label' in provider) requireLabel(world, provider.label.href)
    else requireWorkload(world, provider.workload.href)
  }
  if (!discovered) return
  if (!world.store('discovered_virtual_servers').get(discovered.href)) throw invalidUri(discovered.href)
  if (others.some((other) => (other.discovered_virtual_server as Reference).href === discovered.href)) {
    throw invalidInput('The discovered virtual server already has a virtual server')
  }
}

function findDiscovered(world: World, body: PceObject): DiscoveredVirtualServer | undefined {
  const { href } = body.discovered_virtual_server as Reference
  return world.store('discovered_virtual_servers').get(href) as DiscoveredVirtualServer | undefined
}

function describeDiscovered({ href, dvs_identifier, name, mode, vip_port }: DiscoveredVirtualServer): Json {
  return { href, dvs_identifier, name, mode, vip_port }
}
