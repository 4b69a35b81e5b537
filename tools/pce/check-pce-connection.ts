import { Type } from '@sinclair/typebox'
import { PceApiError, PceError, type PceClient, type RequestOptions } from '../../pce-client/index.js'
import { connectionHint } from '../../schemas/errors.js'
import { defineTool } from '../define.js'
import { withDetails } from '../../domain/inventory/pce-errors.js'

/**
 * Time limit of the check in milliseconds. It is shorter than the client's usual limit, because the caller waits only
 * for a yes or no.
 */
const LONGEST_WAIT_MS = 20_000
const NETWORK_HINT = 'Check host, port, TLS settings and proxy.'

export default defineTool({
  name: 'check-pce-connection',
  summary: 'Whether the PCE answers and accepts the credentials.',
  effect: 'read',
  reads: 'shown',
  toolset: 'server',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object({}, { additionalProperties: false }),
  output: Type.Object({
    connected: Type.Boolean({ description: 'Always true; a failure is an error' }),
    pce_host: Type.String({ description: 'Host name' }),
    pce_port: Type.Integer({ description: 'Port' }),
    org_id: Type.String({ description: 'Organisation' }),
    version: Type.Optional(Type.String({ description: 'PCE release, where it tells' })),
    latency_ms: Type.Integer({ description: 'Round trip of one request' }),
  }),
  example: {},
  async handler(_args, ctx) {
    const { pce } = ctx
    const where = describePce(pce)
    const startedAt = ctx.now()
    // A time limit of the client is used instead of an abort signal, because the error then shows whether the PCE
    // answered at all, for example with 502.
    const inTime = () => ({
      signal: ctx.signal,
      totalTimeoutMs: Math.max(1, LONGEST_WAIT_MS - (ctx.now() - startedAt)),
    })
    try {
      await askHealth(pce, inTime())
      const askedAt = ctx.now()
      await pce.get('settings/workloads', inTime())
      const latency = ctx.now() - askedAt
      const version = await askVersion(pce, inTime())
      await ctx.credentials.noteCheck()
      return { connected: true, ...where, ...(version !== undefined && { version }), latency_ms: latency }
    } catch (error) {
      if (!(error instanceof PceError)) throw error
      const latency = ctx.now() - startedAt
      const hint = hintFor(error)
      if (!ctx.signal.aborted) await ctx.credentials.noteCheck(reasonFor(error))
      throw withDetails(error, { connected: false, ...where, latency_ms: latency }, hint)
    }
  },
})

function describePce(pce: PceClient) {
  const { hostname, port, protocol } = new URL(pce.origin)
  const defaultPort = protocol === 'http:' ? 80 : 443
  return { pce_host: hostname, pce_port: port === '' ? defaultPort : Number(port), org_id: pce.orgId }
}

/** Requests /health. Some PCEs do not have it, so its absence says nothing about the connection (D22). */
async function askHealth(pce: PceClient, options: RequestOptions): Promise<void> {
  try {
    await pce.get('health', { ...options, includeOrg: false })
  } catch (error) {
    if (!(error instanceof PceApiError && error.status === 404)) throw error
  }
}

/** Reads the PCE's release, which is useful to know but does not affect the result of the check. */
async function askVersion(pce: PceClient, options: RequestOptions): Promise<string | undefined> {
  try {
    const { version } = (await pce.getProductVersion(options)) as { version?: unknown }
    return typeof version === 'string' ? version : undefined
  } catch {
    return undefined
  }
}

/** Describes why the check failed. Nothing that the PCE sent is quoted, because it would first have to be made safe. */
const reasonFor = (error: PceError): string =>
  error instanceof PceApiError
    ? (hintFor(error) ?? `The PCE answered with HTTP status ${error.status}.`)
    : `No PCE could be reached. ${NETWORK_HINT}`

function hintFor(error: PceError): string | undefined {
  if (!(error instanceof PceApiError)) return connectionHint(error) ?? NETWORK_HINT
  if (error.status === 401) return 'The PCE does not accept the API key and secret.'
  if (error.status === 403) return 'The key is valid, but not for this organisation, or its role may not read.'
  if (error.status === 404) return 'Something else answers there, most likely, and no PCE: check host and port.'
  if (error.status === 429) return 'The PCE is limiting the request rate: wait before the next call.'
  if (error.status >= 500) return 'The address answers, but the PCE, or a proxy in front of it, fails.'
  return undefined
}
