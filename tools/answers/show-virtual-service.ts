import type { LabelRef } from '../../schemas/pce/label.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import type { AddressOut, VirtualServiceOut } from '../../schemas/virtual-service-shapes.js'
import { showLabelOf } from './show-label.js'
import { withoutNulls } from './show-policy-objects.js'

/** Converts a virtual service to its output form. It has either the service or the ports, and no empty lists. */
export function showVirtualService(
  item: VirtualService,
  expand: (label: LabelRef) => LabelRef,
  detail?: 'standard' | 'full',
): VirtualServiceOut {
  const { service, service_ports: ports, service_addresses: addresses, ip_overrides: overrides } = item
  return {
    href: item.href,
    name: item.name,
    description: item.description ?? null,
    ...(service != null && {
      service: { href: service.href, ...(service.name != null && { name: service.name }) },
    }),
    ...(ports != null && { service_ports: ports.map(withoutNulls) }),
    labels: (item.labels ?? []).map((label) => showLabelOf(expand(label), detail)),
    ...(item.apply_to !== undefined && { apply_to: item.apply_to }),
    ...(addresses != null && addresses.length > 0 && { service_addresses: addresses.map(showAddress) }),
    ...(overrides != null && overrides.length > 0 && { ip_overrides: [...overrides] }),
    ...(item.pce_fqdn != null && { pce_fqdn: item.pce_fqdn }),
    ...(item.update_type != null && { update_type: item.update_type }),
  }
}

function showAddress(address: NonNullable<VirtualService['service_addresses']>[number]): AddressOut {
  const { port } = address
  const shownPort = port != null && { port }
  if ('ip' in address)
    return { ip: address.ip, ...(address.network != null && { network: address.network.href }), ...shownPort }
  const { fqdn, description } = address
  return { fqdn, ...(description != null && description !== '' && { description }), ...shownPort }
}
