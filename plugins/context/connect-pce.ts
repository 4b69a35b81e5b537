import {
  createPceClient,
  guardClient,
  PceError,
  type PceClient,
  type PceClientOptions,
} from '../../pce-client/index.js'
import { inWords, StartupError, type Fault, type PceFromEnvironment } from '../../schemas/config.js'

/** The functions through which a PCE client finds out for which tool call it is currently working. */
export interface CurrentCall {
  /** Returns the request id of the current call; undefined outside a call. */
  readonly requestId: () => string | undefined
  /** Records an answer of the PCE: its status, and the PCE's own request id. */
  readonly noteAnswer: (answer: { status: number; requestId?: string }) => void
  /** Observes every request to the PCE; absent if nothing needs to observe them. */
  readonly onRequest?: PceClientOptions['onRequest']
  /**
   * Resolves if the current call may send a change to the PCE; otherwise, rejects with PceError. Absent if every call
   * may send changes.
   */
  readonly mayWrite?: () => Promise<void>
}

export interface RetryLog {
  warn(facts: object, message: string): void
}

/**
 * Creates a PCE client for one key. The client does not connect yet, so that an unreachable PCE does not prevent the
 * server from starting (D8). Each request carries the id of the call for which it is sent, retries are logged, and the
 * request ids in the PCE's answers are recorded for the call. Throws StartupError for settings that the client refuses,
 * including unreadable files.
 *
 * @param more further options of the client.
 */
export function connectPce(
  pce: PceFromEnvironment,
  call: CurrentCall,
  log: RetryLog,
  more: Pick<PceClientOptions, 'lookup' | 'checkPeer' | 'hideReasons' | 'retryCount' | 'timers'> = {},
): PceClient {
  const { url, port, orgId, bounds } = pce
  const options: PceClientOptions = {
    ...more,
    url,
    port,
    orgId,
    ...(bounds && {
      maxAnswerMib: bounds.answerMib,
      maxListMib: bounds.listMib,
      totalTimeout: bounds.timeoutSeconds,
    }),
    requestId: call.requestId,
    onRetry: (event) => log.warn({ request_id: call.requestId(), ...event }, 'PCE request retried'),
    onAnswer: call.noteAnswer,
    ...(call.onRequest && { onRequest: call.onRequest }),
  }
  const client = createOrRefuse(options)
  client.setCredentials(pce.apiKey, pce.apiSecret)
  const faults = equip(client, pce)
  if (faults.length > 0) throw new StartupError(...faults)
  const { mayWrite } = call
  return mayWrite === undefined ? client : guardClient(client, mayWrite)
}

/**
 * Returns the problems with the certificates and the proxy for connections to PCEs, so that they can be reported
 * together with other faults. It reads the files but does not connect.
 */
export const findPceFaults = (means: Means): Fault[] => equip(createPceClient({ url: 'pce.invalid' }), means)

type Means = Pick<PceFromEnvironment, 'tls' | 'proxyUrl'>

function createOrRefuse(options: PceClientOptions): PceClient {
  try {
    return createPceClient(options)
  } catch (error) {
    throw new StartupError(toFault(error, 'PCE_HOST', 'Write a host, or a URL such as https://pce.example.com:8443.'))
  }
}

/** Sets a client's certificates and proxy, and returns a fault for each variable whose value cannot be used. */
function equip(client: PceClient, { tls, proxyUrl }: Means): Fault[] {
  const { verify, caFile, clientCertFile: cert, clientKeyFile: key } = tls
  const trusted = verify && (caFile ?? true)
  const pair = cert !== undefined && key !== undefined ? ([cert, key] as const) : cert
  const attempt = (run: () => void, variable: string, remedy: string): Fault[] => {
    try {
      run()
      return []
    } catch (error) {
      return [toFault(error, variable, remedy)]
    }
  }
  const ofTrust = attempt(() => client.setTlsSettings(trusted), 'PCE_CA_FILE', REMEDIES.ca)
  const isTrustUsable = ofTrust.length === 0
  const files = key === undefined ? 'PCE_CLIENT_CERT_FILE' : 'PCE_CLIENT_CERT_FILE, PCE_CLIENT_KEY_FILE'
  return [
    ...ofTrust,
    ...(pair === undefined
      ? []
      : attempt(() => client.setTlsSettings(isTrustUsable ? trusted : true, pair), files, REMEDIES.pair)),
    ...(proxyUrl === undefined
      ? []
      : attempt(() => client.setProxies(proxyUrl, proxyUrl), 'PCE_PROXY_URL', REMEDIES.proxy)),
  ]
}

const REMEDIES = {
  ca: "Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
  pair: 'Give PEM files: the certificate, and its own private key without a passphrase, in the same file or in PCE_CLIENT_KEY_FILE.',
  proxy:
    'Write the URL of the proxy, such as http://proxy.example.com:3128; in a user name or password % is written %25.',
}

/** Converts an error to a fault of a setting; throws it again if no setting caused it. */
function toFault(error: unknown, variable: string, remedy: string): Fault {
  if (!(error instanceof PceError)) throw error
  const { message, reason } = error
  const isOfSystem = reason !== undefined && message.endsWith(`: ${reason}`)
  const said = isOfSystem ? `${message.slice(0, -reason.length)}${inWords({ code: reason })}` : message
  return { problem: `${variable}: ${said}`, remedy }
}
