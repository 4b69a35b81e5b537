import type { Actor, IngressService, Rule } from '../../schemas/pce/rule-set.js'
import { sameObjectKey, type BoundService, type PolicyView, type PortOverride } from '../model.js'
import { compileLabels, type LabelLookup } from './match-actors.js'

export type LabelTest = (labels: ReadonlySet<string>) => boolean

/** A group of workloads that provide a virtual service on the same ports. */
export interface Offer {
  workloads: ReadonlySet<string>
  services: readonly IngressService[]
}

/**
 * Finds the virtual services that the providers or the consumers of a rule include, either by href or, if
 * `resolve_labels_as` includes virtual services, by label. A scope applies to the labels of the virtual service, not to
 * those of the workloads behind it.
 */
export function findVirtualServices(
  view: Pick<PolicyView, 'virtualServices'>,
  rule: Pick<Rule, 'providers' | 'consumers'> & Partial<Pick<Rule, 'resolve_labels_as'>>,
  side: 'providers' | 'consumers',
  scope: LabelTest,
  lookup: LabelLookup,
): BoundService[] {
  const actors: readonly Actor[] = rule[side]
  const named = new Set(
    actors.flatMap(({ virtual_service }) => (virtual_service ? [sameObjectKey(virtual_service.href)] : [])),
  )
  const labelled = actors.filter(({ label, label_group }) => label !== undefined || label_group !== undefined)
  const byLabels = labelled.length > 0 && rule.resolve_labels_as?.[side].includes('virtual_services') === true
  const matchesLabels = compileLabels(labelled, lookup)
  return (view.virtualServices ?? []).filter(({ href, labels }) => {
    const bears = new Set(labels)
    return scope(bears) && (named.has(sameObjectKey(href)) || (byLabels && matchesLabels(bears)))
  })
}

/**
 * Groups the workloads of a virtual service by the ports on which they provide it. Workloads without port overrides
 * form one group, with the ports of the service; every workload with overrides is a group of its own.
 */
export function listOffers({ services, bindings }: BoundService): Offer[] {
  const plain = bindings.filter(({ portOverrides }) => portOverrides.length === 0).map(({ workload }) => workload)
  const others = bindings.filter(({ portOverrides }) => portOverrides.length > 0)
  return [
    ...(plain.length > 0 ? [{ workloads: new Set(plain), services }] : []),
    ...others.map(({ workload, portOverrides }) => ({
      workloads: new Set([workload]),
      services: services.map((entry) => ('href' in entry ? entry : override(entry, portOverrides))),
    })),
  ]
}

function override(
  entry: Exclude<IngressService, { href: string }>,
  overrides: readonly PortOverride[],
): IngressService {
  const { port, proto } = entry
  const found = overrides.find((one) => (one.port ?? port) === port && (one.proto ?? proto) === proto)
  if (!found) return entry
  const { new_port, new_to_port } = found
  return { port: new_port, ...(new_to_port === undefined ? {} : { to_port: new_to_port }), proto }
}
