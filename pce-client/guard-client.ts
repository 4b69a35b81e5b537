import { assembleClient, partsOf, type PceClient } from './client.js'
import { isChange } from './remote.js'
import type { Http } from './transport.js'

/** A request that would change something at the PCE, before it is sent. */
export interface PlannedWrite {
  method: string
  /** The path as it is requested, with or without the organisation. */
  path: string
  /** The JSON body of the request; undefined if there is none. */
  body: unknown
}

/**
 * Returns a client that asks `allow` before each request that would change something at the PCE, apart from the queries
 * and jobs that the client itself starts and deletes. If `allow` rejects, the request is not sent, and the operation
 * rejects with the same error. Everything that uses the client passes here: generic and named operations, plain
 * requests, and worker threads whose requests are served with it.
 */
export function guardClient(client: PceClient, allow: (write: PlannedWrite) => Promise<void>): PceClient {
  const { http, settings } = partsOf(client)
  const guarded: Http = {
    async send(method, endpoint, options) {
      if (isChange(method, endpoint)) {
        const body = options?.json ?? options?.text
        await allow({ method, path: endpoint, body })
      }
      return http.send(method, endpoint, options)
    },
    stream: (endpoint, options, sink) => http.stream(endpoint, options, sink),
    closeIdle: () => http.closeIdle(),
  }
  return assembleClient(guarded, settings)
}
