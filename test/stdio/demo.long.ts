/** `svc-mcp demo` with programs in the place of its own: whatever ends it, nothing of it stays. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { bundleProgram } from '../bundle-program.js'

const FACTS = JSON.stringify({ url: 'http://127.0.0.1:1', pce_host: 'http://127.0.0.1', pce_port: 1, org_id: 1 })
const SAY_FACTS = `console.log(${JSON.stringify(FACTS)})`
const END_PARENT = (signal: string) => `process.kill(process.ppid, '${signal}')`
/** How it fails for a reason that nobody has thought of. */
const FAIL = `data:text/javascript,process.on('SIGUSR2', () => { throw new Error('boom') })`

/**
 * Plays the demonstration with these programs, each run once the test knows of it, and waits until all of them are gone: its code, what it
 * wrote to standard error, the programs that were started, and the files it leaves.
 */
async function play(
  t: Test,
  { simulator = SAY_FACTS, server = '', options = [] as string[], deaf = false },
): Promise<{ code: number | null; errors: string; started: string[]; left: string[] }> {
  const gone: Promise<unknown>[] = []
  const started: string[] = []
  const watcher = createServer((socket: Socket) => {
    gone.push(once(socket, 'close'))
    socket.on('error', () => undefined)
    socket.once('data', (name) => {
      started.push(name.toString())
      socket.write('go')
    })
  })
  await once(watcher.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => watcher.close())
  const { port } = watcher.address() as AddressInfo
  const text = (name: string, body: string) =>
    `import { connect } from 'node:net'
const watcher = connect(${port}, '127.0.0.1')
watcher.on('close', () => process.exit())
watcher.write('${name}')
watcher.once('data', () => { ${body} })`

  const program = bundleProgram('stdio')
  // Below the bundle: packages are found from there.
  const folder = mkdtempSync(join(dirname(program), 'demo-'))
  mkdirSync(join(folder, 'pce-simulator'))
  copyFileSync(program, join(folder, 'stdio.js'))
  cpSync(join(dirname(program), 'parts'), join(folder, 'parts'), { recursive: true })
  writeFileSync(join(folder, 'http.js'), text('server', server))
  writeFileSync(join(folder, 'pce-simulator/pce-sim.js'), text('simulator', simulator))
  const temporary = mkdtempSync(join(tmpdir(), 'demo-'))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  const child = spawn(process.execPath, [...options, join(folder, 'stdio.js'), 'demo', '--port', '0'], {
    env: { PATH: process.env.PATH, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (deaf) child.stdout.destroy()
  else child.stdout.resume()
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  await Promise.all(gone)
  return { code, errors, started, left: readdirSync(temporary) }
}

t.test('a signal to it alone ends what it has started', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    t.same(
      await play(t, { server: END_PARENT(signal) }),
      { code: 0, errors: '', started: ['simulator', 'server'], left: [] },
      signal,
    )
})

t.test('Ctrl-C between two starts: the second program is not started', async (t) => {
  const late = `process.once('SIGTERM', () => { ${SAY_FACTS}; process.exit() }); ${END_PARENT('SIGINT')}`
  t.same(await play(t, { simulator: late }), { code: 0, errors: '', started: ['simulator'], left: [] })
})

t.test('a reader that has seen enough ends it without a word', async (t) => {
  const { code, errors, left } = await play(t, { deaf: true })
  t.same({ code, errors, left }, { code: 0, errors: '', left: [] })
})

t.test('an error that nobody has thought of leaves no program behind', async (t) => {
  const { errors, started } = await play(t, { server: END_PARENT('SIGUSR2'), options: ['--import', FAIL] })
  t.match(errors, /Error: boom/)
  t.same(started, ['simulator', 'server'])
})

t.test('a server that ends before it is ready: with what, and what it said', async (t) => {
  const ends = { 'exit code 3': 'process.exit(3)', SIGKILL: `process.kill(process.pid, 'SIGKILL')` }
  for (const [how, end] of Object.entries(ends))
    t.same(await play(t, { server: `console.error('last words'); ${end}` }), {
      code: 1,
      errors: `svc-mcp demo: the server has ended (${how}):\nlast words\n\n`,
      started: ['simulator', 'server'],
      left: [],
    })
})
