import { createPceClient, PceError, type PceClient, type RetryEvent } from '../pce-client/index.js'
import { StartupError, type PceFromEnvironment } from '../schemas/config.js'

/**
 * The PCE client of the environment's key. Nothing is connected yet: a PCE that does not answer stops no start-up (design
 * decision 8). Throws StartupError for settings the client refuses, files it cannot read included.
 *
 * @param requestId the X-Request-Id of the call that the current code works for.
 */
export function connectPce(
  pce: PceFromEnvironment,
  requestId: () => string | undefined,
  onRetry: (event: RetryEvent) => void,
): PceClient {
  try {
    const client = createPceClient({ url: pce.url, port: pce.port, orgId: pce.orgId, requestId, onRetry })
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
