import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get, request, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { median } from './statistics.js'

export interface SimulatorFigures {
  /** Seconds until it listens, including the start of its process and loading its source. */
  loadSeconds: number
  /** Milliseconds for a page of 500 workloads, as the median of many. */
  page: number
  /** Milliseconds for such a page when filtered by a label. */
  filteredPage: number
  /** The rows in the download of a traffic query without filters. */
  rows: number
  downloadSeconds: number
  /** The process's peak memory in bytes. */
  peakMemory: number
}

const WORKLOADS = 50_000
const FLOWS = 200_000
const PAGES = 40
const ORG = '/api/v2/orgs/1'

/** Measures the estate that the simulator must support: 50,000 workloads and 200,000 flows, in a separate process. */
export async function measureSimulator(): Promise<SimulatorFigures> {
  const options = ['--port', '0', '--workloads', String(WORKLOADS), '--flows', String(FLOWS)]
  const start = performance.now()
  const child = spawn(process.execPath, ['scripts/pce-sim.mjs', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const pce = await readStarted(child)
    const loadSeconds = (performance.now() - start) / 1000
    const labels = encodeURIComponent(JSON.stringify([['/orgs/1/labels/1']]))
    const page = await timePages(pce, `${ORG}/workloads`)
    const filteredPage = await timePages(pce, `${ORG}/workloads?labels=${labels}`)
    const { rows, seconds } = await download(pce)
    return { loadSeconds, page, filteredPage, rows, downloadSeconds: seconds, peakMemory: readPeak(child.pid!) }
  } finally {
    child.kill()
  }
}

/** Formats the lines of the report, compared with the simulator's own targets. */
export function describeSimulator(figures: SimulatorFigures): string[] {
  const { loadSeconds, page, filteredPage, rows, downloadSeconds, peakMemory } = figures
  const gib = peakMemory / 2 ** 30
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED')
  return [
    `PCE simulator with ${WORKLOADS} workloads and ${FLOWS} flows, in its own process`,
    `  load                        ${loadSeconds.toFixed(1).padStart(7)} s     target below 20: ${verdict(loadSeconds < 20)}`,
    `  page of 500 workloads       ${page.toFixed(1).padStart(7)} ms    target below 20: ${verdict(page < 20)}`,
    `  the same by a label         ${filteredPage.toFixed(1).padStart(7)} ms`,
    `  download of ${String(rows).padStart(6)} rows     ${downloadSeconds.toFixed(1).padStart(7)} s`,
    `  peak memory                 ${gib.toFixed(2).padStart(7)} GiB   target below 1.50: ${verdict(gib < 1.5)}`,
  ]
}

interface Started {
  url: string
  authorization: string
}

async function readStarted(child: ChildProcess): Promise<Started> {
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string]
  const { url, api_key, api_secret } = JSON.parse(line) as { url: string; api_key: string; api_secret: string }
  return { url, authorization: `Basic ${Buffer.from(`${api_key}:${api_secret}`).toString('base64')}` }
}

async function timePages({ url, authorization }: Started, path: string): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  for (let count = 0; count < PAGES; count += 1) {
    const start = performance.now()
    const [response] = (await once(get(url + path, { agent, headers: { authorization } }), 'response')) as [
      IncomingMessage,
    ]
    await once(response.resume(), 'end')
    times.push(performance.now() - start)
  }
  agent.destroy()
  return median(times)
}

async function download(pce: Started): Promise<{ rows: number; seconds: number }> {
  const anything = { include: [[]], exclude: [] }
  const now = Date.now()
  const asked = await send(pce, 'POST', `${ORG}/traffic_flows/async_queries`, {
    query_name: 'all',
    start_date: new Date(now - 90 * 86_400_000).toISOString(),
    end_date: new Date(now).toISOString(),
    sources: anything,
    destinations: anything,
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: FLOWS,
  })
  const { href } = JSON.parse(asked) as { href: string }
  let rows: number | undefined
  while (rows === undefined) {
    rows = (JSON.parse(await send(pce, 'GET', `/api/v2${href}`)) as { flows_count?: number }).flows_count
  }
  const start = performance.now()
  const { url, authorization } = pce
  const [response] = (await once(get(`${url}/api/v2${href}/download`, { headers: { authorization } }), 'response')) as [
    IncomingMessage,
  ]
  await once(response.resume(), 'end')
  return { rows, seconds: (performance.now() - start) / 1000 }
}

async function send({ url, authorization }: Started, method: string, path: string, body?: object): Promise<string> {
  const headers = { authorization, 'content-type': 'application/json' }
  const sent = request(url + path, { method, headers })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string
  return text
}

/** Reads the peak memory of a process from Linux; 0 on other systems. */
function readPeak(pid: number): number {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib ?? 0) * 1024
  } catch {
    return 0
  }
}
