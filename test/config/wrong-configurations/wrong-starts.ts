/** Wrong configurations that show only when a program runs, by theme: options, files that are opened, questions to a server. */
import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { directory, file, pem, sqlite, type Settings, type WrongSettings } from './starts.js'

export interface WrongStart extends WrongSettings {
  /** In place of those of the start. */
  args?: readonly string[]
  /** Starts of a server in the same folder before this one, which is stopped, or with `stays` is not. */
  earlier?: { env?: Settings; args?: readonly string[]; stays?: boolean }
  /** A question to the server that has started: the probe, or the tool that tries the PCE. */
  ask?: 'readyz' | 'check-pce-connection'
}

const STATE_URL = 'postgres://svc_mcp:secret@127.0.0.1:$NOBODY/svc_mcp'

export const WRONG_STARTS: Readonly<Record<string, readonly WrongStart[]>> = {
  'Several at once': [
    {
      start: 'shared',
      env: {
        MCP_PUBLIC_URL: null,
        API_KEY: null,
        MCP_OAUTH_ISSUER: 'login.example.com',
        PCE_PORT: 'https',
        PCE_CA_FILE: '$DIR/ca.pem',
        MCP_STATE_PATH: '$DIR',
        MCP_CONFIRM_TOOLS: 'get-labels',
      },
      args: ['--host', '0.0.0.0', '--port', '0'],
      refused: [
        "Refusing to bind '0.0.0.0' without MCP_DEV_INSECURE=1 → Listen on 127.0.0.1 (the default) or a --socket, behind a proxy that terminates TLS.",
        'Missing required OAuth env vars: MCP_PUBLIC_URL → They define who may log in. docs/identity-providers lists their values for Keycloak, Entra ID, Okta, Auth0, Ping and AD FS.',
        'MCP_PCE_MODE=shared requires API_KEY env var → In this mode one PCE key from the environment serves everybody: set PCE_HOST, API_KEY and API_SECRET.',
        'MCP_OAUTH_ISSUER must be an https URL, or http on loopback → It is "login.example.com": write the whole URL, such as MCP_OAUTH_ISSUER=https://login.example.com/v2.0',
        'PCE_PORT must be a whole number from 1 to 65535 → It is "https": write digits only, such as PCE_PORT=443, which is the default.',
        "PCE_CA_FILE: cannot read the CA bundle $DIR/ca.pem: there is no such file or folder (ENOENT) → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
        "MCP_STATE_PATH '$DIR' is a folder → Use the path of a file in it: MCP_STATE_PATH=$DIR/state.db",
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: 'get-labels' only reads, so there is nothing to confirm → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
  ],
  'The PCE does not answer as it should': [
    {
      start: 'tried',
      env: { PCE_HOST: '127.0.0.1:$NOBODY' },
      ask: 'check-pce-connection',
      answered:
        'GET /health: no answer from the PCE at https://127.0.0.1:$NOBODY: connection refused (ECONNREFUSED) → Nothing was changed. No program listens there: PCEs of your own usually have port 8443 (PCE_PORT), hosted ones 443. Where only a proxy leads out, PCE_PROXY_URL names it.',
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://127.0.0.1:$PCE' },
      ask: 'check-pce-connection',
      answered:
        'GET /health: the PCE at https://127.0.0.1:$PCE answers without TLS there, as an http port does: use its https port, or http://127.0.0.1:$PCE → Nothing was changed. Correct PCE_HOST and PCE_PORT, or what was registered.',
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'http://localhost:$TLS_PCE' },
      ask: 'check-pce-connection',
      answered:
        'GET /health: the PCE at http://localhost:$TLS_PCE expects TLS there: use https://localhost:$TLS_PCE → Nothing was changed. Correct PCE_HOST and PCE_PORT, or what was registered.',
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://localhost:$TLS_PCE' },
      ask: 'check-pce-connection',
      answered:
        "GET /health: no answer from the PCE at https://localhost:$TLS_PCE: TLS failed: no authority that is trusted here has signed its certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE) → Nothing was changed. If a private CA signed the PCE's certificate, PCE_CA_FILE has to name the PEM file of that CA, on the server.",
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://localhost:$TLS_PCE', PCE_CA_FILE: '$DIR/other.pem' },
      make: pem('other'),
      given: '`other.pem` is that of another CA',
      ask: 'check-pce-connection',
      answered:
        "GET /health: no answer from the PCE at https://localhost:$TLS_PCE: TLS failed: no authority that is trusted here has signed its certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE) → Nothing was changed. If a private CA signed the PCE's certificate, PCE_CA_FILE has to name the PEM file of that CA, on the server.",
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://127.0.0.1:$TLS_PCE', PCE_CA_FILE: '$DIR/ca.pem' },
      make: pem('ca'),
      ask: 'check-pce-connection',
      answered:
        'GET /health: no answer from the PCE at https://127.0.0.1:$TLS_PCE: TLS failed: its certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID) → Nothing was changed. Reach the PCE by a name that its certificate has: in PCE_HOST, or in what was registered.',
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'http://127.0.0.1:$WEB' },
      ask: 'check-pce-connection',
      answered:
        'GET /orgs/1/settings/workloads: the PCE answered 404 Not Found → Something else answers there, most likely, and no PCE: check host and port.',
    },
    {
      start: 'tried',
      env: { API_SECRET: 'mistyped' },
      ask: 'check-pce-connection',
      answered: 'GET /health: the PCE answered 401 Unauthorized → The PCE does not accept the API key and secret.',
    },
    {
      start: 'tried',
      env: { PCE_ORG_ID: '42' },
      ask: 'check-pce-connection',
      answered:
        'GET /orgs/42/settings/workloads: the PCE answered 403 Forbidden: "forbidden_error: Forbidden" → The key is valid, but not for this organisation, or its role may not read.',
    },
    {
      start: 'tried',
      env: { PCE_PROXY_URL: 'http://127.0.0.1:$NOBODY' },
      ask: 'check-pce-connection',
      answered:
        'GET /health: no answer from the PCE at http://127.0.0.1:$PCE through the proxy 127.0.0.1:$NOBODY: connection refused (ECONNREFUSED) → Nothing was changed. Check PCE_PROXY_URL, and whether the proxy reaches the PCE.',
    },
    {
      start: 'shared',
      env: { API_SECRET: 'mistyped' },
      ask: 'readyz',
      warned: [
        'The PCE refuses API_KEY and API_SECRET (401): no call that needs the PCE will work → Check both, whether the key still exists on the PCE, and that PCE_HOST is the right PCE; then restart.',
      ],
      answered: '200 {"status":"ready","pce":"refuses API_KEY and API_SECRET (401)"}',
    },
    {
      start: 'shared',
      env: { PCE_ORG_ID: '42' },
      ask: 'readyz',
      warned: [
        'The PCE knows API_KEY and gives it no access to the organisation (403) → Check PCE_ORG_ID, and the role of the service account on the PCE.',
      ],
      answered: '200 {"status":"ready","pce":"gives API_KEY no access to its organisation (403)"}',
    },
    {
      start: 'shared',
      env: { PCE_HOST: '127.0.0.1:$NOBODY' },
      ask: 'readyz',
      warned: [
        'The PCE does not answer as it should: GET /health: no answer from the PCE at https://127.0.0.1:$NOBODY: connection refused (ECONNREFUSED) → No program listens there: PCEs of your own usually have port 8443 (PCE_PORT), hosted ones 443. Where only a proxy leads out, PCE_PROXY_URL names it.',
      ],
      answered: '200 {"status":"ready"}',
    },
    {
      start: 'shared',
      env: { PCE_HOST: 'https://localhost:$TLS_PCE' },
      ask: 'readyz',
      warned: [
        "The PCE does not answer as it should: GET /health: no answer from the PCE at https://localhost:$TLS_PCE: TLS failed: no authority that is trusted here has signed its certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE) → If a private CA signed the PCE's certificate, PCE_CA_FILE has to name the PEM file of that CA, on the server.",
      ],
      answered: '200 {"status":"ready"}',
    },
    {
      start: 'shared',
      env: { PCE_HOST: 'https://127.0.0.1:$PCE' },
      ask: 'readyz',
      warned: [
        'The PCE does not answer as it should: GET /health: the PCE at https://127.0.0.1:$PCE answers without TLS there, as an http port does: use its https port, or http://127.0.0.1:$PCE → Correct PCE_HOST and PCE_PORT.',
      ],
      answered: '200 {"status":"ready"}',
    },
  ],
  'Numbers and limits': [
    {
      start: 'development',
      env: { MCP_METRICS_PORT: '8080' },
      args: ['--port', '8080'],
      refused: [
        'MCP_METRICS_PORT and --port are both 8080 → Metrics need a port of their own, such as MCP_METRICS_PORT=9464',
      ],
    },
  ],
  'The .env file': [
    {
      start: 'stdio',
      given: '`.env` that the user of the server may not read',
      make: file('.env', 'PCE_PORT=8443\n', 0o000),
      refused: [
        'Cannot read .env: permission denied (EACCES) → Make it a file that the user of this server can read, or remove it.',
      ],
    },
  ],
  'Secrets in files': [
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is a pipe that nobody writes to',
      make: (folder) => void execFileSync('mkfifo', [join(folder, 'secret')]),
      refused: [
        "Cannot read API_SECRET_FILE '$DIR/secret': nothing came from it in time (ETIMEDOUT) → Use the path of a file that contains only the secret and that the user of this server can read.",
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` that the user of the server may not read',
      make: file('secret', 'secret', 0o000),
      refused: [
        "Cannot read API_SECRET_FILE '$DIR/secret': permission denied (EACCES) → Use the path of a file that contains only the secret and that the user of this server can read.",
      ],
    },
  ],
  'The keys of the service': [
    {
      start: 'per_user',
      env: { MCP_KEK: '$HMAC_KEY', MCP_CONFIRM_HMAC_KEY: '$KEK' },
      given: 'a keystore made with another `MCP_KEK`',
      earlier: {},
      refused: [
        "MCP_KEK does not match the keystore './data/keystore.db' → Set the key with which it was created, or, to change keys, set that one as MCP_KEK_PREVIOUS. If it is lost, nothing in the file can be read: name a new file in MCP_KEYSTORE_PATH.",
      ],
    },
  ],
  'The identity provider and the public address': [
    {
      start: 'per_user',
      env: { MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$NOBODY/keys' },
      ask: 'readyz',
      warned: [
        'signing keys of the identity provider cannot be loaded: connection refused (ECONNREFUSED) → Check MCP_OAUTH_JWKS_URL, and whether this machine can reach it; for a private CA set NODE_EXTRA_CA_CERTS. Without keys no token can be checked.',
      ],
      answered: '503 {"status":"unavailable","check":"signing keys"}',
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$WEB/keys' },
      ask: 'readyz',
      warned: [
        'signing keys of the identity provider cannot be loaded: the answer has status 404 → Check MCP_OAUTH_JWKS_URL, and whether this machine can reach it; for a private CA set NODE_EXTRA_CA_CERTS. Without keys no token can be checked.',
      ],
      answered: '503 {"status":"unavailable","check":"signing keys"}',
    },
  ],
  'Certificates for the PCE': [
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.pem' },
      given: '`ca.pem` that the user of the server may not read',
      make: file('ca.pem', 'x', 0o000),
      refused: [
        "PCE_CA_FILE: cannot read the CA bundle $DIR/ca.pem: permission denied (EACCES) → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
      ],
    },
  ],
  'Keystore, state file and audit log': [
    {
      start: 'per_user',
      given: 'the working directory is read-only',
      make: (folder) => chmodSync(folder, 0o500),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/data/keystore.db' cannot be created: permission denied (EACCES) on '$DIR' → Give user $UID, who runs this server, write access to '$DIR', or set MCP_KEYSTORE_PATH to a file elsewhere.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' },
      warned: [
        "MCP_KEYSTORE_PATH '$DIR/volume/keystore.db' did not exist and has been created, in the new folder '$DIR/volume': this is a new, empty keystore, and nobody is registered. If you expected an existing one, check the path and the mount.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' },
      given: '`volume` is read-only',
      make: directory('volume', 0o500),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/volume/keystore.db' cannot be created: permission denied (EACCES) on '$DIR/volume' → Give user $UID, who runs this server, write access to '$DIR/volume', or set MCP_KEYSTORE_PATH to a file elsewhere.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/new/keystore.db' },
      given: '`volume` is read-only',
      make: directory('volume', 0o500),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/volume/new/keystore.db' cannot be created: permission denied (EACCES) on '$DIR/volume' → Give user $UID, who runs this server, write access to '$DIR/volume', or set MCP_KEYSTORE_PATH to a file elsewhere.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is a text file',
      make: file('keystore.db', 'API_KEY=api_1\n'.repeat(400)),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/keystore.db' is not an SQLite file → It was not changed. Use the path of another file, which will be created.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is an SQLite file of another program',
      make: sqlite('keystore.db', 'CREATE TABLE bookmarks (url TEXT)'),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/keystore.db' is an SQLite file of another program → It was not changed. Use the path of another file, which will be created.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` may not be written',
      make: (folder) => {
        sqlite('keystore.db', 'CREATE TABLE any (x)')(folder)
        chmodSync(join(folder, 'keystore.db'), 0o400)
      },
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/keystore.db' cannot be written: permission denied (EACCES) on '$DIR/keystore.db' → Give user $UID, who runs this server, write access to '$DIR/keystore.db', or set MCP_KEYSTORE_PATH to a file elsewhere.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/public/keystore.db' },
      given: 'anybody may write to `public`',
      make: directory('public', 0o777),
      warned: [
        "MCP_KEYSTORE_PATH '$DIR/public/keystore.db' did not exist and has been created: this is a new, empty keystore, and nobody is registered. If you expected an existing one, check the path and the mount.",
        "MCP_KEYSTORE_PATH '$DIR/public/keystore.db' is in a folder that anyone can write to: they could replace the file",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '/etc/passwd' },
      refused: [
        "MCP_KEYSTORE_PATH '/etc/passwd' belongs to user 0, not to user $UID, who runs this server → Use the path of a file of user $UID, or one that does not exist yet.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR/logs/audit.log' },
      given: '`logs` is read-only',
      make: directory('logs', 0o500),
      refused: [
        "MCP_AUDIT_LOG_PATH '$DIR/logs/audit.log' cannot be written: permission denied (EACCES) → Give the user of this server write access to the file and its folder '$DIR/logs', or use another path.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR/audit.log' },
      given: '`audit.log` is a pipe without a reader',
      make: (folder) => void execFileSync('mkfifo', [join(folder, 'audit.log')]),
      refused: [
        "MCP_AUDIT_LOG_PATH '$DIR/audit.log' cannot be written: it is a pipe or device that nobody reads (ENXIO) → Start the program that reads it first, or use the path of a file.",
      ],
    },
  ],
  'The state in PostgreSQL': [
    {
      start: 'per_user',
      env: { MCP_STATE_URL: `${STATE_URL}?sslmode=verify-full&sslrootcert=$DIR/ca.pem` },
      refused: [
        "MCP_STATE_URL: sslrootcert '$DIR/ca.pem' cannot be read: there is no such file or folder (ENOENT) → Use the path of a PEM file that the user of this server can read.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL, MCP_STATE_CONNECT_TIMEOUT_SECONDS: '1' },
      refused: [
        'MCP_STATE_URL: the database at 127.0.0.1:$NOBODY/svc_mcp cannot be used within 1 s: connect ECONNREFUSED 127.0.0.1:$NOBODY → Start it, or check the host and the port. MCP_STATE_CONNECT_TIMEOUT_SECONDS sets how long a start waits for it.',
      ],
    },
    {
      start: 'per_user',
      args: ['migrate'],
      refused: [
        'MCP_STATE_URL is not set: there is no database → Set it as on the servers, or set MCP_STATE_URL_FILE to a file that contains it.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL },
      args: ['move-state', '--from', '$DIR/keystore.db'],
      refused: [
        "--from '$DIR/keystore.db' does not exist: there is nothing to move → Use the path that the servers use, and run this on a machine with the file.",
      ],
    },
  ],
  'Where it listens': [
    {
      start: 'per_user',
      args: ['--host', '0.0.0.0', '--port', '0'],
      refused: [
        "Refusing to bind '0.0.0.0' without MCP_DEV_INSECURE=1 → Listen on 127.0.0.1 (the default) or a --socket, behind a proxy that terminates TLS.",
      ],
    },
    {
      start: 'development',
      args: ['--host', '', '--port', '0'],
      refused: [
        "option '--host <host>' argument '' is invalid. It must not be empty. → svc-mcp-http --help shows the options and commands.",
      ],
    },
    {
      start: 'development',
      args: ['--port', '65536'],
      refused: [
        "option '--port <port>' argument '65536' is invalid. It must be a whole number from 0 to 65535. → svc-mcp-http --help shows the options and commands.",
      ],
    },
    {
      start: 'development',
      args: ['--port', 'http'],
      refused: [
        "option '--port <port>' argument 'http' is invalid. It must be a whole number from 0 to 65535. → svc-mcp-http --help shows the options and commands.",
      ],
    },
    {
      start: 'development',
      args: ['--port'],
      refused: ["option '--port <port>' argument missing → svc-mcp-http --help shows the options and commands."],
    },
    {
      start: 'development',
      args: ['--port', '$PCE'],
      refused: [
        'Cannot listen on 127.0.0.1:$PCE: another program listens there (EADDRINUSE) → Use another port with --port, or stop the program that uses $PCE; --port 0 uses any free one.',
      ],
    },
    {
      start: 'development',
      args: ['--host', '192.0.2.1', '--port', '0'],
      refused: [
        "Cannot listen on 192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL) → Use an address of this machine with --host, such as 127.0.0.1, instead of '192.0.2.1'.",
      ],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/mcp.sock', '--port', '8080'],
      refused: [
        "option '--socket <path>' cannot be used with option '--port <port>' → svc-mcp-http --help shows the options and commands.",
      ],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/run/mcp.sock'],
      refused: [
        "Cannot listen on $DIR/run/mcp.sock: there is no folder '$DIR/run' (ENOENT) → Create the folder '$DIR/run' with write access for the user of this server, or use another --socket.",
      ],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/run/mcp.sock'],
      given: '`run` is read-only',
      make: directory('run', 0o500),
      refused: [
        "Cannot listen on $DIR/run/mcp.sock: permission denied (EACCES) on the folder '$DIR/run' → Give the user of this server write access to the folder '$DIR/run', or use another --socket.",
      ],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/run/mcp.sock'],
      given: '`run` is a file',
      make: file('run', ''),
      refused: [
        "Cannot listen on $DIR/run/mcp.sock: '$DIR/run' is not a folder (ENOTDIR) → Use a --socket in an existing folder.",
      ],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/run'],
      given: '`run` is a folder',
      make: directory('run'),
      refused: [
        'Cannot listen on $DIR/run: what has that name is not a socket → Move it away, or use another --socket.',
      ],
    },
    {
      start: 'development',
      args: ['--socket', `$DIR/${'long-'.repeat(20)}.sock`],
      refused: [
        'Cannot listen on $DIR/long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-.sock: the path is too long for a socket → Use a --socket path of at most 99 bytes.',
      ],
    },
    {
      start: 'development',
      args: ['--socket', ''],
      refused: ['--socket is empty → Use a --socket path of at most 99 bytes.'],
    },
    {
      start: 'development',
      args: ['--socket', '$DIR/mcp.sock'],
      given: 'another server listens there',
      earlier: { args: ['--socket', '$DIR/mcp.sock'], stays: true },
      refused: [
        'Cannot listen on $DIR/mcp.sock: another program listens there (EADDRINUSE) → It is probably used by an earlier server. Stop that, or use another --socket.',
      ],
    },
  ],
  'Which tools are offered': [
    {
      start: 'stdio',
      args: ['--toolsets', 'trafic'],
      refused: [
        "MCP_TOOLSETS (or --toolsets) names toolsets that do not exist: 'trafic' (did you mean 'traffic'?) → There are default, all, $TOOLSETS.",
      ],
    },
    {
      start: 'stdio',
      args: ['--toolsets', ''],
      refused: ['--toolsets must not be empty → Name toolsets, or omit the option.'],
    },
    {
      start: 'stdio',
      args: ['--read-only=1'],
      refused: [
        "Option '--read-only' does not take an argument → svc-mcp --help shows its options; its other settings are environment variables.",
      ],
    },
    {
      start: 'development',
      args: ['--toolsets', 'traffic,polices', '--port', '0'],
      refused: [
        "MCP_TOOLSETS (or --toolsets) names toolsets that do not exist: 'polices' → There are default, all, $TOOLSETS.",
      ],
    },
    {
      start: 'development',
      args: ['--toolsets', '', '--port', '0'],
      refused: [
        "option '--toolsets <names>' argument '' is invalid. It must not be empty. → svc-mcp-http --help shows the options and commands.",
      ],
    },
  ],
  'Options and commands': [
    {
      start: 'stdio',
      args: ['--port', '8080'],
      refused: [
        "Unknown option '--port' → svc-mcp --help shows its options; its other settings are environment variables.",
      ],
    },
    {
      start: 'stdio',
      args: ['serve'],
      refused: [
        "unknown command 'serve' → The commands are draw, demo, doctor and policy; without a command, the server starts.",
      ],
    },
    {
      start: 'development',
      args: ['--prot', '8080'],
      refused: ["unknown option '--prot' (Did you mean --port?) → svc-mcp-http --help shows the options and commands."],
    },
    {
      start: 'development',
      args: ['serve'],
      refused: ["there is no command 'serve' → svc-mcp-http --help shows the options and commands."],
    },
    {
      start: 'per_user',
      args: ['backup-state'],
      refused: ["missing required argument 'file' → svc-mcp-http --help shows the options and commands."],
    },
    {
      start: 'per_user',
      args: ['backup-state', 'backup.db'],
      refused: [
        "MCP_KEYSTORE_PATH './data/keystore.db' does not exist: there is nothing to back up → Use the path that the servers use, and run this on a machine with the file.",
      ],
    },
    {
      start: 'per_user',
      args: ['backup-state', 'backup.db'],
      given: '`backup.db` is there already',
      make: file('backup.db', 'x'),
      earlier: {},
      refused: ["'$DIR/backup.db' exists already → A backup never replaces a file. Use a new name."],
    },
    {
      start: 'per_user',
      args: ['backup-state', 'backups/today.db'],
      earlier: {},
      refused: [
        "'$DIR/backups/today.db' cannot be written: there is no such file or folder (ENOENT) → Use a file in an existing folder to which this user can write.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: null },
      args: ['forget-user', 'ann'],
      refused: [
        'The identity provider of the person is not known → Name it with --issuer, or set MCP_OAUTH_ISSUER as on the servers.',
      ],
    },
    {
      start: 'shared',
      args: ['rewrap-keystore'],
      refused: ['Only per_user mode has a keystore → Run this with the settings of the servers that use the keystore.'],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: '$HMAC_KEY', MCP_CONFIRM_HMAC_KEY: '$KEK' },
      args: ['rewrap-keystore'],
      given: 'a keystore made with another `MCP_KEK`',
      earlier: {},
      refused: [
        "MCP_KEK does not match the keystore './data/keystore.db' → Set the key with which it was created, or, to change keys, set that one as MCP_KEK_PREVIOUS. If it is lost, nothing in the file can be read: name a new file in MCP_KEYSTORE_PATH.",
      ],
    },
  ],
}
