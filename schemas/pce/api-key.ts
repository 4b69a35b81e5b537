import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { PermissionScope } from './access.js'
import { Maybe, MaybeList, MaybeNumber, MaybeText, Reference, type Read } from './reference.js'

const KEY_FIELDS = {
  href: Type.String(),
  key_id: Type.String(),
  /** The user part of Basic credentials. */
  auth_username: Type.String(),
  description: MaybeText,
}

/** A key as its owner lists it; no list has secrets. */
export const UserApiKey = Type.Object({ ...KEY_FIELDS, name: Type.String(), created_at: Type.String() })
export type UserApiKey = Read<typeof UserApiKey>

/** A key as the organisation lists it, with the account it belongs to. */
export const OrgApiKey = Type.Object({
  ...KEY_FIELDS,
  /** Keys of service accounts have none. */
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

/** A new key. Its secret is answered here and never again. */
export const CreatedApiKey = Type.Object({
  key_id: Type.String(),
  auth_username: Type.String(),
  secret: Type.String(),
  href: Type.Optional(Type.String()),
  name: MaybeText,
  description: MaybeText,
})
export type CreatedApiKey = Read<typeof CreatedApiKey>
