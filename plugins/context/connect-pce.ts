import { createPceClient, PceError, type PceClient, type PceClientOptions } from '../../pce-client/index.js'
import { StartupError, type PceFromEnvironment } from '../../schemas/config.js'

/** Which call the code of the moment works for. */
export interface CurrentCall {
  /** Undefined outside a call. */
  readonly requestId: () => string | undefined
  /** Notes the id that the PCE gave one of its answers. */
  readonly noteAnswer: (answer: { requestId?: string }) => void
}

export interface RetryLog {
  warn(facts: object, message: string): void
}

/**
 * A PCE client for one key. Nothing is connected yet: a PCE that does not answer stops no start-up (D8). Its requests carry the id
 * of the call they are made for, its retries are logged, the ids of its answers are noted with the call. Throws StartupError for
 * settings that the client refuses, unreadable files included.
 *
 * @param more further options of the client.
 */
export function connectPce(
  pce: PceFromEnvironment,
  call: CurrentCall,
  log: RetryLog,
  more: Pick<PceClientOptions, 'lookup' | 'checkPeer' | 'hideReasons' | 'retryCount'> = {},
): PceClient {
  const { url, port, orgId } = pce
  try {
    const client = createPceClient({
      ...more,
      url,
      port,
      orgId,
      requestId: call.requestId,
      onRetry: (event) => log.warn({ request_id: call.requestId(), ...event }, 'PCE request retried'),
      onAnswer: call.noteAnswer,
    })
    const { verify, caFile, clientCertFile, clientKeyFile } = pce.tls
    const cert =
      clientCertFile !== undefined && clientKeyFile !== undefined
        ? ([clientCertFile, clientKeyFile] as const)
        : clientCertFile
    client.setCredentials(pce.apiKey, pce.apiSecret)
    client.setTlsSettings(verify && (caFile ?? true), cert)
    if (pce.proxyUrl !== undefined) client.setProxies(pce.proxyUrl, pce.proxyUrl)
    return client
  } catch (error) {
    if (error instanceof PceError) throw new StartupError(`The PCE settings cannot be used: ${error.message}`)
    throw error
  }
}
