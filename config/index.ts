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
import { readTold } from './read-notify.js'
import { readDatabase } from './read-state-url.js'
import { readKey, readPreviousKey, readSecretFiles, SECRETS, SECRETS_OF, type SecretName } from './read-secrets.js'
import { readWhole } from './read-whole.js'
import { isKnown } from './variables.js'
import {
  missingOf,
  readSwitch,
  readUnsafeSwitch,
  type Environment,
  type Findings,
  type Reading,
} from './read-values.js'
import {
  inWords,
  StartupError,
  type Config,
  type Fault,
  type HttpConfig,
  type ListenOptions,
  type StateFileConfig,
  type StateKeysConfig,
  type StdioConfig,
} from '../schemas/config.js'

/** The environment variables of the process, with the faults and warnings found while they were collected. */
export interface Given extends Findings {
  readonly env: Environment
}

/**
 * Merges the process environment with a `.env` file in the working directory, if there is one. The process environment
 * takes precedence. No other code reads the environment or the file. Secrets are deleted from `process.env`, where
 * diagnostics and child processes would see them. If `hasForm` is true, a variable whose field was left blank in a
 * client's form gets its value from the `.env` file.
 */
export function readEnvironment({ hasForm = false } = {}): Given {
  const file = readLocalFile()
  const given = hasForm ? leaveOutBlankFields(process.env, file) : process.env
  const set = Object.entries(given).filter(([, value]) => value !== '')
  for (const name of SECRETS) delete process.env[name]
  // OpenTelemetry's libraries read the variables that begin with OTEL_ from `process.env` themselves.
  for (const [name, value] of Object.entries(file.env)) if (name.startsWith('OTEL_')) process.env[name] ||= value
  return { ...file, env: { ...file.env, ...Object.fromEntries(set) } }
}

/**
 * Deletes the headers for the trace collector from the environment, because they may contain a password. This must
 * happen after OpenTelemetry's libraries have read them.
 */
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
      faults: [{ problem, remedy: 'Make it a file that the user of this server can read, or remove it.' }],
      warnings: [],
    }
  }
}

/** The command-line options that choose the offered tools. Both server programs have these options. */
export interface OfferFlags {
  readOnly?: boolean
  toolsets?: string
}

/**
 * Applies command-line options as if they were environment variables. The options take precedence, except that
 * read-only mode is on if either the option or the variable turns it on.
 */
export const withFlags = (env: Environment, { readOnly, toolsets }: OfferFlags): Environment => ({
  ...env,
  ...(readOnly === true && { MCP_READ_ONLY: '1' }),
  ...(toolsets !== undefined && { MCP_TOOLSETS: toolsets }),
})

/** Lists the variables whose value is the path of a file, with these paths. */
export const pathsIn = (env: Environment): { variable: string; path: string }[] =>
  Object.entries(env).flatMap(([variable, path]) =>
    path && /_(FILE|PATH)$/.test(variable) && isKnown(variable) ? [{ variable, path }] : [],
  )

const readText = (path: string) => readWhole(path).toString('utf8')

export interface ReadOptions<C extends Config> {
  /** Reads a secret from a file; tests replace this function. Throws the errors of node:fs. */
  readFile?: (path: string) => string
  /** The faults and warnings found while the environment was collected. */
  found?: Findings
  /**
   * Finds further faults and warnings, such as unreadable files, so that the operator gets them together with the
   * faults of the settings. If a setting has a fault, `config` contains its default or an empty value.
   */
  check?: (config: C) => Partial<Findings>
}

/**
 * Reads the configuration of one program. Throws a StartupError that lists everything wrong with it; the faults of the
 * HTTP startup gates come first, in the order of D8.
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
 * Returns where servers with these settings keep their state. No encryption key is required for this, so anyone who can
 * read the state file or knows the database URL can run a command on the state. Throws StartupError if a setting has a
 * fault.
 */
export function readStateFile(given: Environment, found?: Findings): StateFileConfig {
  const reading = readFiles(begin(given, { ...(found && { found }) }), ['MCP_STATE_URL'], {})
  const { env, faults } = reading
  const mode = readMode(env)
  if (mode === null) throw new StartupError(unknownMode(env), ...faults)
  const replica = readReplica(reading)
  const database = readDatabase(reading)
  const notify = readTold(reading)
  if (faults.length > 0) throw new StartupError(...faults)
  const { MCP_AUDIT_LOG_PATH: auditLogPath, MCP_OAUTH_ISSUER: issuer } = env
  return {
    mode,
    ...readStatePath(env, mode),
    ...(database && { database }),
    ...(auditLogPath && { auditLogPath }),
    ...replica,
    ...(notify && { notify }),
    ...(issuer && { issuer }),
  }
}

/** Reads the settings of `readStateFile` and, in per_user mode, those keys of the keystore that are set. */
export function readStateKeys(given: Environment, found?: Findings): StateKeysConfig {
  const config = readStateFile(given, found)
  if (config.mode !== 'per_user') return config
  const reading = readFiles(begin(given, {}), ['MCP_KEK', 'MCP_KEK_PREVIOUS'], {})
  const kek = readKey(reading, 'MCP_KEK')
  const previousKek = readPreviousKey(reading, 'MCP_KEK_PREVIOUS', kek)
  if (reading.faults.length > 0) throw new StartupError(...reading.faults)
  return reading.env.MCP_KEK ? { ...config, kek, ...(previousKek && { previousKek }) } : config
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
    instead: 'or set MCP_CONFIRM_STDIO=1, so that the client asks its user.',
  })
  const tools = readConfirmTools(reading)
  const told = ['MCP_CONFIRM_TOOLS', 'MCP_APPROVAL', 'MCP_FREEZE_OVERRIDE']
  const ignored = unreadIn('stdio', reading.env).filter((name) => !told.includes(name))
  if (ignored.length > 0)
    reading.warnings.push(
      `Nobody logs in over stdio, so no role limits the tools; ${ignored.join(', ')} set but ignored: svc-mcp-http reads them.`,
    )
  const confirm = asks ? { confirm: tools === undefined ? {} : { tools } } : {}
  return finish(gates, reading, { mode: 'stdio', pce: readPce(reading), ...confirm, ...readCommon(reading) }, options)
}

function readHttp(given: Environment, listen: ListenOptions, options: ReadOptions<HttpConfig> = {}): HttpConfig {
  const bare = begin(given, options)
  const mode = readMode(bare.env)
  if (readUnsafeSwitch(bare, 'MCP_DEV_INSECURE')) {
    const reading = readFiles(bare, SECRETS_OF.environment, options)
    const gates = mode === null ? [unknownMode(bare.env)] : []
    return finish(gates, reading, readInsecure(reading, listen), options)
  }
  // For an unknown mode, the settings are read as in shared mode, so that the faults that can occur in every mode are
  // still reported.
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

/**
 * Checks the variables before their values are interpreted: for unknown names, quotes around values, and stray
 * whitespace in values that are used unchanged.
 */
function begin(given: Environment, { found }: Pick<ReadOptions<never>, 'found'>): Reading {
  const findings = { faults: [...(found?.faults ?? [])], warnings: [...(found?.warnings ?? [])] }
  checkNames(given, findings)
  return { env: checkQuotes(given, findings), ...findings }
}

/** Adds the secrets that are stored in files, and checks the values that are used unchanged. */
function readFiles(
  reading: Reading,
  secrets: readonly SecretName[],
  { readFile = readText }: Pick<ReadOptions<never>, 'readFile'>,
): Reading {
  const env = readSecretFiles(reading.env, secrets, readFile, reading)
  checkLiterals(env, reading)
  return { ...reading, env }
}

/** Returns the configuration, or throws a StartupError with every fault. */
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
