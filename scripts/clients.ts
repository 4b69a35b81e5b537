/**
 * `npm run clients` puts MCP clients that other people wrote in front of the built server, over stdio and over
 * Streamable HTTP with a bearer token, with a simulated PCE behind it. Each client lists the tools, reads a document,
 * makes a read and a dry run, and is refused twice; every value is compared exactly. What was found is compared with
 * test/clients/results.json, of which docs/clients/README.md shows a table; `--write` writes it. No model is asked: the
 * tool objects that a client would hand to a model are called directly. The last line is `N passed, N failed`.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { fillText } from '../knowledge/fill-text.js'
import { createPceSimulator } from '../pce-simulator/index.js'
import { DEFAULT_NAMES } from '../test/surface/contract.js'
import { catalogue } from '../tools/catalogue/index.js'
import { inScratch } from './bench/in-scratch.js'
import { startProvider } from './bench/start-provider.js'
import { startServer } from './bench/start-server.js'
import { CLIENTS, describePackages, FOLDER, runsHere, type TriedClient } from './clients/clients.js'
import { CALLS, judgeSession, type Expected, type Session, type Step } from './clients/judge-session.js'
import { readResults, RESULTS_FILE, type ClientResult } from './clients/results.js'
import { runOnline } from './run-online.js'
import { summaryLine } from './summary-line.js'

const HELP = `npm run clients [-- [--write] [CLIENT ...]]

  --write  write what is found into ${RESULTS_FILE}; \`npm run generate\` then writes the table
  Clients: ${CLIENTS.map(({ program }) => program).join(', ')}
`
/** The Node.js of the image, for clients that do not run on that of this process. */
const LATER_NODE = 'node@24'
const GROUP = 'operators'
/** A document that names only tools of the default list, so that every client is served the same text. */
const DOCUMENT = 'methodology/core-services'
const PATIENCE_MS = 120_000

type Transport = 'stdio' | 'http'
type Servers = Partial<Record<Transport, object>>

const root = fileURLToPath(new URL('..', import.meta.url))
const { values: options, positionals } = readArguments()
if (options.help) {
  console.log(HELP)
  process.exit(0)
}
const unknown = positionals.filter((name) => !CLIENTS.some(({ program }) => program === name))
if (unknown.length > 0) {
  console.error(`There is no client ${unknown.join(', ')}.\n\n${HELP}`)
  process.exit(1)
}
const wanted = CLIENTS.filter(({ program }) => positionals.length === 0 || positionals.includes(program))

// Whatever the registry is needed for comes before anything is started.
runOrSkip(process.execPath, ['scripts/ensure-install.mjs', 'test/clients'])
const laterNode = wanted.every((client) => runsHere(describePackages(client)))
  ? undefined
  : runOrSkip('npx', ['-y', '-p', LATER_NODE, 'node', '-p', 'process.execPath']).trim()
const expected: Expected = {
  tools: DEFAULT_NAMES,
  document: fillText(readFileSync(join(root, `knowledge/documents/${DOCUMENT}.md`), 'utf8'), {
    tools: new Map(catalogue.map((tool) => [tool.name, tool])),
  }),
}
const counts = { passed: 0, failed: 0 }
const found: Record<string, ClientResult> = {}
await tryClients()
const known = readResults()
if (options.write && counts.failed > 0) console.log(`${RESULTS_FILE} stays as it is, because something failed`)
else if (options.write) {
  const all = CLIENTS.map(({ program }) => [program, found[program] ?? known[program]])
  const text = JSON.stringify(Object.fromEntries(all.filter(([, result]) => result !== undefined)), null, 2)
  writeFileSync(join(root, RESULTS_FILE), `${text}\n`)
} else
  for (const { program } of wanted) check(`${program} is in ${RESULTS_FILE} as it was found`, differenceOf(program))
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

/** Starts the PCE and the HTTP server, and runs one client after the other. */
async function tryClients(): Promise<void> {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 50 })
  const provider = await startProvider(GROUP)
  const { origin, port } = new URL(await simulator.listen({ port: 0 }))
  const environment = {
    PCE_HOST: origin.slice(0, origin.lastIndexOf(':')),
    PCE_PORT: port,
    PCE_ORG_ID: String(simulator.orgId),
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
    MCP_LOG_LEVEL: 'error',
  }
  try {
    await inScratch(async (scratch) => {
      const { url } = await startServer(scratch, 'clients', (address) => ({
        ...environment,
        ...provider.environment,
        MCP_PCE_MODE: 'shared',
        MCP_PUBLIC_URL: address,
        MCP_ROLE_GROUPS_OPERATOR: GROUP,
        MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 1).toString('base64'),
        MCP_STATE_PATH: join(scratch.directory, 'state.db'),
      }))
      const stdio = {
        command: process.execPath,
        args: [join(root, 'dist/stdio.js')],
        env: { PATH: process.env.PATH ?? '', ...environment },
      }
      const http = { url: `${url}/mcp`, headers: { Authorization: `Bearer ${await provider.tokenFor('clients')}` } }
      for (const client of wanted) {
        simulator.clearRequests()
        const started = performance.now()
        await tryClient(client, client.only === 'http' ? { http } : { stdio, http })
        const writes = simulator.requests.filter(({ method }) => method !== 'GET')
        check(
          `${client.program}: nothing was written`,
          writes.length === 0 ? undefined : writes.map(({ method, path }) => `${method} ${path}`).join(', '),
        )
        console.log(`        ${client.title}: ${((performance.now() - started) / 1000).toFixed(1)} s`)
      }
    })
  } finally {
    provider.close()
    await simulator.close()
  }
}

/** Runs one client, and notes what it saw. */
async function tryClient(client: TriedClient, servers: Servers): Promise<void> {
  const { versions, node } = describePackages(client)
  const result: ClientResult = { title: client.title, versions, node, steps: {} }
  const execPath = runsHere({ node }) ? process.execPath : laterNode!
  const sessions = await runProgram(client, servers, execPath)
  for (const transport of Object.keys(servers) as Transport[]) {
    const session = typeof sessions === 'string' ? { connect: { thrown: sessions } } : sessions[transport]
    const steps = Object.entries(judgeSession(client, session as Session, expected)).map(([step, verdict]) => {
      const failure = 'failure' in verdict ? verdict.failure : undefined
      check(`${client.program} over ${transport}: ${step}`, failure)
      return [step, 'word' in verdict ? verdict.word : 'failed']
    })
    result.steps[transport] = Object.fromEntries(steps) as Record<Step, string>
  }
  found[client.program] = result
}

/** Runs a client in a process of its own. Returns what it saw by transport, or why it saw nothing. */
async function runProgram(
  { program }: TriedClient,
  servers: Servers,
  execPath: string,
): Promise<Record<Transport, Session> | string> {
  const child = fork(join(FOLDER, 'programs/session.mjs'), {
    ...{ execPath, execArgv: [], timeout: PATIENCE_MS },
    // Clients log to their standard output and hand on what the server logs.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  })
  let log = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (log += text))
  let seen: Record<Transport, Session> | undefined
  child.once('message', (message) => (seen = message as Record<Transport, Session>))
  child.send({ client: program, servers, uri: `illumio://${DOCUMENT}`, calls: CALLS })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return seen ?? `its process ended with ${code ?? signal}: ${log}`
}

/**
 * Runs a command that may need the package registry, and returns its output. If the registry cannot be reached, the
 * program ends without having run a client.
 */
function runOrSkip(command: string, args: readonly string[]): string {
  const output = runOnline(command, args, root)
  if (output !== undefined) return output
  console.log('The package registry cannot be reached, so no client was run.')
  console.log(summaryLine({ passed: 0, failed: 0 }))
  process.exit(0)
}

/** Counts one check, which failed if there is a failure, and reports it. */
function check(name: string, failure: string | undefined): void {
  counts[failure === undefined ? 'passed' : 'failed']++
  console.log(failure === undefined ? `ok      ${name}` : `FAILED  ${name}: ${failure}`)
}

/** Returns how the result of a client differs from the one in git. */
function differenceOf(program: string): string | undefined {
  if (isDeepStrictEqual(found[program], known[program])) return undefined
  return `${JSON.stringify(found[program])}; \`npm run clients -- --write\` and \`npm run generate\` write it`
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { write: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(1)
  }
}
