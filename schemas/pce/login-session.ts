import { Type } from '@sinclair/typebox'
import { MaybeList, MaybeNumber, MaybeText, type Read } from './reference.js'
import { ProductVersion } from './status.js'

/** A logged-in user: `auth_username` and `session_token` are Basic credentials until the session has been idle too long. */
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
