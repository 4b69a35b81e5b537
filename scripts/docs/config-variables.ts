/** An environment variable as shown in docs/configuration.md and .env.example. */
export interface ConfigVariable {
  name: string
  appliesTo: 'stdio, HTTP' | 'stdio' | 'HTTP' | 'authenticated HTTP' | 'per_user' | 'shared'
  /** The meaning of the variable, on one line without a full stop. */
  meaning: string
  default?: string
  /** True for a secret. NAME_FILE can then name a file that contains the value. */
  secret?: true
  /** True for a variable that is not secret but belongs to credentials. NAME_FILE works for such a variable, too. */
  mayBeInFile?: true
  /** The mode in which the program does not start if the variable is missing. */
  required?: string
}

/** All variables that the programs read, in the order in which people need them. */
export const CONFIG_VARIABLES: readonly ConfigVariable[] = [
  {
    name: 'PCE_HOST',
    appliesTo: 'stdio, HTTP',
    meaning:
      'PCE address, with or without https://; in development mode the server starts without it and tools that need a PCE say so; ignored in per_user mode',
    required: 'stdio, shared',
  },
  {
    name: 'PCE_PORT',
    appliesTo: 'stdio, HTTP',
    meaning: 'PCE port; if unset, the port in PCE_HOST is used; if both are set, they must agree',
    default: '443',
  },
  { name: 'PCE_ORG_ID', appliesTo: 'stdio, HTTP', meaning: 'PCE organization ID', default: '1' },
  {
    name: 'API_KEY',
    appliesTo: 'stdio, HTTP',
    meaning: 'PCE API key (the user name part, api_…)',
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
    meaning: "PEM file of the CAs to trust for the PCE instead of Node's own (NODE_EXTRA_CA_CERTS adds to Node's)",
  },
  {
    name: 'PCE_CLIENT_CERT_FILE',
    appliesTo: 'stdio, HTTP',
    meaning:
      'PEM file of the client certificate for the PCE, which may include the key; in per_user mode presented only to MCP_ALLOWED_PCE_HOSTS',
  },
  {
    name: 'PCE_CLIENT_KEY_FILE',
    appliesTo: 'stdio, HTTP',
    meaning: 'PEM file of the private key for PCE_CLIENT_CERT_FILE',
  },
  {
    name: 'PCE_TLS_VERIFY',
    appliesTo: 'stdio, HTTP',
    meaning: 'false accepts any certificate from the PCE, with a warning; for labs only',
    default: 'true',
  },
  {
    name: 'PCE_PROXY_URL',
    appliesTo: 'stdio, HTTP',
    meaning: 'HTTP proxy to the PCE; other proxy variables are ignored',
    secret: true,
  },
  {
    name: 'MCP_LOG_LEVEL',
    appliesTo: 'stdio, HTTP',
    meaning: 'Level of the server log on standard error: trace, debug, info, warn, error, fatal or silent',
    default: 'info',
  },
  {
    name: 'MCP_AUDIT_LOG_PATH',
    appliesTo: 'stdio, HTTP',
    meaning:
      'File for audit entries, reopened on SIGHUP and when it was moved or deleted; if unset, HTTP writes them to standard output and stdio writes none',
  },
  {
    name: 'MCP_REPLICA_ID',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Name of this process in audit entries, log lines of HTTP and traces, up to 128 characters; if unset, the name of the host',
  },
  {
    name: 'MCP_RESPONSE_BUDGET_BYTES',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Byte budget for the JSON text of one answer, 1000 to 800000; what does not fit is paged or trimmed, and the answer says so',
    default: '24000',
  },
  {
    name: 'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Seconds before an asynchronous traffic query is abandoned, 1 to 3600; with `complete: true`, all its parts together',
    default: '600',
  },
  {
    name: 'MCP_TRAFFIC_MAX_PARTS',
    appliesTo: 'stdio, HTTP',
    meaning:
      "Parts that `complete: true` may divide a traffic query into when it exceeds the PCE's row limit, 1 to 1000; beyond them the answer says `flows_truncated`",
    default: '64',
  },
  {
    name: 'MCP_PCE_ANSWER_MIB',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Largest answer of a PCE that is taken, in MiB after decompression, 1 to 256; a larger one ends with `pce_answer_too_large`',
    default: '32',
  },
  {
    name: 'MCP_PCE_LIST_MIB',
    appliesTo: 'stdio, HTTP',
    meaning:
      'The same for long lists that are held whole, 1 to 4096; 256 MiB hold some 50,000 workloads. Lists that are only searched may be eight times as long',
    default: '256',
  },
  {
    name: 'MCP_PCE_TIMEOUT_SECONDS',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Seconds for one request to a PCE with its retries and waits, 5 to 3600; then the call ends with `pce_unreachable`',
    default: '120',
  },
  {
    name: 'MCP_HEAVY_CALLS',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Calls that analyse traffic or the whole policy, at a time, 1 to 64; each runs in a worker thread of its own. Half of them at a time may hold more than 8 MiB of what the PCE sent; the others wait before they read more. Two for each core are plenty',
    default: '4',
  },
  {
    name: 'MCP_HEAVY_CALLS_PER_CALLER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Of these, how many one caller may run at a time',
    default: '2',
  },
  {
    name: 'MCP_HEAVY_QUEUE',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Such calls that may wait, for up to a minute, when all places are taken (over authenticated HTTP one caller may fill half of the queue); others get `busy` with retry_after_seconds',
    default: '16',
  },
  {
    name: 'MCP_HEAVY_MEMORY_MIB',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Heap of one such call in MiB, 64 to 16384; a call that needs more fails with `analysis_failed`, and no other with it',
    default: '512',
  },
  {
    name: 'MCP_READ_ONLY',
    appliesTo: 'stdio, HTTP',
    meaning:
      '1 offers only tools that read, whatever else is set; credentials are then registered at /setup. The option --read-only is the same',
  },
  {
    name: 'MCP_TOOLSETS',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Comma-separated toolsets to offer, such as traffic,analysis; default is what a server offers that names none, all whatever there is; in per_user mode the credential tools are there in any case. The option --toolsets wins over it',
    default: 'default',
  },
  {
    name: 'MCP_TOOLS',
    appliesTo: 'stdio, HTTP',
    meaning: 'Comma-separated tools: of what MCP_TOOLSETS offers (if unset, of all tools) only these',
  },
  {
    name: 'MCP_EXCLUDE_TOOLS',
    appliesTo: 'stdio, HTTP',
    meaning: 'Comma-separated tools that are not offered, whatever else names them',
  },
  {
    name: 'MCP_PROTECTED',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Comma-separated labels, such as role=domain-controller, whose workloads and rule sets nobody changes through this server ([guardrails.md](guardrails.md))',
  },
  {
    name: 'MCP_FREEZE_WINDOWS',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Times in which nobody provisions or changes enforcement, separated by semicolons: Fri 18:00 - Mon 06:00 Europe/Berlin, 22:00 - 06:00 UTC, or 2026-12-20T00:00/2027-01-04T00:00 Europe/Berlin',
  },
  {
    name: 'MCP_FREEZE_OVERRIDE',
    appliesTo: 'authenticated HTTP',
    default: 'off',
    meaning:
      'two-persons lets two admins approve a single call in a freeze; needs MCP_APPROVAL=page or two-person ([guardrails.md](guardrails.md))',
  },
  {
    name: 'MCP_MAX_WORKLOADS_AFFECTED',
    appliesTo: 'stdio, HTTP',
    meaning:
      'Largest number of workloads that one call may affect, 1 to 1000000; if unset, any number. With approval by a person, two admins may approve more',
  },
  {
    name: 'MCP_DEV_INSECURE',
    appliesTo: 'HTTP',
    meaning: '1, in no other spelling, disables authentication and allows any bind address; never in production',
  },
  {
    name: 'MCP_ALLOWED_HOSTS',
    appliesTo: 'HTTP',
    meaning:
      'Comma-separated hosts accepted in Host and Origin, in addition to loopback names, the bind host and the host of MCP_PUBLIC_URL',
  },
  {
    name: 'MCP_TRUSTED_PROXIES',
    appliesTo: 'HTTP',
    meaning:
      'Comma-separated addresses and networks of the proxies whose X-Forwarded-For gives the address of the client, for limits, log and audit; unix trusts whoever connects to the Unix socket; if unset, the header is ignored',
  },
  {
    name: 'MCP_MAX_IN_FLIGHT',
    appliesTo: 'HTTP',
    meaning: 'Concurrent requests; further ones get 503 immediately; 0 turns the limit off',
    default: '256',
  },
  {
    name: 'MCP_METRICS_PORT',
    appliesTo: 'HTTP',
    meaning:
      'Port for GET /metrics (Prometheus), on the address of --host, with --socket on 127.0.0.1; if unset, there are no metrics',
  },
  {
    name: 'MCP_PUBLIC_URL',
    appliesTo: 'HTTP',
    meaning: 'Public base URL of the server as clients reach it (https, or http on loopback); /mcp is below it',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_ISSUER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Expected iss of access tokens, compared exactly (mind a trailing slash or /v2.0)',
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_OAUTH_TOKEN_ISSUER',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Expected iss of access tokens instead of MCP_OAUTH_ISSUER, if the provider writes another one into them (AD FS: access_token_issuer of its discovery document)',
  },
  {
    name: 'MCP_OAUTH_JWKS_URL',
    appliesTo: 'authenticated HTTP',
    meaning: 'URL of the JSON Web Key Set that verifies access tokens; the server must be able to reach it',
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
    meaning: 'Scope an access token must have, in scope or scp',
    default: 'svc-mcp.use',
  },
  {
    name: 'MCP_OAUTH_REQUEST_SCOPE',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Scopes that clients request instead, separated by blanks, if the provider names the scope differently (Entra ID: https://mcp.example.com/svc-mcp.use) or wants more (openid svc-mcp.use offline_access)',
  },
  {
    name: 'MCP_OAUTH_GROUPS_CLAIM',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Comma-separated claims that contain groups, in addition to groups and roles (for providers with namespaced claims)',
  },
  {
    name: 'MCP_ROLE_GROUPS_READER',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Comma-separated group identifiers that map to the role reader, compared exactly with the token; display names do not match',
  },
  {
    name: 'MCP_ROLE_GROUPS_OPERATOR',
    appliesTo: 'authenticated HTTP',
    meaning: 'Like MCP_ROLE_GROUPS_READER, for the role operator; the highest role wins',
  },
  {
    name: 'MCP_ROLE_GROUPS_ADMIN',
    appliesTo: 'authenticated HTTP',
    meaning: 'Like MCP_ROLE_GROUPS_READER, for the role admin',
  },
  {
    name: 'MCP_ROLE_DEFAULT',
    appliesTo: 'authenticated HTTP',
    meaning: 'Role of callers whose groups match no list; if unset, they get forbidden_no_role',
  },
  {
    name: 'MCP_SCOPES_FILE',
    appliesTo: 'authenticated HTTP',
    meaning:
      'JSON file with the scopes of groups, outside of which their members only read, or not even that ([teams.md](teams.md)); read again on SIGHUP; if unset, the role alone decides',
  },
  {
    name: 'MCP_HIDE_FORBIDDEN',
    appliesTo: 'authenticated HTTP',
    meaning:
      '1 lists for each caller only the tools that their role may call; otherwise everyone sees all that are offered',
  },
  {
    name: 'MCP_PCE_MODE',
    appliesTo: 'authenticated HTTP',
    meaning: 'per_user (each user has a PCE key) or shared (one PCE service account from the environment)',
    default: 'per_user',
  },
  {
    name: 'MCP_CONFIRM_HMAC_KEY',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Base64 of the 32 random bytes from which the keys of confirm tokens and cursors are derived (openssl rand -base64 32)',
    secret: true,
    required: 'authenticated HTTP',
  },
  {
    name: 'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    appliesTo: 'authenticated HTTP',
    meaning: 'Previous MCP_CONFIRM_HMAC_KEY; its tokens stay valid until they expire',
    secret: true,
  },
  {
    name: 'MCP_CONFIRM_TTL_SECONDS',
    appliesTo: 'authenticated HTTP',
    meaning: 'Lifetime of a confirm token in seconds, 1 to 3600',
    default: '120',
  },
  {
    name: 'MCP_CONFIRM_TOOLS',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Comma-separated tools that need confirmation too, beside provision-policy, ringfence-batch and set-enforcement-mode, such as update-workload; who may call one may confirm it; also over stdio with MCP_CONFIRM_STDIO=1',
  },
  {
    name: 'MCP_APPROVAL',
    appliesTo: 'authenticated HTTP',
    meaning:
      'What releases a call that needs confirmation: token (the client of the model fetches it), page (whoever asks, or an admin, approves it at MCP_PUBLIC_URL/approve after a login with a browser) or two-person (an admin other than whoever asks); the last two need MCP_OAUTH_CLIENT_ID',
    default: 'token',
  },
  {
    name: 'MCP_APPROVAL_TTL_SECONDS',
    appliesTo: 'authenticated HTTP',
    meaning: 'Time from the question to the end of the use of its approval in seconds, 60 to 86400',
    default: '900',
  },
  {
    name: 'MCP_APPROVAL_MAX_AGE_SECONDS',
    appliesTo: 'authenticated HTTP',
    meaning:
      'How long ago a login may be for an approval in seconds, at most 86400; 0 takes any login, also one that the identity provider made without asking',
    default: '900',
  },
  {
    name: 'MCP_CONFIRM_STDIO',
    appliesTo: 'stdio',
    meaning:
      '1 has the client ask the person at it before a tool runs that needs confirmation, and refuses such a tool where the client cannot ask; it holds up a hasty model, not a client that answers by itself',
  },
  {
    name: 'MCP_MAX_IN_FLIGHT_PER_CALLER',
    appliesTo: 'authenticated HTTP',
    meaning: 'Concurrent requests per caller, so that nobody takes every slot; 0 turns the limit off',
    default: '32',
  },
  {
    name: 'MCP_RATE_LIMIT_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Requests per caller and minute; at /setup, callers without a login share one limit per network address; 0 turns the limit off',
    default: '600',
  },
  {
    name: 'MCP_CONFIRM_RATE_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Confirm tokens per caller and minute; 0 turns the limit off',
    default: '10',
  },
  {
    name: 'MCP_REFUSED_TOKENS_PER_MINUTE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Refused access tokens per network address and minute; 0 turns the limit off',
    default: '30',
  },
  {
    name: 'MCP_KEK',
    appliesTo: 'per_user',
    meaning:
      'Base64 of the 32 random bytes that encrypt stored PCE keys (openssl rand -base64 32); if lost, all stored keys are lost',
    secret: true,
    required: 'per_user',
  },
  {
    name: 'MCP_KEK_PREVIOUS',
    appliesTo: 'per_user',
    meaning: 'Previous MCP_KEK, needed until svc-mcp-http rewrap-keystore has run',
    secret: true,
  },
  {
    name: 'MCP_KEYSTORE_PATH',
    appliesTo: 'per_user',
    meaning: 'Keystore file, which also records used confirm tokens; its folder must be writable',
    default: './data/keystore.db',
  },
  {
    name: 'MCP_ALLOWED_PCE_HOSTS',
    appliesTo: 'per_user',
    meaning:
      'Comma-separated PCE hosts that users may register; if unset, any host except loopback, link-local and similar addresses',
  },
  {
    name: 'MCP_ALLOW_INSECURE_PCE_TLS',
    appliesTo: 'per_user',
    meaning: '1, in no other spelling, lets users register a PCE without certificate verification; for labs only',
  },
  {
    name: 'MCP_OAUTH_CLIENT_ID',
    appliesTo: 'per_user',
    meaning:
      'OAuth client for logins with a browser, at /setup and, with MCP_APPROVAL also in shared mode, at /approve; its redirect URI is MCP_PUBLIC_URL/setup/callback, in shared mode MCP_PUBLIC_URL/approve/callback',
  },
  {
    name: 'MCP_OAUTH_CLIENT_SECRET',
    appliesTo: 'per_user',
    meaning: 'Secret of that client; if unset, the client is public and uses PKCE alone',
    secret: true,
  },
  {
    name: 'MCP_STATE_PATH',
    appliesTo: 'shared',
    meaning: 'File that records used confirm tokens; its folder must be writable',
    default: './data/state.db',
  },
  {
    name: 'MCP_STATE_URL',
    appliesTo: 'authenticated HTTP',
    meaning:
      'PostgreSQL database that holds the state in place of the file, so that several replicas share it: postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full; sslrootcert, sslcert and sslkey name PEM files; a host that is not loopback needs verify-full',
    secret: true,
  },
  {
    name: 'MCP_STATE_CONNECT_TIMEOUT_SECONDS',
    appliesTo: 'authenticated HTTP',
    meaning: 'How long a start waits for a database that does not answer; at most 3600',
    default: '30',
  },
  {
    name: 'MCP_STATE_POOL_SIZE',
    appliesTo: 'authenticated HTTP',
    meaning: 'Connections to the database of one replica at most; 2 to 200',
    default: '10',
  },
  {
    name: 'MCP_LIMITS',
    appliesTo: 'authenticated HTTP',
    meaning:
      'With MCP_STATE_URL: shared counts requests and places of a caller over all replicas, replica in each replica by itself, which costs no write per call',
    default: 'shared',
  },
  {
    name: 'MCP_NOTIFY_WEBHOOK_URL',
    appliesTo: 'authenticated HTTP',
    meaning:
      'https URL of the receiver that is told about approvals, refusals by limits, revocations and a failing audit log ([notifications.md](notifications.md)); if unset, nobody is told',
    secret: true,
  },
  {
    name: 'MCP_NOTIFY_SECRET',
    appliesTo: 'authenticated HTTP',
    meaning:
      'Key with which messages to MCP_NOTIFY_WEBHOOK_URL are signed: whsec_ and base64 of 24 to 64 random bytes; required with that URL',
    secret: true,
  },
  {
    name: 'MCP_NOTIFY_NAMES',
    appliesTo: 'authenticated HTTP',
    meaning: '1 puts what a call would do, names of objects, notes and scopes into these messages',
    default: '0',
  },
]

/**
 * The standard variables of OpenTelemetry that operators of this server set. OpenTelemetry's libraries read them, so
 * they are not among the variables of the configuration.
 */
export const TRACING_VARIABLES: readonly { names: readonly string[]; meaning: string }[] = [
  {
    names: ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
    meaning:
      'URL of the collector, such as `http://127.0.0.1:4318`, or of its `/v1/traces`; spoken is http/protobuf. Without one, there are no traces',
  },
  {
    names: ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
    meaning: 'headers for it, such as a key; they leave the environment of the process once they have been read',
  },
  {
    names: ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES'],
    meaning: 'in place of `svc-mcp`, and in addition to version and `replica` (`service.instance.id`)',
  },
  {
    names: ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG'],
    meaning: 'which traces are kept; by default those that the client keeps, and all that begin here',
  },
  { names: ['OTEL_SDK_DISABLED=true', 'OTEL_TRACES_EXPORTER=none'], meaning: 'none' },
]
