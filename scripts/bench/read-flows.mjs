// Reads all rows of serve-pce.mjs or serve-flows.ts once, without keeping them. Arguments: `client` or `bare` (got and
// one JSON.parse), the client's module, and the server's port. Prints the time, the processor time, the number of rows,
// and the memory of the process: its resident memory when idle, and the kernel's peak (maxRSS).
import http from 'node:http'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import got from 'got'

const [, , reader, module, port] = process.argv
const { createPceClient } = await import(pathToFileURL(module).href)

/** The timers for polling. They end at once, because waiting would only slow the measurement down. */
const timers = { now: () => Date.now(), random: Math.random, sleep: () => Promise.resolve() }
const client = createPceClient({ url: 'http://127.0.0.1', port, timers })
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
const bare = got.extend({ agent: { http: agent } })
const url = `http://127.0.0.1:${port}/api/v2/orgs/1/traffic_flows/async_queries`

let rows = 0
let connections = 0
const use = (flows) => {
  for (const flow of flows) connections += flow.num_connections
  rows += flows.length
}
const readers = {
  client: () => client.streamTrafficFlows('bench', {}, { onFlows: use }),
  bare: async () => {
    const { href } = await bare.post(url, { json: {} }).json()
    const { result } = await bare.get(`http://127.0.0.1:${port}/api/v2${href}`).json()
    use(JSON.parse(await bare.get(`http://127.0.0.1:${port}/api/v2${result}`).text()))
  },
}

await client.get('labels')
await bare.get(`http://127.0.0.1:${port}/api/v2/orgs/1/labels`).json()
const idle = process.memoryUsage.rss()
const processor = process.cpuUsage()
const started = performance.now()
await readers[reader]()
const ms = performance.now() - started
const { user, system } = process.cpuUsage(processor)
const peak = process.resourceUsage().maxRSS * 1024
console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1000, rows, connections, idle, peak }))
client.close()
agent.destroy()
