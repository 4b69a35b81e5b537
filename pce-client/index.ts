/** The only door of the PCE client: `createPceClient` and the types and errors that belong to it. */
export { PceError, PceApiError, PceIntegerError } from './errors.js'
export type { PceApiErrorItem, PceErrorCode } from './errors.js'
export { createPceClient, type PceClient } from './client.js'
export { connectRemoteClient, serveClient } from './remote.js'
export type { RemoteAddress, SentWrite, ServedClient } from './remote.js'
export type * from './types.js'
export type * from './operations/index.js'
export type { TypedPendingChange } from '../schemas/pce/policy.js'
