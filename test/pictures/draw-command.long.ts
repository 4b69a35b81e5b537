/** `svc-mcp draw`: what a person at a shell gets. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'

const PROGRAM = bundleProgram('stdio')
const simulator = await createPceSimulator({ seed: 3, workloads: 60, flows: 400 })
const url = new URL(await simulator.listen({ port: 0 }))
t.teardown(() => simulator.close())
const PCE = {
  PCE_HOST: `http://${url.hostname}`,
  PCE_PORT: url.port,
  PCE_ORG_ID: String(simulator.orgId),
  API_KEY: simulator.credentials.key,
  API_SECRET: simulator.credentials.secret,
}

const folder = () => mkdtempSync(join(tmpdir(), 'draw-'))

async function draw(
  args: readonly string[],
  { cwd = folder(), env = PCE }: { cwd?: string; env?: Record<string, string> } = {},
) {
  const child = spawn(process.execPath, [PROGRAM, 'draw', ...args], { cwd, env: { PATH: process.env.PATH, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, stdout, stderr, cwd }
}

t.test('each picture, from the shell, and nothing is changed at the PCE', async (t) => {
  const before = simulator.requests.length
  const commands = [
    ['map', '-o', 'map.svg'],
    ['ringfence', '--app', 'payments', '--env', 'prod', '-o', 'ringfence.html'],
    ['change', '-o', 'change.svg'],
    ['paths', '--app', 'payments', '-o', 'paths.html'],
  ]
  const titles = [
    /^map\.svg: Application map, \d+ KiB\n/,
    /Ringfence of "payments \(prod\)"/,
    /Policy change/,
    /Lateral movement from/,
  ]
  const done = await Promise.all(commands.map((args) => draw(args, { env: { ...PCE, MCP_READ_ONLY: '1' } })))
  for (const [at, { code, stdout, stderr, cwd }] of done.entries()) {
    const [kind] = commands[at]!
    t.equal(code, 0, `${kind}: ${stderr}`)
    t.ok(titles[at]!.test(stdout), stdout)
    const [file] = readdirSync(cwd)
    t.same(readdirSync(cwd), [commands[at]!.at(-1)], 'one file and nothing beside it')
    const text = readFileSync(join(cwd, file!), 'utf8')
    t.notMatch(text, /(?:src|href)=|url\((?!#)|@import/, 'it loads nothing')
    t.equal(/<script/.test(text), file!.endsWith('.html'), 'only a page has a script')
  }
  const writes = simulator.requests
    .slice(before)
    .filter(({ method, path }) => method !== 'GET' && !path.includes('/traffic_flows/'))
  t.same(writes, [], 'nothing was written')
})

t.test('what is wrong is named before the PCE is asked, and a file is never lost', async (t) => {
  const cwd = folder()
  writeFileSync(join(cwd, 'there.svg'), 'mine')
  const cases: [string[], RegExp][] = [
    [['map'], /required option '-o, --output <file>' not specified/],
    [['map', '-o', 'a.png'], /'-o, --output <file>' argument 'a\.png' is invalid\. it ends in \.html or \.svg/],
    [['map', '-o', 'nowhere/a.svg'], /--output: there is no folder .*nowhere/],
    [['map', '-o', 'there.svg'], /there\.svg exists; --force replaces it/],
    [['map', '--days', '0', '-o', 'a.svg'], /--days <n>.*whole number from 1 to 365/],
    [['ringfence', '--app', 'payments', '-o', 'a.svg'], /'--env <env>' not specified/],
    [['mapp', '-o', 'a.svg'], /unknown command 'mapp'/],
  ]
  const before = simulator.requests.length
  const done = await Promise.all(cases.map(([args]) => draw(args, { cwd })))
  for (const [at, { code, stderr, stdout }] of done.entries()) {
    t.equal(code, 1)
    t.equal(stdout, '')
    t.ok(cases[at]![1].test(stderr), stderr)
  }
  t.equal(simulator.requests.length, before)
  const unknown = await draw(['ringfence', '--app', 'paymets', '--env', 'prod', '-o', 'a.svg'], { cwd })
  t.equal(unknown.code, 1)
  t.match(unknown.stderr, /^svc-mcp draw: create-ringfence: No app label is exactly "paymets"/)
  t.same(readdirSync(cwd), ['there.svg'])
  t.equal(readFileSync(join(cwd, 'there.svg'), 'utf8'), 'mine')
  t.equal((await draw(['map', '--force', '-o', 'there.svg'], { cwd })).code, 0)
  t.match(readFileSync(join(cwd, 'there.svg'), 'utf8'), /^<\?xml/)
})

t.test('--help, for all and for one', async (t) => {
  const [all, map] = await Promise.all([draw(['--help'], { env: {} }), draw(['map', '--help'], { env: {} })])
  t.match(all.stdout, /map \[options\][^]*ringfence \[options\][^]*change \[options\][^]*paths \[options\]/)
  t.match(map.stdout, /--output <file>[^]*--source <label\.\.\.>/)
  t.same([all.code, map.code], [0, 0])
})
