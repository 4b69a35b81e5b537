#!/usr/bin/env node
import { setTimeout as wait } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { Command, InvalidArgumentError } from 'commander'
import type { FastifyInstance } from 'fastify'
import { buildApp } from './app.js'
import { createLogger } from './composition/create-logger.js'
import { endCalls } from './composition/end-calls.js'
import { listen } from './composition/listen.js'
import { readPackage } from './composition/read-package.js'
import { reopenOnHangup } from './composition/reopen-on-hangup.js'
import { trackSilentConnections } from './composition/track-silent-connections.js'
import { readConfig, readEnvironment } from './config.js'
import { StartupError, type InsecureHttpConfig, type ListenOptions } from './schemas/config.js'
import { tools } from './tools/index.js'

/** After the signal new work is still taken while /readyz says no, so that a load balancer can turn away first. */
const LAME_DUCK_MS = 500
const DRAIN_MS = 25_000
/** What calls that are aborted at the end of the drain, and the last answers on their way, have left. */
const LAST_WORDS_MS = 2000

const BANNER = [
  '*******************************************************************************',
  '*  WARNING: starting without auth (MCP_DEV_INSECURE=1).                       *',
  '*  Whoever reaches this port can read and change policy on the PCE.           *',
  '*  Do not use this in production.                                             *',
  '*******************************************************************************',
]

try {
  await serve(readConfig('http', readEnvironment(), readOptions()))
} catch (error) {
  if (!(error instanceof StartupError)) throw error
  say(error.message)
  process.exit(1)
}

function readOptions(): ListenOptions {
  return new Command('svc-mcp-http')
    .description('MCP server for a policy compute engine, over Streamable HTTP at /mcp.')
    .version(readPackage().version)
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 takes any free one', readPort, 8080)
    .option('--socket <path>', 'listen on a Unix socket instead')
    .allowExcessArguments(false)
    .parse()
    .opts()
}

function readPort(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
  return port
}

async function serve(config: InsecureHttpConfig): Promise<void> {
  const log = createLogger(config.logLevel)
  let isDraining = false
  const app = await buildApp(config, { tools, log, auditStream: process.stdout, isDraining: () => isDraining })
  const closeSilent = trackSilentConnections(app.server)
  reopenOnHangup(app.dispatcher.audit, log)
  closeWithGrace(
    { delay: LAME_DUCK_MS + DRAIN_MS + 2 * LAST_WORDS_MS, logger: log, skip: ['SIGHUP'] },
    async ({ signal, err }) => {
      if (err === undefined) log.info({ signal }, 'stopping')
      else log.fatal({ err }, 'unexpected error, stopping')
      isDraining = true
      await drain(app, closeSilent, err === undefined ? DRAIN_MS : 0)
    },
  )
  for (const line of BANNER) say(line)
  for (const warning of config.warnings) say(`WARNING: ${warning}`)
  say(`svc-mcp ${readPackage().version} is listening on ${await listen(app, config.http)}`)
}

/** Finishes what is under way. Throws Error, so that the process exits 1, when some of it had to be cut off. */
async function drain(app: FastifyInstance, closeSilent: () => void, milliseconds: number): Promise<void> {
  if (milliseconds > 0) await wait(LAME_DUCK_MS)
  const closed = app.close()
  closeSilent()
  const isFinished = await endCalls(app.dispatcher, { finish: milliseconds, lastWords: LAST_WORDS_MS })
  if (!isFinished) throw new Error('calls were still running at the end of the drain and were cut off')
  await Promise.race([closed, wait(LAST_WORDS_MS)])
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
