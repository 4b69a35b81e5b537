import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { LabelGroupRef, LabelRef } from './label.js'
import {
  AnyFields,
  Author,
  AUDIT_FIELDS,
  List,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  type Read,
} from './reference.js'
import { ProductVersion } from './status.js'

/** An access restriction: the IP addresses from which users and API keys may connect. */
export const AccessRestriction = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  description: MaybeText,
  ips: List(Type.String()),
  enforcement_exclusions: MaybeList(OneOf('user_sessions', 'api_keys')),
})
export type AccessRestriction = Read<typeof AccessRestriction>

/** A user, group or service account to which permissions can be given. */
export const AuthSecurityPrincipal = Type.Object({
  ...OBJECT_FIELDS,
  type: OneOf('user', 'group', 'service_account'),
  name: Nullable(Type.String()),
  display_name: MaybeText,
  uuid: MaybeText,
  access_restriction: Maybe(Reference),
})
export type AuthSecurityPrincipal = Read<typeof AuthSecurityPrincipal>

/** The labels and label groups to which a permission is limited; an empty list means no limit. */
export const PermissionScope = Type.Array(
  Type.Object({ label: Type.Optional(LabelRef), label_group: Type.Optional(LabelGroupRef) }),
)

/** A permission, which gives one principal a role within a scope. */
export const Permission = Type.Object({
  ...OBJECT_FIELDS,
  role: Reference,
  scope: PermissionScope,
  auth_security_principal: Reference,
})
export type Permission = Read<typeof Permission>

/** A role. It has only an href, which ends with the role's name. */
export const Role = Type.Object(OBJECT_FIELDS)
export type Role = Read<typeof Role>

/** A Windows user group, identified by its SID; rules can name it as a consumer. */
export const SecurityPrincipal = Type.Object({
  ...OBJECT_FIELDS,
  id: MaybeNumber,
  sid: Type.String(),
  name: Type.String(),
  description: MaybeText,
  deleted: Type.Boolean(),
  used_by_ruleset: Type.Boolean(),
  members: MaybeList(Type.Integer()),
})
export type SecurityPrincipal = Read<typeof SecurityPrincipal>

const AccountKey = Type.Object({
  key_id: Type.String(),
  auth_username: Type.String(),
  state: Type.Optional(Type.String()),
  expires_in_seconds: MaybeNumber,
  last_login_on: MaybeText,
})

/**
 * An account for programs. The secret of its first API key is returned only once, in `api_key`, when the account is
 * created.
 */
export const ServiceAccount = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  description: MaybeText,
  access_restriction: Maybe(Reference),
  permissions: List(Type.Object({ href: Type.Optional(Type.String()), role: Reference, scope: PermissionScope })),
  api_keys: List(AccountKey),
  api_key: Type.Optional(Type.Object({ key_id: Type.String(), auth_username: Type.String(), secret: Type.String() })),
})
export type ServiceAccount = Read<typeof ServiceAccount>

/** A person who uses the PCE. Callers with limited rights see only href, display_name and permissions. */
export const User = Type.Object({
  ...OBJECT_FIELDS,
  id: MaybeNumber,
  username: Type.Optional(Type.String()),
  display_name: MaybeText,
  full_name: MaybeText,
  type: Type.Optional(Type.String()),
  time_zone: MaybeText,
  locked: MaybeFlag,
  presence_status: MaybeText,
  login_count: MaybeNumber,
  last_login_on: MaybeText,
  last_login_ip_address: MaybeText,
  effective_groups: MaybeList(Type.String()),
  local_profile: Maybe(AnyFields),
  permissions: MaybeList(Permission),
})
export type User = Read<typeof User>

const KEY_FIELDS = {
  href: Type.String(),
  key_id: Type.String(),
  /** The user name that is sent in Basic credentials together with the secret of the API key. */
  auth_username: Type.String(),
  description: MaybeText,
}

/** An API key in the list of its owner's keys; no list contains secrets. */
export const UserApiKey = Type.Object({ ...KEY_FIELDS, name: Type.String(), created_at: Type.String() })
export type UserApiKey = Read<typeof UserApiKey>

/** An API key in the list of all keys of the organisation, with the account to which it belongs. */
export const OrgApiKey = Type.Object({
  ...KEY_FIELDS,
  /** The name of the API key; API keys of service accounts have none. */
  name: Maybe(Type.String()),
  state: Type.Optional(Type.String()),
  expires_in_seconds: MaybeNumber,
  created_at: Type.String(),
  created_by: Maybe(Reference),
  last_login_on: MaybeText,
  account: Type.Optional(
    Type.Object({
      href: Type.String(),
      type: Type.String(),
      name: Nullable(Type.String()),
      access_restriction: Maybe(Reference),
      permissions: MaybeList(
        Type.Object({ href: Type.Optional(Type.String()), role: Reference, scope: PermissionScope }),
      ),
    }),
  ),
})
export type OrgApiKey = Read<typeof OrgApiKey>

/** A new API key. Its secret is returned only at this moment and never again. */
export const CreatedApiKey = Type.Object({
  key_id: Type.String(),
  auth_username: Type.String(),
  secret: Type.String(),
  href: Type.Optional(Type.String()),
  name: MaybeText,
  description: MaybeText,
})
export type CreatedApiKey = Read<typeof CreatedApiKey>

/**
 * A logged-in user: `auth_username` and `session_token` serve as Basic credentials until the session has been idle for
 * too long.
 */
export const LoginSession = Type.Object({
  href: Type.Optional(Type.String()),
  auth_username: Type.Optional(Type.String()),
  session_token: Type.String(),
  inactivity_expiration_minutes: MaybeNumber,
  full_name: MaybeText,
  type: MaybeText,
  time_zone: MaybeText,
  last_login_on: MaybeText,
  last_login_ip_address: MaybeText,
  orgs: MaybeList(Type.Unknown()),
  product_version: Type.Optional(ProductVersion),
})
export type LoginSession = Read<typeof LoginSession>

const AUTHORS = { created_by: Maybe(Author), updated_by: Maybe(Author) }
/** The settings that decide how users of this PCE log in. */
export const AuthenticationSettings = Type.Object({ ...AUDIT_FIELDS, authentication_type: Type.String() })
export type AuthenticationSettings = Read<typeof AuthenticationSettings>

/** A directory server. The PCE never returns its bind password. */
export const LdapConfig = Type.Object({
  ...OBJECT_FIELDS,
  ...AUTHORS,
  pce_fqdn: Type.String(),
  name: MaybeText,
  address: Type.String(),
  port: Type.Integer(),
  authentication_method: Type.String(),
  request_timeout_seconds: Type.Integer(),
  bind_distinguished_name: MaybeText,
  is_bind_password_set: Type.Boolean(),
  user_base_distinguished_name: Type.String(),
  user_distinguished_name_pattern: MaybeText,
  user_base_filter: MaybeText,
  username_attribute: Type.String(),
  full_name_attribute: MaybeText,
  user_memberof_attribute: MaybeText,
  tls_ca_bundle: MaybeText,
  insecure_disable_tls_certificate_verification: Type.Boolean(),
})
export type LdapConfig = Read<typeof LdapConfig>

/** An identity provider through which users of the PCE can log in. */
export const SamlConfig = Type.Object({
  ...OBJECT_FIELDS,
  ...AUTHORS,
  cluster_fqdn: Type.String(),
  idp_sso_target_url: Type.String(),
  idp_slo_target_url: Type.String(),
  idp_cert: Type.String(),
  issuer: Type.String(),
  consumer_service_url: Type.String(),
  consumer_logout_url: Type.String(),
  name_identifier_format: MaybeText,
  authn_context: Type.String(),
  force_authn: Type.Boolean(),
  sign_authn_request: Type.Boolean(),
  pce_signing_cert: MaybeText,
  pce_signing_cert_expires_at: MaybeText,
})
export type SamlConfig = Read<typeof SamlConfig>

/** The rules for passwords of local users, including how long passwords are valid. */
export const PasswordPolicy = Type.Object({
  ...AUDIT_FIELDS,
  updated_by: Maybe(Author),
  require_type_number: Type.Boolean(),
  require_type_lowercase: Type.Boolean(),
  require_type_uppercase: Type.Boolean(),
  require_type_symbol: Type.Boolean(),
  min_characters_per_type: Type.Integer(),
  min_length: Type.Integer(),
  min_changed_characters: Type.Integer(),
  history_count: Type.Integer(),
  expire_time_days: Type.Integer(),
  session_timeout_minutes: Type.Integer(),
})
export type PasswordPolicy = Read<typeof PasswordPolicy>
