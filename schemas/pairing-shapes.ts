import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from './common.js'
import { LabelOut, LabelReference, LabelsOut } from './label-reference.js'
import { ENFORCEMENT_MODES } from './pce/enforcement-modes.js'

/** Creates the schema of a limit: a number, or the word `unlimited`. tools/list shows only the number (D243). */
const LimitInput = (description: string) => Type.Optional(Type.Union([Type.Integer(), Type.String()], { description }))

/** The arguments for the settings of a pairing profile, which apply to the machines that pair with its keys. */
export const PairingProfileInput = {
  enforcement_mode: Type.Optional(StringEnum(ENFORCEMENT_MODES, { description: 'Of new machines', listed: '' })),
  enforcement_mode_lock: Type.Optional(Type.Boolean({ description: 'Fixed by the profile' })),
  labels: Type.Optional(Type.Array(LabelReference, { maxItems: 50, description: 'All, of new machines' })),
  key_lifespan: LimitInput('Of its keys, in seconds, or unlimited'),
  allowed_uses_per_key: LimitInput('Machines per key, or unlimited'),
  enabled: Type.Optional(Type.Boolean({ description: 'Whether its keys work' })),
}

/** The form in which answers show a pairing profile that has just been written. */
export const PairingProfileOut = Type.Object({
  href: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  enforcement_mode: Nullable(Type.String()),
  enforcement_mode_lock: Nullable(Type.Boolean({ description: 'Fixed by the profile' })),
  labels: LabelsOut(LabelOut, 'Labels of new workloads, key=value'),
  key_lifespan: Nullable(
    Type.Union([Type.Integer(), Type.String()], { description: 'Of its keys, in seconds, or unlimited' }),
  ),
  allowed_uses_per_key: Nullable(
    Type.Union([Type.Integer(), Type.String()], { description: 'Machines per key, or unlimited' }),
  ),
  total_use_count: Nullable(Type.Integer({ description: 'Machines that have paired with it' })),
  last_pairing_at: Nullable(Type.String({ description: 'Latest use of one of its keys, UTC' })),
  last_pairing_key_generated_at: Nullable(Type.String({ description: 'When its latest key was made, UTC' })),
})
export type PairingProfileOut = Static<typeof PairingProfileOut>
