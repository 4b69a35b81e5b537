import { Type } from '@sinclair/typebox'
import { BIRTH } from '../built-in-objects.js'
import type { Json } from '../model.js'
import type { SingleKind } from '../kinds/single-kind.js'
import { invalidInput } from '../refusal.js'
import { Shape } from '../validate/shape.js'

const TYPES = ['require_type_number', 'require_type_lowercase', 'require_type_uppercase', 'require_type_symbol']
const FEWEST_TYPES = 3

const Flag = Type.Optional(Type.Boolean())
const Count = Type.Optional(Type.Integer())
// Open, unlike nearly all request schemas (P49).
const UPDATE = new Shape(
  'authentication_settings_password_policy_put',
  Type.Object({
    require_type_number: Flag,
    require_type_lowercase: Flag,
    require_type_uppercase: Flag,
    require_type_symbol: Flag,
    min_characters_per_type: Count,
    min_length: Count,
    min_changed_characters: Count,
    history_count: Count,
    expire_time_days: Count,
    session_timeout_minutes: Count,
  }),
)

const DEFAULTS: Json = {
  require_type_number: true,
  require_type_lowercase: true,
  require_type_uppercase: true,
  require_type_symbol: false,
  min_characters_per_type: 1,
  min_length: 8,
  min_changed_characters: 1,
  history_count: 1,
  expire_time_days: 0,
  session_timeout_minutes: 10,
  updated_at: BIRTH,
  updated_by: { username: 'system' },
}

/** What passwords of local users must be like (P12, P31). */
export const passwordPolicy: SingleKind = {
  route: '/authentication_settings/password_policy',
  noun: 'password_policy',
  defaults: DEFAULTS,
  shape: UPDATE,
  change(world, current, sent) {
    const fields = Object.fromEntries(Object.entries(sent).filter(([name]) => name in UPDATE.schema.properties))
    const next: Json = { ...current, ...fields }
    if (TYPES.filter((type) => next[type] === true).length < FEWEST_TYPES) {
      throw invalidInput(`A password policy requires at least ${FEWEST_TYPES} character types`)
    }
    return { ...fields, updated_at: world.now(), updated_by: { username: world.user.username } }
  },
}
