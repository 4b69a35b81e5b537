import { Type } from '@sinclair/typebox'
import { AUDIT_FIELDS, Author, Maybe, MaybeText, OBJECT_FIELDS, type Read } from './reference.js'

const AUTHORS = { created_by: Maybe(Author), updated_by: Maybe(Author) }

/** How users of this PCE log in. */
export const AuthenticationSettings = Type.Object({ ...AUDIT_FIELDS, authentication_type: Type.String() })
export type AuthenticationSettings = Read<typeof AuthenticationSettings>

/** A directory server; its bind password is never answered. */
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

/** An identity provider. */
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

/** What passwords of local users must look like and how long they live. */
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
