/**
 * `npm run smoke`: what someone who installs the package gets. Packs it, which builds it; installs the tarball into an empty project,
 * and uses the programs and the client there. Ends with `N passed, N failed`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { satisfies } from 'semver'
import { summaryLine } from './count-assertions.js'
import { findBrokenLinks } from './docs/check-citations.js'

const SHIPPED = [
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  '.env.example',
  'package.json',
  'docs/tools.md',
  'dist/stdio.js',
  'dist/http.js',
  'dist/pce-simulator/pce-sim.js',
  'dist/pce-client/index.js',
  'dist/pce-client/index.d.ts',
  'dist/BUILD/worker.js',
  'dist/BUILD/pce-client/index.d.ts',
  'dist/BUILD/domain/traffic/providers/provider-ranges.json',
  'dist/BUILD/knowledge/documents/concepts/rule-processing.md',
]
const NEVER_SHIPPED = /(^|\/)(test|scripts|node_modules|\.ci)\/|\.test\.|(^|\/)\.env$|\.(pem|key|db|log)$|(?<!\.d)\.ts$/
/** What `engines` promises, whatever this script runs on. */
const OLDEST_NODE = '20.19.0'
/** A project that imports the client, with its types. */
const CONSUMER = `
import { createPceClient, type PceClientOptions } from 'svc-mcp/pce-client'
const options: PceClientOptions = { url: 'https://pce.example.com', port: 8443 }
console.log(typeof createPceClient(options).get)
`

const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'svc-mcp-smoke-'))
const program = (name: string) => join(scratch, 'node_modules/.bin', name)
const environment = {
  PATH: process.env.PATH ?? '',
  PCE_HOST: 'https://127.0.0.1:1',
  PCE_PORT: '1',
  API_KEY: 'api_smoke',
  API_SECRET: 'smoke',
}
const counts = { passed: 0, failed: 0 }

await step('npm pack builds', () => {
  run('npm', ['pack', '--silent', '--pack-destination', scratch], root)
  const { stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' })
  if (!stderr.includes('dist/ is current')) throw new Error(stderr)
})
await step('the package holds what it should and nothing else, and its pages link to what is there', () => {
  const [{ files }] = JSON.parse(run('npm', ['pack', '--json', '--dry-run'], root)) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path.replace(/^dist\/[\da-f]{12}\//, 'dist/BUILD/'))
  const missing = SHIPPED.filter((path) => !paths.includes(path))
  const surplus = paths.filter((path) => NEVER_SHIPPED.test(path))
  if (missing.length + surplus.length > 0)
    throw new Error(`missing: ${missing.join(', ')}; surplus: ${surplus.join(', ')}`)
  // Those of a build are for assistants, who follow no links to files.
  const isPage = (path: string) => path.endsWith('.md') && !path.startsWith('dist/')
  const pages = new Map(paths.filter(isPage).map((path) => [path, readFileSync(join(root, path), 'utf8')]))
  // Pages name tests and sources too; those are in the repository.
  const isSource = (path: string) => path.startsWith('test/') || path.endsWith('.ts')
  const broken = findBrokenLinks(pages, (path) => isSource(path) || paths.some((known) => known.startsWith(path)))
  if (broken.length > 0) throw new Error(broken.join(', '))
})
await step(`it installs into an empty project, and nothing there needs more than Node.js ${OLDEST_NODE}`, () => {
  const [tarball] = readdirSync(scratch)
  writeFileSync(join(scratch, 'package.json'), JSON.stringify({ name: 'project', version: '1.0.0', type: 'module' }))
  const { status, stderr } = spawnSync('npm', ['install', '--prefer-offline', '--no-audit', `./${tarball}`], {
    cwd: scratch,
    encoding: 'utf8',
  })
  if (status !== 0 || stderr.includes('EBADENGINE')) throw new Error(stderr)
  const { packages } = JSON.parse(readFileSync(join(scratch, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; engines?: { node?: string } }>
  }
  const choosy = Object.entries(packages).filter(([, { engines }]) => !satisfies(OLDEST_NODE, engines?.node ?? '*'))
  if (choosy.length > 0) throw new Error(choosy.map(([path, { engines }]) => `${path}: ${engines?.node}`).join(', '))
})
await step('its client can be imported, with its types', () => {
  writeFileSync(join(scratch, 'consumer.ts'), CONSUMER)
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,dom']
  run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options, 'consumer.ts'], scratch)
  const said = run(process.execPath, ['consumer.js'], scratch)
  if (said !== 'function\n') throw new Error(said)
})
await step('stdio answers initialize, tools/list and resources/read, and ends with its input', async () => {
  const transport = new StdioClientTransport({
    command: program('svc-mcp'),
    args: [],
    cwd: scratch,
    env: environment,
    stderr: 'ignore',
  })
  const client = new Client({ name: 'smoke', version: '1' })
  const strays: Error[] = []
  client.onerror = (error) => strays.push(error)
  await client.connect(transport)
  await expectSurface(client)
  await client.close()
  if (strays.length > 0) throw new Error(`not JSON-RPC on standard output: ${strays[0]!.message}`)
})
await step('HTTP answers /healthz, tools/list and resources/read, and ends on SIGTERM', async () => {
  const child = spawn(program('svc-mcp-http'), ['--port', '0'], {
    cwd: scratch,
    env: { ...environment, MCP_DEV_INSECURE: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  try {
    const url = await readUrl(child.stderr)
    const health = await fetch(`${url}/healthz`)
    if (!health.ok) throw new Error(`/healthz answered ${health.status}`)
    const client = new Client({ name: 'smoke', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
    await expectSurface(client)
    await client.close()
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`exit code ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
})
await step('the simulator says where it listens, answers there, and ends on SIGTERM', async () => {
  const child = spawn(program('svc-mcp-pce-sim'), ['--workloads', '20', '--flows', '10'], {
    cwd: scratch,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const { url } = JSON.parse(await readFirstLine(child.stdout)) as { url: string }
    const answer = await fetch(`${url}/api/v2/node_available`)
    if (!answer.ok) throw new Error(`/node_available answered ${answer.status}`)
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`exit code ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
})

rmSync(scratch, { recursive: true, force: true })
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

/** One named check. Each needs what the ones before it made, so after a failure the rest are failures without being run. */
async function step(name: string, check: () => void | Promise<void>): Promise<void> {
  try {
    if (counts.failed > 0) throw new Error('needs the step before it')
    await check()
    counts.passed++
    console.log(`ok      ${name}`)
  } catch (error) {
    counts.failed++
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function run(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stdout + stderr}`)
  return stdout
}

async function expectSurface(client: Client): Promise<void> {
  const server = client.getServerVersion()?.name
  const { tools } = await client.listTools()
  if (server !== 'svc-mcp' || !tools.some(({ name }) => name === 'provision-policy'))
    throw new Error(`${server} lists ${tools.length} tools`)
  // Documents are read from disk when they are first asked for.
  const { resources } = await client.listResources()
  for (const { uri } of resources) {
    const [content] = (await client.readResource({ uri })).contents
    if (content === undefined || !('text' in content) || content.text.length < 1000) throw new Error(`${uri} is empty`)
  }
  const { prompts } = await client.listPrompts()
  if (resources.length !== 21 || prompts.length !== 7)
    throw new Error(`${resources.length} documents, ${prompts.length} prompts`)
}

async function readFirstLine(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) return line
  throw new Error('it ended without a line')
}

/** The address from the line that says where the server listens. Throws Error with the log when the server ends without it. */
async function readUrl(log: NodeJS.ReadableStream): Promise<string> {
  const lines: string[] = []
  for await (const line of createInterface({ input: log })) {
    lines.push(line)
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? []
    if (url !== undefined) return url
  }
  throw new Error(lines.join('\n'))
}
