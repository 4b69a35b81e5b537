/** The only door of the PCE client: `createPceClient` and the types and errors that belong to it. */
import type {
  DefaultsOperations,
  ObjectApis,
  PceTransport,
  PolicyOperations,
  StatusOperations,
  TrafficOperations,
} from './types.js'

export { PceError, PceApiError, PceIntegerError } from './errors.js'
export type { PceApiErrorItem, PceErrorCode } from './errors.js'
export { createPceClient } from './client.js'
export type * from './types.js'

/** A client of one PCE organisation with one set of credentials. */
export type PceClient = PceTransport &
  TrafficOperations &
  PolicyOperations &
  StatusOperations &
  DefaultsOperations &
  ObjectApis
