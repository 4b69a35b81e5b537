/**
 * `npm run smoke` tests a release in the form in which its users receive it. It makes a release without a tag, which
 * includes a build, checks the package with independent tools, and installs it into an empty project, where it uses the
 * programs and the client. Then it unpacks the bundle for Claude Desktop and runs it. The last line is `N passed, N
 * failed`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { satisfies } from 'semver'
import { createOfferedTools } from '../plugins/mcp/offered-tools.js'
import { listTool } from '../plugins/mcp/list-tools.js'
import { isInDefault } from '../tools/define.js'
import { catalogue } from '../tools/catalogue/index.js'
import { summaryLine } from './summary-line.js'
import { findBrokenLinks } from './docs/check-citations.js'
import { fileNameOf } from './release/files.js'
import { run } from './run-command.js'
import { checkContext, checkSbom, checkSums } from './smoke/check-release.js'
import { judgePackage, judgeTypes } from './smoke/judge-package.js'
import { tryBundle } from './smoke/try-bundle.js'
import { tryDemo } from './smoke/try-demo.js'

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
const NEVER_SHIPPED =
  /(^|\/)(test|scripts|node_modules|\.ci)\/|\.map$|\.test\.|(^|\/)\.env$|\.(pem|key|db|log)$|(?<!\.d)\.ts$/
/** Pages for those who change the code, which the package does not contain. */
const LEFT_OUT = new Set([
  'CONTRIBUTING.md',
  'docs/architecture.md',
  'docs/decisions.md',
  'docs/releasing.md',
  'docs/vocabulary.md',
])
/** The oldest version of Node.js that `engines` promises to support. */
const OLDEST_NODE = '20.19.0'
const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'svc-mcp-smoke-'))
const project = join(scratch, 'project')
const release = join(scratch, 'release')
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
  'name' | 'version',
  string
>
const made = (suffix: string) => join(release, fileNameOf({ name, version }, suffix))
const program = (bin: string) => join(project, 'node_modules/.bin', bin)
const environment = {
  PATH: process.env.PATH ?? '',
  PCE_HOST: 'https://127.0.0.1:1',
  PCE_PORT: '1',
  API_KEY: 'api_smoke',
  API_SECRET: 'smoke',
}
const counts = { passed: 0, failed: 0 }

await step('a release is made, and the build of its package stays current', () => {
  run('npm', ['run', '--silent', 'release', '--', '--dry-run', '--output', release], root)
  const { stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' })
  if (!stderr.includes('dist/ is current')) throw new Error(stderr)
})
await step('publint and "Are the types wrong?" find nothing in the package, and it is small', () =>
  judgePackage(root, made('.tgz')),
)
await step('the package holds what it should and nothing else, and its pages link to what is there', () => {
  const [{ files }] = JSON.parse(run('npm', ['pack', '--json', '--dry-run'], root)) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path.replace(/^dist\/[\da-f]{12}\//, 'dist/BUILD/'))
  const missing = SHIPPED.filter((path) => !paths.includes(path))
  const surplus = paths.filter((path) => NEVER_SHIPPED.test(path))
  if (missing.length + surplus.length > 0)
    throw new Error(`missing: ${missing.join(', ')}; surplus: ${surplus.join(', ')}`)
  // Markdown files in a build are not checked, because they are for assistants, which do not follow links to files.
  const isPage = (path: string) => path.endsWith('.md') && !path.startsWith('dist/')
  const pages = new Map(paths.filter(isPage).map((path) => [path, readFileSync(join(root, path), 'utf8')]))
  // Pages also refer to pictures and to what is for those who change the code, which are only in the repository.
  const isLeftOut = (path: string) => path.startsWith('test/') || /\.(ts|png|svg)$/.test(path) || LEFT_OUT.has(path)
  const broken = findBrokenLinks(pages, (path) => isLeftOut(path) || paths.some((known) => known.startsWith(path)))
  if (broken.length > 0) throw new Error(broken.join(', '))
})
await step(`it installs into an empty project, and nothing there needs more than Node.js ${OLDEST_NODE}`, () => {
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', version: '1.0.0', type: 'module' }))
  const { status, stderr } = spawnSync('npm', ['install', '--prefer-offline', '--no-audit', made('.tgz')], {
    cwd: project,
    encoding: 'utf8',
  })
  if (status !== 0 || stderr.includes('EBADENGINE')) throw new Error(stderr)
  const { packages } = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; engines?: { node?: string } }>
  }
  const choosy = Object.entries(packages).filter(([, { engines }]) => !satisfies(OLDEST_NODE, engines?.node ?? '*'))
  if (choosy.length > 0) throw new Error(choosy.map(([path, { engines }]) => `${path}: ${engines?.node}`).join(', '))
})
await step('its client can be imported, with its types, as Node.js and as bundlers look for them', () =>
  judgeTypes(root, project),
)
await step('the programs say what they are and what they take', () => {
  const say = (...args: string[]) => run(program('svc-mcp'), args, project)
  if (say('--version') !== `${version}\n`) throw new Error(say('--version'))
  for (const [args, words] of [
    [['--help'], 'demo '],
    [['draw', '--help'], 'map '],
    [['demo', '--help'], '--once'],
  ] as const)
    if (!say(...args).includes(words)) throw new Error(say(...args))
  const { status, stderr } = spawnSync(program('svc-mcp'), ['demo', '--twice'], { cwd: project, encoding: 'utf8' })
  if (status !== 1 || !stderr.includes("unknown option '--twice'")) throw new Error(stderr)
})
await step('stdio answers initialize, tools/list and resources/read, and ends with its input', async () => {
  const transport = new StdioClientTransport({
    command: program('svc-mcp'),
    args: [],
    cwd: project,
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
    cwd: project,
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
await step('the simulator answers where it says, to doctor, draw and the bundle too, and ends on SIGTERM', async () => {
  const child = spawn(program('svc-mcp-pce-sim'), ['--workloads', '20', '--flows', '10'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const facts = JSON.parse(await readFirstLine(child.stdout)) as Record<'url' | 'api_key' | 'api_secret', string>
    const { url, api_key: key, api_secret: secret } = facts
    const env = { PATH: environment.PATH, PCE_HOST: url, API_KEY: key, API_SECRET: secret }
    run(program('svc-mcp'), ['doctor'], project, { env })
    run(program('svc-mcp'), ['draw', 'map', '-o', 'map.svg'], project, { env })
    if (!readFileSync(join(project, 'map.svg'), 'utf8').includes('<svg')) throw new Error('map.svg is no picture')
    await tryBundle(made('.mcpb'), join(scratch, 'bundle'), { url, key, secret })
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`exit code ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
})
await step('the demonstration plays from the package, and Ctrl-C ends all of it', () =>
  tryDemo(program('svc-mcp'), project, environment),
)
await step('every file of the release has its checksum, and the list of what is inside is whole', () => {
  checkSums(release)
  checkSbom(root, made('.cdx.json'))
})
await step('the context of the image gives the build that is in the package', () =>
  checkContext(root, made('-image.tar.gz'), join(scratch, 'context')),
)

rmSync(scratch, { recursive: true, force: true })
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

/**
 * Runs one named check. Each check depends on the results of earlier checks, so after a failure, all remaining checks
 * fail without being run.
 */
async function step(name: string, check: () => void | Promise<void>): Promise<void> {
  const started = performance.now()
  try {
    if (counts.failed > 0) throw new Error('needs the step before it')
    await check()
    counts.passed++
    console.log(`ok      ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  } catch (error) {
    counts.failed++
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

async function expectSurface(client: Client): Promise<void> {
  const server = client.getServerVersion()?.name
  const { tools } = await client.listTools()
  if (server !== 'svc-mcp') throw new Error(`${server} answers`)
  // The build computes the schemas of the list, so they are compared with those of the sources.
  const offered = new Set(catalogue.filter(isInDefault).map((tool) => tool.name))
  const expected = createOfferedTools(catalogue.map(listTool))(offered)
  const shown = (list: typeof tools) =>
    list.map(({ name, inputSchema, outputSchema }) => ({ name, inputSchema, outputSchema }))
  if (!isDeepStrictEqual(shown(tools), shown(expected)))
    throw new Error(`the ${tools.length} listed tools are not those of the sources`)
  // Documents are read from the disk when they are first requested.
  const { resources } = await client.listResources()
  for (const { uri } of resources) {
    const [content] = (await client.readResource({ uri })).contents
    if (content === undefined || !('text' in content) || content.text.length < 1000) throw new Error(`${uri} is empty`)
  }
  const { prompts } = await client.listPrompts()
  if (resources.length !== 22 || prompts.length !== 8)
    throw new Error(`${resources.length} documents, ${prompts.length} prompts`)
}

async function readFirstLine(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) return line
  throw new Error('it ended without a line')
}

/**
 * Returns the address in the log line that says where the server listens. Throws Error with the log if the server ends
 * before it writes this line.
 */
async function readUrl(log: NodeJS.ReadableStream): Promise<string> {
  const lines: string[] = []
  for await (const line of createInterface({ input: log })) {
    lines.push(line)
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? []
    if (url !== undefined) return url
  }
  throw new Error(lines.join('\n'))
}
