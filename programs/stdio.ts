#!/usr/bin/env node
import './process/refuse-inspector.js'
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import closeWithGrace from 'close-with-grace'
import { composeUnauthenticated, findFileFaults } from './composition/compose-unauthenticated.js'
import { nameServer } from './composition/observe.js'
import { findOfferFaults, warnOfOffer } from './composition/offer-tools.js'
import { findConfirmFaults } from './composition/require-confirmations.js'
import { alwaysSaid, createLogger, takeWarnings } from './process/create-logger.js'
import { checkPathsAnswer } from './process/check-paths-answer.js'
import { endCalls, flushOnExit, reopenOnHangup } from './process/end-calls.js'
import { readPackage } from './process/read-package.js'
import { refuseStart } from './process/refuse-start.js'
import {
  forgetCollectorHeaders,
  pathsIn,
  readConfig,
  readEnvironment,
  withFlags,
  type OfferFlags,
} from '../config/index.js'
import { createKnowledge } from '../knowledge/index.js'
import { createDispatcher, type Dispatcher } from '../plugins/dispatcher/dispatch.js'
import { listTool } from '../plugins/mcp/list-tools.js'
import { createOfferedTools } from '../plugins/mcp/offered-tools.js'
import type { ServerPorts } from '../plugins/mcp/ports.js'
import { StdioConnection } from '../plugins/mcp/stdio-connection.js'
import { openTracing } from '../plugins/tracing/open-tracing.js'
import { StartupError, type StdioConfig } from '../schemas/config.js'
import type { Tracing } from '../schemas/tracing.js'
import { catalogue as tools } from '../tools/catalogue/index.js'

/**
 * The time, in milliseconds, in which running calls can finish. A client that closes the process's input expects the
 * process to end within 2 seconds.
 */
const FINISH_MS = 1200
/** The time, in milliseconds, in which calls that were aborted can still answer and be audited. */
const LAST_WORDS_MS = 300
/** The time, in milliseconds, in which the last tracing spans can be sent after the calls have ended. */
const LAST_SPANS_MS = 200

/** The module that worker threads load in order to run heavy tools. */
const WORKER = new URL('./worker.js', import.meta.url)
/** The child programs that the demonstration starts. */
const PROGRAMS = {
  stdio: new URL('./stdio.js', import.meta.url),
  http: new URL('./http.js', import.meta.url),
  simulator: new URL('./pce-simulator/pce-sim.js', import.meta.url),
}

const HELP = `Usage: svc-mcp [options] [command]

MCP server for a policy compute engine, over standard input and output. An MCP client starts it.

Options:
  --read-only         offer only tools that read, as MCP_READ_ONLY=1 does
  --toolsets <names>  offer these toolsets, in place of MCP_TOOLSETS
  -V, --version       output the version number
  -h, --help          display help

Commands:
  draw                make a picture of what a tool answers, as a file; svc-mcp draw --help
  demo                play a conversation on a simulated PCE; nothing else is needed for it
  doctor              check the settings, the connection to the PCE, its certificate, the API key, the organisation and the clock
  policy              export the policy into files, compare them with it, apply them to the draft; svc-mcp policy --help

It needs PCE_HOST, API_KEY and API_SECRET in the environment or in a .env file in the working directory;
PCE_PORT defaults to 443 and PCE_ORG_ID to 1.
`

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'V' },
  'read-only': { type: 'boolean' },
  toolsets: { type: 'string' },
} as const

/** The commands that accept the same options as the server. */
const COMMANDS = ['doctor'] as const

const startLog = createLogger('info')
takeWarnings(startLog)

try {
  // The modules of commands are loaded only if the command was given, because without a command a client waits for the
  // server to start.
  if (process.argv[2] === 'draw') {
    const { draw } = await import('./draw.js')
    process.exitCode = await draw(process.argv.slice(3), WORKER)
  } else if (process.argv[2] === 'policy') {
    const { runPolicy } = await import('./policy.js')
    process.exitCode = await runPolicy(process.argv.slice(3))
  } else if (process.argv[2] === 'demo') {
    const { runDemo } = await import('./commands/demo.js')
    process.exitCode = await runDemo(process.argv.slice(3), { ...PROGRAMS, named: realpathSync(process.argv[1]!) })
  } else {
    const asked = readOptions()
    if (asked?.command === 'doctor') process.exitCode = await examine(asked)
    else if (asked !== null) await serve(await readSettings(asked))
  }
} catch (error) {
  await refuseStart(startLog, error, 'svc-mcp --help shows what it needs')
}

/** Runs the command `doctor`. Its module is loaded only here, so that it does not delay the start of the server. */
async function examine(flags: OfferFlags): Promise<number> {
  const { runDoctor } = await import('./commands/doctor.js')
  return runDoctor({
    readSettings: () => readSettings(flags),
    write: (text) => process.stdout.write(text),
    heading: `svc-mcp ${readPackage().version} on Node.js ${process.version}`,
  })
}

/** Reads the configuration. Rejects with a StartupError that lists every fault. */
async function readSettings(flags: OfferFlags): Promise<StdioConfig> {
  const { env, ...found } = readEnvironment({ hasForm: true })
  await checkPathsAnswer(pathsIn(env))
  return readConfig('stdio', withFlags(env, flags), {
    found,
    check: (config) => ({
      faults: [...findFileFaults(config), ...findOfferFaults(config, tools), ...findConfirmFaults(config, tools)],
      warnings: warnOfOffer(config, tools),
    }),
  })
}

/**
 * Parses the command line. Returns null if it only asks for help or the version. Throws StartupError for unknown
 * options and commands.
 */
function readOptions(): (OfferFlags & { command: (typeof COMMANDS)[number] | undefined }) | null {
  const { values, positionals } = parseOptions()
  const { help, version, toolsets, 'read-only': readOnly } = values
  if (help === true) process.stdout.write(HELP)
  else if (version === true) process.stdout.write(`${readPackage().version}\n`)
  if (help === true || version === true) return null
  // An empty value, which an unset shell variable can cause, would offer every toolset.
  if (toolsets?.trim() === '')
    throw new StartupError({ problem: '--toolsets must not be empty', remedy: 'Name toolsets, or omit the option.' })
  const [named, ...rest] = positionals
  const command = COMMANDS.find((name) => name === named)
  if (rest.length > 0 || command !== named) {
    const problem = `unknown command '${positionals.join(' ').slice(0, 100)}'`
    throw new StartupError({
      problem,
      remedy: 'The commands are draw, demo, doctor and policy; without a command, the server starts.',
    })
  }
  return { readOnly, toolsets, command }
}

function parseOptions() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new StartupError({
      problem: (error as Error).message.replace(/\. To specify.*$/s, ''),
      remedy: 'svc-mcp --help shows its options; its other settings are environment variables.',
    })
  }
}

async function serve(config: StdioConfig): Promise<void> {
  const log = createLogger(config.logLevel)
  for (const warning of config.warnings) alwaysSaid(log).warn(warning)
  const tracing = await traced(config, log)
  const composed = composeUnauthenticated(config, { tools, log, worker: WORKER, ...(tracing && { tracing }) })
  const { name, version } = composed.server
  const { callerContext } = composed
  const dispatcher = createDispatcher(composed.dispatcher)
  const ports: ServerPorts = {
    info: { name, version },
    listTools: createOfferedTools(tools.map(listTool)),
    offered: callerContext.offer.listed,
    knowledge: createKnowledge(composed.dispatcher),
    orgId: callerContext.pce?.orgId,
    lookUp: (question, read) => dispatcher.lookUp(question, callerContext, (context) => read(context as never)),
    ...(composed.asking && { asking: composed.asking }),
    onFailure: (err) => log.error({ err }, 'request failed'),
    requestId: randomUUID,
    callTool(call, client) {
      // The client's name in a request applies only to that request. All other requests use the name that the client
      // gave in `initialize`.
      return dispatcher.dispatch(
        call,
        client === undefined ? callerContext : { ...callerContext, client: client ?? undefined },
      )
    },
    onInitialize(client) {
      callerContext.client = client
    },
  }

  flushOnExit(dispatcher.audit)
  reopenOnHangup(dispatcher.audit, log)
  const closer = closeWithGrace({ delay: 1900, logger: log, skip: ['SIGHUP'] }, async ({ err }) => {
    if (err !== undefined) log.fatal({ err }, 'unexpected error, stopping')
    await finish(dispatcher)
    await tracing?.close()
  })
  process.stdin.on('end', () => void closer.close())
  process.stdin.on('error', () => void closer.close())
  // The client no longer reads answers, but running calls that change something at the PCE are still completed.
  process.stdout.on('error', () => void closer.close())
  // A client that has listed the tools will probably call one, but only after a model has read the list. There is time
  // until then to load the code for calls.
  new StdioConnection(
    process.stdin,
    process.stdout,
    ports,
    () => void dispatcher.warmUp(callerContext.offer.callable),
  ).start()
}

/** Starts tracing if it is configured; otherwise, resolves with undefined. */
async function traced(
  config: StdioConfig,
  log: Parameters<typeof openTracing>[0]['log'],
): Promise<Tracing | undefined> {
  if (config.tracing !== true) return undefined
  const tracing = await openTracing({ ...nameServer(config), log, patienceMs: LAST_SPANS_MS })
  forgetCollectorHeaders()
  return tracing
}

async function finish(dispatcher: Dispatcher): Promise<void> {
  // Requests that arrived together with the end of the input reach the dispatcher only in the next turn of the event
  // loop.
  await nextTurn()
  await endCalls(dispatcher, { finish: FINISH_MS, lastWords: LAST_WORDS_MS })
  // The last answers are written to the output only in the next turn of the event loop.
  await nextTurn()
  if (process.stdout.writableLength > 0)
    await Promise.race([new Promise((sent) => process.stdout.write('', sent)), wait(100)])
  dispatcher.audit?.close()
}
