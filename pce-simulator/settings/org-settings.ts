import { Type } from '@sinclair/typebox'
import type { SingleKind } from '../kinds/single-kind.js'
import { CLOSED, Nullable, OneOf, Shape } from '../validate/shape.js'

const Flag = Type.Optional(Type.Boolean())
const AddressSpace = Type.Optional(Nullable(Type.Integer({ minimum: 0 })))
const Weekday = OneOf('sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday')
const Schedule = Type.Object(
  {
    schedule_time: Type.Optional(Type.String()),
    frequency: Type.Optional(OneOf('daily', 'weekly', 'monthly')),
    day_of_week: Type.Optional(Type.Array(Weekday)),
    day_of_month: Type.Optional(Type.Integer({ minimum: 1, maximum: 31 })),
  },
  CLOSED,
)
const UPDATE = new Shape(
  'settings_put',
  Type.Object(
    {
      num_assets_requiring_ransomware_protection: Type.Optional(Type.Integer({ minimum: 1, maximum: 9_999_999 })),
      total_lateral_address_space: AddressSpace,
      total_internet_address_space: AddressSpace,
      automatic_label_application_on_ven_activation: Flag,
      rule_based_label_maker_schedule_enabled: Flag,
      rule_based_label_maker_schedule: Type.Optional(Nullable(Schedule)),
      max_api_key_expiration_in_seconds: Type.Optional(Type.Integer({ minimum: -1, maximum: 2_147_483_647 })),
      expired_api_keys_retention_in_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 31_536_000 })),
      advanced_ruleset_display: Flag,
      ven_maintenance_token_required: Flag,
      cloud_secure_tenant_id: Type.Optional(Type.String()),
    },
    CLOSED,
  ),
)

/** 90 days: how long API keys live unless told otherwise (P2). */
const DEFAULT_KEY_LIFETIME = 7_776_000

/** The organisation as a whole (P12, P49); its path is the beginning of those of the other settings. */
export const orgSettings: SingleKind = {
  route: '/orgs/:org/settings',
  noun: 'org_settings',
  defaults: {
    num_assets_requiring_ransomware_protection: null,
    total_lateral_address_space: null,
    total_internet_address_space: null,
    automatic_label_application_on_ven_activation: false,
    rule_based_label_maker_schedule_enabled: false,
    rule_based_label_maker_schedule: null,
    max_explorer_query_timespan_days: 97,
    max_api_key_expiration_in_seconds: DEFAULT_KEY_LIFETIME,
    expired_api_keys_retention_in_seconds: DEFAULT_KEY_LIFETIME,
    advanced_ruleset_display: true,
    ven_maintenance_token_required: false,
    cloud_secure_tenant_id: '',
    use_census_permissions: false,
    max_rule_search_provider_consumer_entities: 8,
  },
  shape: UPDATE,
}
