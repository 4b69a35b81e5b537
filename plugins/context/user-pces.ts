import { promises as dns } from 'node:dns'
import { isIPv6 } from 'node:net'
import type { PceClient, PceClientOptions } from '../../pce-client/index.js'
import type { Owner } from '../../schemas/caller.js'
import { StartupError, type PceFromEnvironment, type PerUserConfig } from '../../schemas/config.js'
import type { CredentialsPort, Keystore, LastChecks, PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { Admissions } from '../../schemas/state.js'
import { connectPce, type CurrentCall, type RetryLog } from './connect-pce.js'
import {
  createPceFinder,
  createPcePool,
  inspectAgain,
  type Connect,
  type ContextLog,
  type FoundPce,
  type PceEndpoint,
} from './find-pce.js'
import type { FindPce } from './open-context.js'
import { createProver, rememberProven, startAttempt } from './prove-pce.js'
import { createPceHosts, type PceHosts, type PceHostsOptions } from './pce-hosts/create-pce-hosts.js'
import {
  credentialFacts,
  limitRegistrations,
  noteCheck,
  registerCredentials,
  type RegistrationPorts,
} from './register-credentials.js'

export interface UserPcesParts {
  keystore: Keystore
  lastChecks: LastChecks
  callTracker: CurrentCall
  log: ContextLog & RetryLog
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns the address at which this server listens, or null before it listens. */
  own?: PceHostsOptions['own']
  /** The name service; by default, the name service of the machine. */
  resolve?: PceHostsOptions['resolve']
  /** The duration, in milliseconds, of an attempt that reaches no PCE. */
  patienceMs?: number
  /**
   * Starts the timer of an attempt to reach a PCE. The timer ends after the given number of milliseconds. By default,
   * the timers of Node.js are used.
   */
  startAttempt?: typeof startAttempt
  /** The source of time and waits of the PCE clients; tests replace it. */
  timers?: PceClientOptions['timers']
  /** Applies the limit on a caller's registrations across all replicas. */
  admissions?: Admissions
}

type UserPcesConfig = Pick<PerUserConfig, 'userPce' | 'login'> & { http: Pick<PerUserConfig['http'], 'publicUrl'> }

export interface UserPces {
  find: FindPce
  /** Closes the PCE clients of all callers. */
  readonly close: () => void
}

const PATIENCE_MS = 8000

/**
 * Returns the URL of the page on which people register PCE credentials in a browser; null if MCP_OAUTH_CLIENT_ID is not
 * set, because then nobody can log in with a browser.
 */
export const setupUrlOf = ({ http, login }: Pick<UserPcesConfig, 'http' | 'login'>): string | null =>
  login === undefined ? null : `${http.publicUrl}/setup`

/** Returns the words that follow "Register" in a hint: where, or with which tool, a caller registers a PCE. */
const howTo = (setupUrl: string | null) =>
  setupUrl === null ? 'with register-pce-credentials' : `at ${setupUrl} in a browser`

/**
 * Creates the functions through which each caller uses a PCE with the credentials that the caller has stored in the
 * keystore (S14). The credentials are looked up for each request, connections go through the host guard, and clients
 * are pooled by caller and version of the credentials. Throws StartupError for TLS files or a proxy that no client can
 * use.
 */
export function createUserPces(config: UserPcesConfig, parts: UserPcesParts): UserPces {
  const { keystore, lastChecks, log, now, own, resolve = lookUp, patienceMs = PATIENCE_MS } = parts
  const start = () => (parts.startAttempt ?? startAttempt)(patienceMs)
  const setupUrl = setupUrlOf(config)
  const { allowedHosts, allowInsecureTls, proxyUrl } = config.userPce
  const isProxied = proxyUrl !== undefined
  const hosts = createPceHosts({ allowed: allowedHosts, own, resolve, isProxied })
  const inspect = inspectAgain(hosts.inspect, now)
  const pool = createPcePool(now)
  const places = new WeakMap<PceClient, PceEndpoint & { connectOnce: () => PceClient }>()
  const proven = rememberProven()
  const prove = createProver(proven, start)
  const connect = createConnect(config, { hosts, places }, setupUrl, parts)
  const findPce = createPceFinder({ keystore, pool, connect, log })
  const credentialsOf = createCredentials(setupUrl, {
    keystore,
    lastChecks,
    now,
    hosts,
    connect,
    dropClient: (owner) => pool.drop(owner),
    limit: limitRegistrations(now, parts.admissions),
    allowsInsecureTls: allowInsecureTls,
    isTlsChecked: (isWanted) => isTlsChecked(config.userPce, isWanted),
    startAttempt: start,
    proven,
    log,
  })

  /**
   * Returns an error that says why the address of a PCE is forbidden, or null if it is permitted. Used only if
   * connections go through a proxy; otherwise, the host guard checks the connections themselves.
   */
  async function findProblem(place: PceEndpoint): Promise<ToolError | null> {
    try {
      const problem = await inspect(place)
      return problem === null ? null : notConnected(problem, setupUrl)
    } catch (error) {
      if (error instanceof ToolError) return error
      throw error
    }
  }

  return {
    async find({ iss, sub }, role, record) {
      const owner = { iss, sub }
      // Without a role, no tool can run, so the caller's key is not even read from the keystore.
      const { version, ...found }: FoundPce = role === null ? { pce: null } : await findPce(owner, role, record)
      const credentials = credentialsOf(owner, version)
      const place = found.pce === null ? undefined : places.get(found.pce)
      const pceProblem = isProxied && place ? await findProblem(place) : null
      const refused = pceProblem === null ? {} : { pce: null, pceProblem }
      const provePce =
        place &&
        ((signal: AbortSignal) =>
          prove(owner, place, place.connectOnce, (problem) => credentials.noteCheck(problem), signal))
      return { ...found, ...refused, ...(provePce && { provePce }), credentials }
    },
    close: () => pool.close(),
  }
}

const lookUp: PceHostsOptions['resolve'] = (hostname, options) => dns.lookup(hostname, options)

/**
 * Returns true if certificates are actually verified. The user's setting in the registration (`isWanted`) is not
 * enough: the operator may have switched verification off for everyone, or may have forbidden after the registration
 * that users switch it off.
 */
const isTlsChecked = ({ tls, allowInsecureTls }: UserPcesConfig['userPce'], isWanted: boolean) =>
  tls.verify && (isWanted || !allowInsecureTls)

/**
 * Creates the function that returns, on a per_user server, the interface through which a caller manages their own
 * credentials. All these interfaces use the same keystore (D18).
 */
function createCredentials(
  setupUrl: string | null,
  ports: RegistrationPorts & { keystore: Keystore; lastChecks: LastChecks },
): (owner: Owner, version: string | undefined) => CredentialsPort {
  const { keystore, lastChecks, log } = ports
  return (owner, version) => ({
    async status() {
      const record = await keystore.find(owner)
      if (record === null) {
        const message = `No PCE credentials are registered. Register ${howTo(setupUrl)}.`
        return { registered: false, message }
      }
      const facts = credentialFacts(record.open(), ports)
      const lastCheck = await lastChecks.find(owner, record.version).catch(() => null)
      const message = 'Your own PCE credentials are registered.'
      return { registered: true, message, facts, ...(lastCheck !== null && { lastCheck }) }
    },
    register: (credentials, { replaceAnyway = false } = {}) =>
      registerCredentials(ports, owner, credentials, replaceAnyway),
    async noteCheck(problem) {
      if (version !== undefined) await noteCheck(ports, owner, version, problem)
    },
    async remove() {
      const isRemoved = await keystore.remove(owner)
      ports.dropClient(owner)
      await lastChecks
        .remove(owner)
        .catch((err: unknown) => log.info({ err }, 'the last check of removed credentials stays'))
      return isRemoved
    },
  })
}

function notConnected(problem: string, setupUrl: string | null): ToolError {
  const message = `This server does not connect to the PCE that you registered: ${problem}.`
  return new ToolError('pce_unreachable', message, {}, { hint: `Register another ${howTo(setupUrl)}.` })
}

/**
 * Creates the function that creates the PCE clients of users. It also creates one client immediately, so that errors in
 * the operator's TLS files and proxy appear at start-up and not at the first call.
 */
function createConnect(
  { userPce }: UserPcesConfig,
  { hosts, places }: { hosts: PceHosts; places: WeakMap<PceClient, PceEndpoint & { connectOnce: () => PceClient }> },
  setupUrl: string | null,
  { callTracker, log, timers }: UserPcesParts,
): Connect {
  const { tls, proxyUrl, bounds } = userPce
  const common = { tls, ...(proxyUrl !== undefined && { proxyUrl }), ...(bounds && { bounds }) }
  const nobody: PceFromEnvironment = {
    ...common,
    url: 'pce.invalid',
    port: '443',
    orgId: '1',
    apiKey: '',
    apiSecret: '',
  }
  connectPce(nobody, callTracker, log)
  // The operator's client certificate is used only if the operator lists the permitted hosts. Otherwise, users may name
  // any host, and could make this server present the certificate to it.
  const { clientCertFile: _cert, clientKeyFile: _key, ...withoutClient } = tls
  const shown = userPce.allowedHosts.length > 0 ? tls : withoutClient

  const connect: Connect = (credentials: PceCredentials, { once = false, isTerse = false } = {}): PceClient => {
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
    const guarded = {
      ...hosts.guard(admitted.host, port),
      hideReasons: isTerse,
      ...(once && { retryCount: 0 }),
      ...(timers && { timers }),
    }
    try {
      const client = connectPce(pce, callTracker, log, guarded)
      const connectOnce = () => connect(credentials, { once: true, isTerse })
      places.set(client, { host: admitted.host, port, connectOnce })
      return client
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      log.error({ err: error }, 'the TLS files of PCE connections can no longer be used')
      throw new ToolError(
        'server_misconfigured',
        'The server cannot connect to any PCE now: its own TLS settings no longer work.',
      )
    }
  }
  return connect
}
