import { Type, type Static } from '@sinclair/typebox'
import { EXTERNAL_FIELDS, Maybe, MaybeFlag, MaybeList, MaybeText, VERSIONED_FIELDS, type Read } from './reference.js'

export const IpRange = Type.Object({
  /** A single address, a network, or, if `to_ip` is set, the first address of a range whose last address is `to_ip`. */
  from_ip: Type.String(),
  to_ip: MaybeText,
  exclusion: MaybeFlag,
  description: MaybeText,
})
export type IpRange = Static<typeof IpRange>

/** A list of addresses and domain names that do not belong to workloads (P17). */
export const IpList = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  description: MaybeText,
  ip_ranges: MaybeList(IpRange),
  /** The source of the list, if the PCE maintains it itself. */
  ip_list_attribute: Maybe(Type.Object({ id: MaybeText, href: MaybeText, name: Type.String(), ...EXTERNAL_FIELDS })),
  fqdns: MaybeList(Type.Object({ fqdn: Type.String(), description: MaybeText })),
})
export type IpList = Read<typeof IpList>
