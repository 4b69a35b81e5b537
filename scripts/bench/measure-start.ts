import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { median } from './statistics.js'

const RUNS = 15

export interface StartTimes {
  /**
   * The milliseconds from the start of the process to the answer of the first tools/list, as the median of the runs.
   */
  empty: number
  ours: number
}

/**
 * Measures a cold start over stdio: start of the process, initialize, tools/list. Both servers take turns in every run.
 */
export async function measureStart(): Promise<StartTimes> {
  const empty: number[] = []
  const ours: number[] = []
  for (let run = 0; run < RUNS; run++) {
    empty.push(await timeToFirstList('scripts/bench/empty-stdio.mjs'))
    ours.push(await timeToFirstList('dist/stdio.js'))
  }
  return { empty: median(empty), ours: median(ours) }
}

async function timeToFirstList(script: string): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, [script], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      PCE_HOST: 'http://127.0.0.1:1',
      PCE_PORT: '1',
      API_KEY: 'api_bench',
      API_SECRET: 'bench',
    },
  })
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  send({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '0' } },
  })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id } = JSON.parse(line) as { id?: number }
      if (id === 1) {
        send({ method: 'notifications/initialized' })
        send({ id: 2, method: 'tools/list' })
      } else if (id === 2) {
        return performance.now() - started
      }
    }
    throw new Error(`${script} ended before it listed its tools`)
  } finally {
    child.kill()
  }
}
