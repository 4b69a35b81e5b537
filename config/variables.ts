import { distance } from 'fastest-levenshtein'
import { SECRETS } from './read-secrets.js'

/** Every variable, grouped by the modes that read it, as in docs/configuration.md. */
export const VARIABLES = {
  everywhere: [
    'PCE_HOST',
    'PCE_PORT',
    'PCE_ORG_ID',
    'API_KEY',
    'API_SECRET',
    'PCE_CA_FILE',
    'PCE_CLIENT_CERT_FILE',
    'PCE_CLIENT_KEY_FILE',
    'PCE_TLS_VERIFY',
    'PCE_PROXY_URL',
    'MCP_LOG_LEVEL',
    'MCP_AUDIT_LOG_PATH',
    'MCP_REPLICA_ID',
    'MCP_RESPONSE_BUDGET_BYTES',
    'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS',
    'MCP_TRAFFIC_MAX_PARTS',
    'MCP_HEAVY_CALLS',
    'MCP_HEAVY_QUEUE',
    'MCP_PCE_ANSWER_MIB',
    'MCP_PCE_LIST_MIB',
    'MCP_PCE_TIMEOUT_SECONDS',
    'MCP_HEAVY_MEMORY_MIB',
    'MCP_READ_ONLY',
    'MCP_TOOLSETS',
    'MCP_TOOLS',
    'MCP_EXCLUDE_TOOLS',
    'MCP_PROTECTED',
    'MCP_FREEZE_WINDOWS',
    'MCP_MAX_WORKLOADS_AFFECTED',
  ],
  stdio: ['MCP_CONFIRM_STDIO'],
  http: [
    'MCP_DEV_INSECURE',
    'MCP_ALLOWED_HOSTS',
    'MCP_TRUSTED_PROXIES',
    'MCP_MAX_IN_FLIGHT',
    'MCP_METRICS_PORT',
    'MCP_PUBLIC_URL',
  ],
  authenticated: [
    'MCP_HEAVY_CALLS_PER_CALLER',
    'MCP_OAUTH_ISSUER',
    'MCP_OAUTH_TOKEN_ISSUER',
    'MCP_OAUTH_JWKS_URL',
    'MCP_OAUTH_AUDIENCE',
    'MCP_OAUTH_REQUIRED_SCOPE',
    'MCP_OAUTH_REQUEST_SCOPE',
    'MCP_OAUTH_GROUPS_CLAIM',
    'MCP_ROLE_GROUPS_READER',
    'MCP_ROLE_GROUPS_OPERATOR',
    'MCP_ROLE_GROUPS_ADMIN',
    'MCP_ROLE_DEFAULT',
    'MCP_SCOPES_FILE',
    'MCP_HIDE_FORBIDDEN',
    'MCP_PCE_MODE',
    'MCP_CONFIRM_HMAC_KEY',
    'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    'MCP_CONFIRM_TTL_SECONDS',
    'MCP_CONFIRM_TOOLS',
    'MCP_APPROVAL',
    'MCP_APPROVAL_TTL_SECONDS',
    'MCP_APPROVAL_MAX_AGE_SECONDS',
    'MCP_FREEZE_OVERRIDE',
    'MCP_MAX_IN_FLIGHT_PER_CALLER',
    'MCP_RATE_LIMIT_PER_MINUTE',
    'MCP_CONFIRM_RATE_PER_MINUTE',
    'MCP_REFUSED_TOKENS_PER_MINUTE',
    'MCP_STATE_URL',
    'MCP_STATE_CONNECT_TIMEOUT_SECONDS',
    'MCP_STATE_POOL_SIZE',
    'MCP_LIMITS',
    'MCP_NOTIFY_WEBHOOK_URL',
    'MCP_NOTIFY_SECRET',
    'MCP_NOTIFY_NAMES',
  ],
  perUser: [
    'MCP_KEK',
    'MCP_KEK_PREVIOUS',
    'MCP_KEYSTORE_PATH',
    'MCP_ALLOWED_PCE_HOSTS',
    'MCP_ALLOW_INSECURE_PCE_TLS',
    'MCP_OAUTH_CLIENT_ID',
    'MCP_OAUTH_CLIENT_SECRET',
  ],
  shared: ['MCP_STATE_PATH'],
} as const satisfies Record<string, readonly string[]>

const NAMES: readonly string[] = Object.values(VARIABLES).flat()
const KNOWN: ReadonlySet<string> = new Set([...NAMES, ...SECRETS.map((name) => `${name}_FILE`)])

/** Returns true if any program reads a variable of this name in any mode. */
export const isKnown = (name: string): boolean => KNOWN.has(name)

/** Maximum number of wrong letters in a misspelt name of a known variable. For short names, the maximum is lower. */
const MOST_WRONG = 2
const PREFIX = 4

/** Matches the variables that Kubernetes sets for every service, such as PCE_SERVICE_HOST and PCE_PORT_443_TCP_ADDR. */
const OF_A_SERVICE = /_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/

/**
 * Returns the known variable that an operator probably meant. The given name may differ from it in upper and lower
 * case, be misspelt, or have a suffix `_FILE` that this variable does not support. Returns null for any other name,
 * because it may belong to a platform.
 */
export function misspelt(name: string): string | null {
  const upper = name.toUpperCase()
  if (isKnown(upper)) return upper
  const withoutFile = upper.replace(/_FILE$/, '')
  if (isKnown(withoutFile)) return withoutFile
  if (OF_A_SERVICE.test(upper)) return null
  const prefix = upper.slice(0, PREFIX)
  const near = [...KNOWN]
    .filter((known) => known.startsWith(prefix))
    .map((known) => ({ known, wrong: distance(known, upper) }))
    .filter(({ known, wrong }) => wrong <= mostWrong(known, upper))
    .sort((one, other) => one.wrong - other.wrong)
  return near[0]?.known ?? null
}

/**
 * Returns the maximum number of wrong letters for which `name` still counts as a misspelling of `known`. It is lower
 * for short names, unless both names consist of the same letters, because swapping two letters makes both wrong.
 */
function mostWrong(known: string, name: string): number {
  const isShuffled = known.length === name.length && lettersOf(known) === lettersOf(name)
  return isShuffled ? MOST_WRONG : Math.min(MOST_WRONG, Math.floor((known.length - PREFIX) / 3))
}

const lettersOf = (name: string) => [...name].sort().join('')

/**
 * Names that people try because other programs use them, each with the name of this server's variable for the same
 * purpose.
 */
const TRIED: Readonly<Record<string, string>> = {
  MCP_HOST: '--host',
  MCP_PORT: '--port',
  MCP_MODE: 'MCP_PCE_MODE',
  MCP_ISSUER: 'MCP_OAUTH_ISSUER',
  MCP_AUDIENCE: 'MCP_OAUTH_AUDIENCE',
  MCP_CLIENT_ID: 'MCP_OAUTH_CLIENT_ID',
  MCP_ALLOWED_TOOLS: 'MCP_TOOLS',
  MCP_ENABLED_TOOLS: 'MCP_TOOLS',
  MCP_DENIED_TOOLS: 'MCP_EXCLUDE_TOOLS',
  MCP_DISABLED_TOOLS: 'MCP_EXCLUDE_TOOLS',
  PCE_API_KEY: 'API_KEY',
  PCE_API_SECRET: 'API_SECRET',
  PCE_KEY: 'API_KEY',
  PCE_SECRET: 'API_SECRET',
  PCE_URL: 'PCE_HOST',
  PCE_FQDN: 'PCE_HOST',
  PCE_CA_BUNDLE: 'PCE_CA_FILE',
  MCP_DATABASE_URL: 'MCP_STATE_URL',
  MCP_POSTGRES_URL: 'MCP_STATE_URL',
}

/**
 * For an unknown name that is not a misspelling, returns the known variable that was probably meant; undefined if there
 * is no suggestion.
 */
export function triedFor(name: string): string | undefined {
  const longer = NAMES.filter((known) => known.startsWith(`${name}_`))
  return TRIED[name] ?? (longer.length === 1 ? longer[0] : undefined)
}
