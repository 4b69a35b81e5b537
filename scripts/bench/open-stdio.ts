import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A server over stdio that has listed its tools, as its client sees it. */
export interface StdioSession {
  /** The milliseconds from the start of the process to the answer of the first tools/list. */
  listed: number
  /** Calls a tool, and resolves with the milliseconds until the answer. Rejects if the call fails. */
  call(name: string, args: object): Promise<number>
  close(): void
}

/**
 * Starts a server over stdio and asks it for its tools, with the requests of a client of 2025-06-18. `environment` is
 * added to the settings that every server needs. Rejects if the server ends or does not answer with a result.
 */
export async function openStdio(script: string, environment: Record<string, string> = {}): Promise<StdioSession> {
  const started = performance.now()
  const child = spawn(process.execPath, [script], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      PCE_HOST: 'http://127.0.0.1:1',
      PCE_PORT: '1',
      API_KEY: 'api_bench',
      API_SECRET: 'bench',
      ...environment,
    },
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let asked = 0
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const request = async (method: string, params: object): Promise<{ isError?: boolean }> => {
    const id = ++asked
    send({ id, method, params })
    for (;;) {
      const { value = '', done } = (await lines.next()) as { value?: string; done?: boolean }
      if (done === true) throw new Error(`${script} ended before it answered ${method}`)
      const answer = JSON.parse(value) as { id?: number; result?: { isError?: boolean } }
      if (answer.id !== id) continue
      if (answer.result === undefined) throw new Error(`${method} failed: ${value}`)
      return answer.result
    }
  }
  try {
    await request('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'bench', version: '0' },
    })
    send({ method: 'notifications/initialized' })
    await request('tools/list', {})
  } catch (error) {
    child.kill()
    throw error
  }
  return {
    listed: performance.now() - started,
    async call(name, args) {
      const begun = performance.now()
      const result = await request('tools/call', { name, arguments: args })
      if (result.isError === true) throw new Error(`${name} failed: ${JSON.stringify(result)}`)
      return performance.now() - begun
    },
    close: () => child.kill(),
  }
}
