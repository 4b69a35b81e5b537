import { spawn } from 'node:child_process'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { inScratch, type Scratch } from './in-scratch.js'
import { startServer } from './start-server.js'
import { median } from './statistics.js'

const CONNECTIONS = 20
/**
 * The number of requests after which the server closes a connection. It announces this in a header, which autocannon
 * ignores.
 */
export const REQUESTS_PER_CONNECTION = 1000
const ROUNDS = 9
const SECONDS = 2

const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'get-server-changelog', arguments: { unlearn_only: true } },
}
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export interface CallRates {
  /** Requests per second, as the median of the rounds. */
  bareRoute: number
  bareSdk: number
  ours: number
  /**
   * The server's rate divided by the rate of a baseline in the same round, as the median of the rounds. Other load on
   * the machine hardly affects this ratio.
   */
  toBareRoute: number
  toBareSdk: number
  failures: number
}

/**
 * Measures tools/call through this server (with logging to a file and audit) and through the two baselines. Each of the
 * three is a separate process. In every round, they are measured one after the other, so that a slow minute of the
 * machine affects all of them equally.
 */
export function measureCalls(): Promise<CallRates> {
  return inScratch(async (scratch) => {
    const { url: ours } = await startServer(scratch, 'service', () => ({ MCP_DEV_INSECURE: '1' }))
    const result = await resultOf(ours)
    const bareRoute = await startBare('bare-route.mjs', result, scratch)
    const bareSdk = await startBare('bare-sdk.mjs', result, scratch)
    for (const url of [bareRoute, bareSdk, ours]) await load(url)
    const rounds = []
    for (let round = 0; round < ROUNDS; round++) {
      rounds.push({ bareRoute: await load(bareRoute), bareSdk: await load(bareSdk), ours: await load(ours) })
    }
    return {
      bareRoute: median(rounds.map((round) => round.bareRoute.rate)),
      bareSdk: median(rounds.map((round) => round.bareSdk.rate)),
      ours: median(rounds.map((round) => round.ours.rate)),
      toBareRoute: median(rounds.map((round) => round.ours.rate / round.bareRoute.rate)),
      toBareSdk: median(rounds.map((round) => round.ours.rate / round.bareSdk.rate)),
      failures: rounds.flatMap((round) => Object.values(round)).reduce((sum, { failures }) => sum + failures, 0),
    }
  })
}

async function load(url: string): Promise<{ rate: number; failures: number }> {
  const run = await autocannon({
    url: `${url}/mcp`,
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify(CALL),
    connections: CONNECTIONS,
    reconnectRate: REQUESTS_PER_CONNECTION,
    duration: SECONDS,
  })
  return { rate: run['2xx'] / run.duration, failures: run.errors + run.non2xx }
}

/** Starts one of the baselines. It answers every call with this result. */
export async function startBare(file: string, result: unknown, { end, directory }: Scratch): Promise<string> {
  const child = spawn(process.execPath, [join('scripts/bench', file), JSON.stringify(result), directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  end(child)
  for await (const chunk of child.stdout) return String(chunk).trim()
  throw new Error(`${file} ended without listening`)
}

/** Fetches the server's answer to the call, so that the baselines can send the same number of bytes. */
export async function resultOf(url: string): Promise<unknown> {
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers: HEADERS, body: JSON.stringify(CALL) })
  const answer = (await response.json()) as { result?: { isError?: boolean } }
  if (answer.result === undefined || answer.result.isError === true) {
    throw new Error(`the call to be measured fails: ${JSON.stringify(answer)}`)
  }
  return answer.result
}
