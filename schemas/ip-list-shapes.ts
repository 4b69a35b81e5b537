import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from './common.js'
import { ObjectOrText } from './label-reference.js'

/** An IP range in the form that callers write: an address, a CIDR, or two addresses. */
export const IpRangeInput = Type.Object(
  {
    from_ip: Type.String({ minLength: 1, description: 'Address or CIDR', listed: '' }),
    to_ip: Type.Optional(Type.String({ minLength: 1, description: 'Last' })),
    description: Type.Optional(Type.String({ description: 'Text' })),
    exclusion: Type.Optional(Type.Boolean({ default: false, description: 'All but this', listed: '' })),
  },
  { additionalProperties: false },
)
export type IpRangeInput = Static<typeof IpRangeInput>

/**
 * The schema of a domain name, given as `{fqdn, description?}` or as a string. `planFqdns` checks its form. tools/list
 * shows the object, so that callers can also give and keep descriptions (D243).
 */
const FqdnReference = ObjectOrText<{ fqdn: string; description?: string }>(
  { fqdn: Type.String({ description: 'Fqdn' }), description: Type.String({ description: 'Text' }) },
  ['fqdn'],
)
export type FqdnReference = Static<typeof FqdnReference>

/**
 * The arguments for the domain names of an IP list: `fqdn` for a single one, as in the specification, or `fqdns` for a
 * list, as the PCE stores them.
 */
export const FqdnInput = {
  fqdn: Type.Optional(Type.String({ minLength: 1, description: 'Or *.example.com' })),
  fqdns: Type.Optional(Type.Array(FqdnReference, { maxItems: 1000, description: 'Fqdns' })),
}

/** The form in which answers show an IP list. */
export const IpListOut = Type.Object({
  href: Type.String(),
  name: Type.String(),
  description: Nullable(Type.String()),
  ip_ranges: Type.Array(
    Type.Object({
      from_ip: Type.Optional(Type.String()),
      to_ip: Type.Optional(Type.String()),
      exclusion: Type.Boolean(),
      description: Type.Optional(Type.String()),
    }),
  ),
  fqdns: Type.Array(Type.Object({ fqdn: Type.Optional(Type.String()), description: Type.Optional(Type.String()) })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  omitted: Type.Optional(Type.String({ description: 'What was cut' })),
  created_at: Type.Optional(Type.String()),
  updated_at: Type.Optional(Type.String()),
})
export type IpListOut = Static<typeof IpListOut>

/** The form in which answers show an IP list that has just been written. Fields without a value are absent. */
export const IpListWrittenOut = Type.Object({
  ...Type.Pick(IpListOut, ['href', 'name', 'description', 'update_type', 'omitted']).properties,
  ip_ranges: Type.Array(
    Type.Object({
      from_ip: Type.Optional(Type.String()),
      to_ip: Type.Optional(Type.String()),
      exclusion: Type.Optional(Type.Boolean()),
      description: Type.Optional(Type.String()),
    }),
  ),
  fqdns: Type.Optional(IpListOut.properties.fqdns),
})
export type IpListWrittenOut = Static<typeof IpListWrittenOut>
