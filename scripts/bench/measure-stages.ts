import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inScratch } from './in-scratch.js'
import { GROUP, load, startAuthenticated, tokensOf } from './measure-authenticated.js'
import { processorSeconds } from './processor-time.js'
import { startProvider } from './start-provider.js'

/** Number of loads of two seconds each that are profiled; the first one, which also compiles, is not counted as calls. */
const ROUNDS = 4
/** Interval between two samples of the profiler, in microseconds. */
const SAMPLE_US = 500

/**
 * The stages of a call, each with the beginnings of the paths of its code. The first that matches counts. Code of
 * Node.js and of packages belongs to the stage whose code has called it, directly or not.
 */
const STAGES: readonly (readonly [stage: string, ...paths: readonly string[]])[] = [
  ['access token and caller', 'plugins/auth/', 'plugins/context/', 'plugins/offer/', 'storage/'],
  ['guards, headers and limits', 'plugins/origin-guard/', 'plugins/security-headers/', 'plugins/rate-limits/'],
  ['guards, headers and limits', 'plugins/in-flight/', 'plugins/request-id/', 'plugins/client-address/'],
  ['guards, headers and limits', 'plugins/admission/', 'plugins/unread-bodies/'],
  [
    'audit entries',
    'plugins/dispatcher/audit-log.ts',
    'plugins/dispatcher/record-call.ts',
    'programs/process/open-audit',
  ],
  ['log lines', 'programs/process/', 'node_modules/pino/', 'node_modules/sonic-boom/'],
  ['dispatcher: gates, arguments, answer', 'plugins/dispatcher/', 'plugins/errors/', 'domain/', 'schemas/'],
  ['MCP: envelope and answer', 'plugins/mcp/', 'knowledge/'],
  ['the tool', 'tools/'],
  ['pipeline of the program', 'programs/'],
]
const OTHER = 'Node.js and Fastify: HTTP, JSON of the body'
const COLLECTOR = 'garbage collector'
const UNKNOWN = 'outside of JavaScript'

/** A CPU profile of V8. `nodes` are the nodes of the call tree, and the samples are ids of nodes. */
interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  samples: number[]
  timeDeltas: number[]
}

export interface StageFigures {
  /** The processor time of a call in microseconds, with the profiler on. */
  perCall: number
  /** The share of each stage in the processor time of the main thread, in descending order; all add up to 1. */
  stages: readonly { stage: string; share: number }[]
}

/**
 * Measures where the processor time of an authenticated tools/call goes. The server is run from its sources, because
 * these still have files by which the samples of a CPU profile can be assigned to stages.
 */
export async function measureStages(): Promise<StageFigures> {
  const provider = await startProvider(GROUP)
  try {
    return await inScratch(async (scratch) => {
      const folder = join(scratch.directory, 'profile')
      const profiled = ['--cpu-prof', '--cpu-prof-dir', folder, '--cpu-prof-interval', String(SAMPLE_US)]
      const program = [...profiled, '--import', 'tsx', 'programs/http.ts']
      const server = await startAuthenticated(scratch, provider, { program })
      const tokens = await tokensOf(provider)
      await load(server.url, tokens)
      const before = processorSeconds(server.pid)
      let calls = 0
      for (let round = 0; round < ROUNDS; round++) calls += (await load(server.url, tokens)).requests
      const seconds = processorSeconds(server.pid) - before
      await server.stop()
      const [file] = readdirSync(folder)
      const profile = JSON.parse(readFileSync(join(folder, file!), 'utf8')) as Profile
      return { perCall: (seconds / calls) * 1e6, stages: sharesOf(profile) }
    })
  } finally {
    provider.close()
  }
}

/** Adds up the samples of each stage. Samples of an idle process are left out, as are those of the start. */
function sharesOf({ nodes, samples, timeDeltas }: Profile): StageFigures['stages'] {
  const stageOf = new Map<number, string | null>()
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const visit = (id: number, inherited: string | null) => {
    const { callFrame, children = [] } = byId.get(id)!
    const own = stageOfFrame(callFrame)
    const stage = own ?? inherited
    stageOf.set(id, stage)
    for (const child of children) visit(child, stage)
  }
  visit(nodes[0]!.id, OTHER)
  const sums = new Map<string, number>()
  // The first half of the samples may belong to the start and the compilation.
  for (let at = samples.length >> 1; at < samples.length; at++) {
    const stage = stageOf.get(samples[at]!)
    if (typeof stage === 'string' && stage !== IDLE) sums.set(stage, (sums.get(stage) ?? 0) + timeDeltas[at]!)
  }
  const total = [...sums.values()].reduce((sum, time) => sum + time, 0)
  return [...sums]
    .map(([stage, time]) => ({ stage, share: time / total }))
    .sort((one, other) => other.share - one.share)
}

/** The parts of the addresses of code that is of the framework, even when code of a stage has called it to go on. */
const FRAMEWORK = [
  '/node_modules/fastify/',
  'node:_http',
  'node:net',
  'node:internal/streams',
  'node:internal/stream_base',
]
const IDLE = 'idle'
const ROOT = new URL('../../', import.meta.url).href

function stageOfFrame({ functionName, url }: Profile['nodes'][number]['callFrame']): string | null {
  if (functionName === '(idle)') return IDLE
  if (functionName === '(garbage collector)') return COLLECTOR
  if (functionName === '(program)') return UNKNOWN
  if (FRAMEWORK.some((part) => url.includes(part))) return OTHER
  if (!url.startsWith(ROOT)) return null
  const path = url.slice(ROOT.length)
  return STAGES.find(([, ...paths]) => paths.some((begin) => path.startsWith(begin)))?.[0] ?? null
}

/** Formats the lines of the report. */
export function describeStages({ perCall, stages }: StageFigures): string[] {
  return [
    'authenticated tools/call, run from sources under the profiler: where its processor time goes',
    ...stages.map(
      ({ stage, share }) =>
        `  ${stage.padEnd(40)}${(share * perCall).toFixed(0).padStart(5)} µs${(share * 100).toFixed(0).padStart(5)} %`,
    ),
    `  ${'all'.padEnd(40)}${perCall.toFixed(0).padStart(5)} µs`,
  ]
}
