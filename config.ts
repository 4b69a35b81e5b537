import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readCommon, readPce, warnOfConfirmTools } from './config/read-every-mode.js'
import { checkAddressAndOAuth, readAuthenticated, readInsecure, readMode } from './config/read-http.js'
import { readSecretFiles, SECRETS, SECRETS_OF } from './config/read-secrets.js'
import { missingOf, type Environment } from './config/read-values.js'
import { StartupError, type Config, type HttpConfig, type ListenOptions, type StdioConfig } from './schemas/config.js'

/**
 * The environment of the process over that of a `.env` file in the working directory, where there is one. The only place that
 * reads either; what is secret does not stay in the environment, where diagnostics and child processes would find it. Throws
 * StartupError when there is a file that cannot be read.
 */
export function readEnvironment(): Environment {
  let text = ''
  try {
    text = readFileSync('.env', 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') throw new StartupError(`Cannot read .env: ${code}`)
  }
  const set = Object.entries(process.env).filter(([, value]) => value !== '')
  for (const name of SECRETS) delete process.env[name]
  return { ...parseEnv(text), ...Object.fromEntries(set) }
}

const readText = (path: string) => readFileSync(path, 'utf8')

/**
 * The configuration of one program, or StartupError with the line for standard error. The startup gates of HTTP run in the order of
 * D8.
 *
 * @param readFile for secrets in files; returns the text or throws what node:fs throws.
 */
export function readConfig(transport: 'stdio', env: Environment): StdioConfig
export function readConfig(
  transport: 'http',
  env: Environment,
  listen: ListenOptions,
  readFile?: (path: string) => string,
): HttpConfig
export function readConfig(
  transport: 'stdio' | 'http',
  given: Environment,
  listen?: ListenOptions,
  readFile = readText,
): Config {
  if (transport === 'http') return readHttp(given, listen!, readFile)
  const env = readSecretFiles(given, SECRETS_OF.environment, readFile)
  const missing = missingOf(env, ['PCE_HOST', 'API_KEY', 'API_SECRET'])
  if (missing.length > 0) throw new StartupError(`Missing required env vars: ${missing.join(', ')}`)
  const warnings = warnOfConfirmTools(env)
  return { mode: 'stdio', pce: readPce(env, warnings), ...readCommon(env, warnings) }
}

function readHttp(env: Environment, listen: ListenOptions, readFile: (path: string) => string): HttpConfig {
  if (env.MCP_DEV_INSECURE === '1') return readInsecure(readSecretFiles(env, SECRETS_OF.environment, readFile), listen)
  checkAddressAndOAuth(env, listen)
  return readAuthenticated(readSecretFiles(env, SECRETS_OF[readMode(env)], readFile), listen)
}
