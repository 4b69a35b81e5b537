/** What an operator may set wrongly: the starts that are right but for it, and what goes wrong with files. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import type { Stage } from './set-stage.js'

/** Variables by name; null leaves one of the start unset. Words such as `$PCE` are those of the stage, `$DIR` the working directory. */
export type Settings = Readonly<Record<string, string | null>>

/** A start that nothing is wrong with. */
export interface Start {
  program: 'svc-mcp' | 'svc-mcp-http'
  env: Settings
  args?: readonly string[]
}

/** Each text is the whole of what is said, as `problem → remedy`. What the start says without the fault is left out. */
export interface Answers {
  /** The faults that stop the start. */
  refused?: readonly string[]
  warned?: readonly string[]
  /** What a server that has started answers to the question of the case. */
  answered?: string
}

/** Wrong settings or files, which show while the configuration is read. */
export interface WrongSettings extends Answers {
  /** The start that is right but for this. */
  start: keyof typeof STARTS
  env?: Settings
  /** Brings about what is wrong in the working directory, and its description. */
  make?: (folder: string, stage: Stage) => void
  given?: string
}

const LOGIN: Settings = {
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://login.example.com',
  MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$KEYS/keys',
  MCP_OAUTH_AUDIENCE: 'https://mcp.example.com',
  MCP_ROLE_DEFAULT: 'reader',
  MCP_CONFIRM_HMAC_KEY: '$HMAC_KEY',
}
const ANY_PORT = ['--port', '0']

export const STARTS = {
  stdio: {
    program: 'svc-mcp',
    env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' },
  },
  tried: {
    program: 'svc-mcp',
    env: { PCE_HOST: 'http://127.0.0.1:$PCE', API_KEY: '$API_KEY', API_SECRET: '$API_SECRET' },
  },
  nothing: { program: 'svc-mcp-http', args: ANY_PORT, env: {} },
  development: { program: 'svc-mcp-http', args: ANY_PORT, env: { MCP_DEV_INSECURE: '1' } },
  per_user: {
    program: 'svc-mcp-http',
    args: ANY_PORT,
    env: { ...LOGIN, MCP_KEK: '$KEK', MCP_OAUTH_CLIENT_ID: 'svc-mcp-setup' },
  },
  shared: {
    program: 'svc-mcp-http',
    args: ANY_PORT,
    env: {
      ...LOGIN,
      MCP_PCE_MODE: 'shared',
      PCE_HOST: 'http://127.0.0.1:$PCE',
      API_KEY: '$API_KEY',
      API_SECRET: '$API_SECRET',
    },
  },
} as const satisfies Record<string, Start>

export const file =
  (name: string, text: string | Uint8Array, mode = 0o600) =>
  (folder: string) => {
    writeFileSync(join(folder, name), text)
    chmodSync(join(folder, name), mode)
  }
export const pem =
  (...names: string[]) =>
  (folder: string, stage: Stage) => {
    for (const name of names) writeFileSync(join(folder, name.includes('.') ? name : `${name}.pem`), stage.pem(name))
  }
export const directory =
  (name: string, mode = 0o700) =>
  (folder: string) => {
    mkdirSync(join(folder, name))
    chmodSync(join(folder, name), mode)
  }

export const sqlite = (name: string, sql: string) => (folder: string) => {
  const db = new Database(join(folder, name))
  db.exec(sql)
  db.close()
}
