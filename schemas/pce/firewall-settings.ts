import { Type } from '@sinclair/typebox'
import { List, Maybe, MaybeFlag, MaybeList, MaybeText, Reference, VERSIONED_FIELDS, type Read } from './reference.js'
import { Scopes } from './rule-set.js'

const MaybeScopes = Maybe(Scopes)

/** The one object of policy settings (P27); old releases end its href in /1 and know other switches. */
export const FirewallSettings = Type.Object({
  ...VERSIONED_FIELDS,
  ike_authentication_type: MaybeText,
  firewall_coexistence: MaybeList(
    Type.Object({ scope: List(Reference), workload_mode: MaybeText, illumio_primary: Type.Boolean() }),
  ),
  allow_captive_portal_outbound: MaybeFlag,
  static_policy_scopes: MaybeScopes,
  containers_inherit_host_policy_scopes: MaybeScopes,
  blocked_connection_reject_scopes: MaybeScopes,
  loopback_interfaces_in_policy_scopes: MaybeScopes,
  ip_forwarding_enabled_scopes: MaybeScopes,
  rule_hit_count_enabled_scopes: MaybeScopes,
})
export type FirewallSettings = Read<typeof FirewallSettings>
