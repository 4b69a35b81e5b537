#!/usr/bin/env node
import './process/refuse-inspector.js'
import { userInfo } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import closeWithGrace from 'close-with-grace'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { FastifyInstance } from 'fastify'
import { buildApp, metricsPlace } from './app.js'
import { alwaysSaid, createLogger, takeWarnings } from './process/create-logger.js'
import { checkPathsAnswer } from './process/check-paths-answer.js'
import { endCalls, flushOnExit, reopenOnHangup } from './process/end-calls.js'
import { listen, type Listening, trackSilentConnections } from './process/listen.js'
import { replicaOf } from './process/name-replica.js'
import { readPackage } from './process/read-package.js'
import { refuseStart } from './process/refuse-start.js'
import { findHttpFaults } from './composition/find-http-faults.js'
import type { AuditedCommandParts } from './composition/audited-command.js'
import type { CommandReport } from './composition/command-report.js'
import type { RevokeOptions } from './composition/revoke-user.js'
import type { WhoOptions } from './composition/who.js'
import { openAudit } from './composition/compose-unauthenticated.js'
import { warnOfOffer } from './composition/offer-tools.js'
import {
  forgetCollectorHeaders,
  pathsIn,
  readConfig,
  readEnvironment,
  readStateFile,
  readStateKeys,
  withFlags,
  type OfferFlags,
  type ReadOptions,
} from '../config/index.js'
import {
  StartupError,
  type DatabaseConfig,
  type HttpConfig,
  type ListenOptions,
  type StateFileConfig,
} from '../schemas/config.js'
import { catalogue as tools } from '../tools/catalogue/index.js'

/**
 * The time, in milliseconds after the signal to stop, during which new requests are still accepted. /readyz already
 * fails during this time, so that a load balancer can react first.
 */
const LAME_DUCK_MS = 500
/**
 * The time, in milliseconds, that a connection accepted just before the server stopped listening has to send its
 * request.
 */
const FIRST_WORDS_MS = 500
const DRAIN_MS = 25_000
/**
 * The time, in milliseconds, that calls have to answer after they were aborted at the end of DRAIN_MS. The last answers
 * are also sent in this time.
 */
const LAST_WORDS_MS = 1500
/**
 * The time, in milliseconds, between the end of all these waits and the forced exit. The total stays below 30 seconds,
 * after which containers are usually killed.
 */
const SPARE_MS = 750

/** The address on which the server listens by default. */
const LOOPBACK = { host: '127.0.0.1', port: 8080 }

/**
 * The path of the metrics, and the name of the setting for their port. Log messages about the metrics listener contain
 * both.
 */
const METRICS = { path: '/metrics', portIn: 'MCP_METRICS_PORT' }

/** The module that worker threads load in order to run heavy tools. */
const WORKER = new URL('./worker.js', import.meta.url)

const BANNER =
  'Starting without auth (MCP_DEV_INSECURE=1): ANYONE who can reach this port can read and change policy on the PCE. ' +
  'Do not use this in production.'

const HELP = `
The configuration comes from the environment and from a .env file in the working directory:
  authenticated   MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE, MCP_CONFIRM_HMAC_KEY, and
    per_user      MCP_KEK (the default: each user has their own PCE key)
    shared        MCP_PCE_MODE=shared, PCE_HOST, API_KEY, API_SECRET (one PCE key for everyone)
  development     MCP_DEV_INSECURE=1: nobody is authenticated
Secrets may come from files: MCP_KEK_FILE=/run/secrets/kek. docs/configuration.md lists every variable with its default.`

/** Logs everything that happens before the configuration has been read, and the reports of commands. */
const startLog = createLogger('info')
takeWarnings(startLog)

// The module of a command is loaded only if that command is run.
const program = new Command('svc-mcp-http')
  .description('MCP server for a policy compute engine, over Streamable HTTP at /mcp.')
  .version(readPackage().version)
  .option('--host <host>', 'address to listen on', readHost, LOOPBACK.host)
  .option('--port <port>', 'port to listen on; 0 picks a free one', readPort, LOOPBACK.port)
  .addOption(new Option('--socket <path>', 'listen on a Unix socket instead').conflicts(['host', 'port']))
  .allowExcessArguments(false)
  .addHelpText('after', HELP)
  .configureOutput({
    outputError: (text) =>
      startLog.fatal({ remedy: 'svc-mcp-http --help shows the options and commands.' }, inOneLine(text)),
  })
  .option('--read-only', 'offer only tools that read, as MCP_READ_ONLY=1 does')
  .option('--toolsets <names>', 'offer these toolsets instead of MCP_TOOLSETS', readToolsets)
  .action(async ({ readOnly, toolsets, ...listen }: ListenOptions & OfferFlags) => {
    const check = (config: HttpConfig) => ({
      faults: findHttpFaults(config, tools),
      warnings: warnOfOffer(config, tools),
    })
    return serve(await readSettings(listen, { readOnly, toolsets }, check))
  })
program
  .command('backup-state')
  .description(
    'Copy the state file (in per_user mode the keystore) to a new file, whole and checked, while servers are running. It needs no ' +
      'secret, but MCP_PCE_MODE and MCP_KEYSTORE_PATH or MCP_STATE_PATH as the servers have them, and their user. How to restore one: ' +
      'docs/operations.md.',
  )
  .argument('<file>', 'the file to write; an existing one is never replaced')
  .allowExcessArguments(false)
  .action(async (file: string) => {
    const { backUpStateFile } = await import('./composition/back-up-state.js')
    report(backUpStateFile(await readState(), file))
  })
program
  .command('forget-user')
  .description(
    'Remove what the state file holds of one person: PCE credentials, and confirmations that wait. Safe while servers are running, and ' +
      'audited (to MCP_AUDIT_LOG_PATH, or to standard output). Needs the same settings as backup-state, or MCP_STATE_URL. Disable the account at the identity ' +
      'provider first, since people who can still log in can register again. docs/operations.md describes the remaining steps.',
  )
  .argument('<subject>', 'the `sub` of the person, as the audit log has it')
  .option('--issuer <issuer>', 'the identity provider, if it is not MCP_OAUTH_ISSUER')
  .allowExcessArguments(false)
  .action(forget)
program
  .command('migrate')
  .description(
    'Bring the schema of the database of MCP_STATE_URL up to date, which every start does as well. Safe while servers of this release and ' +
      'the one before are running; of several programs that start together one does the work.',
  )
  .allowExcessArguments(false)
  .action(async () => {
    const { migrateDatabase } = await import('./composition/move-state.js')
    report(await migrateDatabase(requireDatabase(await readState())))
  })
program
  .command('move-state')
  .description(
    'Move the keystore from its file to an empty PostgreSQL database, encrypted as it is. Stop all servers first. Without --to it goes to ' +
      'MCP_STATE_URL, which keeps the password out of the list of processes. The steps before and after: docs/operations.md.',
  )
  .requiredOption('--from <file>', 'the file of the keystore, as MCP_KEYSTORE_PATH has it', readPath)
  .option('--to <url>', 'the database, instead of MCP_STATE_URL')
  .allowExcessArguments(false)
  .action(async ({ from, to }: { from: string; to?: string }) => {
    const { moveState } = await import('./composition/move-state.js')
    report(await moveState(from, requireDatabase(await readState(to === undefined ? {} : { MCP_STATE_URL: to }))))
  })
program
  .command('test-notification')
  .description(
    'Send a message of the type test to MCP_NOTIFY_WEBHOOK_URL, signed like all others, and say what the receiver answered. Needs the ' +
      'settings of the servers: docs/notifications.md.',
  )
  .allowExcessArguments(false)
  .action(async () => {
    const config = await readSettings(LOOPBACK)
    const { testNotification } = await import('./composition/notify-command.js')
    report(await testNotification(config))
  })
program
  .command('revoke-user')
  .description(
    'End the access of one person at once, on every server with this state: access tokens and browser sessions are refused until a given time, ' +
      'confirm tokens, open confirmations and approvals end, and calls that are running send no further change. Safe while servers are running, and audited as ' +
      'forget-user is. Needs the same settings as forget-user. docs/operations.md has the steps.',
  )
  .requiredOption('--sub <subject>', 'the `sub` of the person, as the audit log has it')
  .option('--iss <issuer>', 'the identity provider, if it is not MCP_OAUTH_ISSUER')
  .option(
    '--until <time>',
    'such as 2030-01-31T18:00:00Z, or now to end only what there is; a day from now unless given',
  )
  .option('--delete-key', 'delete the stored PCE key of the person, too')
  .option('--dry-run', 'say what would happen, and change nothing')
  .allowExcessArguments(false)
  .action(revoke)
program
  .command('rewrap-keystore')
  .description(
    'Re-encrypt every stored PCE key under MCP_KEK instead of MCP_KEK_PREVIOUS. Safe while servers are running. The steps before and after: ' +
      'docs/operations.md.',
  )
  .allowExcessArguments(false)
  .action(rewrap)
program
  .command('who')
  .description(
    'List the people whom the state knows: name, subject, PCE host, when they registered, when they used a server last, and until when their ' +
      'access is revoked. It changes nothing, is audited (to MCP_AUDIT_LOG_PATH, or to standard error), and shows no secret. Needs the same settings as ' +
      'forget-user, and MCP_KEK to show hosts.',
  )
  .option('--json', 'print one JSON object, for scripts')
  .option('--registered', 'only people with PCE credentials here')
  .option('--revoked', 'only people whose access is revoked now')
  .option('--idle-days <days>', 'only people who were not seen for so many days', (text) => readWhole(text, 0, 36_500))
  .option('--limit <count>', 'how many to list', (text) => readWhole(text, 1, 10_000), 100)
  .allowExcessArguments(false)
  .action(who)

try {
  await program.parseAsync()
} catch (error) {
  await refuseStart(startLog, error, 'svc-mcp-http --help shows what each mode needs')
}

/**
 * Shortens commander's error messages. Commander reports an unknown command as a superfluous argument, because the
 * program can also run without a command.
 */
function inOneLine(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replace(/\s+/g, ' ')
    .replace(/^too many arguments\. Expected 0 .*$/, `there is no command '${program.args[0]}'`)
}

/**
 * Reads the configuration. Rejects with a StartupError that lists every fault in the settings, and the faults that
 * `check` finds on this machine.
 */
async function readSettings(
  listen: ListenOptions,
  flags: OfferFlags = {},
  check?: ReadOptions<HttpConfig>['check'],
): Promise<HttpConfig> {
  const { env, ...found } = readEnvironment()
  await checkPathsAnswer(pathsIn(env))
  return readConfig('http', withFlags(env, flags), listen, { found, ...(check && { check }) })
}

/** Runs `rewrap-keystore` and logs the result. Rejects with StartupError if there is nothing to rewrap. */
async function rewrap(): Promise<void> {
  const config = await readSettings(LOOPBACK)
  if (config.mode !== 'per_user')
    throw new StartupError({
      problem: 'Only per_user mode has a keystore',
      remedy: 'Run this with the settings of the servers that use the keystore.',
    })
  const { rewrapKeystore } = await import('./composition/rewrap-keystore.js')
  report(await rewrapKeystore(config))
}

/**
 * Reads the settings that say where the state is. The variables in `given` take precedence over the environment.
 * Rejects with StartupError.
 */
async function readState(given: Record<string, string> = {}): Promise<StateFileConfig> {
  return readStateFile(...(await readStateVariables(given)))
}

/** Returns the variables for the settings of the state, and what was found while they were collected. */
async function readStateVariables(given: Record<string, string> = {}): Promise<Parameters<typeof readStateFile>> {
  const { env, ...found } = readEnvironment()
  const { MCP_STATE_URL_FILE: file, ...others } = env
  const all =
    'MCP_STATE_URL' in given ? { ...others, ...given } : { ...others, ...(file && { MCP_STATE_URL_FILE: file }) }
  await checkPathsAnswer(pathsIn(all))
  return [all, found]
}

/** Returns the configured database. Throws StartupError if there is none. */
function requireDatabase({ database }: StateFileConfig): DatabaseConfig {
  if (database !== undefined) return database
  throw new StartupError({
    problem: 'MCP_STATE_URL is not set: there is no database',
    remedy: 'Set it as on the servers, or set MCP_STATE_URL_FILE to a file that contains it.',
  })
}

/** Runs `forget-user`. Throws StartupError if the issuer is unknown or the records cannot be removed. */
async function forget(sub: string, { issuer }: { issuer?: string }): Promise<void> {
  const config = await readState()
  const iss = requireIssuer(issuer ?? config.issuer, '--issuer')
  const { forgetUser } = await import('./composition/forget-user.js')
  await runAndTell(config, (parts) => forgetUser(config, { iss, sub }, parts))
}

/** Runs `revoke-user`. Throws StartupError if an option cannot be used or the access cannot be revoked. */
async function revoke({ iss: given, sub, ...options }: { iss?: string; sub: string } & RevokeOptions): Promise<void> {
  const config = await readState()
  const iss = requireIssuer(given ?? config.issuer, '--iss')
  const { revokeUser } = await import('./composition/revoke-user.js')
  await runAndTell(config, (parts) => revokeUser(config, { iss, sub }, options, parts))
}

/** Runs `who`, and prints its answer. Rejects with StartupError if there is no state or no audit log. */
async function who({ json = false, ...options }: { json?: boolean } & WhoOptions): Promise<void> {
  const config = readStateKeys(...(await readStateVariables()))
  const { listPeople, renderPeople } = await import('./composition/who.js')
  const open = () => openAudit(config, { log: startLog, auditStream: process.stderr })
  const { report: done, answer } = await listPeople(config, options, { openAudit: open, osUser: nameOfUser() })
  if (answer !== undefined) process.stdout.write(json ? `${JSON.stringify(answer, null, 2)}\n` : renderPeople(answer))
  report(done)
}

/** Returns the issuer of the person. Throws StartupError if it is not known. */
function requireIssuer(iss: string | undefined, option: string): string {
  if (iss !== undefined) return iss
  throw new StartupError({
    problem: 'The identity provider of the person is not known',
    remedy: `Name it with ${option}, or set MCP_OAUTH_ISSUER as on the servers.`,
  })
}

/** Runs a command that writes entries about itself to the audit log, and notifies the receiver of these entries. */
async function runAndTell(
  config: StateFileConfig,
  run: (parts: AuditedCommandParts) => Promise<CommandReport>,
): Promise<void> {
  const { runTold } = await import('./composition/notify-command.js')
  const open = () => openAudit(config, { log: startLog, auditStream: process.stdout })
  report(await runTold(config, open, (openAudit) => run({ openAudit, osUser: nameOfUser() })))
}

function nameOfUser(): string {
  try {
    return userInfo().username
  } catch {
    // In a container, the user may have only a number and no name.
    return String(process.geteuid?.())
  }
}

/** Logs the report of a command. The exit code says whether the command was completed. */
function report({ ok, lines }: CommandReport): void {
  for (const { level, text } of lines) startLog[level](text)
  if (!ok) process.exitCode = 1
}

/**
 * Rejects an empty host. An unset shell variable can result in an empty value, and Node.js would then listen on every
 * address.
 */
function readHost(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

/**
 * Rejects an empty list of toolsets. An unset shell variable can result in an empty value, which would offer every
 * toolset.
 */
function readToolsets(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

/**
 * Rejects an empty path. An unset shell variable can result in an empty value, which would mean the working directory.
 */
function readPath(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

function readWhole(value: string, min: number, max: number): number {
  const number = /^\d{1,6}$/.test(value) ? Number(value) : NaN
  if (!(number >= min && number <= max))
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  return number
}

function readPort(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
  return port
}

async function serve(config: HttpConfig): Promise<void> {
  // Everything created during the start survives. V8 would learn from this to allocate such objects directly in the old
  // generation of the heap (pretenuring). The same code later serves requests, and an object of a request in the old
  // generation would keep the whole request in memory until the next major collection.
  setFlagsFromString('--no-allocation-site-pretenuring')
  const log = createLogger(config.logLevel).child({ replica: replicaOf(config) })
  const starting = alwaysSaid(log)
  const { name, version } = readPackage()
  starting.info({ version, node: process.version, mode: config.mode }, `${name} ${version} is starting`)
  // The warnings come before all other steps of the start, because one of them may explain a later failure.
  if (config.mode === 'insecure') starting.warn(BANNER)
  for (const warning of config.warnings) starting.warn(warning)
  let isDraining = false
  const app = await buildApp(config, {
    tools,
    worker: WORKER,
    log,
    auditStream: process.stdout,
    isDraining: () => isDraining,
  })
  forgetCollectorHeaders()
  const closeSilent = trackSilentConnections(app.server)
  flushOnExit(app.dispatcher.audit)
  reopenOnHangup(app.dispatcher.audit, log)
  process.on('SIGHUP', () => void app.reloadScopes?.())
  let withdraw: Listening['withdraw'] = () => Promise.resolve()
  closeWithGrace(
    { delay: LAME_DUCK_MS + FIRST_WORDS_MS + DRAIN_MS + 2 * LAST_WORDS_MS + SPARE_MS, logger: log, skip: ['SIGHUP'] },
    async ({ signal, err }) => {
      const isTold = signal !== undefined
      if (isTold) log.info({ signal }, 'stopping')
      else log.fatal({ err }, 'unexpected error, stopping')
      isDraining = true
      await withdraw()
      await drain(app, closeSilent, isTold ? DRAIN_MS : 0)
      // `err` can have any value, even undefined, which would not make the exit code non-zero. A new error is therefore
      // thrown.
      if (!isTold) throw new Error('stopped after an unexpected error')
    },
  )
  if (app.metricsServer !== null) {
    const { where } = await listen(app.metricsServer, metricsPlace(config), METRICS)
    starting.info(`metrics are at ${where}`)
  }
  const listening = await listen(app, config.http)
  withdraw = listening.withdraw
  starting.info({ version }, `${name} ${version} is listening on ${listening.where}`)
}

/** Waits for running calls to finish. If some had to be aborted, throws Error, so that the process exits with 1. */
async function drain(app: FastifyInstance, closeSilent: () => void, milliseconds: number): Promise<void> {
  if (milliseconds > 0) await wait(LAME_DUCK_MS)
  const closed = app.close()
  if (milliseconds > 0) await wait(FIRST_WORDS_MS)
  closeSilent()
  const isFinished = await endCalls(app.dispatcher, { finish: milliseconds, lastWords: LAST_WORDS_MS })
  await Promise.race([closed, wait(LAST_WORDS_MS)])
  if (!isFinished) throw new Error('calls that were still running at the end of the drain were aborted')
}
