import { promises as dns } from 'node:dns'
import { isIPv6 } from 'node:net'
import type { PceClient } from '../pce-client/index.js'
import { createPcePool } from '../plugins/context/create-pce-pool.js'
import { createUserCredentials } from '../plugins/context/create-user-credentials.js'
import { createPceFinder } from '../plugins/context/find-pce.js'
import { inspectAgain } from '../plugins/context/inspect-again.js'
import { limitRegistrations } from '../plugins/context/limit-registrations.js'
import type { ConnectOptions, Keystore } from '../plugins/context/ports.js'
import type { CallScope } from '../plugins/dispatcher/call-scope.js'
import { pceGate } from '../plugins/dispatcher/gates/pce.js'
import type { ServiceLog } from '../plugins/dispatcher/record-call.js'
import { createPceHosts, type PceHosts, type PceHostsOptions } from '../plugins/context/pce-hosts/create-pce-hosts.js'
import { StartupError, type PceFromEnvironment, type PerUserConfig } from '../schemas/config.js'
import type { PceCredentials } from '../schemas/credentials.js'
import { ToolError } from '../schemas/errors.js'
import type { PceSource } from './pce-source.js'
import { connectPce } from './connect-pce.js'

export interface UserPcesParts {
  keystore: Keystore
  scope: CallScope
  log: ServiceLog
  /** Milliseconds since the epoch. */
  now: () => number
  /** Where this service listens, once it does. */
  own?: PceHostsOptions['own']
  /** The name service; the machine's own by default. */
  resolve?: PceHostsOptions['resolve']
  /** How long a registration takes that reaches no PCE, in milliseconds. */
  patienceMs?: number
}

type UserPcesConfig = Pick<PerUserConfig, 'userPce'> & { http: Pick<PerUserConfig['http'], 'publicUrl'> }

const PATIENCE_MS = 8000

/**
 * Every caller with a PCE key of their own, from the keystore (S14): looked up for each request, connected through the host guard,
 * pooled by caller and version of the credentials. Throws StartupError for TLS files and a proxy that no client can use.
 */
export function composeUserPces(config: UserPcesConfig, parts: UserPcesParts): Omit<PceSource, 'state'> {
  const { keystore, log, now, own, resolve = lookUp, patienceMs = PATIENCE_MS } = parts
  const setupUrl = `${config.http.publicUrl}/setup`
  const { allowedHosts, proxyUrl } = config.userPce
  const isProxied = proxyUrl !== undefined
  const hosts = createPceHosts({ allowed: allowedHosts, own, resolve, isProxied })
  const inspect = inspectAgain(hosts, now)
  const pool = createPcePool(now)
  const places = new WeakMap<PceClient, Place>()
  const connect = createConnect(config, { hosts, places }, setupUrl, parts)
  const findPce = createPceFinder({ keystore, pool, connect, log })
  const credentialsOf = createUserCredentials({
    keystore,
    hosts,
    pool,
    connect,
    limit: limitRegistrations(now),
    allowsInsecureTls: config.userPce.allowInsecureTls,
    isTlsChecked: (isWanted) => isTlsChecked(config.userPce, isWanted),
    setupUrl,
    patienceMs,
    log,
  })

  /** What keeps calls from a place that a proxy connects to; those that are made here have the guard before them. */
  async function findProblem({ host, port }: Place): Promise<ToolError | null> {
    try {
      const problem = await inspect(host, port)
      return problem === null ? null : notConnected(problem, setupUrl)
    } catch (error) {
      if (error instanceof ToolError) return error
      throw error
    }
  }

  return {
    async find({ iss, sub }, role) {
      const owner = { iss, sub }
      // Without a role no tool runs, so nobody's key is taken out of the keystore for it.
      const found = role === null ? { pce: null } : await findPce(owner, role)
      const place = found.pce === null ? undefined : places.get(found.pce)
      const pceProblem = isProxied && place ? await findProblem(place) : null
      const refused = pceProblem === null ? {} : { pce: null, pceProblem }
      return { ...found, ...refused, credentials: credentialsOf(owner) }
    },
    gate: pceGate(
      `Register your PCE API key at ${setupUrl} in a browser, where no model sees it; register-pce-credentials works too.`,
      { setup_path: '/setup', setup_url: setupUrl },
    ),
    close: () => pool.close(),
  }
}

const lookUp: PceHostsOptions['resolve'] = (hostname, options) => dns.lookup(hostname, options)

/** Whether a certificate is checked in the end: what the operator has switched off, or forbidden since the registration, counts. */
const isTlsChecked = ({ tls, allowInsecureTls }: UserPcesConfig['userPce'], isWanted: boolean) =>
  tls.verify && (isWanted || !allowInsecureTls)

/** Where a client's PCE is, in the spelling of the host guard. */
interface Place {
  host: string
  port: number
}

function notConnected(problem: string, setupUrl: string): ToolError {
  const message = `This server does not connect to the PCE that you registered: ${problem}.`
  return new ToolError('pce_unreachable', message, {}, { hint: `Register another at ${setupUrl}.` })
}

/** Makes the clients of users. Tries the operator's TLS files and proxy once, so that they fail at start and not at the first call. */
function createConnect(
  { userPce }: UserPcesConfig,
  { hosts, places }: { hosts: PceHosts; places: WeakMap<PceClient, Place> },
  setupUrl: string,
  { scope, log }: UserPcesParts,
) {
  const { tls, proxyUrl } = userPce
  const common = { tls, ...(proxyUrl !== undefined && { proxyUrl }) }
  const nobody: PceFromEnvironment = {
    ...common,
    url: 'pce.invalid',
    port: '443',
    orgId: '1',
    apiKey: '',
    apiSecret: '',
  }
  connectPce(nobody, scope, log)
  // The operator's client certificate is for the operator's PCEs: whoever could name any host would meet this server under its name.
  const { clientCertFile: _cert, clientKeyFile: _key, ...withoutClient } = tls
  const shown = userPce.allowedHosts.length > 0 ? tls : withoutClient

  return (credentials: PceCredentials, { once = false, isTerse = false }: ConnectOptions = {}): PceClient => {
    const { host, port, orgId, apiKey, apiSecret, tlsVerify } = credentials
    const admitted = hosts.admit(host, port)
    if ('problem' in admitted) throw notConnected(admitted.problem, setupUrl)
    const pce = {
      ...common,
      url: `https://${isIPv6(admitted.host) ? `[${admitted.host}]` : admitted.host}`,
      port: String(port),
      orgId: String(orgId),
      apiKey,
      apiSecret,
      tls: { ...shown, verify: isTlsChecked(userPce, tlsVerify) },
    }
    const guarded = { ...hosts.guard(admitted.host, port), hideReasons: isTerse, ...(once && { retryCount: 0 }) }
    try {
      const client = connectPce(pce, scope, log, guarded)
      places.set(client, { host: admitted.host, port })
      return client
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      log.error({ err: error }, 'the TLS files of PCE connections cannot be used any more')
      throw new ToolError('server_misconfigured', 'The server cannot connect to any PCE now: its own settings fail.')
    }
  }
}
