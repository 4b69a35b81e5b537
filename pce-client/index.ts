/**
 * The public interface of the PCE client: `createPceClient` with its types and errors. Other folders import only this
 * file.
 */
export { PceError, PceApiError, PceIntegerError } from './errors.js'
export type { PceApiErrorItem, PceErrorCode } from './errors.js'
export { createPceClient, loadHttp, type PceClient } from './client.js'
export { guardClient, type PlannedWrite } from './guard-client.js'
export { connectRemoteClient, serveClient } from './remote.js'
export type { RemoteAddress, SentWrite, ServedClient } from './remote.js'
export type * from './types.js'
export type * from './operations/index.js'
export type { TypedPendingChange } from '../schemas/pce/policy.js'
