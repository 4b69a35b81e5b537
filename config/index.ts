import { checkLiterals, checkNames, checkQuotes, leaveOutBlankFields, unreadIn } from './check-names.js'
import { readDotEnv } from './read-dotenv.js'
import { readCommon, readConfirmTools, readPce, readReplica, refuseConfirmation } from './read-every-mode.js'
import {
  findAtGates,
  needsApproval,
  readAuthenticated,
  readInsecure,
  readMode,
  readStatePath,
  unknownMode,
} from './read-http.js'
import { readDatabase } from './read-state-url.js'
import { readSecretFiles, SECRETS, SECRETS_OF, type SecretName } from './read-secrets.js'
import { readWhole } from './read-whole.js'
import { isKnown } from './variables.js'
import { missingOf, readSwitch, type Environment, type Findings, type Reading } from './read-values.js'
import {
  inWords,
  StartupError,
  type Config,
  type Fault,
  type HttpConfig,
  type ListenOptions,
  type StateFileConfig,
  type StdioConfig,
} from '../schemas/config.js'

/** The variables that were given, and what was found while they were collected. */
export interface Given extends Findings {
  readonly env: Environment
}

/**
 * The environment of the process over that of a `.env` file in the working directory, where there is one. The only place that
 * reads either; what is secret does not stay in the environment, where diagnostics and child processes would find it. With
 * `hasForm`, a field that was left blank in a client's form leaves what the file says.
 */
export function readEnvironment({ hasForm = false } = {}): Given {
  const file = readLocalFile()
  const given = hasForm ? leaveOutBlankFields(process.env, file) : process.env
  const set = Object.entries(given).filter(([, value]) => value !== '')
  for (const name of SECRETS) delete process.env[name]
  // Read from there by libraries, and not by us.
  for (const [name, value] of Object.entries(file.env)) if (name.startsWith('OTEL_')) process.env[name] ||= value
  return { ...file, env: { ...file.env, ...Object.fromEntries(set) } }
}

/** Takes what may be a password for the collector out of the environment, once the libraries have read it. */
export function forgetCollectorHeaders(): void {
  for (const name of COLLECTOR_HEADERS) delete process.env[name]
}

const COLLECTOR_HEADERS = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']

function readLocalFile(): Given {
  try {
    const { variables, faults, warnings } = readDotEnv(readWhole('.env'))
    return { env: variables, faults, warnings }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { env: {}, faults: [], warnings: [] }
    const problem = `Cannot read .env: ${inWords(error)}`
    return {
      env: {},
      faults: [{ problem, remedy: 'Make it a file that the user of this server may read, or remove it.' }],
      warnings: [],
    }
  }
}

/** What the command lines of both programs say of the tools that are offered. */
export interface OfferFlags {
  readOnly?: boolean
  toolsets?: string
}

/** The environment with these options as if they were its variables. They win over it, and neither can turn read-only off for the other. */
export const withFlags = (env: Environment, { readOnly, toolsets }: OfferFlags): Environment => ({
  ...env,
  ...(readOnly === true && { MCP_READ_ONLY: '1' }),
  ...(toolsets !== undefined && { MCP_TOOLSETS: toolsets }),
})

/** The files that the variables name. */
export const pathsIn = (env: Environment): { variable: string; path: string }[] =>
  Object.entries(env).flatMap(([variable, path]) =>
    path && /_(FILE|PATH)$/.test(variable) && isKnown(variable) ? [{ variable, path }] : [],
  )

const readText = (path: string) => readWhole(path).toString('utf8')

export interface ReadOptions<C extends Config> {
  /** For secrets in files: returns the text or throws what node:fs throws. */
  readFile?: (path: string) => string
  /** What was found while the environment was collected. */
  found?: Findings
  /**
   * What else would stop a server with this configuration, or should be known of it, so that it is told together with everything else.
   * Settings that have a fault of their own are at their defaults, or empty.
   */
  check?: (config: C) => Partial<Findings>
}

/**
 * The configuration of one program, or StartupError with everything that is wrong with it. What the startup gates of HTTP find comes
 * first, in the order of D8.
 */
export function readConfig(transport: 'stdio', env: Environment, options?: ReadOptions<StdioConfig>): StdioConfig
export function readConfig(
  transport: 'http',
  env: Environment,
  listen: ListenOptions,
  options?: ReadOptions<HttpConfig>,
): HttpConfig
export function readConfig(
  transport: 'stdio' | 'http',
  env: Environment,
  ...more: [ReadOptions<StdioConfig>?] | [ListenOptions, ReadOptions<HttpConfig>?]
): Config {
  if (transport === 'http') return readHttp(env, ...(more as [ListenOptions, ReadOptions<HttpConfig>?]))
  return readStdio(env, ...(more as [ReadOptions<StdioConfig>?]))
}

/**
 * Where the state of the servers with these settings is: a command that works on it needs no key, and can be run by whoever may
 * read the file or knows the URL of the database. Throws StartupError.
 */
export function readStateFile(given: Environment, found?: Findings): StateFileConfig {
  const reading = readFiles(begin(given, { ...(found && { found }) }), ['MCP_STATE_URL'], {})
  const { env, faults } = reading
  const mode = readMode(env)
  if (mode === null) throw new StartupError(unknownMode(env), ...faults)
  const replica = readReplica(reading)
  const database = readDatabase(reading)
  if (faults.length > 0) throw new StartupError(...faults)
  const { MCP_AUDIT_LOG_PATH: auditLogPath, MCP_OAUTH_ISSUER: issuer } = env
  return {
    mode,
    ...readStatePath(env, mode),
    ...(database && { database }),
    ...(auditLogPath && { auditLogPath }),
    ...replica,
    ...(issuer && { issuer }),
  }
}

function readStdio(given: Environment, options: ReadOptions<StdioConfig> = {}): StdioConfig {
  const reading = readFiles(begin(given, options), SECRETS_OF.environment, options)
  const missing = missingOf(reading.env, ['PCE_HOST', 'API_KEY', 'API_SECRET']).join(', ')
  const gates: Fault[] = []
  if (missing !== '')
    gates.push({
      problem: `Missing required env vars: ${missing}`,
      remedy: `Set ${missing} in the configuration of the MCP client (env), or in a .env file in the working directory.`,
    })
  const asks = readSwitch(reading, 'MCP_CONFIRM_STDIO', false)
  refuseConfirmation(reading, {
    except: asks ? ['MCP_CONFIRM_STDIO', 'MCP_CONFIRM_TOOLS'] : ['MCP_CONFIRM_STDIO'],
    instead: 'or set MCP_CONFIRM_STDIO=1, which has the client ask the person at it.',
  })
  const tools = readConfirmTools(reading)
  const told = ['MCP_CONFIRM_TOOLS', 'MCP_APPROVAL']
  const ignored = unreadIn('stdio', reading.env).filter((name) => !told.includes(name))
  if (ignored.length > 0)
    reading.warnings.push(
      `Over stdio nobody logs in, so no role limits what is offered; ${ignored.join(', ')} set but ignored: svc-mcp-http reads them.`,
    )
  const confirm = asks ? { confirm: tools === undefined ? {} : { tools } } : {}
  return finish(gates, reading, { mode: 'stdio', pce: readPce(reading), ...confirm, ...readCommon(reading) }, options)
}

function readHttp(given: Environment, listen: ListenOptions, options: ReadOptions<HttpConfig> = {}): HttpConfig {
  const bare = begin(given, options)
  const mode = readMode(bare.env)
  if (readSwitch(bare, 'MCP_DEV_INSECURE', false)) {
    const reading = readFiles(bare, SECRETS_OF.environment, options)
    const gates = mode === null ? [unknownMode(bare.env)] : []
    return finish(gates, reading, readInsecure(reading, listen), options)
  }
  // Where the mode is not known, what every mode needs is still told.
  const assumed = mode ?? 'shared'
  const secrets = new Set([
    ...SECRETS_OF[assumed],
    ...(needsApproval(bare.env) ? (['MCP_OAUTH_CLIENT_SECRET'] as const) : []),
  ])
  const reading = readFiles(bare, [...secrets], options)
  const gates = findAtGates(reading.env, mode, listen)
  if (mode !== null) return finish(gates, reading, readAuthenticated(reading, mode, listen), options)
  const { warnings } = reading
  return finish(gates, { ...reading, warnings }, readAuthenticated({ ...reading, warnings: [] }, assumed, listen), {})
}

/** Looks at the variables as such: at their names, at the quotes around their values, and at what only seems to be set. */
function begin(given: Environment, { found }: Pick<ReadOptions<never>, 'found'>): Reading {
  const findings = { faults: [...(found?.faults ?? [])], warnings: [...(found?.warnings ?? [])] }
  checkNames(given, findings)
  return { env: checkQuotes(given, findings), ...findings }
}

/** Adds the secrets of the mode that are in files. */
function readFiles(
  reading: Reading,
  secrets: readonly SecretName[],
  { readFile = readText }: Pick<ReadOptions<never>, 'readFile'>,
): Reading {
  const env = readSecretFiles(reading.env, secrets, readFile, reading)
  checkLiterals(env, reading)
  return { ...reading, env }
}

/** Throws StartupError with every fault. */
function finish<C extends Config>(
  gates: readonly Fault[],
  { faults, warnings }: Reading,
  config: C,
  { check }: ReadOptions<C>,
): C {
  const found = check?.(config) ?? {}
  const all = [...gates, ...faults, ...(found.faults ?? [])]
  const warned = [...warnings, ...(found.warnings ?? [])]
  if (all.length > 0) throw new StartupError(...all).with(warned)
  return { ...config, warnings: warned }
}
