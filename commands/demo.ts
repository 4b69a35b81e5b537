/**
 * The demonstration: a simulated PCE, the built HTTP server and an MCP client that works them, printed as a story.
 * `--once` ends after the story; otherwise everything stays up until Ctrl-C.
 */
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { createPceSimulator } from '../pce-simulator/index.js'
import { printClientLines } from './demo/client-lines.js'
import { tell } from './demo/print.js'
import { choosePort } from './choose-port.js'
import { startServer, type PceEnvironment } from './demo/start-server.js'
import { tellStory } from './demo/story.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const { once, port } = new Command('demo')
  .description('Plays a conversation between an MCP client and this server on a simulated PCE.')
  .option('--once', 'end after the conversation instead of staying up', false)
  .option('--port <port>', 'port of the MCP server; any free one when it is taken', parsePort, 8080)
  .parse()
  .opts<{ once: boolean; port: number }>()

const ESTATE = { seed: 7, workloads: 400, flows: 20_000 }
tell(
  `Starting a simulated PCE (${ESTATE.workloads} workloads, ${ESTATE.flows.toLocaleString('en')} flows) and svc-mcp …`,
)
const simulator = await createPceSimulator(ESTATE)
const pceUrl = new URL(await simulator.listen({ port: 0 }))
const pce: PceEnvironment = {
  PCE_HOST: `${pceUrl.protocol}//${pceUrl.hostname}`,
  PCE_PORT: pceUrl.port,
  PCE_ORG_ID: String(simulator.orgId),
  API_KEY: simulator.credentials.key,
  API_SECRET: simulator.credentials.secret,
}

const { url, child } = await startServer(await choosePort(port), pce)
let stopping = false
child.once('exit', () => {
  if (!stopping) process.exit(1)
})

async function stop(code: number): Promise<void> {
  if (stopping) return
  stopping = true
  child.kill('SIGTERM')
  await simulator.close()
  process.exit(code)
}
process.on('SIGINT', () => void stop(0))
process.on('SIGTERM', () => void stop(0))

try {
  await tellStory({ url: `${url}/mcp`, stdioProgram: `${root}dist/stdio.js`, pce })
} catch (error) {
  console.error(error)
  await stop(1)
}

if (once) await stop(0)
console.log()
tell('Now your own client. Everything stays up until Ctrl-C; one line or file each:')
printClientLines(url, root, pce)
console.log()
tell(`svc-mcp is at ${url}/mcp, the simulated PCE at ${pceUrl.origin}. Ctrl-C ends both.`)

function parsePort(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0 || value > 65_535) throw new InvalidArgumentError('a port is 0 to 65535.')
  return value
}
