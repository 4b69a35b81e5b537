/** One environment variable, as the tables of README and .env.example show it. */
export interface ConfigVariable {
  name: string
  appliesTo: 'stdio' | 'HTTP' | 'stdio, HTTP' | 'authenticated HTTP'
  /** In one line, without a full stop. */
  meaning: string
  default?: string
  secret?: true
  /** In which of its places the program does not start without it. */
  required?: string
}

/**
 * Every variable this release reads. Those of `authenticated HTTP` are asked for by the startup gates, in the order of the
 * specification; the modes behind the gates are not part of this release.
 */
export const CONFIG_VARIABLES: readonly ConfigVariable[] = [
  {
    name: 'PCE_HOST',
    appliesTo: 'stdio, HTTP',
    meaning:
      'PCE address, with or without https://; over HTTP the server also starts without it, and tools that need a PCE then say so',
    required: 'stdio',
  },
  {
    name: 'PCE_PORT',
    appliesTo: 'stdio, HTTP',
    meaning: 'PCE port; unset, a port inside PCE_HOST counts, else the two must agree',
    default: '443',
  },
  { name: 'PCE_ORG_ID', appliesTo: 'stdio, HTTP', meaning: 'PCE organization id', default: '1' },
  {
    name: 'API_KEY',
    appliesTo: 'stdio, HTTP',
    meaning: 'PCE API key (its user name part, api_…)',
    required: 'wherever PCE_HOST is set',
  },
  {
    name: 'API_SECRET',
    appliesTo: 'stdio, HTTP',
    meaning: 'PCE API secret',
    secret: true,
    required: 'wherever PCE_HOST is set',
  },
  {
    name: 'PCE_CA_FILE',
    appliesTo: 'stdio, HTTP',
    meaning:
      "PEM file of the authorities to trust for the PCE instead of Node's own (NODE_EXTRA_CA_CERTS adds to those)",
  },
  {
    name: 'PCE_CLIENT_CERT_FILE',
    appliesTo: 'stdio, HTTP',
    meaning: 'PEM file of the client certificate for the PCE; may hold its key as well',
  },
  { name: 'PCE_CLIENT_KEY_FILE', appliesTo: 'stdio, HTTP', meaning: 'PEM file of the key of PCE_CLIENT_CERT_FILE' },
  {
    name: 'PCE_TLS_VERIFY',
    appliesTo: 'stdio, HTTP',
    meaning: 'false accepts any certificate of the PCE, with a warning; for laboratories only',
    default: 'true',
  },
  {
    name: 'PCE_PROXY_URL',
    appliesTo: 'stdio, HTTP',
    meaning: 'HTTP proxy between this server and the PCE; proxies from other variables are ignored',
  },
  {
    name: 'MCP_LOG_LEVEL',
    appliesTo: 'stdio, HTTP',
    meaning: 'Service log on standard error: trace, debug, info, warn, error, fatal or silent',
    default: 'info',
  },
  {
    name: 'MCP_AUDIT_LOG_PATH',
    appliesTo: 'stdio, HTTP',
    meaning:
      'File for the audit entries, opened anew on SIGHUP; unset, HTTP writes them to standard output and stdio writes none',
  },
  {
    name: 'MCP_RESPONSE_BUDGET_BYTES',
    appliesTo: 'stdio, HTTP',
    meaning: 'JSON text of one answer, 1000 to 800000 bytes; what does not fit is paged or trimmed, and says so',
    default: '80000',
  },
  {
    name: 'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS',
    appliesTo: 'stdio, HTTP',
    meaning: 'Seconds after which an asynchronous traffic query is given up, 1 to 3600',
    default: '600',
  },
  {
    name: 'MCP_DEV_INSECURE',
    appliesTo: 'HTTP',
    meaning: '1 starts without authentication, on any address; never in production',
  },
  {
    name: 'MCP_ALLOWED_HOSTS',
    appliesTo: 'HTTP',
    meaning:
      'Comma-separated hosts that requests may name in Host and Origin, besides loopback names, the bind host and the host of MCP_PUBLIC_URL',
  },
  {
    name: 'MCP_MAX_IN_FLIGHT',
    appliesTo: 'HTTP',
    meaning: 'Requests worked on at a time; more are answered 503 at once; 0 turns the limit off',
    default: '256',
  },
  {
    name: 'MCP_PUBLIC_URL',
    appliesTo: 'HTTP',
    meaning: 'Public base URL of the server, https, or http on loopback',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_ISSUER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Expected iss of access tokens, compared exactly',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_JWKS_URL',
    appliesTo: 'authenticated HTTP',
    meaning: 'URL of the JSON Web Key Set that verifies access tokens',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_AUDIENCE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Expected aud of access tokens, compared exactly',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_PCE_MODE',
    appliesTo: 'authenticated HTTP',
    meaning: 'per_user (a PCE key for every user) or shared (one PCE account from the environment)',
    default: 'per_user',
  },
  {
    name: 'MCP_KEK',
    appliesTo: 'authenticated HTTP',
    meaning: 'Base64 of the 32 random bytes that protect stored PCE keys',
    secret: true,
    required: 'authenticated HTTP, per_user',
  },
  {
    name: 'MCP_CONFIRM_HMAC_KEY',
    appliesTo: 'authenticated HTTP',
    meaning: 'Base64 of the 32 random bytes that sign confirm tokens',
    secret: true,
    required: 'authenticated HTTP',
  },
]
