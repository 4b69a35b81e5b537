import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { inScratch, type Scratch } from './in-scratch.js'
import { startPce } from './start-pce.js'
import { startProvider } from './start-provider.js'
import { startServer } from './start-server.js'
import { median } from './statistics.js'

const CALLERS = 20
const ROUNDS = 7
const SECONDS = 2

/** The cheapest confirmed call: one question to a PCE on which nothing is pending. */
const TOOL = 'provision-policy'
const ARGUMENTS = { dry_run: true }

export interface ConfirmRates {
  /** Tokens handed out per second by POST /confirm, median of the rounds. */
  mints: number
  /** Round trips per second: a token is minted, and the call it is for redeems it; median of the rounds. */
  roundTrips: number
  /** Milliseconds of one round trip, median of the rounds. */
  p50: number
  p99: number
  /** Answers that were not as they must be. */
  failures: number
}

/**
 * POST /confirm and the confirmed call after it, over HTTP with access tokens of a score of callers: signature, role, audit entry with
 * fsync, durable claim, one request to the PCE. Limits are off. Needs a build.
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
  await load(callers, roundTrip)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++)
    rounds.push({ mints: await load(callers, mint), trips: await load(callers, roundTrip) })
  return {
    mints: median(rounds.map(({ mints }) => mints.rate)),
    roundTrips: median(rounds.map(({ trips }) => trips.rate)),
    p50: median(rounds.map(({ trips }) => trips.p50)),
    p99: median(rounds.map(({ trips }) => trips.p99)),
    failures: rounds.reduce((sum, { mints, trips }) => sum + mints.failures + trips.failures, 0),
  }
}

type Caller = ReturnType<typeof createCaller>

/** One person at one connection. Throws Error for every answer but the expected one. */
function createCaller(url: string, accessToken: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const hash = createHash('sha256').update(JSON.stringify(ARGUMENTS)).digest('hex')
  const post = (path: string, body: object) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const sent = request(`${url}${path}`, {
        method: 'POST',
        agent,
        headers: {
          authorization: `Bearer ${accessToken}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
      })
      sent.once('error', reject)
      sent.once('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.once('error', reject)
        response.once('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text) as Record<string, unknown>)
          else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 200)}`))
        })
      })
      sent.end(JSON.stringify(body))
    })
  return {
    async mint(): Promise<string> {
      return (await post('/confirm', { tool: TOOL, params_hash: hash })).confirm_token as string
    },
    async redeem(token: string): Promise<void> {
      const params = { name: TOOL, arguments: ARGUMENTS, _meta: { confirm_token: token } }
      const answer = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      const { isError } = answer.result as { isError?: boolean }
      if (isError === true) throw new Error(`the confirmed call fails: ${JSON.stringify(answer)}`)
    },
    close: () => agent.destroy(),
  }
}

/** All callers at once, each one after the other, for some seconds. */
async function load(callers: readonly Caller[], work: (caller: Caller) => Promise<unknown>) {
  const times: number[] = []
  let failures = 0
  const started = performance.now()
  const end = started + SECONDS * 1000
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() < end) {
        const begun = performance.now()
        try {
          await work(caller)
          times.push(performance.now() - begun)
        } catch {
          failures++
        }
      }
    }),
  )
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Infinity
  return { rate: (times.length * 1000) / (performance.now() - started), p50: at(0.5), p99: at(0.99), failures }
}
