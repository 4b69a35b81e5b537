/**
 * Calls one tool once, as a transport would: through the dispatcher, with checks of the arguments and of the answer.
 * Arguments: the tool's name, its arguments as JSON, and the port of serve-flows.ts. Prints the time, the processor
 * time, the numbers of rows in the answer, the longest delay of the event loop, and the memory of the process: its
 * resident memory when idle, and the kernel's peak (maxRSS).
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { createPceClient } from '../../pce-client/index.js'
import type { CallerContext } from '../../plugins/dispatcher/call.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools } from '../../tools/index.js'

/** The resolution of the event loop monitor, which is also the delay that it reports for an idle loop. */
const RESOLUTION_MS = 2

const [name = '', args = '{}', port = ''] = process.argv.slice(2)

/** The timers for polling. They end at once, because waiting would only slow the measurement down. */
const timers = { now: () => Date.now(), random: Math.random, sleep: () => Promise.resolve() }
const pce = createPceClient({ url: 'http://127.0.0.1', port: Number(port), timers })
pce.setCredentials('api_bench', 'bench')
const silent = () => undefined
const dispatcher = createDispatcher({
  tools: catalogueOf(tools),
  gates: [],
  audit: null,
  log: { debug: silent, info: silent, warn: silent, error: silent },
  limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
  callTracker: createCallTracker(),
  server: { name: 'svc-mcp', version: '0.1.0', changelog: () => Promise.resolve(null) },
  now: () => Date.UTC(2026, 5, 15, 12),
})
const unused = () => Promise.reject(new Error('no tool that is measured manages credentials'))
const callerContext: CallerContext = {
  caller: { mode: 'insecure', role: 'admin', iss: null, sub: null },
  transport: 'stdio',
  pce,
  credentials: { status: unused, register: unused, noteCheck: unused, remove: unused },
}
async function call(tool: string, given: Record<string, unknown>): Promise<Answer> {
  const sent = { name: tool, arguments: given, requestId: 'bench', sender: new AbortController(), progress: silent }
  const result = await dispatcher.dispatch(sent, callerContext)
  if (!result.ok) throw new Error(`${tool} failed: ${JSON.stringify(result.error)}`)
  return result.value
}

interface Answer {
  totals?: { pce_flows?: number; connections?: number; parts?: number }
  analysed?: { pce_flows?: number }
}

// The first call loads everything that later calls also need, as in a server that has already answered calls.
await call('get-labels', { max_results: 20 })
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
// The monitor measures the time between two ticks, so there must be a tick before the work and one after it.
await wait(50)
delay.reset()
const idle = process.memoryUsage.rss()
const processor = process.cpuUsage()
const started = performance.now()
const { totals, analysed } = await call(name, JSON.parse(args) as Record<string, unknown>)
const ms = performance.now() - started
const { user, system } = process.cpuUsage(processor)
const peak = process.resourceUsage().maxRSS * 1024
await wait(50)
delay.disable()
console.log(
  JSON.stringify({
    ms,
    cpuMs: (user + system) / 1000,
    longestBlockMs: delay.max / 1e6 - RESOLUTION_MS,
    rows: analysed?.pce_flows ?? totals?.pce_flows,
    connections: totals?.connections,
    parts: totals?.parts,
    idle,
    peak,
  }),
)
pce.close()
