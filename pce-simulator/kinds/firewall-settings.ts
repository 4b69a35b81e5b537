import { Type } from '@sinclair/typebox'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { requireLabels } from '../validate/check-references.js'
import { CLOSED, Href, Nullable, OneOf, Shape } from '../validate/shape.js'
import { draftPath, type World } from '../world.js'
import { SETTINGS_SCOPES } from './firewall-scopes.js'
import { bodiesAt, requireDraftPath } from './policy-version.js'
import { readScopes, renderScopes } from './scopes.js'
import { changeVersioned, show, type VersionedKind } from './versioned-kind.js'

const Scopes = Type.Optional(
  Type.Array(
    Type.Array(
      Type.Object({
        exclusion: Type.Optional(Type.Boolean()),
        label: Type.Optional(Href),
        label_group: Type.Optional(Href),
      }),
    ),
  ),
)
const UPDATE = new Shape(
  'sec_policy_firewall_settings_put',
  Type.Object(
    {
      update_type: Type.Optional(OneOf('create', 'update', 'delete')),
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
      ...eachScope(Scopes),
    },
    CLOSED,
  ),
)

/**
 * The object kind for firewall settings: one object in each policy version, whose href is the path of the collection
 * (P12, P27).
 */
export const firewallSettings: VersionedKind = {
  type: 'firewall_settings',
  noun: 'firewall_settings',
  ids: 'int',
  filters: {},
  build() {
    throw notFound()
  },
  change(world, _entry, body) {
    const { update_type: _said, firewall_coexistence, ...fields } = UPDATE.read(body)
    const scopes = SETTINGS_SCOPES.flatMap((name) => {
      const given = fields[name]
      return given ? [[name, readScopes(world, given)] as const] : []
    })
    return {
      ...fields,
      ...Object.fromEntries(scopes),
      ...(firewall_coexistence === undefined
        ? {}
        : { firewall_coexistence: readCoexistence(world, firewall_coexistence) }),
    }
  },
  refuseRemoval() {
    throw notFound()
  },
  render(world, body) {
    const scopes = SETTINGS_SCOPES.map((name) => [name, renderScopes(world, (body[name] ?? []) as ScopeEntry[][])])
    return { ...body, ...Object.fromEntries(scopes) }
  },
}

type Coexistence = { scope: { href: string }[]; workload_mode?: string; illumio_primary: boolean }[] | null

function readCoexistence(world: World, given: Coexistence): Coexistence {
  return given?.map((entry) => ({ ...entry, scope: requireLabels(world, entry.scope) })) ?? null
}

function eachScope<T>(value: T): Record<(typeof SETTINGS_SCOPES)[number], T> {
  return Object.fromEntries(SETTINGS_SCOPES.map((name) => [name, value])) as Record<(typeof SETTINGS_SCOPES)[number], T>
}

export function defaultFirewallSettings(world: World, stamp: Partial<VersionedObject>): VersionedObject {
  return {
    href: draftPath(world, '/firewall_settings'),
    ike_authentication_type: 'psk',
    firewall_coexistence: [],
    allow_captive_portal_outbound: true,
    ...eachScope([]),
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
          return { status: 204, changes: changeVersioned(firewallSettings, world, entry!, call.body) }
        },
      },
    },
  },
]
