import { Type } from '@sinclair/typebox'
import type { VersionedObject } from '../../../schemas/pce/reference.js'
import type { Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { CLOSED, Href, Nullable, OneOf, Shape } from '../validate/shape.js'
import { draftPath, updateStamp, type World } from '../world.js'
import { describeChanges } from './describe-changes.js'
import { bodiesAt, requireDraftPath } from './policy-version.js'
import { show, type VersionedKind } from './versioned-kind.js'

const Scopes = Type.Optional(
  Type.Array(Type.Array(Type.Object({ label: Type.Optional(Href), label_group: Type.Optional(Href) }))),
)
const UPDATE = new Shape(
  'sec_policy_firewall_settings_put',
  Type.Object(
    {
      update_type: Type.Optional(OneOf('create', 'update', 'delete')),
      static_policy_scopes: Scopes,
      ike_authentication_type: Type.Optional(OneOf('psk', 'certificate')),
      firewall_coexistence: Type.Optional(
        Nullable(
          Type.Array(
            Type.Object(
              {
                scope: Type.Array(Href),
                workload_mode: Type.Optional(OneOf('enforced', 'illuminated')),
                illumio_primary: Type.Boolean(),
              },
              CLOSED,
            ),
          ),
        ),
      ),
      allow_captive_portal_outbound: Type.Optional(Type.Boolean()),
      containers_inherit_host_policy_scopes: Scopes,
      blocked_connection_reject_scopes: Scopes,
      loopback_interfaces_in_policy_scopes: Scopes,
      ip_forwarding_enabled_scopes: Scopes,
      rule_hit_count_enabled_scopes: Scopes,
    },
    CLOSED,
  ),
)

/** One object for each version; its collection path is its href (pce-api c, e.14). */
export const firewallSettings: VersionedKind = {
  type: 'firewall_settings',
  noun: 'firewall_settings',
  ids: 'int',
  filters: {},
  build() {
    throw notFound()
  },
  change(_world, _entry, body) {
    const { update_type: _said, ...fields } = UPDATE.read(body)
    return fields
  },
  refuseRemoval() {
    throw notFound()
  },
}

export function defaultFirewallSettings(world: World, stamp: Partial<VersionedObject>): VersionedObject {
  return {
    href: draftPath(world, '/firewall_settings'),
    ike_authentication_type: 'psk',
    static_policy_scopes: [],
    firewall_coexistence: [],
    allow_captive_portal_outbound: true,
    containers_inherit_host_policy_scopes: [],
    blocked_connection_reject_scopes: [],
    loopback_interfaces_in_policy_scopes: [],
    ip_forwarding_enabled_scopes: [],
    rule_hit_count_enabled_scopes: [],
    ...stamp,
    deleted_at: null,
    deleted_by: null,
  }
}

export const firewallSettingsRoutes: Route[] = [
  {
    path: '/orgs/:org/sec_policy/:pversion/firewall_settings',
    verbs: {
      GET: {
        handle: (call) => {
          const [settings] = bodiesAt(call.world, 'firewall_settings', call.params.pversion!)
          return { status: 200, json: show(firewallSettings, call, settings!) }
        },
      },
      PUT: {
        event: 'firewall_settings.update',
        handle: (call) => {
          requireDraftPath(call)
          const { world } = call
          const [entry] = world.policy.entries('firewall_settings')
          const { draft } = entry!
          const fields = firewallSettings.change(world, entry!, call.body)
          if (Object.keys(fields).length > 0)
            world.policy.change(entry!, { ...draft, ...fields, ...updateStamp(world) })
          const resource = { firewall_settings: { href: draft.href } }
          return { status: 204, changes: [{ resource, type: 'update', changes: describeChanges(draft, fields) }] }
        },
      },
    },
  },
]
