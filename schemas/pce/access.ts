import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { LabelGroupRef, LabelRef } from './label.js'
import {
  AnyFields,
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

/** Addresses that users and keys may come from. */
export const AccessRestriction = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  description: MaybeText,
  ips: List(Type.String()),
  enforcement_exclusions: MaybeList(OneOf('user_sessions', 'api_keys')),
})
export type AccessRestriction = Read<typeof AccessRestriction>

/** A user or group that permissions are given to. */
export const AuthSecurityPrincipal = Type.Object({
  ...OBJECT_FIELDS,
  type: OneOf('user', 'group', 'service_account'),
  name: Nullable(Type.String()),
  display_name: MaybeText,
  uuid: MaybeText,
  access_restriction: Maybe(Reference),
})
export type AuthSecurityPrincipal = Read<typeof AuthSecurityPrincipal>

/** What a permission is limited to; an empty list is everything. */
export const PermissionScope = Type.Array(
  Type.Object({ label: Type.Optional(LabelRef), label_group: Type.Optional(LabelGroupRef) }),
)

/** A role, within a scope, of one principal. */
export const Permission = Type.Object({
  ...OBJECT_FIELDS,
  role: Reference,
  scope: PermissionScope,
  auth_security_principal: Reference,
})
export type Permission = Read<typeof Permission>

/** Known by its href alone, which ends in the role's name. */
export const Role = Type.Object(OBJECT_FIELDS)
export type Role = Read<typeof Role>

/** A Windows user group, by its SID; rules name them as consumers. */
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

/** An account for programs. The secret of its first key is answered once, on creation, in `api_key`. */
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

/** A person. Who may not see the rest gets href, display_name and permissions. */
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
