import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { inScratch } from './in-scratch.js'
import { startPce } from './start-pce.js'
import { startProvider } from './start-provider.js'
import { startServer } from './start-server.js'
import { percentile } from './statistics.js'
import { judge } from './judge.js'

const ROWS = 200_000
const GROUP = 'bench'
const WINDOW = { start_date: '2026-06-08', end_date: '2026-06-14' }
/** The interval between two probes of the server, in milliseconds. */
const HEALTH_EVERY_MS = 20
const LABELS_EVERY_MS = 50
/**
 * Maximum duration of the measurement in milliseconds. The server gives up a PCE that answers byte by byte after two
 * minutes.
 */
const PATIENCE_MS = 240_000

/** The calls that are made at the same time, each by a different caller. */
const CROWD: readonly { who: string; many: number; calls: readonly { name: string; args: object }[] }[] = [
  { who: '200,000 flows', many: 5, calls: [{ name: 'get-traffic-flows-summary', args: WINDOW }] },
  { who: 'infrastructure', many: 5, calls: [{ name: 'identify-infrastructure-services', args: { lookback_days: 7 } }] },
  {
    who: 'hostile PCE',
    many: 1,
    // The last of these collections is answered byte by byte. A single caller may have 32 requests in flight.
    calls: ['get-workloads', 'get-iplists', 'get-services', 'get-events'].flatMap((name) =>
      Array.from({ length: name === 'get-events' ? 1 : 10 }, () => ({ name, args: {} })),
    ),
  },
  {
    who: 'longest arguments',
    many: 1,
    calls: [
      { name: 'get-workloads', args: { labels: Array.from({ length: 50 }, (_, at) => `app=${'x'.repeat(240)}${at}`) } },
      { name: 'create-ringfence', args: { app_name: 'x'.repeat(255), env_name: 'y'.repeat(255), dry_run: true } },
      {
        name: 'ringfence-batch',
        args: {
          dry_run: true,
          apps: Array.from({ length: 100 }, (_, at) => ({ app_name: `${'x'.repeat(250)}${at}`, env_name: 'prod' })),
        },
      },
    ],
  },
]

export interface CrowdFigures {
  /** The 99th percentile in milliseconds, and the number of measurements. All were taken while the crowd was active. */
  healthP99: number
  healthCalls: number
  /** The same of an idle server in another process: what the machine alone takes while the crowd is active. */
  controlP99: number
  labelsP99: number
  labelsCalls: number
  /** The peak of the server's resident memory, in MiB. */
  memory: number
  seconds: number
  /** The outcomes of the calls, for each part of the crowd: the number of calls by error code, or by `ok`. */
  outcomes: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** The number of calls and probes that ended without an answer. */
  lost: number
}

/** Measures how expensive calls affect cheap calls on a server that all callers share. */
export async function measureCrowd(): Promise<CrowdFigures> {
  const provider = await startProvider(GROUP)
  const pce = await startPce('serve-flows.ts', [String(ROWS)])
  const control = await startPce('serve-control.mjs')
  try {
    return await inScratch(async (scratch) => {
      const server = await startServer(scratch, 'crowd', (url) => ({
        MCP_PCE_MODE: 'shared',
        MCP_PUBLIC_URL: url,
        ...provider.environment,
        MCP_ROLE_GROUPS_ADMIN: GROUP,
        MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 1).toString('base64'),
        MCP_STATE_PATH: join(scratch.directory, 'state.db'),
        MCP_RATE_LIMIT_PER_MINUTE: '0',
        // The image and the systemd unit set this, too.
        MALLOC_MMAP_THRESHOLD_: '131072',
        PCE_HOST: 'http://127.0.0.1',
        PCE_PORT: pce.port,
        API_KEY: 'api_bench',
        API_SECRET: 'bench',
      }))
      return watchCrowd(server, `http://127.0.0.1:${control.port}`, (sub) => provider.tokenFor(sub))
    })
  } finally {
    control.stop()
    pce.stop()
    provider.close()
  }
}

async function watchCrowd(
  { url, pid }: { url: string; pid: number },
  control: string,
  tokenFor: (sub: string) => Promise<string>,
): Promise<CrowdFigures> {
  let lost = 0
  const outcomes: Record<string, Record<string, number>> = {}
  const crowd = await Promise.all(
    CROWD.flatMap(({ who, many, calls }) =>
      Array.from({ length: many }, async (_, at) => ({ who, calls, token: await tokenFor(`${who} ${at}`) })),
    ),
  )
  const onlooker = await tokenFor('onlooker')
  // The first call loads everything that later calls also need.
  await callTool(url, onlooker, 'get-labels', { key: 'env' })

  const started = performance.now()
  let isOver = false
  const everyone = Promise.all(
    crowd.flatMap(({ who, calls, token }) =>
      calls.map(async ({ name, args }) => {
        const outcome = await callTool(url, token, name, args).catch(() => 'lost')
        if (outcome === 'lost') lost += 1
        const counts = (outcomes[who] ??= {})
        counts[outcome] = (counts[outcome] ?? 0) + 1
      }),
    ),
  ).then(() => (isOver = true))

  let memory = 0
  const look = async (everyMs: number, act: () => Promise<unknown>) => {
    const times: number[] = []
    const running: Promise<void>[] = []
    while (!isOver && performance.now() - started < PATIENCE_MS) {
      const begun = performance.now()
      const one = act().then(
        () => void times.push(performance.now() - begun),
        () => void (lost += 1),
      )
      running.push(one)
      memory = Math.max(memory, residentMib(pid))
      await wait(everyMs)
    }
    await Promise.all(running)
    return times
  }
  const [health, idle, labels] = await Promise.all([
    look(HEALTH_EVERY_MS, () => send(url, 'GET', '/healthz', {})),
    look(HEALTH_EVERY_MS, () => send(control, 'GET', '/healthz', {})),
    look(LABELS_EVERY_MS, async () => {
      if ((await callTool(url, onlooker, 'get-labels', { key: 'env' })) !== 'ok') throw new Error('no labels')
    }),
  ])
  await Promise.race([everyone, wait(1000)])
  if (!isOver) lost += 1
  return {
    healthP99: percentile(health, 99),
    healthCalls: health.length,
    controlP99: percentile(idle, 99),
    labelsP99: percentile(labels, 99),
    labelsCalls: labels.length,
    memory,
    seconds: (performance.now() - started) / 1000,
    outcomes,
    lost,
  }
}

const residentMib = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** Returns `ok`, or the error code. */
async function callTool(url: string, token: string, name: string, args: object): Promise<string> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
  const text = await send(url, 'POST', '/mcp', { authorization: `Bearer ${token}` }, body)
  // The error of a tool is in the text of the result; an error of the server is the whole body.
  const code = /\\?"error\\?":\\?"([a-z_]+)\\?"/.exec(text)?.[1]
  if (code === undefined && !text.includes('"result"')) throw new Error(`no answer to ${name}: ${text.slice(0, 200)}`)
  return code ?? 'ok'
}

/** Sends a request over a separate connection, and returns the body of the answer. */
function send(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false })
    const accept = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    const sent = request(`${url}${path}`, { method, agent, headers: { ...accept, ...headers } }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => resolve(Buffer.concat(pieces).toString('utf8')))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Formats the results as lines of the report, with the targets. */
export function describeCrowd(figures: CrowdFigures): string[] {
  const { healthP99, controlP99, labelsP99, memory, seconds, outcomes, lost, healthCalls, labelsCalls } = figures
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([outcome, many]) => `${many} ${outcome}`)
      .join(', ')
  return [
    `Everybody at once, ${seconds.toFixed(0)} s: five callers read 200,000 flows, five rank the infrastructure, a PCE is hostile, arguments are long`,
    `  /healthz, new connections   ${healthP99.toFixed(0).padStart(7)} ms p99 of ${healthCalls}   ${judge(healthP99, { atMost: 30 })}`,
    `    of an idle server meanwhile${controlP99.toFixed(0).padStart(5)} ms p99: what the machine alone takes`,
    `  get-labels of another caller${labelsP99.toFixed(0).padStart(7)} ms p99 of ${labelsCalls}   ${judge(labelsP99, { atMost: 300 })}`,
    `  memory of the process       ${memory.toFixed(0).padStart(7)} MiB   ${judge(memory, { atMost: 700 })}`,
    ...Object.entries(outcomes).map(([who, counts]) => `  ${who.padEnd(28)} ${list(counts)}`),
    `  calls without an answer     ${String(lost).padStart(7)}   ${judge(lost, { atMost: 0 })}`,
  ]
}
