import { randomUUID } from 'node:crypto'

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/

/**
 * The request id of one HTTP request: the proxy's `X-Request-Id` where it is plain, else a new UUID. Anything else, two headers
 * (which Node joins with a comma) included, would let a client write into logs and into the PCE's own log.
 */
export function acceptRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && ACCEPTABLE.test(header) ? header : randomUUID()
}
