/** The unit file that users copy: a start is over when the process serves, not when it has been forked. */
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { contains } from '../partial.js'
import { within } from './support/within.js'

const UNIT = fileURLToPath(new URL('../../deploy/systemd/svc-mcp@.service', import.meta.url))
const SOCKET = '/run/svc-mcp/1.sock'

const textOf = (path: string) => readFileSync(path, 'utf8')

/** The words of the unit's ExecStartPost for the instance 1, as systemd reads them (systemd.service(5), systemd.syntax(7)). */
function startPost(): string[] {
  const text = readFileSync(UNIT, 'utf8').replace(/\\\n/g, ' ')
  const line = /^ExecStartPost=(.*)$/m.exec(text)![1]!.replaceAll('%i', '1')
  return Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare]) => quoted ?? bare!)
}

/** Runs it for a process and a socket; resolves with its exit code. */
function runStartPost(t: Test, mainPid: number, socketPath: string): Promise<number | null> {
  const [command, ...args] = startPost().map((word) => word.replace(SOCKET, socketPath))
  const child = spawn(command!, args, {
    env: { PATH: process.env.PATH, MAINPID: String(mainPid) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(() => child.kill())
  return within(new Promise((resolve) => child.once('exit', resolve)), 'the command ends')
}

/** A socket where /readyz answers with these, one after the other, and with the last from then on; and who asked for what. */
async function serveReadiness(t: Test, statuses: readonly number[]) {
  const folder = mkdtempSync(join(tmpdir(), 'unit-'))
  const socketPath = join(folder, '1.sock')
  const asked: string[] = []
  const server = createServer((request, response) => {
    response.writeHead(statuses[asked.length] ?? statuses.at(-1)!).end('{}')
    asked.push(`${request.method} ${request.url}`)
  })
  t.teardown(async () => {
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true })
  })
  return { socketPath, asked, listen: () => new Promise<void>((resolve) => server.listen(socketPath, resolve)) }
}

t.test('waits until the process is ready', async (t) => {
  const { socketPath, asked, listen } = await serveReadiness(t, [503, 503, 200])
  const code = runStartPost(t, process.pid, socketPath)
  await listen()
  t.equal(await code, 0)
  t.same(asked, Array(3).fill('GET /readyz'))
})

t.test('gives up when the process ends', async (t) => {
  const { socketPath, listen } = await serveReadiness(t, [503])
  await listen()
  const program = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  const code = runStartPost(t, program.pid!, socketPath)
  program.kill()
  t.equal(await code, 1)
  t.equal(await runStartPost(t, program.pid!, join(socketPath, '..', 'none.sock')), 1, 'also before it has a socket')
})

t.test('gives the process little that an intruder could use', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'unit-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const instance = join(folder, 'svc-mcp@1.service')
  copyFileSync(UNIT, instance)
  const said = execFileSync('systemd-analyze', ['security', '--offline=yes', '--no-pager', instance], {
    encoding: 'utf8',
  })
  const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(said)?.[1])
  t.ok(exposure < 2, `exposure ${exposure} of 10`)
  // Node.js writes code and runs it, and looks for its addresses over netlink.
  t.same([/^MemoryDenyWriteExecute/m.test(textOf(UNIT)), /AF_NETLINK/.test(textOf(UNIT))], [false, true])
})

t.test('points at the socket the process listens on', async (t) => {
  t.match(readFileSync(UNIT, 'utf8'), / --socket \/run\/svc-mcp\/%i\.sock$/m)
  contains(t, startPost().at(-1), `"${SOCKET}"`)
})
