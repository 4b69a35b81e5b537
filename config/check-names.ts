import { SECRETS } from './read-secrets.js'
import { isPlaceholder, placeholderIn, withoutLogin, type Environment, type Findings } from './read-values.js'
import { isKnown, misspelt, triedFor, VARIABLES } from './variables.js'

/** Matches names that begin with a prefix of this server's variables, in upper or lower case. */
const OURS = /^(?:MCP|PCE)_/i

/**
 * Finds variables that no program reads. A misspelt name of a known variable is a fault, because the intended setting
 * would not take effect. Any other unknown name causes only a warning, because platforms set variables with similar
 * names (Kubernetes: PCE_SERVICE_HOST).
 */
export function checkNames(env: Environment, { faults, warnings }: Findings): void {
  const unknown = Object.keys(env).filter((name) => env[name] && OURS.test(name) && !isKnown(name))
  const others: string[] = []
  for (const name of unknown.sort()) {
    const meant = misspelt(name)
    if (meant === null) others.push(name)
    else faults.push({ problem: `${name} is not a variable of this server`, remedy: remedyOf(name, meant) })
  }
  if (others.length === 0) return
  const named = others.map((name) => {
    const meant = triedFor(name)
    return meant === undefined ? name : `${name} (did you mean ${meant}?)`
  })
  warnings.push(
    `Ignored, because this server has no such variable: ${named.join(', ')}. A platform or another program may have set ${others.length === 1 ? 'it' : 'them'}.`,
  )
}

function remedyOf(name: string, meant: string): string {
  if (name.toUpperCase() === `${meant}_FILE`) return `${meant} is not read from a file: set ${meant} itself.`
  return `Did you mean ${meant}? Rename it, or unset it if it belongs to another program.`
}

const QUOTES = ["''", '""', '``', '“”', '‘’', '„“', '«»']

/**
 * Removes quotes around the whole value of a variable, and reports each such value as a fault: `docker --env-file`, a
 * pod's manifest and a client's settings pass quotes on as part of the value.
 */
export function checkQuotes(env: Environment, { faults }: Findings): Environment {
  const quoted = Object.entries(env).filter(
    ([name, value]) =>
      isKnown(name) && value !== undefined && value.length > 1 && QUOTES.includes(value[0]! + value.at(-1)!),
  )
  for (const [name, value] of quoted) {
    const isSecret = SECRETS.some((secret) => secret === name)
    const instead = isSecret ? 'leave them out.' : `write ${name}=${withoutLogin(value!.slice(1, -1))}`
    faults.push({
      problem: `${name} is in quotes, which are part of its value here`,
      remedy: `Only shells and .env files strip quotes: ${instead}`,
    })
  }
  if (quoted.length === 0) return env
  return { ...env, ...Object.fromEntries(quoted.map(([name, value]) => [name, value!.slice(1, -1)])) }
}

/**
 * Matches the placeholder `${user_config.name}` from the manifest of the desktop extension bundle. A client passes it
 * on as the value of a variable if the user left the form field of that variable blank.
 */
const BLANK_FIELD = /^\s*\$\{user_config\.[\w-]+\}\s*$/

/** Unsets the variables whose fields the user left blank in a client's form, and names them in a warning. */
export function leaveOutBlankFields(env: Environment, { warnings }: Findings): Environment {
  const blank = Object.keys(env).filter((name) => isKnown(name) && BLANK_FIELD.test(env[name] ?? ''))
  if (blank.length === 0) return env
  warnings.push(
    `Not set, because the client passed on the placeholder of a field that was left blank: ${blank.join(', ')}.`,
  )
  return Object.fromEntries(Object.entries(env).filter(([name]) => !blank.includes(name)))
}

/**
 * The variables whose values are compared or sent exactly as they are, so that invisible whitespace at either end would
 * matter.
 */
const LITERAL = ['PCE_HOST', 'API_KEY', 'API_SECRET', 'MCP_OAUTH_CLIENT_ID', 'MCP_OAUTH_CLIENT_SECRET']

/**
 * Reports values that begin or end with whitespace, contain a control character or are placeholders. A message never
 * contains the value itself.
 */
export function checkLiterals(env: Environment, { faults }: Findings): void {
  for (const name of LITERAL) {
    const value = env[name] ?? ''
    if (isPlaceholder(value)) faults.push(placeholderIn(name))
    else if (value.trim() !== '' && value !== '\0' && /^\s|\s$|\p{Cc}/u.test(value))
      faults.push({
        problem: `${name} begins or ends with whitespace, or contains a control character`,
        remedy: 'Remove it. It often comes from copying, or from a file with Windows line endings.',
      })
  }
}

const withFiles = (names: readonly string[]) => new Set(names.flatMap((name) => [name, `${name}_FILE`]))
const UNREAD = {
  stdio: withFiles([...VARIABLES.http, ...VARIABLES.authenticated, ...VARIABLES.perUser, ...VARIABLES.shared]),
  insecure: withFiles([...VARIABLES.authenticated, ...VARIABLES.perUser, ...VARIABLES.shared]),
  per_user: withFiles([
    'PCE_HOST',
    'PCE_PORT',
    'PCE_ORG_ID',
    'API_KEY',
    'API_SECRET',
    ...VARIABLES.shared,
    ...VARIABLES.stdio,
  ]),
  shared: withFiles([...VARIABLES.perUser, ...VARIABLES.stdio]),
}

/** Returns the variables that are set although the given mode does not read them. */
export const unreadIn = (mode: keyof typeof UNREAD, env: Environment): string[] =>
  Object.keys(env).filter((name) => UNREAD[mode].has(name) && env[name])
