/** One environment variable, as the tables of README and .env.example show it. */
export interface ConfigVariable {
  name: string
  appliesTo: 'stdio, HTTP' | 'HTTP' | 'authenticated HTTP' | 'per_user' | 'shared'
  /** In one line, without a full stop. */
  meaning: string
  default?: string
  /** A secret; NAME_FILE may name a file that holds it instead. */
  secret?: true
  /** Not secret, but a part of credentials that NAME_FILE may hold as well. */
  mayBeInFile?: true
  /** In which of its places the program does not start without it. */
  required?: string
}

/** Every variable that is read, in the order people need them. */
export const CONFIG_VARIABLES: readonly ConfigVariable[] = [
  {
    name: 'PCE_HOST',
    appliesTo: 'stdio, HTTP',
    meaning:
      'PCE address, with or without https://; in development mode the server also starts without it, and tools that need a PCE then say so; not read in per_user mode',
    required: 'stdio, shared',
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
    mayBeInFile: true,
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
    meaning:
      'PEM file of the client certificate for the PCE; may hold its key as well; in per_user mode for MCP_ALLOWED_PCE_HOSTS only',
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
    secret: true,
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
    meaning: 'Public base URL of the server as clients reach it, https, or http on loopback; /mcp is under it',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_ISSUER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Expected iss of access tokens, compared exactly (mind a slash at the end, or /v2.0)',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_JWKS_URL',
    appliesTo: 'authenticated HTTP',
    meaning: 'URL of the JSON Web Key Set that verifies access tokens; this server must be able to reach it',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_AUDIENCE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Expected aud of access tokens, compared exactly',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_REQUIRED_SCOPE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Scope that an access token must have, in scope or scp',
    default: 'svc-mcp.use',
  },
  {
    name: 'MCP_OAUTH_REQUEST_SCOPE',
    appliesTo: 'authenticated HTTP',
    meaning:
      'What clients ask the provider for to get that scope, where it has another name there (Entra ID: https://mcp.example.com/svc-mcp.use)',
  },
  {
    name: 'MCP_OAUTH_GROUPS_CLAIM',
    appliesTo: 'authenticated HTTP',
    meaning: 'Comma-separated claims that hold groups, besides groups and roles (for providers with namespaced claims)',
  },
  {
    name: 'MCP_ROLE_GROUPS_READER',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Comma-separated group identifiers of the role reader, compared exactly with the token; display names are none',
  },
  {
    name: 'MCP_ROLE_GROUPS_OPERATOR',
    appliesTo: 'authenticated HTTP',
    meaning: 'As MCP_ROLE_GROUPS_READER, for the role operator; the highest role wins',
  },
  {
    name: 'MCP_ROLE_GROUPS_ADMIN',
    appliesTo: 'authenticated HTTP',
    meaning: 'As MCP_ROLE_GROUPS_READER, for the role admin',
  },
  {
    name: 'MCP_ROLE_DEFAULT',
    appliesTo: 'authenticated HTTP',
    meaning: 'Role of callers whose groups are on no list; unset, they get forbidden_no_role',
  },
  {
    name: 'MCP_PCE_MODE',
    appliesTo: 'authenticated HTTP',
    meaning: 'per_user (a PCE key for every user) or shared (one PCE account from the environment)',
    default: 'per_user',
  },
  {
    name: 'MCP_CONFIRM_HMAC_KEY',
    appliesTo: 'authenticated HTTP',
    meaning: 'Base64 of the 32 random bytes that sign confirm tokens (openssl rand -base64 32)',
    secret: true,
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    appliesTo: 'authenticated HTTP',
    meaning: 'The key before this one: its tokens stay good until they expire',
    secret: true,
  },
  {
    name: 'MCP_CONFIRM_TTL_SECONDS',
    appliesTo: 'authenticated HTTP',
    meaning: 'Seconds a confirm token lives, 1 to 3600',
    default: '120',
  },
  {
    name: 'MCP_MAX_IN_FLIGHT_PER_CALLER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Requests of one caller worked on at a time, so that nobody takes every place; 0 turns the limit off',
    default: '32',
  },
  {
    name: 'MCP_RATE_LIMIT_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Requests of one caller per minute, and of all strangers at /setup from one network address; 0 turns the limit off',
    default: '600',
  },
  {
    name: 'MCP_CONFIRM_RATE_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Confirm tokens one caller may ask for per minute; 0 turns the limit off',
    default: '10',
  },
  {
    name: 'MCP_REFUSED_TOKENS_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Refused access tokens per minute and network address; 0 turns the limit off',
    default: '30',
  },
  {
    name: 'MCP_KEK',
    appliesTo: 'per_user',
    meaning:
      'Base64 of the 32 random bytes that protect stored PCE keys (openssl rand -base64 32); losing it loses them all',
    secret: true,
    required: 'per_user',
  },
  {
    name: 'MCP_KEK_PREVIOUS',
    appliesTo: 'per_user',
    meaning: 'The key before this one, until svc-mcp-http rewrap-keystore has run',
    secret: true,
  },
  {
    name: 'MCP_KEYSTORE_PATH',
    appliesTo: 'per_user',
    meaning: 'The keystore: one file, with the used confirm tokens in it; its folder must be writable',
    default: './data/keystore.db',
  },
  {
    name: 'MCP_ALLOWED_PCE_HOSTS',
    appliesTo: 'per_user',
    meaning:
      'Comma-separated hosts that users may register, and no others; unset, all but loopback, link-local and the like',
  },
  {
    name: 'MCP_ALLOW_INSECURE_PCE_TLS',
    appliesTo: 'per_user',
    meaning: '1 lets users register a PCE whose certificate is not checked; for laboratories only',
  },
  {
    name: 'MCP_OAUTH_CLIENT_ID',
    appliesTo: 'per_user',
    meaning:
      'Client at the identity provider for the login of /setup; its redirect URI is MCP_PUBLIC_URL/setup/callback',
  },
  {
    name: 'MCP_OAUTH_CLIENT_SECRET',
    appliesTo: 'per_user',
    meaning: 'Secret of that client; without it the client is public and proves itself by PKCE alone',
    secret: true,
  },
  {
    name: 'MCP_STATE_PATH',
    appliesTo: 'shared',
    meaning: 'Where used confirm tokens are kept: one file; its folder must be writable',
    default: './data/state.db',
  },
]
