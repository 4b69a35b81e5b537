import { setTimeout as wait } from 'node:timers/promises'
import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { ConnectionReport } from '../../schemas/credentials.js'

/** What answered is certainly a PCE, and this helps the one who registered: the rest would tell a stranger's network apart. */
const TOLD: Record<number, string> = {
  401: 'The PCE does not accept the API key and secret.',
  403: 'The PCE knows the key, but it is not for this organisation, or may not read its settings.',
}
const UNREACHABLE =
  'No PCE could be reached at this address. Check host, port, certificate and network; check-pce-connection tries again.'

/**
 * Tries the PCE once: its health and a request under the organisation. Whatever else than 401 and 403 goes wrong (no such name,
 * refused, filtered, no TLS, an unknown certificate, no PCE) gives the same words after the same time, so that a registration is of
 * no use as a port scanner (D48).
 *
 * @param ms how long a failure takes, and the longest a success may take.
 * @returns the report, and for the log why it is none of success.
 */
export async function tryConnection(
  client: PceClient,
  ms: number,
): Promise<{ report: ConnectionReport; cause?: unknown }> {
  const done = new AbortController()
  const timeUp = new AbortController()
  const deadline = wait(ms, undefined, { signal: done.signal })
    .then(() => timeUp.abort())
    .catch(() => undefined)
  try {
    await client.mustConnect({ signal: timeUp.signal })
    return { report: { ok: true } }
  } catch (cause) {
    const told = cause instanceof PceApiError ? TOLD[cause.status] : undefined
    if (told !== undefined) return { report: { ok: false, error: { code: 'pce_error', message: told } }, cause }
    await deadline
    return { report: { ok: false, error: { code: 'pce_unreachable', message: UNREACHABLE } }, cause }
  } finally {
    done.abort()
    client.close()
  }
}
