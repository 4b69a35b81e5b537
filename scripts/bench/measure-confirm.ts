import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { callTool, createPoster, load } from './callers.js'
import { inScratch, type Scratch } from './in-scratch.js'
import { startPce } from './start-pce.js'
import { startProvider } from './start-provider.js'
import { startServer } from './start-server.js'
import { median, percentile } from './statistics.js'

const CALLERS = 20
const ROUNDS = 7
const SECONDS = 2

/** The cheapest confirmed call: a single request to a PCE on which nothing is pending. */
const TOOL = 'provision-policy'
const ARGUMENTS = { dry_run: true }

export interface ConfirmRates {
  /** How many tokens POST /confirm issues per second, as the median of the rounds. */
  mints: number
  /**
   * Round trips per second, as the median of the rounds. In a round trip a token is issued, and its call redeems it.
   */
  roundTrips: number
  /** The duration of one round trip in milliseconds, as the median of the rounds. */
  p50: number
  p99: number
  /** The number of wrong answers. */
  failures: number
}

/**
 * Measures POST /confirm and the confirmed call after it, over HTTP with access tokens of twenty callers: signature,
 * role, audit entry with fsync, durable claim, one request to the PCE. Limits are off. Needs a build.
 */
export async function measureConfirm(): Promise<ConfirmRates> {
  const provider = await startProvider('bench')
  const pce = await startPce('serve-empty-pce.mjs')
  try {
    return await inScratch((scratch) => measureTrips(scratch, provider, pce.port))
  } finally {
    pce.stop()
    provider.close()
  }
}

async function measureTrips(
  scratch: Scratch,
  provider: Awaited<ReturnType<typeof startProvider>>,
  pcePort: string,
): Promise<ConfirmRates> {
  const { url } = await startServer(scratch, 'confirm', (url) => ({
    ...provider.environment,
    MCP_PCE_MODE: 'shared',
    MCP_PUBLIC_URL: url,
    MCP_ROLE_GROUPS_ADMIN: 'bench',
    MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 1).toString('base64'),
    MCP_STATE_PATH: join(scratch.directory, 'confirm.db'),
    MCP_RATE_LIMIT_PER_MINUTE: '0',
    MCP_CONFIRM_RATE_PER_MINUTE: '0',
    MCP_MAX_IN_FLIGHT_PER_CALLER: '0',
    PCE_HOST: 'http://127.0.0.1',
    PCE_PORT: pcePort,
    API_KEY: 'api_bench',
    API_SECRET: 'bench',
  }))
  const callers = await Promise.all(
    Array.from({ length: CALLERS }, async (_, index) => createCaller(url, await provider.tokenFor(`caller-${index}`))),
  )
  const mint = (caller: Caller) => caller.mint()
  const roundTrip = async (caller: Caller) => caller.redeem(await caller.mint())
  await loadFor(callers, roundTrip)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++)
    rounds.push({ mints: await loadFor(callers, mint), trips: await loadFor(callers, roundTrip) })
  return {
    mints: median(rounds.map(({ mints }) => mints.rate)),
    roundTrips: median(rounds.map(({ trips }) => trips.rate)),
    p50: median(rounds.map(({ trips }) => trips.p50)),
    p99: median(rounds.map(({ trips }) => trips.p99)),
    failures: rounds.reduce((sum, { mints, trips }) => sum + mints.failures + trips.failures, 0),
  }
}

type Caller = ReturnType<typeof createCaller>

/** Creates a person with one connection. Throws Error for every answer except the expected one. */
function createCaller(url: string, accessToken: string) {
  const poster = createPoster(url, accessToken)
  const hash = createHash('sha256').update(JSON.stringify(ARGUMENTS)).digest('hex')
  return {
    async mint(): Promise<string> {
      return (await poster.post('/confirm', { tool: TOOL, params_hash: hash })).confirm_token as string
    },
    async redeem(token: string): Promise<void> {
      const { isError, answer } = await callTool(poster, TOOL, ARGUMENTS, token)
      if (isError) throw new Error(`the confirmed call fails: ${JSON.stringify(answer)}`)
    },
  }
}

/** Runs all callers concurrently for some seconds, each with one piece of work after the other. */
async function loadFor(callers: readonly Caller[], work: (caller: Caller) => Promise<unknown>) {
  const { times, seconds, failures } = await load(callers, work, (elapsed) => elapsed >= SECONDS * 1000)
  return { rate: times.length / seconds, p50: percentile(times, 50), p99: percentile(times, 99), failures }
}
