import { Type } from '@sinclair/typebox'

/** The exact name of the object that a call is about. A name that two objects have names neither (D224). */
export const ByName = Type.Optional(Type.String({ minLength: 1, description: 'If unique' }))

/** As `ByName`, for workloads, which are found by their host's name as well. */
export const ByNameOrHost = Type.Optional(Type.String({ minLength: 1, description: 'Or host name, if unique' }))
