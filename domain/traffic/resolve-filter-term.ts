import { ToolError } from '../../schemas/errors.js'
import type { TrafficSelector } from '../../schemas/pce/traffic.js'
import type { NamedKind, NamedObject, PolicyLookups } from '../inventory/find-object.js'
import { parseAddress, type AddressFilter } from '../inventory/parse-addresses.js'
import { parseHref, toActiveHref } from '../inventory/parse-href.js'
import {
  isLabelReference,
  isUnresolved,
  resolveLabel,
  describeReference,
  type LabelReference,
  type UnresolvedLabel,
} from '../inventory/labels.js'
import { trimBlanks } from '../text/escape-text.js'

/**
 * One condition of a traffic filter. Terms of the same `group` are alternatives; terms of different groups must all be
 * met (T7).
 */
export interface TrafficTerm {
  ref: string
  group: string
  selector?: TrafficSelector
  /**
   * The network to filter by. A term has either `network` or `selector`. The PCE cannot filter by networks, so this
   * server
   * tests each row.
   */
  network?: Extract<AddressFilter, { network: string }>
}

export interface TermPlace {
  side: 'sources' | 'destinations'
  mode: 'include' | 'exclude'
}

const FQDN = /^(?=.{4,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/i
/** Matches text that looks like an address or network, valid or not. */
const ADDRESS_LIKE = /^(?:[\d.]+|[\da-f]*:[\da-f:.]*)(?:\/\d*)?$/i
const NAMED: Record<string, NamedKind> = { iplist: 'ip_lists', labelgroup: 'label_groups', workload: 'workloads' }
const SELECTOR = { ip_lists: 'ip_list', label_groups: 'label_group', workloads: 'workload' } as const
type SelectableKind = keyof typeof SELECTOR

/**
 * Converts a filter reference to a condition, or returns why this is not possible. A reference is a label in any form;
 * `iplist:`, `labelgroup:` or `workload:` with an exact name; the href of one of these; an address; a network in CIDR
 * form; `ams` (include only); or an FQDN (destinations only, because the PCE does not record FQDNs of sources).
 */
export async function resolveTrafficTerm(
  lookups: PolicyLookups,
  reference: LabelReference,
  place: TermPlace,
): Promise<TrafficTerm | UnresolvedLabel> {
  const ref = describeReference(reference)
  if (!isLabelReference(reference)) return { ref, valid: 'An object must be {key, value} or {href}.' }
  const text = typeof reference === 'string' ? trimBlanks(reference) : (reference.href ?? '')
  if (text === 'ams') {
    return place.mode === 'include'
      ? { ref, group: 'ams', selector: { actors: 'ams' } }
      : { ref, valid: '"ams" can only be included.' }
  }
  const address = parseAddress(text)
  if (address !== null) {
    return 'address' in address
      ? { ref, group: 'address', selector: { ip_address: address.address } }
      : { ref, group: 'address', network: address }
  }
  if (ADDRESS_LIKE.test(text)) return { ref, valid: 'This is neither an IP address nor a network in CIDR form.' }
  const [, prefix = '', name = ''] = /^([a-z]+):(.+)$/su.exec(text) ?? []
  const namedKind = NAMED[prefix]
  if (namedKind !== undefined)
    return find(ref, namedKind as SelectableKind, () => lookups.byName(namedKind, trimBlanks(name)), prefix)
  const kind = parseHref(text)?.kind
  if (kind !== undefined && kind in SELECTOR) {
    return find(ref, kind as SelectableKind, () => lookups.byHref(kind as NamedKind, text))
  }
  if (typeof reference === 'string' && FQDN.test(text)) {
    return place.side === 'destinations'
      ? { ref, group: 'fqdn', selector: { fqdn: text } }
      : {
          ref,
          valid: 'Only destinations can be filtered by host name; name the source by label, workload or address.',
        }
  }
  const label = resolveLabel(lookups.labels, reference)
  return isUnresolved(label) ? label : { ref, group: `label ${label.key}`, selector: { label: { href: label.href } } }
}

async function find(
  ref: string,
  kind: SelectableKind,
  ask: () => Promise<NamedObject>,
  prefix?: string,
): Promise<TrafficTerm | UnresolvedLabel> {
  try {
    const found = await ask()
    const key = (found as { key?: string }).key
    const group = kind === 'label_groups' && key !== undefined ? `label ${key}` : kind
    return { ref, group, selector: { [SELECTOR[kind]]: { href: toActiveHref(found.href) } } }
  } catch (error) {
    // If several objects have the name, this server must not guess which one is meant. The error lists their
    // differences.
    if (!(error instanceof ToolError) || error.code === 'ambiguous_name') throw error
    const near = error.details['near_names']
    const suggestions =
      Array.isArray(near) && prefix !== undefined ? near.map((name) => `${prefix}:${String(name)}`) : []
    return { ref, valid: suggestions.length > 0 ? suggestions : error.message }
  }
}
