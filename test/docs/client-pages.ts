/** The pages of docs/clients, and what their blocks of configuration tell a client to start or to call. */
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { parse as parseToml } from 'smol-toml'
import { parse as parseYaml } from 'yaml'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { emptyFolder, readPage, ROOT } from './commands.js'
import { sharedValidators } from '../shared-validators.js'

interface Test {
  teardown(fn: () => unknown): void
}

export const FOLDER = 'docs/clients'
/** The headings of every page, in order. */
export const SECTIONS = [
  'stdio',
  'Streamable HTTP',
  'What it shows',
  'See that it works',
  'Known troubles',
  'Log out and reset',
] as const

/** Strict JSON, which clients that allow comments take too. */
const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  json: JSON.parse,
  toml: parseToml,
  yaml: parseYaml,
}
/** Where clients keep their servers: an object by name, or a list. */
const CONTAINERS = ['mcpServers', 'servers', 'context_servers', 'mcp_servers', 'extensions']
const URLS = ['url', 'serverUrl', 'httpUrl', 'uri']

/** One server of one block, whatever the client calls the fields. */
export interface Entry {
  /** `docs/clients/zed.md#stdio`, for messages. */
  where: string
  section: string
  language: string
  name: string
  command?: string
  args: string[]
  env: Record<string, string>
  url?: string
}

export interface ClientPage {
  path: string
  text: string
  title: string
  headings: string[]
  entries: Entry[]
}

/** Every page but README.md. Throws Error for a block that is of no known language, does not parse or has no server in it. */
export function readClientPages(): ClientPage[] {
  return readdirSync(join(ROOT, FOLDER))
    .filter((name) => name !== 'README.md')
    .sort()
    .map((name) => readClientPage(`${FOLDER}/${name}`, readPage(`${FOLDER}/${name}`)))
}

/** @param text what stands in the file at `path`. Throws as `readClientPages` does. */
export function readClientPage(path: string, text: string): ClientPage {
  const [, title = ''] = /^# (.+)$/m.exec(text) ?? []
  const parts = text.split(/^## (?=.+$)/m).slice(1)
  return {
    path,
    text,
    title,
    headings: parts.map(headingOf),
    entries: parts.flatMap((part) => entriesOf(path, headingOf(part), part)),
  }
}

const headingOf = (part: string) => part.slice(0, part.indexOf('\n'))

function entriesOf(path: string, section: string, text: string): Entry[] {
  const where = `${path}#${section}`
  return [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, language, block]) => {
    if (language === 'sh') return []
    const parser = PARSERS[language!]
    if (parser === undefined) throw new Error(`${where}: a block of the language '${language}'`)
    let value
    try {
      value = parser(block!) as Record<string, unknown>
    } catch (error) {
      throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
    }
    const servers = CONTAINERS.flatMap((key) => Object.entries(value[key] ?? {}) as [string, object][])
    if (servers.length === 0) throw new Error(`${where}: a block without a server`)
    return servers.map(([key, server]) => entryOf({ where, section, language: language!, key, server }))
  })
}

interface Found {
  where: string
  section: string
  language: string
  key: string
  server: object
}

function entryOf({ where, section, language, key, server }: Found): Entry {
  const field = (...names: string[]) => names.map((name) => (server as Record<string, unknown>)[name]).find(Boolean)
  const command = field('command', 'cmd') as string | undefined
  const url = field(...URLS) as string | undefined
  return {
    where,
    section,
    language,
    name: (field('name') as string | undefined) ?? key,
    args: (field('args') as string[] | undefined) ?? [],
    env: (field('env', 'envs') as Record<string, string> | undefined) ?? {},
    ...(command !== undefined && { command }),
    ...(url !== undefined && { url }),
  }
}

/** The ways in which pages leave a value to the client, as far as a reader would have to fill them in. */
const KEPT_BY_CLIENT = /^\$\{input:([\w-]+)\}$|^\$\{(\w+)\}$|^\$\{\{ secrets\.(\w+) \}\}$/

/** A simulated PCE, and a folder with what a reader has: `svc-mcp` on the PATH and the secret in a file. */
export async function createReader(t: Test) {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
  const pce = new URL(await simulator.listen({ port: 0 }))
  t.teardown(() => simulator.close())
  const folder = emptyFolder(t)
  const bin = join(folder, 'bin')
  const secretFile = join(folder, 'api-secret')
  const { key, secret } = simulator.credentials
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 })
  mkdirSync(bin)
  const program = (name: string, line: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  program('svc-mcp', `exec '${process.execPath}' '${bundleProgram('stdio')}' "$@"`)
  const own: Record<string, string> = {
    'https://pce.example.com': `http://${pce.hostname}`,
    '8443': pce.port,
    'api_…': key,
    '/path/to/api-secret': secretFile,
  }
  const kept: Record<string, string> = { 'api-key': key, 'api-secret': secret, API_KEY: key, API_SECRET: secret }
  const fill = (value: string) => {
    const name = KEPT_BY_CLIENT.exec(value)?.slice(1).find(Boolean)
    const filled = name === undefined ? own[value] : kept[name]
    if (filled === undefined) throw new Error(`a reader would not know what to write for ${value}`)
    return filled
  }
  return {
    folder,
    path: `${bin}:${process.env.PATH}`,
    own,
    program,
    /** Starts what the entry says with what it says, as a client does, and hands over a connection to it. */
    async connect({ command, args, env }: Entry): Promise<Client> {
      const client = new Client({ name: 'reader', version: '1' }, { jsonSchemaValidator: sharedValidators })
      const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]))
      await client.connect(
        new StdioClientTransport({
          command: command!,
          args,
          env: { PATH: `${bin}:${process.env.PATH}`, ...filled },
          cwd: folder,
          stderr: 'ignore',
        }),
      )
      t.teardown(() => client.close())
      return client
    },
  }
}
