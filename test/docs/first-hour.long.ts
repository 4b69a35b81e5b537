/** What the README has a newcomer do, in its order: clone, demo, their own client, their own PCE. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { isInDefault } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { freePort } from '../free-port.js'
import { contains, partial } from '../partial.js'
import { emptyFolder, fillIn, pretend, readPage, ROOT, runCommand, startCommand } from './commands.js'

const WIDTH = 80

/** A repository with the files as they are here, committed or not. */
function makeRepository(t: Test): string {
  const folder = join(emptyFolder(t), 'svc-mcp.git')
  const git = (cwd: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  mkdirSync(folder)
  for (const path of git(ROOT, 'ls-files', '-co', '--exclude-standard', '-z').split('\0')) {
    if (path !== '') cpSync(join(ROOT, path), join(folder, path))
  }
  git(folder, 'init', '--quiet', '--initial-branch=main')
  git(folder, 'add', '--all')
  git(folder, '-c', 'user.name=test', '-c', 'user.email=test@example.test', 'commit', '--quiet', '--message=all')
  return folder
}

/** The names of the tools behind a transport, and whether the PCE behind them answers. */
async function look(transport: StdioClientTransport | StreamableHTTPClientTransport) {
  const client = new Client({ name: 'newcomer', version: '1' })
  await client.connect(transport)
  const listed = await client.listTools()
  const { structuredContent } = await client.callTool({ name: 'check-pce-connection', arguments: {} })
  await client.close()
  return {
    tools: listed.tools.map(({ name }) => name).sort(),
    connected: (structuredContent as { connected?: boolean } | undefined)?.connected,
  }
}

/** The demo offers the tools that say why a flow is blocked as well. */
const OF_DEMO = {
  tools: tools
    .filter((tool) => isInDefault(tool) || tool.toolset === 'explain')
    .map(({ name }) => name)
    .sort(),
  connected: true,
}
const EVERYTHING = {
  tools: tools
    .filter(isInDefault)
    .map(({ name }) => name)
    .sort(),
  connected: true,
}

/** The lines of the README's table of clients, with the port that the server has. */
function clientLines(port: string): Record<'claude' | 'vscode' | 'cursor' | 'inspector', string> {
  const [section] = /### Your own client\n[\s\S]*?\n\n(?!\|)(?:(?!\n## )[\s\S])*/.exec(readPage('README.md'))!
  const lines = [...section.matchAll(/^\| .* \| `(.+)` \|$/gm)].map(([, line]) => fillIn(line!, { 8080: port }))
  t.equal(lines.length, 4)
  const [claude, vscode, cursor, inspector] = lines as [string, string, string, string]
  return { claude, vscode, cursor, inspector }
}

t.test('the first hour', async (t) => {
  const scratch = emptyFolder(t)
  // The picture of the demo stays for whoever was shown its path.
  const quiet = { HOME: scratch, TMPDIR: scratch, npm_config_update_notifier: 'false' }
  await runCommand(t, 'README.md#try-it', {
    cwd: scratch,
    own: { 'https://git.example.com/svc-mcp.git': makeRepository(t) },
  })
  const clone = join(scratch, 'svc-mcp')
  // What `npm ci` would fetch; scripts/ensure-install.mjs has a test of its own.
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))

  await t.test('the demo, and a client of one line', async (t) => {
    const demo = startCommand(t, 'README.md#try-it:2', { cwd: clone, env: quiet })
    const [, url] = await demo.says(/svc-mcp is at (http:\S+\/mcp)[\s\S]*Ctrl-C ends both/)
    const said = demo.said()
    for (const words of ['Building …', 'Starting a simulated PCE', 'Shown: ']) contains(t, said, words)
    t.same(
      said.split('\n').filter((line) => [...line].length > WIDTH),
      [],
      'it fits',
    )
    t.notMatch(said, /\w…/, 'and cuts no word')
    const [, why = ''] =
      /\n {3}→ explain-flow\n {5}\{[\s\S]*?\n {5}\}\n([\s\S]*?)\n {3}→ suggest-rule\n/.exec(said) ?? []
    t.ok(why !== '' && why.split('\n').length <= 10, `why it is blocked takes ten lines at most: ${why}`)

    const { port } = new URL(url!)
    const lines = clientLines(port)
    const claude = pretend(t, 'claude')
    spawnSync('bash', ['-c', lines.claude], { env: { PATH: claude.path } })
    t.same(claude.calls(), [['mcp', 'add', '--transport', 'http', 'svc-mcp', url]])
    const npx = pretend(t, 'npx')
    spawnSync('bash', ['-c', lines.inspector], { env: { PATH: npx.path } })
    const asked = ['--cli', url, '--transport', 'http', '--method', 'tools/list']
    t.same(npx.calls(), [['@modelcontextprotocol/inspector', ...asked]])
    t.same(JSON.parse(lines.vscode), { servers: { 'svc-mcp': { type: 'http', url } } })
    t.same(JSON.parse(lines.cursor), { mcpServers: { 'svc-mcp': { url } } })
    for (const line of [lines.claude, lines.vscode, lines.cursor]) contains(t, said, line, 'the demo prints the same')
    t.same(await look(new StreamableHTTPClientTransport(new URL(url!))), OF_DEMO, 'and there is the server')
    await demo.stop('SIGINT')
  })

  await t.test('the demo once more', async (t) => {
    contains(t, readPage('README.md'), '`npm run demo -- --once`')
    const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'demo', '--', '--once'], {
      cwd: clone,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...quiet },
    })
    t.same([status, stderr], [0, ''], 'nothing is built')
    contains(t, stdout.trimEnd().split('\n\n').at(-1)!, 'Shown: ')
  })

  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
  const pce = new URL(await simulator.listen({ port: 0 }))
  t.teardown(() => simulator.close())
  const own = {
    'https://pce.example.com': 'http://127.0.0.1',
    8443: pce.port,
    'api_…': simulator.credentials.key,
    '…': simulator.credentials.secret,
  }
  const settings = {
    PCE_HOST: 'http://127.0.0.1',
    PCE_PORT: pce.port,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
  }

  await t.test('one’s own PCE, over stdio', async (t) => {
    await runCommand(t, 'README.md#connect-it-to-your-pce', { cwd: clone, env: quiet })
    const claude = pretend(t, 'claude')
    await runCommand(t, 'README.md#connect-it-to-your-pce:2', { cwd: clone, env: { PATH: claude.path }, own })
    const program = join(clone, 'dist/stdio.js')
    t.same(claude.calls(), [
      [
        ...['mcp', 'add', 'svc-mcp'],
        ...Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
        ...['--', 'node', program],
      ],
    ])
    t.same(
      await look(new StdioClientTransport({ command: 'node', args: [program], env: settings, stderr: 'ignore' })),
      EVERYTHING,
    )

    const [, text] = /```json\n([\s\S]*?)```/.exec(readPage('README.md'))!
    const { mcpServers } = JSON.parse(fillIn(text!, { ...own, '/path/to/svc-mcp': clone }))
    t.same(await look(new StdioClientTransport({ ...mcpServers['svc-mcp'], stderr: 'ignore' })), EVERYTHING)
  })

  await t.test('one’s own PCE, over HTTP', async (t) => {
    const port = String(await freePort())
    const server = startCommand(t, 'README.md#over-http-for-development', { cwd: clone, own: { ...own, 8080: port } })
    const [, url] = await server.says(/is listening on (http:\/\/127\.0\.0\.1:\d+\/mcp)/)
    t.equal(new URL(url!).port, port)
    t.same(await look(new StreamableHTTPClientTransport(new URL(url!))), EVERYTHING)
    t.equal((await server.stop()).code, 0)
  })

  await t.test('the simulator alone', async (t) => {
    const port = String(await freePort())
    const pceSim = startCommand(t, 'pce-simulator/README.md#start-it', { cwd: clone, env: quiet, own: { 8443: port } })
    const [line] = await pceSim.says(/^\{"url".*\}$/m)
    const { url, users } = JSON.parse(line)
    partial(t, new URL(url as string), { port })
    t.equal((await fetch(`${url}/api/v2/node_available`)).status, 200)
    t.equal(users.length, 2, 'with the users it was asked for')
    await pceSim.stop()
  })
})
