import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { openStdio } from './open-stdio.js'
import { median } from './statistics.js'

/**
 * The time, in milliseconds, between the list and the first call: less than a model needs to read the list. In this time
 * the server loads what the first call of any tool needs.
 */
const READING_MS = 1000
/** Number of pairs: in each, every server is started once, in turn. */
const RUNS = 15

/** Times of one server in milliseconds, as the medians of the pairs, and the median of the ratios within the pairs. */
export interface Compared {
  empty: number
  ours: number
  ratio: number
}

/** The first call of a tool after the list, and the second one, in milliseconds. `more` is the median of the differences. */
export interface FirstCall {
  tool: string
  first: number
  second: number
  more: number
}

export interface StartFigures {
  /** From spawn to the first tools/list over stdio: for the toolset `default`, and for all tools. */
  listed: Compared
  listedAll: Compared
  /** First calls a second after the list, and the same without this second. */
  firstCalls: FirstCall[]
  hastyCalls: FirstCall[]
  /** From spawn to the first success of /readyz over HTTP, without authentication. */
  ready: Compared
}

/** Reads of several rooms of the domain, and a dry run of a write, with arguments that fit the simulator's estate. */
const CALLS: Record<string, object> = {
  'get-labels': { key: 'app' },
  'get-workloads': {},
  'get-rulesets': {},
  'create-label': { key: 'app', value: 'of-the-bench', dry_run: true },
}

/** Measures cold starts of the built programs against servers without tools. */
export async function measureStart(): Promise<StartFigures> {
  const [empty, ours, all]: number[][] = [[], [], []]
  for (let run = 0; run < RUNS; run++) {
    empty!.push(await timeToList('scripts/bench/empty-stdio.mjs'))
    ours!.push(await timeToList('dist/stdio.js'))
    all!.push(await timeToList('dist/stdio.js', { MCP_TOOLSETS: 'all' }))
  }
  return {
    listed: compare(empty!, ours!),
    listedAll: compare(empty!, all!),
    firstCalls: await measureFirstCalls(Object.keys(CALLS), READING_MS),
    hastyCalls: await measureFirstCalls(['get-labels'], 0),
    ready: await measureReady(),
  }
}

async function timeToList(script: string, environment?: Record<string, string>): Promise<number> {
  const session = await openStdio(script, environment)
  session.close()
  return session.listed
}

/** Calls each tool twice, `pause` milliseconds after the list, in a process of its own for each pair of calls. */
async function measureFirstCalls(tools: readonly string[], pause: number): Promise<FirstCall[]> {
  const simulator = await createPceSimulator({ seed: 1, workloads: 40, flows: 0 })
  try {
    const { hostname, port } = new URL(await simulator.listen({ port: 0 }))
    const environment = {
      PCE_HOST: `http://${hostname}`,
      PCE_PORT: port,
      PCE_ORG_ID: String(simulator.orgId),
      API_KEY: simulator.credentials.key,
      API_SECRET: simulator.credentials.secret,
    }
    const measured: FirstCall[] = []
    for (const tool of tools) {
      const args = CALLS[tool]!
      const [first, second]: number[][] = [[], []]
      for (let run = 0; run < RUNS; run++) {
        const session = await openStdio('dist/stdio.js', environment)
        try {
          await wait(pause)
          first!.push(await session.call(tool, args))
          second!.push(await session.call(tool, args))
        } finally {
          session.close()
        }
      }
      const more = first!.map((time, run) => time - second![run]!)
      measured.push({ tool, first: median(first!), second: median(second!), more: median(more) })
    }
    return measured
  } finally {
    await simulator.close()
  }
}

async function measureReady(): Promise<Compared> {
  const [empty, ours]: number[][] = [[], []]
  for (let run = 0; run < RUNS; run++) {
    empty!.push(await timeToReady(['scripts/bench/empty-http.mjs']))
    ours!.push(await timeToReady(['dist/http.js', '--port', '0']))
  }
  return compare(empty!, ours!)
}

/** Starts a server over HTTP, reads its address from its log, and asks it whether it is ready. */
async function timeToReady(command: readonly string[]): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, command, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      MCP_DEV_INSECURE: '1',
      PCE_HOST: 'http://127.0.0.1:1',
      PCE_PORT: '1',
      API_KEY: 'api_bench',
      API_SECRET: 'bench',
    },
  })
  child.stdout.resume()
  try {
    for await (const line of createInterface({ input: child.stderr })) {
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? []
      if (url === undefined || !line.includes('listening')) continue
      const { ok } = await fetch(`${url}/readyz`)
      if (!ok) throw new Error(`${command[0]} listens and is not ready`)
      return performance.now() - started
    }
    throw new Error(`${command[0]} ended before it listened`)
  } finally {
    child.kill('SIGKILL')
  }
}

const compare = (empty: readonly number[], ours: readonly number[]): Compared => ({
  empty: median(empty),
  ours: median(ours),
  ratio: median(ours.map((time, run) => time / empty[run]!)),
})
