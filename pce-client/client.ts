import {
  basicAuthorization,
  readTlsFiles,
  readProxy,
  readSettings,
  readTimeout,
  type ClientSettings,
} from './settings.js'
import { getCollection } from './async-job.js'
import { PceApiError, PceError } from './errors.js'
import { KINDS, type Kind, type KindAttribute } from './kinds.js'
import { KindApi } from './objects.js'
import { createOperations, type NamedOperations } from './operations/index.js'
import { JsonObjectSplitter } from './split-json-object.js'
import { shareTurn } from './take-turns.js'
import type { Http } from './transport.js'
import type { ObjectApis, PartsOptions, PceClientOptions, PceTransport, RequestOptions } from './types.js'

/** A client of one PCE organisation with one set of credentials. */
export type PceClient = PceTransport & NamedOperations & ObjectApis

/**
 * Creates a client of one PCE organisation, without reading a file or opening a connection. Credentials, proxies and
 * TLS settings are passed to the setters and stored in closures, so that inspecting or serialising the client never
 * shows them.
 *
 * @throws {PceIntegerError} and {PceError} for options that break the specification's rules for the constructor (see
 *   `readSettings`).
 */
export function createPceClient(options: PceClientOptions): PceClient {
  const settings = readSettings(options)
  return assembleClient(createLazyHttp(settings), settings)
}

interface Parts {
  http: Http
  settings: ClientSettings
}

const parts = new WeakMap<PceClient, Parts>()

/** Builds a client that makes its requests with `http`. */
export function assembleClient(http: Http, settings: ClientSettings): PceClient {
  const objects = createObjectApis(http, settings)
  const client = Object.assign(createTransport(http, settings), createOperations(http, settings, objects), objects)
  parts.set(client, { http, settings })
  return client
}

/** Returns the parts from which a client was built. Throws TypeError if the client was not created by this package. */
export function partsOf(client: PceClient): Parts {
  const found = parts.get(client)
  if (found === undefined) throw new TypeError('not a client of this package')
  return found
}

function createTransport(http: Http, settings: ClientSettings): PceTransport {
  const { address } = settings
  let includeOrg = true
  const withOrg = <T extends RequestOptions>(options: T | undefined) => ({
    ...options,
    includeOrg: options?.includeOrg ?? includeOrg,
  })

  async function mustConnect(options: RequestOptions = {}): Promise<void> {
    let path = '/health'
    try {
      await http.send('GET', path, { ...options, includeOrg: false }).catch(unlessAbsent)
      path = `/orgs/${address.orgId}/settings/workloads`
      const answer = await http.send('GET', path, options)
      answer.json()
    } catch (error) {
      throw toConnectionError(error, path)
    }
  }

  return {
    get includeOrg() {
      return includeOrg
    },
    set includeOrg(value: boolean) {
      includeOrg = value
    },
    orgId: address.orgId,
    origin: address.origin,
    baseUrl: `${address.origin}/api/${address.version}`,
    setCredentials(username, password) {
      settings.authorization = basicAuthorization(username, password)
      settings.userName = username
    },
    isUserName: (name) => name === settings.userName,
    setProxies(httpProxy = null, httpsProxy = null) {
      settings.proxies = { http: readProxy('http proxy', httpProxy), https: readProxy('https proxy', httpsProxy) }
    },
    setTimeout(timeout) {
      settings.requestTimeoutMs = readTimeout(timeout)
    },
    setTlsSettings(verify = true, cert = null) {
      settings.tls = readTlsFiles(verify, cert)
    },
    get: (endpoint, options) => http.send('GET', endpoint, withOrg(options)),
    getInParts: (endpoint, options) => getInParts(http, settings, endpoint, { ...options, ...withOrg(options) }),
    post: (endpoint, options) => http.send('POST', endpoint, withOrg(options)),
    put: (endpoint, options) => http.send('PUT', endpoint, withOrg(options)),
    delete: (endpoint, options) => http.send('DELETE', endpoint, withOrg(options)),
    getCollection: (endpoint, options) => getCollection(http, settings, endpoint, withOrg(options)),
    mustConnect,
    async checkConnection(options) {
      try {
        await mustConnect(options)
        return true
      } catch (error) {
        // If the check was cancelled, nothing is known about the connection, so the error is rethrown and false is not
        // returned.
        if (!(error instanceof PceError) || error.code === 'aborted') throw error
        return false
      }
    },
    close: () => http.closeIdle(),
  }
}

async function getInParts(
  http: Http,
  { bounds: { body } }: ClientSettings,
  endpoint: string,
  { onBegin, onField, onItems, ...options }: PartsOptions,
): Promise<{ bytes: number }> {
  const sink = { onField, onItems }
  let splitter = new JsonObjectSplitter(body, sink)
  let bytes = 0
  const begin = () => {
    splitter = new JsonObjectSplitter(body, sink)
    bytes = 0
    onBegin()
  }
  const take = async (chunk: Buffer) => {
    bytes += chunk.length
    await shareTurn()
    await splitter.push(chunk)
  }
  const maxBytes = Math.min(options.maxBytes ?? Infinity, body.bytes)
  await http.stream(endpoint, { ...options, maxBytes }, { begin, take })
  splitter.end()
  return { bytes }
}

/**
 * Ignores a 404 from /health, because SaaS PCEs have no such endpoint, and rethrows any other error. On a SaaS PCE,
 * only the request for the organisation's settings checks the connection (P53).
 */
function unlessAbsent(error: unknown): void {
  if (!(error instanceof PceApiError) || error.status !== 404) throw error
}

/**
 * Turns any connection failure into a PceApiError, because the specification requires this class from `must_connect`.
 * Status 0 means that no answer came.
 */
function toConnectionError(error: unknown, path: string): unknown {
  if (!(error instanceof PceError) || error instanceof PceApiError || error.code === 'aborted') return error
  const facts = { status: 0, method: 'GET', path, code: error.code }
  return new PceApiError(error.message, facts, { cause: error.cause, reason: error.reason })
}

function createObjectApis(http: Http, settings: ClientSettings): ObjectApis {
  const entries = Object.entries(KINDS) as [KindAttribute, Kind][]
  return Object.fromEntries(
    entries.map(([attribute, kind]) => [attribute, new KindApi(kind, http, settings)]),
  ) as unknown as ObjectApis
}

/**
 * Loads the HTTP library, which the first request of any client would otherwise wait for. Rejects if it cannot be loaded.
 */
export async function loadHttp(): Promise<void> {
  await import('./http.js')
}

/**
 * Creates an `Http` that loads the HTTP library (got) only for the first request, so that importing this package stays
 * cheap for processes that start often.
 */
function createLazyHttp(settings: ClientSettings): Http {
  let loading: Promise<Http> | undefined
  const load = () => (loading ??= import('./http.js').then(({ createHttp }) => createHttp(settings)))
  return {
    send: async (method, endpoint, options) => (await load()).send(method, endpoint, options),
    stream: async (endpoint, options, sink) => (await load()).stream(endpoint, options, sink),
    closeIdle: () => void loading?.then((http) => http.closeIdle()),
  }
}
