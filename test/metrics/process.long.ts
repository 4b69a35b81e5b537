/** The program with its metrics: where they are, and what it calls itself in its log and in the audit log. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { bundleProgram } from '../bundle-program.js'
import { runCommand } from '../docs/commands.js'

type Line = Record<string, unknown>

/** A port that nobody listens at, and that the system gives nobody who asks for any: other tests do so meanwhile. */
async function quietPort(): Promise<number> {
  const port = randomInt(10_000, 30_000)
  const server = createServer().listen(port, '127.0.0.1')
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  server.close()
  return isFree ? port : quietPort()
}

/** Starts svc-mcp-http for development. `until` resolves with the first line of its log that has this text, or when it ends. */
function start(t: Test, env: Record<string, string>, args: readonly string[] = ['--port', '0']) {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [bundleProgram('http'), ...args], {
    cwd: mkdtempSync(join(tmpdir(), 'metrics-')),
    env: { PATH: process.env.PATH, MCP_DEV_INSECURE: '1', ...env },
  })
  t.teardown(() => child.kill('SIGKILL'))
  const log: Line[] = []
  const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
  const until = async (text: string): Promise<string> => {
    const { value, done } = (await lines.next()) as { value: string; done?: boolean }
    if (done === true) throw new Error(`it has not said '${text}': ${JSON.stringify(log)}`)
    const line = JSON.parse(value) as Line
    log.push(line)
    return String(line.msg).includes(text) ? String(line.msg) : until(text)
  }
  const audit = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const entry = async () => JSON.parse((await audit.next()).value as string) as Line
  return { log, until, entry }
}

const CALL = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get-server-changelog' } })

t.test('metrics are on a port of their own, and every line names the replica', async (t) => {
  const port = await quietPort()
  const { until, entry, log } = start(t, { MCP_METRICS_PORT: String(port), MCP_REPLICA_ID: 'mcp-7' })
  t.match(await until('metrics are at'), new RegExp(`at http://127.0.0.1:${port}/metrics$`))
  const [url] = /http:\S+/.exec(await until('is listening'))!
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: CALL,
  })
  t.equal(answer.status, 200)
  const own = { '9464': String(port) }
  const shown = await runCommand(t, 'docs/operations.md#metrics', { cwd: tmpdir(), own })
  t.match(shown, /^svc_mcp_tool_calls_total\{tool="get-server-changelog",outcome="success",gate="handler"\} 1$/m)
  t.same([(await entry()).replica, (await entry()).replica], ['mcp-7', 'mcp-7'], 'decision and outcome')
  await until('request')
  t.strictSame([...new Set(log.map(({ replica }) => replica))], ['mcp-7'])
})

t.test(
  'a socket has no port, so they are on loopback; and a replica without a name has that of the host',
  async (t) => {
    const port = await quietPort()
    const socket = join(mkdtempSync(join(tmpdir(), 'socket-')), 's')
    const { until, log } = start(t, { MCP_METRICS_PORT: String(port) }, ['--socket', socket])
    t.match(await until('metrics are at'), new RegExp(`at http://127.0.0.1:${port}/metrics$`))
    await until('is listening')
    t.equal((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 200)
    t.strictSame([...new Set(log.map(({ replica }) => replica))], [hostname()])
  },
)

t.test('a port that is taken stops the start, and says which setting names it', async (t) => {
  const port = await quietPort()
  const first = start(t, { MCP_METRICS_PORT: String(port) })
  await first.until('is listening')
  const second = start(t, { MCP_METRICS_PORT: String(port) })
  await second.until(`Cannot listen on 127.0.0.1:${port}`)
  t.match(second.log.at(-1)!.remedy, /another port with MCP_METRICS_PORT/)
})
