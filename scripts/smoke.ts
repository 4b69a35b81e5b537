/**
 * `npm run smoke`: what someone who installs the package gets. Packs a fresh build, installs the tarball with production modules
 * only into an empty folder, and talks to its programs there. Ends with `N passed, N failed`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { summaryLine } from './count-assertions.js'

const SHIPPED = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  '.env.example',
  'docs/tools.md',
  'package.json',
  'dist/stdio.js',
  'dist/http.js',
  'dist/worker.js',
  'dist/pce-simulator/pce-sim.js',
  'dist/pce-client/index.js',
  'dist/pce-client/index.d.ts',
  'dist/domain/traffic/providers/provider-ranges.json',
]
const NEVER_SHIPPED = /(^|\/)(test|scripts|node_modules|\.ci)\/|\.test\.|(^|\/)\.env$|\.(pem|key|db|log)$/

const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'svc-mcp-smoke-'))
const installed = join(scratch, 'package')
const environment = {
  PATH: process.env.PATH ?? '',
  PCE_HOST: 'https://127.0.0.1:1',
  PCE_PORT: '1',
  API_KEY: 'api_smoke',
  API_SECRET: 'smoke',
}
const counts = { passed: 0, failed: 0 }

await step('npm run build', () => void run('npm', ['run', '--silent', 'build'], root))
await step('the package holds what it should and nothing else', () => {
  const [{ filename, files }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', scratch], root)) as [
    { filename: string; files: { path: string }[] },
  ]
  const paths = files.map(({ path }) => path)
  const missing = SHIPPED.filter((path) => !paths.includes(path))
  const surplus = paths.filter((path) => NEVER_SHIPPED.test(path))
  if (missing.length + surplus.length > 0)
    throw new Error(`missing: ${missing.join(', ')}; surplus: ${surplus.join(', ')}`)
  run('tar', ['-xzf', filename], scratch)
})
await step('it installs with production modules only', () => {
  mkdirSync(installed, { recursive: true })
  for (const file of ['package-lock.json', '.npmrc']) copyFileSync(join(root, file), join(installed, file))
  run('npm', ['ci', '--omit=dev', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], installed)
})
await step('stdio answers initialize and tools/list, and ends with its input', async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['dist/stdio.js'],
    cwd: installed,
    env: environment,
    stderr: 'ignore',
  })
  const client = new Client({ name: 'smoke', version: '1' })
  const strays: Error[] = []
  client.onerror = (error) => strays.push(error)
  await client.connect(transport)
  await expectTools(client)
  await client.close()
  if (strays.length > 0) throw new Error(`not JSON-RPC on standard output: ${strays[0]!.message}`)
})
await step('HTTP answers /healthz and tools/list, and ends on SIGTERM', async () => {
  const child = spawn(process.execPath, ['dist/http.js', '--port', '0'], {
    cwd: installed,
    env: { ...environment, MCP_DEV_INSECURE: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  try {
    const url = await readUrl(child.stderr)
    const health = await fetch(`${url}/healthz`)
    if (!health.ok) throw new Error(`/healthz answered ${health.status}`)
    const client = new Client({ name: 'smoke', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
    await expectTools(client)
    await client.close()
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`exit code ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
})
await step('the simulator says where it listens, answers there, and ends on SIGTERM', async () => {
  const program = ['dist/pce-simulator/pce-sim.js', '--workloads', '20', '--flows', '10']
  const child = spawn(process.execPath, program, { cwd: installed, stdio: ['ignore', 'pipe', 'ignore'] })
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

async function expectTools(client: Client): Promise<void> {
  const server = client.getServerVersion()?.name
  const { tools } = await client.listTools()
  if (server !== 'svc-mcp' || !tools.some(({ name }) => name === 'provision-policy'))
    throw new Error(`${server} lists ${tools.length} tools`)
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
