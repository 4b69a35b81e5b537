import { Type, type Static } from '@sinclair/typebox'

/** Body of GET /.well-known/oauth-protected-resource (RFC 9728, 2). */
export const ProtectedResource = Type.Object({
  resource: Type.String(),
  authorization_servers: Type.Array(Type.String()),
  scopes_supported: Type.Array(Type.String()),
  bearer_methods_supported: Type.Array(Type.Literal('header')),
  resource_name: Type.String(),
})
export type ProtectedResource = Static<typeof ProtectedResource>
