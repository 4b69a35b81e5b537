import { ToolError } from '../../schemas/errors.js'
import type { LabelReference } from '../inventory/labels.js'
import type { Label } from '../../schemas/pce/label.js'
import type { AddressInput, PortInput } from '../../schemas/virtual-service-shapes.js'
import type { ToolContext } from '../call.js'
import { findObject } from '../inventory/find-object.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { quote } from '../text/escape-text.js'
import { explainPending } from './pending-deletion.js'
import { planFqdns } from './plan-ip-list.js'
import { findMembers } from './plan-label-group.js'
import { planService } from './plan-service.js'

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>

/** The properties of a virtual service that a caller gives. Absent properties are not changed. */
export interface VirtualServiceArguments {
  service?: string
  service_ports?: readonly PortInput[]
  labels?: readonly LabelReference[]
  service_addresses?: readonly AddressInput[]
  ip_overrides?: readonly string[]
  apply_to?: 'host_only' | 'internal_bridge_network'
}

/**
 * Looks up and checks everything to which a virtual service refers, and returns the fields to send. Properties that
 * were not given are absent.
 *
 * @throws {ToolError} conflicting_service_definition if both a service and ports are given (P23);
 * invalid_service_definition;
 * invalid_argument with the name of the argument; label_not_found; the errors of `findObject`.
 */
export async function planVirtualService(ctx: Ctx, given: VirtualServiceArguments): Promise<Record<string, unknown>> {
  const { service, service_ports: ports, labels, service_addresses: addresses, ip_overrides: overrides } = given
  if (service !== undefined && ports !== undefined) {
    const text = 'A virtual service offers a service or ports of its own: give service or service_ports, not both.'
    throw new ToolError('conflicting_service_definition', text, { supplied: ['service', 'service_ports'] })
  }
  const planned = ports === undefined ? undefined : planPorts(ports)
  const reached = addresses?.map((address, at) => planAddress(ctx.pce.orgId, address, `service_addresses[${at}]`))
  for (const [at, address] of (overrides ?? []).entries()) requireAddress(address.trim(), `ip_overrides[${at}]`)
  const found = labels === undefined ? undefined : await findLabels(ctx, labels)
  return {
    ...(service !== undefined && { service: { href: await findService(ctx, service) } }),
    ...(planned !== undefined && { service_ports: planned }),
    ...(found !== undefined && { labels: found.map(({ href }) => ({ href })) }),
    ...(reached !== undefined && { service_addresses: reached }),
    ...(overrides !== undefined && { ip_overrides: overrides.map((address) => address.trim()) }),
    ...(given.apply_to !== undefined && { apply_to: given.apply_to }),
  }
}

function planPorts(ports: readonly PortInput[]): object[] {
  const entries = planService({ service_ports: ports })?.entries ?? []
  const at = entries.findIndex(({ proto }) => proto !== 6 && proto !== 17)
  if (at === -1) return entries
  const text = `service_ports[${at}]: a virtual service has ports of tcp and udp only; anything else takes a service.`
  throw new ToolError('invalid_service_definition', text, { argument: `service_ports[${at}]` })
}

/** Returns the draft href of a service that a caller names exactly or by href. */
async function findService({ pce, signal }: Ctx, text: string): Promise<string> {
  const reference = text.trim().startsWith('/') ? { href: text } : { name: text }
  const service = await findObject(pce, 'services', reference, signal)
  const pending = explainPending('services', service)
  if (pending !== undefined)
    throw new ToolError('invalid_argument', `service: ${pending.why}`, { argument: 'service', ...pending.details })
  return toDraftHref(service.href)
}

async function findLabels(ctx: Ctx, references: readonly LabelReference[]): Promise<readonly Label[]> {
  const { labels = [] } = await findMembers(ctx, { labels: references })
  refuseTwoOfAKey(labels)
  return labels
}

/** Throws invalid_argument if two of the labels have the same key. */
export function refuseTwoOfAKey(labels: readonly Label[]): void {
  const second = labels.find((label, at) => labels.findIndex(({ key }) => key === label.key) < at)
  if (second === undefined) return
  const first = labels.find(({ key }) => key === second.key)
  const text = `labels: One label per key; ${quote(second.key)} was given ${quote(first?.value ?? '')} and ${quote(second.value)}.`
  throw new ToolError('invalid_argument', text, { argument: 'labels', key: second.key })
}

function planAddress(orgId: string, address: AddressInput, at: string): object {
  const { ip, fqdn, network, description, port } = address
  const wrong = (text: string) => new ToolError('invalid_argument', `${at}: ${text}`, { argument: at })
  if ((ip === undefined) === (fqdn === undefined)) throw wrong('Give ip or fqdn, one of them.')
  if (port !== undefined && (port < 1 || port > 65_535)) throw wrong('port is a whole number from 1 to 65535.')
  const shownPort = port !== undefined && { port }
  if (fqdn !== undefined) {
    if (network !== undefined) throw wrong('Only an ip has a network.')
    const [planned] = planFqdns(undefined, [{ fqdn, ...(description !== undefined && { description }) }], at) ?? []
    return { ...planned, ...shownPort }
  }
  if (description !== undefined) throw wrong('Only an fqdn has a description.')
  requireAddress((ip ?? '').trim(), at)
  const parsed = network === undefined ? undefined : parseHref(network.trim())
  if (network !== undefined && (parsed?.kind !== 'networks' || parsed.id === undefined || parsed.org !== orgId))
    throw wrong(`${quote(network)} is not the href of a network in organisation ${orgId}.`)
  return { ip: (ip ?? '').trim(), ...(network !== undefined && { network: { href: network.trim() } }), ...shownPort }
}

function requireAddress(text: string, at: string): void {
  if (isAddress(text)) return
  throw new ToolError('invalid_argument', `${at}: ${quote(text)} is not an IPv4 or IPv6 address.`, { argument: at })
}
