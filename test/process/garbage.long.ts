/** What requests leave behind: next to nothing of one may get into the old generation, where it would lie until a major collection. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { bundleProgram } from '../bundle-program.js'
import { listeningOn } from '../log-lines.js'

const MIB = 1024 * 1024
const CONNECTIONS = 20
const WARM_UP = 10_000
const CALLS = 20_000
/** Of the 47 KB that a call allocates. Whole requests that are promoted are 4 to 10 KB of each call; what is unavoidable was 0.6. */
const MOST_KEPT = 2_000

t.test('a call over HTTP leaves less than 2 KB to the old generation', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'garbage-'))
  const child = spawn(process.execPath, ['--trace-gc', bundleProgram('http'), '--port', '0'], {
    cwd: folder,
    env: { PATH: process.env.PATH, MCP_DEV_INSECURE: '1', MCP_AUDIT_LOG_PATH: join(folder, 'audit.log') },
  })
  t.teardown(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  let trace = ''
  let log: string | null = ''
  child.stdout.on('data', (chunk: Buffer) => (trace += chunk.toString()))
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`it ended: ${log}`)))
    child.stderr.on('data', (chunk: Buffer) => {
      if (log === null) return
      log += chunk.toString()
      const where = listeningOn(log)
      if (where === undefined) return
      log = null
      resolve(where)
    })
  })
  await sendCalls(url, WARM_UP)
  const before = trace.length
  await sendCalls(url, CALLS)
  const { collections, kept } = readTrace(trace.slice(before))
  t.ok(collections >= 8, `${collections} young collections`)
  t.ok(kept / CALLS < MOST_KEPT, `${Math.round(kept / CALLS)} bytes of each call`)
})

/** So many calls over kept connections. Rejects where one is not answered 200. */
async function sendCalls(url: string, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'get-server-changelog', arguments: { unlearn_only: true } },
  })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
  }
  const call = () =>
    new Promise<void>((resolve, reject) => {
      const sent = request(url, { agent, method: 'POST', headers }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          // A refusal is a 200 as well.
          if (answer.statusCode === 200 && text.includes('"unlearn":[')) resolve()
          else reject(new Error(text))
        })
      })
      sent.on('error', reject).end(body)
    })
  const worker = async () => {
    for (let sent = 0; sent < count / CONNECTIONS; sent++) await call()
  }
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  } finally {
    agent.destroy()
  }
}

/** Bytes by which young collections have made the heap larger: each line of V8's trace has its MB before and after one. */
function readTrace(text: string): { collections: number; kept: number } {
  let [collections, kept] = [0, 0]
  let last: number | null = null
  for (const [, kind, after] of text.matchAll(/: (Scavenge|Mark-Compact).*? -> ([\d.]+) \(/g)) {
    if (kind === 'Scavenge') {
      collections++
      if (last !== null) kept += (Number(after) - last) * MIB
    }
    last = Number(after)
  }
  return { collections, kept }
}
