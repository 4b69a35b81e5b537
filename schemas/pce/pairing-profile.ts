import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { ENFORCEMENT_MODES } from './enforcement-mode.js'
import { LabelRef } from './label.js'
import { EXTERNAL_FIELDS, List, MaybeFlag, MaybeText, OBJECT_FIELDS, OneOf, Reference, type Read } from './reference.js'

/** A number, or the word unlimited. */
const Limit = Type.Union([Type.Integer(), Type.String()])

/** What VENs that pair with its keys start with (P24). */
export const PairingProfile = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Nullable(Type.String()),
  description: MaybeText,
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  status: Type.Optional(Type.String()),
  mode: OneOf('idle', 'illuminated', 'enforced', 'selective'),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.String(),
  log_traffic: Type.Boolean(),
  labels: List(LabelRef),
  role_label_lock: Type.Boolean(),
  app_label_lock: Type.Boolean(),
  env_label_lock: Type.Boolean(),
  loc_label_lock: Type.Boolean(),
  mode_lock: Type.Boolean(),
  enforcement_mode_lock: MaybeFlag,
  visibility_level_lock: Type.Boolean(),
  log_traffic_lock: Type.Boolean(),
  status_lock: MaybeFlag,
  allowed_uses_per_key: Limit,
  /** Seconds. */
  key_lifespan: Limit,
  total_use_count: Type.Integer(),
  last_pairing_at: Nullable(Type.String()),
  last_pairing_key_generated_at: Nullable(Type.String()),
  last_pairing_key_generated_by: Nullable(Reference),
  agent_software_release: MaybeText,
  ven_type: Type.Optional(OneOf('specified_during_activation', 'server', 'endpoint')),
})
export type PairingProfile = Read<typeof PairingProfile>
