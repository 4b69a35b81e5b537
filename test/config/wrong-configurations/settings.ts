/** Wrong settings that show while the configuration is read, by theme, with the exact texts of the answers. */
import { execFileSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { directory, file, pem, type WrongSettings } from './starts.js'

/** A `.env` file beside the settings of the start. */
const dotEnv = (given: string, text: string | Uint8Array, more: Partial<WrongSettings>): WrongSettings => ({
  start: 'stdio',
  given,
  make: file('.env', text),
  ...more,
})

const STATE_URL = 'postgres://svc_mcp:secret@127.0.0.1:$NOBODY/svc_mcp'

export const WRONG_SETTINGS: Readonly<Record<string, readonly WrongSettings[]>> = {
  'Nothing is set, or not enough': [
    {
      start: 'stdio',
      env: { PCE_HOST: null, API_KEY: null, API_SECRET: null },
      refused: [
        'Missing required env vars: PCE_HOST, API_KEY, API_SECRET → Set PCE_HOST, API_KEY, API_SECRET in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: null },
      refused: [
        'Missing required env vars: API_SECRET → Set API_SECRET in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: ' ' },
      refused: [
        'Missing required env vars: PCE_HOST → Set PCE_HOST in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
    },
    {
      start: 'nothing',
      refused: [
        'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE → To try it on this machine without a login, set MCP_DEV_INSECURE=1, never in production; otherwise docs/authenticated-http.md explains them.',
        'MCP_KEK env var is required → Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
        'MCP_CONFIRM_HMAC_KEY env var is required → Make it once with openssl rand -base64 32; all processes of this server need the same one.',
      ],
    },
    {
      start: 'nothing',
      env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' },
      refused: [
        'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE → PCE_HOST is set, and over HTTP a PCE requires a login. To try it on this machine without a login, set MCP_DEV_INSECURE=1, never in production. For one PCE key behind a login, set MCP_PCE_MODE=shared.',
        'MCP_KEK env var is required → Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
        'MCP_CONFIRM_HMAC_KEY env var is required → Make it once with openssl rand -base64 32; all processes of this server need the same one.',
      ],
      warned: [
        'MCP_PCE_MODE is per_user by default: every user registers a PCE key; PCE_HOST, API_KEY, API_SECRET set but ignored.',
      ],
    },
    {
      start: 'development',
      env: { PCE_HOST: 'pce.example.com' },
      refused: [
        'Missing required env vars: API_KEY, API_SECRET → PCE_HOST is set, so its key is needed too; without PCE_HOST, the server starts without a PCE.',
      ],
    },
    {
      start: 'development',
      env: { API_KEY: 'api_1', API_SECRET: 'secret' },
      warned: ['PCE_HOST is not set, so the API key has no PCE. Tools that need a PCE will say so.'],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: null, MCP_OAUTH_AUDIENCE: null },
      refused: [
        'Missing required OAuth env vars: MCP_OAUTH_ISSUER, MCP_OAUTH_AUDIENCE → They define who may log in. docs/identity-providers lists their values for Keycloak, Entra ID, Okta, Auth0, Ping and AD FS.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: null },
      refused: [
        'MCP_KEK env var is required → Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_HMAC_KEY: null },
      refused: [
        'MCP_CONFIRM_HMAC_KEY env var is required → Make it once with openssl rand -base64 32; all processes of this server need the same one.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_CLIENT_ID: null },
      warned: [
        'No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. Users can register a PCE key only with register-pce-credentials, where a model can see it.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_CLIENT_ID: null, MCP_OAUTH_CLIENT_SECRET: 'secret' },
      refused: [
        'MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID → Set MCP_OAUTH_CLIENT_ID to the client that the secret belongs to.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ROLE_DEFAULT: null },
      warned: [
        'No MCP_ROLE_GROUPS_READER, _OPERATOR or _ADMIN and no MCP_ROLE_DEFAULT: every caller gets forbidden_no_role.',
      ],
    },
    {
      start: 'shared',
      env: { PCE_HOST: null },
      refused: [
        'MCP_PCE_MODE=shared requires PCE_HOST env var → In this mode one PCE key from the environment serves everybody: set PCE_HOST, API_KEY and API_SECRET.',
      ],
    },
    {
      start: 'shared',
      env: { API_KEY: null, API_SECRET: null },
      refused: [
        'MCP_PCE_MODE=shared requires API_KEY, API_SECRET env vars → In this mode one PCE key from the environment serves everybody: set PCE_HOST, API_KEY and API_SECRET.',
      ],
    },
  ],
  'Modes, and settings of another mode': [
    {
      start: 'per_user',
      env: { MCP_PCE_MODE: 'hybrid' },
      refused: [
        "MCP_PCE_MODE 'hybrid' is unknown: use per_user or shared → per_user: every user has a PCE key; shared: one PCE key from the environment serves everybody.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PCE_MODE: 'Shared' },
      refused: [
        "MCP_PCE_MODE 'Shared' is unknown: use per_user or shared → per_user: every user has a PCE key; shared: one PCE key from the environment serves everybody.",
      ],
    },
    {
      start: 'development',
      env: { MCP_PCE_MODE: 'insecure' },
      refused: [
        "MCP_PCE_MODE 'insecure' is unknown: use per_user or shared → per_user: every user has a PCE key; shared: one PCE key from the environment serves everybody.",
      ],
    },
    {
      start: 'development',
      env: { MCP_OAUTH_ISSUER: 'https://login.example.com', MCP_OAUTH_AUDIENCE: 'https://mcp.example.com' },
      warned: [
        'MCP_DEV_INSECURE=1: nobody is authenticated; MCP_OAUTH_ISSUER, MCP_OAUTH_AUDIENCE set but ignored. For logins, unset MCP_DEV_INSECURE.',
      ],
    },
    {
      start: 'per_user',
      env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' },
      warned: [
        'MCP_PCE_MODE is per_user by default: every user registers a PCE key; PCE_HOST, API_KEY, API_SECRET set but ignored.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_KEK: '$KEK', MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      warned: ['MCP_PCE_MODE=shared: one PCE key serves everybody; MCP_KEK, MCP_KEYSTORE_PATH set but ignored.'],
    },
    {
      start: 'stdio',
      env: { MCP_CONFIRM_TOOLS: 'update-workload' },
      refused: [
        'MCP_CONFIRM_TOOLS is set, but nobody logs in here, so no call would wait for its confirmation → Unset MCP_CONFIRM_TOOLS, or set MCP_CONFIRM_STDIO=1, so that the client asks its user.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_ROLE_DEFAULT: 'reader', MCP_DEV_INSECURE: '1' },
      warned: [
        'Nobody logs in over stdio, so no role limits the tools; MCP_ROLE_DEFAULT, MCP_DEV_INSECURE set but ignored: svc-mcp-http reads them.',
      ],
    },
    {
      start: 'development',
      env: { MCP_CONFIRM_TOOLS: 'update-workload' },
      refused: [
        'MCP_CONFIRM_TOOLS is set, but nobody logs in here, so no call would wait for its confirmation → Unset MCP_CONFIRM_TOOLS, or unset MCP_DEV_INSECURE and configure logins.',
      ],
    },
    {
      start: 'development',
      env: { MCP_APPROVAL: 'page', MCP_CONFIRM_STDIO: '1' },
      refused: [
        'MCP_APPROVAL is set, but nobody logs in here, so no call would wait for its confirmation → Unset MCP_APPROVAL, or unset MCP_DEV_INSECURE and configure logins.',
        'MCP_CONFIRM_STDIO is set, but nobody logs in here, so no call would wait for its confirmation → Unset MCP_CONFIRM_STDIO, or unset MCP_DEV_INSECURE and configure logins.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_APPROVAL: 'page' },
      refused: [
        'MCP_APPROVAL is set, but nobody logs in here, so no call would wait for its confirmation → Unset MCP_APPROVAL, or set MCP_CONFIRM_STDIO=1, so that the client asks its user.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_CONFIRM_STDIO: 'yes' },
      refused: [
        'MCP_CONFIRM_STDIO must be 1 or 0 (true and false will do) → It is "yes": write MCP_CONFIRM_STDIO=1 to turn it on, MCP_CONFIRM_STDIO=0 to turn it off.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_CONFIRM_STDIO: '1', MCP_CONFIRM_TOOLS: 'update-worklod' },
      refused: [
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: there is no tool 'update-worklod' (did you mean 'update-workload'?) → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_STDIO: '1' },
      warned: [
        'MCP_PCE_MODE is per_user by default: every user registers a PCE key; MCP_CONFIRM_STDIO set but ignored.',
      ],
    },
  ],
  'Several at once': [
    {
      start: 'stdio',
      env: { PCE_HOST: 'https://pce.example.com/login', API_SECRET: null, PCE_ORG_ID: 'acme', PCE_TLS_VERFY: 'false' },
      refused: [
        'Missing required env vars: API_SECRET → Set API_SECRET in the configuration of the MCP client (env), or in a .env file in the working directory.',
        'PCE_TLS_VERFY is not a variable of this server → Did you mean PCE_TLS_VERIFY? Rename it, or unset it if it belongs to another program.',
        'PCE_HOST must not contain a path → The API is always at /api on the host: write PCE_HOST=https://pce.example.com',
        'PCE_ORG_ID must be a whole number of at least 1 → It is "acme": write digits only, such as PCE_ORG_ID=1, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: null, PCE_URL: 'https://pce.example.com' },
      refused: [
        'Missing required env vars: PCE_HOST → Set PCE_HOST in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
      warned: [
        'Ignored, because this server has no such variable: PCE_URL (did you mean PCE_HOST?). A platform or another program may have set it.',
      ],
    },
  ],
  'The address of the PCE': [
    {
      start: 'stdio',
      env: { PCE_HOST: 'https://pce.example.com/api/v2' },
      refused: [
        'PCE_HOST must not contain a path → The API is always at /api on the host: write PCE_HOST=https://pce.example.com',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'pce.example.com:8443/#/dashboard' },
      refused: [
        'PCE_HOST must not contain a path → The API is always at /api on the host: write PCE_HOST=pce.example.com:8443',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'https:/pce.example.com' },
      refused: [
        'PCE_HOST must be a host or an http(s) URL → Its scheme is misspelt: write https:// with both slashes.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'ftp://pce.example.com' },
      refused: [
        'PCE_HOST must be a host or an http(s) URL → Its scheme is "ftp": write https, such as PCE_HOST=pce.example.com or PCE_HOST=https://pce.example.com:8443',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'https://api_1:secret@pce.example.com' },
      refused: [
        'PCE_HOST must be a host or an http(s) URL, without user name and password → The key belongs in API_KEY and API_SECRET: leave out everything before the host.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'pce.example.com pce2.example.com' },
      refused: [
        'PCE_HOST must be a host or an http(s) URL → It is "pce.example.com pce2.example.com": write one, such as PCE_HOST=pce.example.com or PCE_HOST=https://pce.example.com:8443',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'fd00::7' },
      refused: ['PCE_HOST must be a host or an http(s) URL → Put brackets around an IPv6 address: PCE_HOST=[fd00::7]'],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'pce.example.com:https' },
      refused: [
        'PCE_HOST must be a host or an http(s) URL → It is "pce.example.com:https": write one, such as PCE_HOST=pce.example.com or PCE_HOST=https://pce.example.com:8443',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'http://pce.example.com' },
      warned: ['PCE_HOST begins with http://: the API key goes over the network unencrypted.'],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: 'https://pce.example.com:8443', PCE_PORT: '443' },
      refused: ['PCE_HOST names port 8443, but PCE_PORT is 443 → Keep one of the two.'],
    },
    {
      start: 'stdio',
      env: { PCE_PORT: '84443' },
      refused: [
        'PCE_PORT must be a whole number from 1 to 65535 → It is 84443: write a number in that range, such as PCE_PORT=443, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PORT: 'https' },
      refused: [
        'PCE_PORT must be a whole number from 1 to 65535 → It is "https": write digits only, such as PCE_PORT=443, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PORT: '8443 ' },
      refused: [
        'PCE_PORT must be a whole number from 1 to 65535 → It is "8443 ": write digits only, such as PCE_PORT=443, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PORT: 'tcp://10.0.0.1:443' },
      refused: [
        'PCE_PORT must be a whole number from 1 to 65535 → It is "tcp://10.0.0.1:443", as Kubernetes sets it for a service named pce: give the pod enableServiceLinks: false.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_ORG_ID: '0' },
      refused: [
        'PCE_ORG_ID must be a whole number of at least 1 → It is 0: write a number in that range, such as PCE_ORG_ID=1, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_ORG_ID: 'acme' },
      refused: [
        'PCE_ORG_ID must be a whole number of at least 1 → It is "acme": write digits only, such as PCE_ORG_ID=1, which is the default.',
      ],
    },
  ],
  'Names that nothing reads': [
    {
      start: 'stdio',
      env: { PCE_HSOT: 'pce.example.com' },
      refused: [
        'PCE_HSOT is not a variable of this server → Did you mean PCE_HOST? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_ORGID: '1' },
      refused: [
        'PCE_ORGID is not a variable of this server → Did you mean PCE_ORG_ID? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'stdio',
      env: { pce_port: '8443' },
      refused: [
        'pce_port is not a variable of this server → Did you mean PCE_PORT? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PORT_FILE: '/run/secrets/port' },
      refused: [
        'PCE_PORT_FILE is not a variable of this server → PCE_PORT is not read from a file: set PCE_PORT itself.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: null, PCE_FQDN: 'pce.example.com' },
      refused: [
        'Missing required env vars: PCE_HOST → Set PCE_HOST in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
      warned: [
        'Ignored, because this server has no such variable: PCE_FQDN (did you mean PCE_HOST?). A platform or another program may have set it.',
      ],
    },
    {
      start: 'stdio',
      env: { API_KEY: null, PCE_API_KEY: 'api_1' },
      refused: [
        'Missing required env vars: API_KEY → Set API_KEY in the configuration of the MCP client (env), or in a .env file in the working directory.',
      ],
      warned: [
        'Ignored, because this server has no such variable: PCE_API_KEY (did you mean API_KEY?). A platform or another program may have set it.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_SERVICE_HOST: '10.0.0.1', PCE_SERVICE_PORT: '443' },
      warned: [
        'Ignored, because this server has no such variable: PCE_SERVICE_HOST, PCE_SERVICE_PORT. A platform or another program may have set them.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: null, MCP_KEK_FIEL: '/run/secrets/kek' },
      refused: [
        'MCP_KEK env var is required → Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
        'MCP_KEK_FIEL is not a variable of this server → Did you mean MCP_KEK_FILE? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_JWKS_URL: null, MCP_OAUTH_JWKS_URI: 'https://login.example.com/keys' },
      refused: [
        'Missing required OAuth env vars: MCP_OAUTH_JWKS_URL → They define who may log in. docs/identity-providers lists their values for Keycloak, Entra ID, Okta, Auth0, Ping and AD FS.',
        'MCP_OAUTH_JWKS_URI is not a variable of this server → Did you mean MCP_OAUTH_JWKS_URL? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ROLE_GROUP_ADMIN: 'mcp-admins' },
      refused: [
        'MCP_ROLE_GROUP_ADMIN is not a variable of this server → Did you mean MCP_ROLE_GROUPS_ADMIN? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'development',
      env: { MCP_PORT: '9000', MCP_HOST: '0.0.0.0' },
      warned: [
        'Ignored, because this server has no such variable: MCP_HOST (did you mean --host?), MCP_PORT (did you mean --port?). A platform or another program may have set them.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_CLIENT_ID: null, MCP_CLIENT_ID: 'svc-mcp-setup' },
      warned: [
        'Ignored, because this server has no such variable: MCP_CLIENT_ID (did you mean MCP_OAUTH_CLIENT_ID?). A platform or another program may have set it.',
        'No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. Users can register a PCE key only with register-pce-credentials, where a model can see it.',
      ],
    },
  ],
  'Quotes, whitespace, placeholders': [
    {
      start: 'stdio',
      env: { PCE_HOST: '"pce.example.com"' },
      refused: [
        'PCE_HOST is in quotes, which are part of its value here → Only shells and .env files strip quotes: write PCE_HOST=pce.example.com',
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: "'secret'" },
      refused: [
        'API_SECRET is in quotes, which are part of its value here → Only shells and .env files strip quotes: leave them out.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_ORG_ID: '“7”' },
      refused: [
        'PCE_ORG_ID is in quotes, which are part of its value here → Only shells and .env files strip quotes: write PCE_ORG_ID=7',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: '"$KEK"' },
      refused: [
        'MCP_KEK is in quotes, which are part of its value here → Only shells and .env files strip quotes: leave them out.',
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: 'secret\r' },
      refused: [
        'API_SECRET begins or ends with whitespace, or contains a control character → Remove it. It often comes from copying, or from a file with Windows line endings.',
      ],
    },
    {
      start: 'stdio',
      env: { API_KEY: ' api_1' },
      refused: [
        'API_KEY begins or ends with whitespace, or contains a control character → Remove it. It often comes from copying, or from a file with Windows line endings.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_AUDIENCE: 'https://mcp.example.com ' },
      refused: [
        'MCP_OAUTH_AUDIENCE must not begin or end with whitespace or contain control characters → It is "https://mcp.example.com ": write it exactly as it is in the aud of the tokens.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_TOKEN_ISSUER: ' http://login.example.com/adfs/services/trust' },
      refused: [
        'MCP_OAUTH_TOKEN_ISSUER must not begin or end with whitespace or contain control characters → It is " http://login.example.com/adfs/services/trust": write it exactly as it is in the iss of the tokens.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_OAUTH_TOKEN_ISSUER: '<your issuer>' },
      refused: [
        'MCP_OAUTH_TOKEN_ISSUER still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: 'https://login.example.com\n' },
      refused: [
        'MCP_OAUTH_ISSUER must not contain whitespace → It is "https://login.example.com\\n": remove spaces and line breaks.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_HOST: '${PCE_HOST}', API_SECRET: '${env:PCE_SECRET}' },
      refused: [
        'PCE_HOST still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
        'API_SECRET still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'stdio',
      env: { API_KEY: 'api_…' },
      refused: [
        'API_KEY still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: '<your secret>' },
      refused: [
        'API_SECRET still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'https://${DOMAIN}' },
      refused: [
        'MCP_PUBLIC_URL still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'stdio',
      env: { API_KEY: 'secret', API_SECRET: 'api_1' },
      warned: ['API_SECRET begins with api_, as API keys do: API_KEY and API_SECRET may be swapped.'],
    },
  ],
  'Switches and words': [
    {
      start: 'nothing',
      env: { MCP_DEV_INSECURE: 'yes' },
      refused: [
        'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE → To try it on this machine without a login, set MCP_DEV_INSECURE=1, never in production; otherwise docs/authenticated-http.md explains them.',
        'MCP_KEK env var is required → Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
        'MCP_CONFIRM_HMAC_KEY env var is required → Make it once with openssl rand -base64 32; all processes of this server need the same one.',
        'MCP_DEV_INSECURE must be 1, in no other spelling → It is "yes": write MCP_DEV_INSECURE=1 to turn it on, or leave it out.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_TLS_VERIFY: 'no' },
      refused: [
        'PCE_TLS_VERIFY must be 1 or 0 (true and false will do) → It is "no": write PCE_TLS_VERIFY=1 to turn it on, PCE_TLS_VERIFY=0 to turn it off.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_TLS_VERIFY: 'false' },
      warned: [
        "PCE_TLS_VERIFY=false: the PCE's certificate is not verified, so anyone on the network path can impersonate it.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ALLOW_INSECURE_PCE_TLS: 'on' },
      refused: [
        'MCP_ALLOW_INSECURE_PCE_TLS must be 1, in no other spelling → It is "on": write MCP_ALLOW_INSECURE_PCE_TLS=1 to turn it on, or leave it out.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ALLOW_INSECURE_PCE_TLS: '1' },
      warned: ['MCP_ALLOW_INSECURE_PCE_TLS=1: users may register a PCE whose certificate is not verified.'],
    },
    {
      start: 'stdio',
      env: { MCP_LOG_LEVEL: 'verbose' },
      refused: [
        'MCP_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent → It is "verbose": write, for example, MCP_LOG_LEVEL=info',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_LOG_LEVEL: 'WARN' },
      refused: [
        'MCP_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent → It is "WARN": write, for example, MCP_LOG_LEVEL=warn',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ROLE_DEFAULT: 'Reader' },
      refused: [
        'MCP_ROLE_DEFAULT must be one of reader, operator, admin → It is "Reader": write, for example, MCP_ROLE_DEFAULT=reader',
      ],
    },
  ],
  'Numbers and limits': [
    {
      start: 'stdio',
      env: { MCP_RESPONSE_BUDGET_BYTES: '80kB' },
      refused: [
        'MCP_RESPONSE_BUDGET_BYTES must be a whole number from 1000 to 800000 → It is "80kB": write digits only, such as MCP_RESPONSE_BUDGET_BYTES=24000, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_RESPONSE_BUDGET_BYTES: '500' },
      refused: [
        'MCP_RESPONSE_BUDGET_BYTES must be a whole number from 1000 to 800000 → It is 500: write a number in that range, such as MCP_RESPONSE_BUDGET_BYTES=24000, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS: '2h' },
      refused: [
        'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS must be a whole number from 1 to 3600 → It is "2h": write digits only, such as MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS=600, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TRAFFIC_MAX_PARTS: '0' },
      refused: [
        'MCP_TRAFFIC_MAX_PARTS must be a whole number from 1 to 1000 → It is 0: write a number in that range, such as MCP_TRAFFIC_MAX_PARTS=64, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_PCE_TIMEOUT_SECONDS: '0' },
      refused: [
        'MCP_PCE_TIMEOUT_SECONDS must be a whole number from 5 to 3600 → It is 0: write a number in that range, such as MCP_PCE_TIMEOUT_SECONDS=120, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_PCE_ANSWER_MIB: '1024' },
      refused: [
        'MCP_PCE_ANSWER_MIB must be a whole number from 1 to 256 → It is 1024: write a number in that range, such as MCP_PCE_ANSWER_MIB=32, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_PCE_LIST_MIB: '1.5' },
      refused: [
        'MCP_PCE_LIST_MIB must be a whole number from 1 to 4096 → It is "1.5": write digits only, such as MCP_PCE_LIST_MIB=256, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_HEAVY_CALLS: '0' },
      refused: [
        'MCP_HEAVY_CALLS must be a whole number from 1 to 64 → It is 0: write a number in that range, such as MCP_HEAVY_CALLS=4, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_HEAVY_QUEUE: '-1' },
      refused: [
        'MCP_HEAVY_QUEUE must be a whole number from 0 to 1000 → It is "-1": write digits only, such as MCP_HEAVY_QUEUE=16, which is the default.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_HEAVY_MEMORY_MIB: '32' },
      refused: [
        'MCP_HEAVY_MEMORY_MIB must be a whole number from 64 to 16384 → It is 32: write a number in that range, such as MCP_HEAVY_MEMORY_MIB=512, which is the default.',
      ],
    },
    {
      start: 'development',
      env: { MCP_MAX_IN_FLIGHT: 'many' },
      refused: [
        'MCP_MAX_IN_FLIGHT must be a whole number from 0 to 100000 → It is "many": write digits only, such as MCP_MAX_IN_FLIGHT=256, which is the default.',
      ],
    },
    {
      start: 'development',
      env: { MCP_METRICS_PORT: 'on' },
      refused: [
        'MCP_METRICS_PORT must be a whole number from 1 to 65535 → It is "on": write digits only, such as MCP_METRICS_PORT=9464.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_REPLICA_ID: 'pod 1' },
      refused: [
        'MCP_REPLICA_ID must be 1 to 128 visible ASCII characters without quotes and backslashes → It is "pod 1": write a short name, such as MCP_REPLICA_ID=mcp-1, or unset it to use the host name.',
      ],
    },
    {
      start: 'development',
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
      refused: [
        'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL → It is "collector:4318": write the URL of a collector, such as OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_HEAVY_CALLS_PER_CALLER: '0' },
      refused: [
        'MCP_HEAVY_CALLS_PER_CALLER must be a whole number from 1 to 64 → It is 0: write a number in that range, such as MCP_HEAVY_CALLS_PER_CALLER=2, which is the default.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '1e3' },
      refused: [
        'MCP_MAX_IN_FLIGHT_PER_CALLER must be a whole number from 0 to 100000 → It is "1e3": write digits only, such as MCP_MAX_IN_FLIGHT_PER_CALLER=32, which is the default.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_RATE_LIMIT_PER_MINUTE: '10/s' },
      refused: [
        'MCP_RATE_LIMIT_PER_MINUTE must be a whole number from 0 to 1000000 → It is "10/s": write digits only, such as MCP_RATE_LIMIT_PER_MINUTE=600, which is the default.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_RATE_PER_MINUTE: '10.5' },
      refused: [
        'MCP_CONFIRM_RATE_PER_MINUTE must be a whole number from 0 to 1000000 → It is "10.5": write digits only, such as MCP_CONFIRM_RATE_PER_MINUTE=10, which is the default.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_REFUSED_TOKENS_PER_MINUTE: '99999999' },
      refused: [
        'MCP_REFUSED_TOKENS_PER_MINUTE must be a whole number from 0 to 1000000 → It is 99999999: write a number in that range, such as MCP_REFUSED_TOKENS_PER_MINUTE=30, which is the default.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_TTL_SECONDS: '86400' },
      refused: [
        'MCP_CONFIRM_TTL_SECONDS must be a whole number from 1 to 3600 → It is 86400: write a number in that range, such as MCP_CONFIRM_TTL_SECONDS=120, which is the default.',
      ],
    },
  ],
  'The .env file': [
    dotEnv('`.env` in UTF-16', Buffer.from('\ufeffPCE_PORT=8443\r\n', 'utf16le'), {
      refused: [
        '.env is not UTF-8 text but UTF-16 → Save it as UTF-8. Every editor can do that, and so can PowerShell: Set-Content -Encoding utf8.',
      ],
    }),
    dotEnv('`.env` in UTF-16 without a mark', Buffer.from('PCE_PORT=8443\r\n', 'utf16le'), {
      refused: [
        '.env is not UTF-8 text but UTF-16 → Save it as UTF-8. Every editor can do that, and so can PowerShell: Set-Content -Encoding utf8.',
      ],
    }),
    dotEnv('`.env` in Latin-1: `API_SECRET=schlüssel`', Buffer.from('API_SECRET=schl\xfcssel\n', 'latin1'), {
      refused: [
        '.env is not UTF-8 text → Save it as UTF-8. Every editor can do that, and so can PowerShell: Set-Content -Encoding utf8.',
      ],
    }),
    dotEnv('`.env`: `PCE_PORT=8443`, then `hello`', 'PCE_PORT=8443\nhello\n', {
      refused: ['Line 2 of .env is not NAME=value → Correct it, or delete it; a comment begins with #.'],
    }),
    dotEnv('`.env`: `PCE_PORT: 8443`', 'PCE_PORT: 8443\n', {
      refused: ['Line 1 of .env names PCE_PORT but is not NAME=value → Begin the line with PCE_PORT='],
    }),
    dotEnv('`.env`: `API_SECRET=abc#def`', 'API_SECRET=abc#def\n', {
      refused: [
        'Line 1 of .env: a # in the value of API_SECRET begins a comment, and the rest would be lost → Put quotes around the value: API_SECRET="…". If you meant a comment, put a space before the #.',
      ],
    }),
    dotEnv('`.env`: `API_SECRET="abc`', 'API_SECRET="abc\n', {
      refused: [
        'Line 1 of .env: the value of API_SECRET begins with " but does not end with it → Write the whole value on that line, and end it with " too.',
      ],
    }),
    dotEnv('`.env`: `PCE_PORT=443`, then `PCE_PORT=8443`', 'PCE_PORT=443\nPCE_PORT=8443\n', {
      warned: ['Line 2 of .env sets PCE_PORT, as line 1 does: the last one counts.'],
    }),
    dotEnv('`.env` has nothing for this server, and a line `hello`', 'hello\nDATABASE_URL=x\n', {
      warned: ['Line 1 of .env is not NAME=value: it was skipped.'],
    }),
    dotEnv('`.env` is a folder', '', {
      make: directory('.env'),
      refused: [
        'Cannot read .env: it is a folder (EISDIR) → Make it a file that the user of this server can read, or remove it.',
      ],
    }),
  ],
  'Secrets in files': [
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      refused: [
        "Cannot read API_SECRET_FILE '$DIR/secret': there is no such file or folder (ENOENT) → Use the path of a file that contains only the secret and that the user of this server can read.",
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET_FILE: '$DIR/secret' },
      make: file('secret', 'secret'),
      refused: [
        'API_SECRET and API_SECRET_FILE are both set: keep one → Delete API_SECRET to use the content of the file.',
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is empty',
      make: file('secret', '\n'),
      refused: ["API_SECRET_FILE '$DIR/secret' is empty → Write only the secret into the file."],
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is a folder',
      make: directory('secret'),
      refused: [
        "Cannot read API_SECRET_FILE '$DIR/secret': it is a folder (EISDIR) → Use the path of a file that contains only the secret and that the user of this server can read.",
      ],
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` ends in an empty line',
      make: file('secret', 'secret\n\n'),
      refused: [
        'API_SECRET begins or ends with whitespace, or contains a control character → Remove it. It often comes from copying, or from a file with Windows line endings.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: null, MCP_KEK_FILE: '$DIR/kek' },
      given: '`kek` has a comment below the key',
      make: (folder, { values }) => writeFileSync(join(folder, 'kek'), `${values.$KEK}\n# of 2026\n`),
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → There is whitespace or other text next to the key. Leave only the key.',
      ],
    },
  ],
  'The keys of the service': [
    {
      start: 'per_user',
      env: { MCP_KEK: '0707070707070707070707070707070707070707070707070707070707070707' },
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → It looks like hexadecimal: write the same bytes in base64, or make one with openssl rand -base64 32',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: '-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s' },
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → It looks like base64url, which uses - and _ instead of + and /: write the same bytes in base64, or make one with openssl rand -base64 32',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: 'BwcHBwcHBwcHBwcHBwcHBw==' },
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → It has 24 characters instead of 44: make one with openssl rand -base64 32',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: '$KEK\n' },
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → There is whitespace or other text next to the key. Leave only the key.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: 'correct horse battery staple' },
      refused: [
        'MCP_KEK must be base64 of 32 random bytes → It has 28 characters instead of 44: make one with openssl rand -base64 32',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
      refused: ['MCP_KEK must be 32 random bytes, not zeros → Make one with openssl rand -base64 32'],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_HMAC_KEY: 'changeme' },
      refused: [
        'MCP_CONFIRM_HMAC_KEY must be base64 of 32 random bytes → It has 8 characters instead of 44: make one with openssl rand -base64 32',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_HMAC_KEY: '$KEK' },
      warned: [
        'MCP_KEK and MCP_CONFIRM_HMAC_KEY are the same key, so anyone who learns one has both. Give MCP_CONFIRM_HMAC_KEY a key of its own.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK_PREVIOUS: '$KEK' },
      refused: [
        'MCP_KEK_PREVIOUS is the same key as MCP_KEK → MCP_KEK is for the new key and MCP_KEK_PREVIOUS for the old one. If you are not changing keys, delete MCP_KEK_PREVIOUS.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEK_PREVIOUS: 'old' },
      refused: [
        'MCP_KEK_PREVIOUS must be base64 of 32 random bytes → It has 3 characters instead of 44: set the key that was in use before',
      ],
    },
    {
      start: 'shared',
      env: { MCP_CONFIRM_HMAC_KEY_PREVIOUS: '$HMAC_KEY' },
      refused: [
        'MCP_CONFIRM_HMAC_KEY_PREVIOUS is the same key as MCP_CONFIRM_HMAC_KEY → MCP_CONFIRM_HMAC_KEY is for the new key and MCP_CONFIRM_HMAC_KEY_PREVIOUS for the old one. If you are not changing keys, delete MCP_CONFIRM_HMAC_KEY_PREVIOUS.',
      ],
    },
  ],
  'The identity provider and the public address': [
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'http://mcp.example.com' },
      refused: [
        'MCP_PUBLIC_URL must be an https URL, or http on loopback → It is "http://mcp.example.com": write https://; plain http is only for localhost.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'mcp.example.com' },
      refused: [
        'MCP_PUBLIC_URL must be an https URL, or http on loopback → It is "mcp.example.com": write the whole URL, such as MCP_PUBLIC_URL=https://mcp.example.com',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'https://mcp.example.com/mcp' },
      refused: [
        'MCP_PUBLIC_URL must not end in /mcp, which the server adds itself → Write its base: MCP_PUBLIC_URL=https://mcp.example.com',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'https://mcp.example.com/setup/' },
      refused: [
        'MCP_PUBLIC_URL must not end in /setup, which the server adds itself → Write its base: MCP_PUBLIC_URL=https://mcp.example.com',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_PUBLIC_URL: 'https://mcp.example.com/?tenant=1' },
      refused: [
        'MCP_PUBLIC_URL must not contain a query → Remove the ? and everything after it: MCP_PUBLIC_URL=https://mcp.example.com/',
      ],
    },
    {
      start: 'development',
      env: { MCP_PUBLIC_URL: 'https://mcp.example.com/mcp' },
      refused: [
        'MCP_PUBLIC_URL must not end in /mcp, which the server adds itself → Write its base: MCP_PUBLIC_URL=https://mcp.example.com',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: 'login.example.com' },
      refused: [
        'MCP_OAUTH_ISSUER must be an https URL, or http on loopback → It is "login.example.com": write the whole URL, such as MCP_OAUTH_ISSUER=https://login.example.com/v2.0',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: 'http://login.example.com' },
      refused: [
        'MCP_OAUTH_ISSUER must be an https URL, or http on loopback → It is "http://login.example.com": write https://; plain http is only for localhost.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: 'https://login.example.com/.well-known/openid-configuration' },
      refused: ['MCP_OAUTH_ISSUER is the address of the discovery document → Open it, and copy its issuer here.'],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_ISSUER: 'https://me:pw@login.example.com' },
      refused: [
        'MCP_OAUTH_ISSUER must not contain a user name, a password or a fragment → Write MCP_OAUTH_ISSUER=https://login.example.com',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_JWKS_URL: 'https://login.example.com/.well-known/openid-configuration' },
      refused: ['MCP_OAUTH_JWKS_URL is the address of the discovery document → Open it, and copy its jwks_uri here.'],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_JWKS_URL: 'https://login.example.com/keys#1' },
      refused: [
        'MCP_OAUTH_JWKS_URL must not contain a user name, a password or a fragment → Write MCP_OAUTH_JWKS_URL=https://login.example.com/keys',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_REQUIRED_SCOPE: 'openid svc-mcp.use' },
      refused: [
        'MCP_OAUTH_REQUIRED_SCOPE must be a single scope without whitespace → It is "openid svc-mcp.use": write one scope, such as MCP_OAUTH_REQUIRED_SCOPE=svc-mcp.use',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_REQUEST_SCOPE: 'api://svc-mcp/"use"' },
      refused: [
        'MCP_OAUTH_REQUEST_SCOPE must be scopes separated by blanks, without quotes, backslashes and other whitespace → One of them is "api://svc-mcp/\\"use\\"": write them such as MCP_OAUTH_REQUEST_SCOPE=openid svc-mcp.use offline_access',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_REQUEST_SCOPE: 'openid,svc-mcp.use' },
      warned: ['MCP_OAUTH_REQUEST_SCOPE has a comma, which is part of a scope: separate scopes by blanks.'],
    },
    {
      start: 'per_user',
      env: { MCP_OAUTH_REQUEST_SCOPE: 'openid offline_access' },
      warned: [
        'MCP_OAUTH_REQUEST_SCOPE is all that clients request, and it lacks MCP_OAUTH_REQUIRED_SCOPE (svc-mcp.use): their tokens will be refused, unless the provider adds it.',
      ],
    },
  ],
  'Hosts, proxies and networks': [
    {
      start: 'development',
      env: { MCP_ALLOWED_HOSTS: 'https://mcp.example.com' },
      refused: [
        "MCP_ALLOWED_HOSTS takes hosts like mcp.example.com, not 'https://mcp.example.com' → Write only the host, or host:port, and separate several with commas: mcp.example.com",
      ],
    },
    {
      start: 'development',
      env: { MCP_ALLOWED_HOSTS: 'mcp.example.com/mcp' },
      refused: [
        "MCP_ALLOWED_HOSTS takes hosts like mcp.example.com, not 'mcp.example.com/mcp' → Write only the host, or host:port, and separate several with commas: mcp.example.com",
      ],
    },
    {
      start: 'development',
      env: { MCP_ALLOWED_HOSTS: '*.example.com' },
      refused: [
        "MCP_ALLOWED_HOSTS takes hosts like mcp.example.com, not '*.example.com' → Networks and patterns are not supported. Write each host, separated by commas.",
      ],
    },
    {
      start: 'development',
      env: { MCP_TRUSTED_PROXIES: 'proxy.example.com' },
      refused: [
        "MCP_TRUSTED_PROXIES takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not 'proxy.example.com' → Write the addresses of the proxies in front of this server, separated by commas: MCP_TRUSTED_PROXIES=127.0.0.1",
      ],
    },
    {
      start: 'development',
      env: { MCP_TRUSTED_PROXIES: '10.0.0.7:8443' },
      refused: [
        "MCP_TRUSTED_PROXIES takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not '10.0.0.7:8443' → Write the addresses of the proxies in front of this server, separated by commas: MCP_TRUSTED_PROXIES=127.0.0.1",
      ],
    },
    {
      start: 'development',
      env: { MCP_TRUSTED_PROXIES: '10.0.0.0/33' },
      refused: [
        "MCP_TRUSTED_PROXIES takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not '10.0.0.0/33' → Write the addresses of the proxies in front of this server, separated by commas: MCP_TRUSTED_PROXIES=127.0.0.1",
      ],
    },
    {
      start: 'development',
      env: { MCP_TRUSTED_PROXIES: '0.0.0.0/0' },
      refused: [
        "MCP_TRUSTED_PROXIES must not trust every address: '0.0.0.0/0' → Anyone could then claim any address. Write only those of your proxies: MCP_TRUSTED_PROXIES=127.0.0.1",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ALLOWED_PCE_HOSTS: 'https://pce.example.com' },
      refused: [
        "MCP_ALLOWED_PCE_HOSTS takes hosts like pce.example.com, not 'https://pce.example.com' → Write only the host, or host:port, and separate several with commas: pce.example.com",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ALLOWED_PCE_HOSTS: '*.example.com,pce.example.org,pce&.example.net' },
      refused: [
        "MCP_ALLOWED_PCE_HOSTS takes hosts like pce.example.com, not '*.example.com' → Networks and patterns are not supported. Write each host, separated by commas.",
        "MCP_ALLOWED_PCE_HOSTS: 'pce&.example.net' is not a host → Write whole host names or addresses, each with or without a port; patterns and networks are not supported.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_ALLOWED_PCE_HOSTS: '10.0.0.0/8' },
      refused: [
        "MCP_ALLOWED_PCE_HOSTS takes hosts like pce.example.com, not '10.0.0.0/8' → Networks and patterns are not supported. Write each host, separated by commas.",
      ],
    },
    {
      start: 'per_user',
      env: { PCE_PROXY_URL: 'http://proxy.example.com:3128' },
      warned: [
        'PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS: the proxy resolves the host names users register, so it must refuse internal addresses itself.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PROXY_URL: 'proxy.example.com:3128' },
      refused: [
        'PCE_PROXY_URL must be an http or https URL → Write it with its scheme, such as PCE_PROXY_URL=http://proxy.example.com:3128',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PROXY_URL: 'socks5://proxy.example.com' },
      refused: [
        'PCE_PROXY_URL must be an http or https URL → Write it with its scheme, such as PCE_PROXY_URL=http://proxy.example.com:3128',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_PROXY_URL: 'http://me:100%@proxy.example.com:3128' },
      refused: [
        'PCE_PROXY_URL: http proxy: its user name and password must be UTF-8, and a % in them is written %25 → Write the URL of the proxy, such as http://proxy.example.com:3128; in a user name or password % is written %25.',
      ],
    },
  ],
  'Certificates for the PCE': [
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.pem' },
      refused: [
        "PCE_CA_FILE: cannot read the CA bundle $DIR/ca.pem: there is no such file or folder (ENOENT) → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR' },
      refused: [
        "PCE_CA_FILE: cannot read the CA bundle $DIR: not a regular file → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.der' },
      given: '`ca.der` is a DER file',
      make: (folder, stage) => {
        pem('ca')(folder, stage)
        execFileSync('openssl', ['x509', '-in', 'ca.pem', '-outform', 'der', '-out', 'ca.der'], { cwd: folder })
      },
      refused: [
        "PCE_CA_FILE: the CA bundle $DIR/ca.der has no PEM block of type CERTIFICATE → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/client.key' },
      given: '`client.key` is a key',
      make: pem('client.key'),
      refused: [
        "PCE_CA_FILE: the CA bundle $DIR/client.key has no PEM block of type CERTIFICATE → Give a PEM file that the user of this server may read, with the CAs that signed the PCE's certificate (openssl x509 -inform der makes PEM of DER).",
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.pem', PCE_TLS_VERIFY: 'false' },
      make: pem('ca'),
      warned: [
        "PCE_TLS_VERIFY=false: the PCE's certificate is not verified, so anyone on the network path can impersonate it.",
        'PCE_CA_FILE is not used, because PCE_TLS_VERIFY=false.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_KEY_FILE: '$DIR/client.key' },
      make: pem('client.key'),
      refused: [
        'PCE_CLIENT_KEY_FILE requires PCE_CLIENT_CERT_FILE → Set PCE_CLIENT_CERT_FILE to the certificate for that key, or unset PCE_CLIENT_KEY_FILE.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem' },
      given: '`client.pem` has no key',
      make: pem('client'),
      refused: [
        'PCE_CLIENT_CERT_FILE: the client key $DIR/client.pem has no PEM block of type PRIVATE KEY → Give PEM files: the certificate, and its own private key without a passphrase, in the same file or in PCE_CLIENT_KEY_FILE.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/server.key' },
      given: 'a key that is not that of the certificate',
      make: pem('client', 'server.key'),
      refused: [
        'PCE_CLIENT_CERT_FILE, PCE_CLIENT_KEY_FILE: the client certificate $DIR/client.pem with key $DIR/server.key cannot be used: the key belongs to another certificate → Give PEM files: the certificate, and its own private key without a passphrase, in the same file or in PCE_CLIENT_KEY_FILE.',
      ],
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/sealed.key' },
      given: '`sealed.key` has a passphrase',
      make: pem('client', 'sealed.key'),
      refused: [
        'PCE_CLIENT_CERT_FILE, PCE_CLIENT_KEY_FILE: the client key $DIR/sealed.key is encrypted: save it without a passphrase, for example with openssl pkey → Give PEM files: the certificate, and its own private key without a passphrase, in the same file or in PCE_CLIENT_KEY_FILE.',
      ],
    },
    {
      start: 'per_user',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/client.key' },
      make: pem('client', 'client.key'),
      warned: ['PCE_CLIENT_CERT_FILE is presented only to the hosts in MCP_ALLOWED_PCE_HOSTS, and that is not set.'],
    },
  ],
  'Keystore, state file and audit log': [
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR' },
      refused: [
        "MCP_KEYSTORE_PATH '$DIR' is a folder → Use the path of a file in it: MCP_KEYSTORE_PATH=$DIR/keystore.db",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' },
      given: '`volume` is a file',
      make: file('volume', ''),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/volume/keystore.db' cannot be reached: a part of the path is a file, not a folder (ENOTDIR) → Set MCP_KEYSTORE_PATH to a file whose folders exist and are accessible.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is empty',
      make: file('keystore.db', ''),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/keystore.db' is empty → Restore it from a backup, or move it away to start fresh.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is a symbolic link',
      make: (folder) => symlinkSync('elsewhere.db', join(folder, 'keystore.db')),
      refused: ["MCP_KEYSTORE_PATH '$DIR/keystore.db' is a symbolic link → Use the path of the file itself."],
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is gone, `keystore.db-wal` is not',
      make: file('keystore.db-wal', 'x'),
      refused: [
        "MCP_KEYSTORE_PATH '$DIR/keystore.db' is missing, but '$DIR/keystore.db-wal' is there → Restore the file, or move both out of the way.",
      ],
    },
    {
      start: 'shared',
      env: { MCP_STATE_PATH: '/dev/null' },
      refused: [
        "MCP_STATE_PATH '/dev/null' is not a regular file → Pipes and devices are not supported. Use the path of a file, or one that does not exist yet.",
      ],
    },
    {
      start: 'shared',
      env: { MCP_STATE_PATH: '$DIR/x.db', MCP_AUDIT_LOG_PATH: '$DIR/x.db' },
      refused: ["MCP_AUDIT_LOG_PATH and MCP_STATE_PATH are the same file '$DIR/x.db' → Use a separate file for each."],
    },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR/logs/audit.log' },
      refused: [
        "MCP_AUDIT_LOG_PATH '$DIR/logs/audit.log' cannot be written: there is no such file or folder (ENOENT) → Create the folder '$DIR/logs' with write access for the user of this server.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR' },
      refused: [
        "MCP_AUDIT_LOG_PATH '$DIR' cannot be written: it is a folder (EISDIR) → Use the path of a file in it: MCP_AUDIT_LOG_PATH=$DIR/audit.log",
      ],
    },
  ],
  'The state in PostgreSQL': [
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'db.example.com:5432/svc_mcp' },
      refused: [
        'MCP_STATE_URL must be a PostgreSQL URL → Write it like MCP_STATE_URL=postgres://svc_mcp:PASSWORD@db.example.com:5432/svc_mcp?sslmode=verify-full, with reserved characters as %XX, especially in the password.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'mysql://svc_mcp:secret@127.0.0.1/svc_mcp' },
      refused: [
        'MCP_STATE_URL must be a PostgreSQL URL → Write it like MCP_STATE_URL=postgres://svc_mcp:PASSWORD@db.example.com:5432/svc_mcp?sslmode=verify-full, with reserved characters as %XX, especially in the password.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'postgres://svc_mcp:sec/ret@127.0.0.1/svc_mcp' },
      refused: [
        'MCP_STATE_URL must be a PostgreSQL URL → Write it like MCP_STATE_URL=postgres://svc_mcp:PASSWORD@db.example.com:5432/svc_mcp?sslmode=verify-full, with reserved characters as %XX, especially in the password.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'postgres://svc_mcp:s%cret@127.0.0.1/svc_mcp' },
      refused: ['MCP_STATE_URL has a % that is not an escape → Write a % in the user, password or database as %25.'],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'postgres://127.0.0.1' },
      refused: [
        'MCP_STATE_URL must name a user, a database → Write it like MCP_STATE_URL=postgres://svc_mcp:PASSWORD@db.example.com:5432/svc_mcp?sslmode=verify-full',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'postgres://svc_mcp:${PASSWORD}@127.0.0.1/svc_mcp' },
      refused: [
        'MCP_STATE_URL still contains a placeholder → Write the value itself: shells and compose files replace names in ${…}, this server does not.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: 'postgres://svc_mcp:secret@db.example.com/svc_mcp?sslmode=require' },
      refused: [
        "MCP_STATE_URL must have sslmode=verify-full, since 'db.example.com' is another machine → Anything less lets an attacker on the network read or change the state. If the CA is not a public one, name it with sslrootcert.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: `${STATE_URL}?sslmode=prefer` },
      refused: ['MCP_STATE_URL has an sslmode that is not verify-full or disable → On this machine, either will do.'],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: `${STATE_URL}?connect_timeout=3` },
      refused: [
        'MCP_STATE_URL has a parameter that is not supported: connect_timeout → Supported are sslmode, sslrootcert, sslcert, sslkey, host.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: `${STATE_URL}?host=db.example.com` },
      refused: [
        'MCP_STATE_URL has a second host in a parameter → The parameter host is only for the folder of a Unix socket.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL, MCP_STATE_URL_FILE: '$DIR/url' },
      make: file('url', STATE_URL),
      refused: [
        'MCP_STATE_URL and MCP_STATE_URL_FILE are both set: keep one → Delete MCP_STATE_URL to use the content of the file.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL, MCP_STATE_POOL_SIZE: '1' },
      refused: [
        'MCP_STATE_POOL_SIZE must be a whole number from 2 to 200 → It is 1: write a number in that range, such as MCP_STATE_POOL_SIZE=10, which is the default.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_LIMITS: 'shared' },
      refused: [
        'MCP_LIMITS=shared requires MCP_STATE_URL → Replicas can only share limits in a database. Without one, unset MCP_LIMITS.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_STATE_URL: STATE_URL, MCP_LIMITS: 'none' },
      refused: ['MCP_LIMITS must be one of shared, replica → It is "none": write, for example, MCP_LIMITS=shared'],
    },
  ],
  'Confirmation and approval': [
    {
      start: 'per_user',
      env: { MCP_CONFIRM_TOOLS: 'update-worklod' },
      refused: [
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: there is no tool 'update-worklod' (did you mean 'update-workload'?) → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_TOOLS: 'update_workload,get-labels' },
      refused: [
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: there is no tool 'update_workload' (did you mean 'update-workload'?); 'get-labels' only reads, so there is nothing to confirm → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_TOOLS: 'all' },
      refused: [
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: there is no tool 'all' → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_CONFIRM_TOOLS: 'register-pce-credentials' },
      refused: [
        "MCP_CONFIRM_TOOLS names tools that cannot be confirmed: 'register-pce-credentials' could not show what would be done, because the arguments are secret → Write names of tools that change something, separated by commas: docs/tools.md lists them.",
      ],
    },
    {
      start: 'per_user',
      env: { MCP_APPROVAL: 'two_person' },
      refused: [
        'MCP_APPROVAL must be one of token, page, two-person → It is "two_person": write, for example, MCP_APPROVAL=token',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_APPROVAL: 'page', MCP_OAUTH_CLIENT_ID: null },
      refused: [
        'MCP_APPROVAL=page requires MCP_OAUTH_CLIENT_ID → People approve calls on a page after logging in with their browser. Register a client for that with the identity provider, as described in docs/authenticated-http.md.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_APPROVAL: 'two-person', MCP_OAUTH_CLIENT_SECRET: 'secret' },
      refused: [
        'MCP_APPROVAL=two-person requires MCP_OAUTH_CLIENT_ID → People approve calls on a page after logging in with their browser. Register a client for that with the identity provider, as described in docs/authenticated-http.md.',
        'MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID → Set MCP_OAUTH_CLIENT_ID to the client that the secret belongs to.',
      ],
      warned: [
        'MCP_APPROVAL=two-person without MCP_ROLE_GROUPS_ADMIN: nobody is an admin, so nobody can approve a call.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_APPROVAL: 'page', MCP_OAUTH_CLIENT_ID: 'svc-mcp', MCP_APPROVAL_TTL_SECONDS: '30' },
      refused: [
        'MCP_APPROVAL_TTL_SECONDS must be a whole number from 60 to 86400 → It is 30: write a number in that range, such as MCP_APPROVAL_TTL_SECONDS=900, which is the default.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_APPROVAL_TTL_SECONDS: '60' },
      warned: ['MCP_APPROVAL is token: a confirm token is enough; MCP_APPROVAL_TTL_SECONDS set but ignored.'],
    },
  ],
  'Which tools are offered': [
    {
      start: 'stdio',
      env: { MCP_READ_ONLY: 'yes' },
      refused: [
        'MCP_READ_ONLY must be 1 or 0 (true and false will do) → It is "yes": write MCP_READ_ONLY=1 to turn it on, MCP_READ_ONLY=0 to turn it off.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_READONLY: '1' },
      refused: [
        'MCP_READONLY is not a variable of this server → Did you mean MCP_READ_ONLY? Rename it, or unset it if it belongs to another program.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLSETS: 'trafic,Rules' },
      refused: [
        "MCP_TOOLSETS (or --toolsets) names toolsets that do not exist: 'trafic' (did you mean 'traffic'?), 'Rules' (did you mean 'rules'?) → There are default, all, $TOOLSETS.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLSETS: 'traffic analysis' },
      refused: [
        "MCP_TOOLSETS (or --toolsets) names toolsets that do not exist: 'traffic analysis' (did you mean 'analysis'?) → There are default, all, $TOOLSETS.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLSETS: ',' },
      refused: ['MCP_TOOLSETS is set but names nothing → Write names separated by commas, or unset MCP_TOOLSETS.'],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLS: 'get-label,get_workloads,traffic' },
      refused: [
        "MCP_TOOLS names tools that do not exist: 'get-label' (did you mean 'get-labels'?), 'get_workloads' (did you mean 'get-workloads'?), 'traffic' (did you mean 'compare-traffic'?) → There are $TOOLS.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLS: ' ' },
      refused: ['MCP_TOOLS is set but names nothing → Write names separated by commas, or unset MCP_TOOLS.'],
    },
    {
      start: 'stdio',
      env: { MCP_EXCLUDE_TOOLS: 'provision' },
      refused: [
        "MCP_EXCLUDE_TOOLS names tools that do not exist: 'provision' (did you mean 'provision-policy'?) → There are $TOOLS.",
      ],
    },
    {
      start: 'stdio',
      env: { MCP_DISABLED_TOOLS: 'provision-policy' },
      warned: [
        'Ignored, because this server has no such variable: MCP_DISABLED_TOOLS (did you mean MCP_EXCLUDE_TOOLS?). A platform or another program may have set it.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLSETS: 'traffic', MCP_TOOLS: 'get-traffic-flows,get-labels' },
      warned: [
        'MCP_TOOLS names tools that are still not offered: get-labels (MCP_TOOLSETS does not have its toolset inventory).',
      ],
    },
    {
      start: 'stdio',
      env: {
        MCP_READ_ONLY: '1',
        MCP_TOOLS: 'get-labels,create-label,get-workloads',
        MCP_EXCLUDE_TOOLS: 'get-workloads',
      },
      warned: [
        'MCP_TOOLS names tools that are still not offered: create-label (MCP_READ_ONLY=1), get-workloads (MCP_EXCLUDE_TOOLS).',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_READ_ONLY: '1', MCP_TOOLSETS: 'objects,ringfence' },
      refused: [
        'MCP_READ_ONLY=1, MCP_TOOLSETS leave no tool to offer → Offer more, or stop this server: docs/tools.md lists the toolset and the effect of every tool.',
      ],
    },
    {
      start: 'stdio',
      env: { MCP_TOOLS: 'get-labels', MCP_EXCLUDE_TOOLS: 'get-labels' },
      refused: [
        'MCP_TOOLS, MCP_EXCLUDE_TOOLS leave no tool to offer → Offer more, or stop this server: docs/tools.md lists the toolset and the effect of every tool.',
      ],
      warned: ['MCP_TOOLS names tools that are still not offered: get-labels (MCP_EXCLUDE_TOOLS).'],
    },
    {
      start: 'stdio',
      env: { MCP_HIDE_FORBIDDEN: '1' },
      warned: [
        'Nobody logs in over stdio, so no role limits the tools; MCP_HIDE_FORBIDDEN set but ignored: svc-mcp-http reads them.',
      ],
    },
    {
      start: 'development',
      env: { MCP_HIDE_FORBIDDEN: '1' },
      warned: [
        'MCP_DEV_INSECURE=1: nobody is authenticated; MCP_HIDE_FORBIDDEN set but ignored. For logins, unset MCP_DEV_INSECURE.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_HIDE_FORBIDDEN: 'on' },
      refused: [
        'MCP_HIDE_FORBIDDEN must be 1 or 0 (true and false will do) → It is "on": write MCP_HIDE_FORBIDDEN=1 to turn it on, MCP_HIDE_FORBIDDEN=0 to turn it off.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_READ_ONLY: '1', MCP_OAUTH_CLIENT_ID: null },
      warned: [
        'No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. register-pce-credentials is not offered either, so only a program with an access token can register a PCE key, at /setup.',
      ],
    },
    {
      start: 'per_user',
      env: { MCP_TOOLS: 'get-labels', MCP_OAUTH_CLIENT_ID: null },
      warned: [
        'No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. register-pce-credentials is not offered either, so only a program with an access token can register a PCE key, at /setup.',
      ],
    },
    {
      start: 'shared',
      env: { MCP_READ_ONLY: '1', MCP_TOOLS: 'provision-policy' },
      refused: [
        'MCP_READ_ONLY=1, MCP_TOOLS leave no tool to offer → Offer more, or stop this server: docs/tools.md lists the toolset and the effect of every tool.',
      ],
      warned: ['MCP_TOOLS names tools that are still not offered: provision-policy (MCP_READ_ONLY=1).'],
    },
  ],
}
