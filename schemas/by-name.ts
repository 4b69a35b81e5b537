import { Type } from '@sinclair/typebox'

/**
 * The exact name of the object that a call concerns. If several objects have this name, it identifies none of them
 * (D224).
 */
export const ByName = Type.Optional(Type.String({ minLength: 1, description: 'If unique' }))

/** Like `ByName`, but for workloads, which can also be identified by their host name. */
export const ByNameOrHost = Type.Optional(
  Type.String({ minLength: 1, description: 'Or host name, if unique', listed: 'Or host name' }),
)
