/** The only door of the PCE client: `createPceClient` and the types and errors that belong to it. */
import type { NamedOperations } from './operations/index.js'
import type { ObjectApis, PceTransport } from './types.js'

export { PceError, PceApiError, PceIntegerError } from './errors.js'
export type { PceApiErrorItem, PceErrorCode } from './errors.js'
export { createPceClient } from './client.js'
export type * from './types.js'
export type * from './operations/index.js'
export type { TypedPendingChange } from '../schemas/pce/policy.js'

/** A client of one PCE organisation with one set of credentials. */
export type PceClient = PceTransport & NamedOperations & ObjectApis
