import { Type } from '@sinclair/typebox'

/**
 * The exact name of the object that a call is about. A name that two objects share identifies neither of them (D224).
 */
export const ByName = Type.Optional(Type.String({ minLength: 1, description: 'If unique' }))

/** Like `ByName`, but for workloads, which may also be named by their host name. */
export const ByNameOrHost = Type.Optional(
  Type.String({ minLength: 1, description: 'Or host name, if unique', listed: 'Or host name' }),
)
