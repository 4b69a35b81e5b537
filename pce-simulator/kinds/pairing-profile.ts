import { Type } from '@sinclair/typebox'
import { ENFORCEMENT_MODES } from '../../schemas/pce/workload.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { invalidInput, notFound } from '../refusal.js'
import { requireFreeExternalData, requireLabels } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, byLabels, exact, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Href, Nullable, OneOf, Shape, Text } from '../validate/shape.js'
import { describeChanges } from './describe-changes.js'
import { collectHrefs } from './find-usage.js'
import type { PlainKind } from './plain-kind.js'
import { LEGACY_MODES } from './workload-shapes.js'

const Limit = Type.Union([Type.Integer({ minimum: 1, maximum: 2_147_483_647 }), Type.Literal('unlimited')])
const FIELDS = {
  name: Type.Optional(Type.String({ maxLength: 255 })),
  description: Type.Optional(Text),
  mode: Type.Optional(OneOf('idle', 'illuminated', 'enforced')),
  mode_lock: Type.Optional(Type.Boolean()),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  enforcement_mode_lock: Type.Optional(Type.Boolean()),
  allowed_uses_per_key: Type.Optional(Limit),
  key_lifespan: Type.Optional(Limit),
  labels: Type.Optional(Type.Array(Href)),
  role_label_lock: Type.Optional(Type.Boolean()),
  app_label_lock: Type.Optional(Type.Boolean()),
  env_label_lock: Type.Optional(Type.Boolean()),
  loc_label_lock: Type.Optional(Type.Boolean()),
  log_traffic: Type.Optional(Type.Boolean()),
  log_traffic_lock: Type.Optional(Type.Boolean()),
  visibility_level: Type.Optional(
    OneOf('flow_full_detail', 'flow_summary', 'flow_drops', 'flow_off', 'enhanced_data_collection'),
  ),
  visibility_level_lock: Type.Optional(Type.Boolean()),
  agent_software_release: Type.Optional(Nullable(Type.String())),
  ...EXTERNAL_DATA,
}

/** The only field of a pairing profile that a request can set at creation but not change later (P49). */
const VEN_TYPE = { ven_type: Type.Optional(OneOf('specified_during_activation', 'server', 'endpoint')) }
const CREATE = new Shape(
  'pairing_profiles_post',
  Type.Object({ enabled: Type.Boolean(), ...FIELDS, ...VEN_TYPE }, CLOSED),
)
const UPDATE = new Shape(
  'pairing_profiles_put',
  Type.Object({ enabled: Type.Optional(Type.Boolean()), ...FIELDS }, CLOSED),
)

const DEFAULTS = {
  name: '',
  description: '',
  mode: 'illuminated',
  enforcement_mode: 'visibility_only',
  enforcement_mode_lock: true,
  visibility_level: 'flow_summary',
  visibility_level_lock: true,
  status: 'active',
  total_use_count: 0,
  allowed_uses_per_key: 'unlimited',
  key_lifespan: 'unlimited',
  last_pairing_at: null,
  last_pairing_key_generated_at: null,
  last_pairing_key_generated_by: null,
  labels: [] as { href: string }[],
  role_label_lock: true,
  app_label_lock: true,
  env_label_lock: true,
  loc_label_lock: true,
  mode_lock: true,
  log_traffic: true,
  log_traffic_lock: true,
  agent_software_release: null,
  ven_type: 'server',
  external_data_set: null,
  external_data_reference: null,
}

export const DEFAULT_PROFILE = { ...DEFAULTS, name: 'Default (Servers)', enabled: true, is_default: true }

/** The object kind for pairing profiles (P24). */
export const pairingProfile: PlainKind = {
  segment: 'pairing_profiles',
  noun: 'pairing_profile',
  ids: 'int',
  store: (world) => world.pairingProfiles,
  filters: {
    name: partial('name'),
    description: partial('description'),
    labels: byLabels((object) => [collectHrefs(object.labels)]),
    agent_software_release: exact('agent_software_release'),
    ven_type: exact('ven_type'),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const fields = CREATE.read(body)
    requireFreeExternalData(world.pairingProfiles.live(), fields)
    return {
      ...DEFAULTS,
      ...fields,
      ...modesOf(fields),
      is_default: false,
      labels: requireLabels(world, fields.labels ?? []),
    }
  },

  change(world, current, body) {
    const fields = UPDATE.read(body)
    const others = world.pairingProfiles.live().filter((other) => other.href !== current.href)
    requireFreeExternalData(others, { ...current, ...fields })
    const labels = fields.labels ? { labels: requireLabels(world, fields.labels) } : {}
    return { ...fields, ...modesOf(fields), ...labels }
  },

  remove(_world, current) {
    if (current.is_default === true) throw invalidInput('The default pairing profile cannot be deleted')
    return null
  },

  render(_world, object) {
    return { ...object, caps: ['write', 'generate_pairing_key'] }
  },
}

/**
 * Brings `enforcement_mode` and the older field `mode` into agreement. If both are given, `enforcement_mode` takes
 * precedence.
 */
function modesOf(fields: { mode?: string; enforcement_mode?: string }): { mode?: string; enforcement_mode?: string } {
  if (fields.enforcement_mode === undefined && fields.mode === undefined) return {}
  const enforcement_mode = fields.enforcement_mode ?? LEGACY_MODES[fields.mode!]!
  return { enforcement_mode, mode: Object.entries(LEGACY_MODES).find(([, mode]) => mode === enforcement_mode)![0] }
}

/**
 * The routes of pairing keys. A key is only shown when it is created; the profile records when the last key was
 * created, and by whom (P24, P40).
 */
export const pairingKeyRoutes: Route[] = [
  {
    path: '/orgs/:org/pairing_profiles/:id/pairing_key',
    verbs: {
      POST: {
        event: 'pairing_profile.create_pairing_key',
        handle: (call) => {
          const { world } = call
          const profile = requireProfile(call)
          if (profile.enabled !== true) throw invalidInput('The pairing profile is disabled')
          const last_pairing_key_generated_by = { href: world.user.href }
          const fields = { last_pairing_key_generated_at: world.now(), last_pairing_key_generated_by }
          world.pairingProfiles.set({ ...profile, ...fields })
          return {
            status: 201,
            json: { activation_code: world.ids.hex('pairing-key', 64) },
            changes: [{ resource: nameProfile(profile), type: 'update', changes: describeChanges(profile, fields) }],
          }
        },
      },
    },
  },
  {
    path: '/orgs/:org/pairing_profiles/:id/pairing_keys',
    verbs: {
      DELETE: {
        event: 'pairing_profile.delete_pairing_keys',
        handle: (call) => ({
          status: 204,
          changes: [{ resource: nameProfile(requireProfile(call)), type: 'update' }],
        }),
      },
    },
  },
]

function requireProfile({ world, path }: Call): PceObject {
  const profile = world.pairingProfiles.get(path.replace(/\/pairing_keys?$/, ''))
  if (!profile) throw notFound()
  return profile
}

function nameProfile({ href, name }: PceObject): Json {
  return { pairing_profile: { href, name } }
}
