import { join } from 'node:path'
import autocannon from 'autocannon'
import { inScratch, type Scratch } from './in-scratch.js'
import { REQUESTS_PER_CONNECTION, resultOf, startBare } from './measure-calls.js'
import { startProvider } from './start-provider.js'
import { startServer } from './start-server.js'
import { median } from './statistics.js'

const CONNECTIONS = 20
const ROUNDS = 9
const SECONDS = 2
const CALLERS = 20

export const GROUP = 'bench'
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'get-server-changelog', arguments: { unlearn_only: true } },
})

export interface AuthenticatedRates {
  /** Requests per second, as the median of the rounds. */
  bareRoute: number
  /** The rate of a route that sends the same answer and does only what every call requires (dutiful-route.mjs). */
  dutifulRoute: number
  insecure: number
  authenticated: number
  /** The 99th percentile in milliseconds, as the median of the rounds. */
  insecureP99: number
  authenticatedP99: number
  /** The authenticated rate divided by the insecure rate of the same round, as the median of the rounds. */
  ratio: number
  /**
   * The authenticated rate divided by that of a bare Fastify route with the same answer in the same round, as the
   * median of the rounds.
   */
  toBareRoute: number
  /** The ratio of the authenticated rate to that of the route that does what every call requires. */
  toDutifulRoute: number
  /**
   * The number of milliseconds by which authentication raises the 99th percentile, as the median of the differences
   * within a round.
   */
  p99More: number
  failures: number
}

/**
 * Measures the same tools/call with and without authentication, with twenty callers. Authentication includes the
 * signature, claims, role, caller context and audit, and the code for the caller's limits, although the limits
 * themselves are off. Both servers run at the same time and are measured alternately.
 */
export async function measureAuthenticated(): Promise<AuthenticatedRates> {
  const provider = await startProvider(GROUP)
  try {
    return await inScratch((scratch) => measureBoth(scratch, provider))
  } finally {
    provider.close()
  }
}

async function measureBoth(scratch: Scratch, provider: Provider): Promise<AuthenticatedRates> {
  const insecure = await startServer(scratch, 'insecure', () => ({ MCP_DEV_INSECURE: '1' }))
  const authenticated = await startAuthenticated(scratch, provider)
  const tokens = await tokensOf(provider)
  const result = await resultOf(insecure.url)
  const route = await startBare('bare-route.mjs', result, scratch)
  const dutiful = await startBare('dutiful-route.mjs', result, scratch)
  for (const url of [route, dutiful, insecure.url, authenticated.url]) await load(url, tokens)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      route: await load(route, tokens),
      dutiful: await load(dutiful, tokens),
      bare: await load(insecure.url, tokens),
      ours: await load(authenticated.url, tokens),
    })
  }
  return {
    bareRoute: median(rounds.map(({ route }) => route.rate)),
    dutifulRoute: median(rounds.map(({ dutiful }) => dutiful.rate)),
    toBareRoute: median(rounds.map(({ route, ours }) => ours.rate / route.rate)),
    toDutifulRoute: median(rounds.map(({ dutiful, ours }) => ours.rate / dutiful.rate)),
    insecure: median(rounds.map(({ bare }) => bare.rate)),
    authenticated: median(rounds.map(({ ours }) => ours.rate)),
    insecureP99: median(rounds.map(({ bare }) => bare.p99)),
    authenticatedP99: median(rounds.map(({ ours }) => ours.p99)),
    ratio: median(rounds.map(({ bare, ours }) => ours.rate / bare.rate)),
    p99More: median(rounds.map(({ bare, ours }) => ours.p99 - bare.p99)),
    failures: rounds.flatMap((round) => Object.values(round)).reduce((sum, { failures }) => sum + failures, 0),
  }
}

type Provider = Awaited<ReturnType<typeof startProvider>>

/** Starts an authenticated server without limits. `more` contains additional variables for it. */
export const startAuthenticated = (
  scratch: Scratch,
  provider: Provider,
  {
    name = 'authenticated',
    more = {},
    program,
  }: { name?: string; more?: Record<string, string>; program?: readonly string[] } = {},
) =>
  startServer(
    scratch,
    name,
    (url) => ({
      MCP_PCE_MODE: 'shared',
      MCP_PUBLIC_URL: url,
      ...provider.environment,
      MCP_ROLE_GROUPS_READER: GROUP,
      MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 1).toString('base64'),
      MCP_STATE_PATH: join(scratch.directory, `${name}.db`),
      MCP_RATE_LIMIT_PER_MINUTE: '0',
      MCP_MAX_IN_FLIGHT_PER_CALLER: '0',
      PCE_HOST: 'https://pce.invalid',
      API_KEY: 'api_bench',
      API_SECRET: 'bench',
      ...more,
    }),
    program,
  )

/** Creates access tokens for twenty callers. */
export const tokensOf = (provider: Provider) =>
  Promise.all(Array.from({ length: CALLERS }, (_, index) => provider.tokenFor(`caller-${index}`)))

/**
 * Repeats the call in this file for some seconds. Returns the number of requests, the requests per second, and the 99th
 * percentile in milliseconds.
 */
export async function load(url: string, tokens: readonly string[]) {
  const run = await autocannon({
    url: `${url}/mcp`,
    method: 'POST',
    connections: CONNECTIONS,
    reconnectRate: REQUESTS_PER_CONNECTION,
    duration: SECONDS,
    requests: tokens.map((token) => ({
      method: 'POST' as const,
      path: '/mcp',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: CALL,
    })),
  })
  return {
    requests: run['2xx'],
    rate: run['2xx'] / run.duration,
    p99: run.latency.p99,
    failures: run.errors + run.non2xx,
  }
}
