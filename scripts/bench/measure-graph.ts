import { findArticulationPoints } from '../../domain/dependency-map/find-components.js'
import { countReachable } from '../../domain/dependency-map/rank-reach.js'
import { layOutGraph, type AppGraph } from '../../domain/dependency-map/lay-out-graph.js'
import { measureBetweenness } from '../../domain/dependency-map/measure-betweenness.js'
import { rankInfrastructure } from '../../domain/dependency-map/rank-infrastructure.js'
import { workInTurns } from '../../domain/text/pace-work.js'

export interface GraphFigures {
  nodes: number
  edges: number
  /** The whole ranking: milliseconds until the answer, and of processor time. */
  rankingMs: number
  cpuMs: number
  /** The longest time, in milliseconds, that anything else in the process has to wait for betweenness, its longest part. */
  longestBlockMs: number
  /** Milliseconds each. */
  layoutMs: number
  reachMs: number
  articulationMs: number
}

const SEED = 20_240_611

/** The measures of an estate as big as the server promises to stand: a random graph, the same at every run. */
export async function measureGraph(nodes = 5000, edges = 50_000): Promise<GraphFigures> {
  const graph = drawGraph(nodes, edges)
  const { signal } = new AbortController()
  const [layout, layoutMs] = await time(() => Promise.resolve(layOutGraph(graph)))
  const options = { minConnections: 1, productionEnvs: ['prod'] }
  const processor = process.cpuUsage()
  const [, rankingMs] = await time(() => workInTurns(rankInfrastructure(graph, options), signal))
  const { user, system } = process.cpuUsage(processor)
  const watch = watchEventLoop()
  await workInTurns(measureBetweenness(layout.neighbours), signal)
  const longestBlockMs = await watch.stop()
  const [, reachMs] = await time(() => workInTurns(countReachable(layout.outgoing), signal))
  const [, articulationMs] = await time(() => workInTurns(findArticulationPoints(layout.neighbours), signal))
  const cpuMs = (user + system) / 1000
  return { nodes, edges, rankingMs, cpuMs, longestBlockMs, layoutMs, reachMs, articulationMs }
}

/** The lines of the report, against the targets of the two graph tools. */
export function describeGraph(figures: GraphFigures): string[] {
  const { nodes, edges, rankingMs, cpuMs, longestBlockMs, layoutMs, reachMs, articulationMs } = figures
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED')
  const ms = (value: number) => value.toFixed(0).padStart(7)
  return [
    `Graph measures of ${nodes} applications and ${edges} edges, in the process that serves`,
    `  ranking of infrastructure   ${ms(rankingMs)} ms`,
    `    processor time            ${ms(cpuMs)} ms    target at most 3000: ${verdict(cpuMs <= 3000)}`,
    `  longest wait of others      ${ms(longestBlockMs)} ms    target below 50: ${verdict(longestBlockMs < 50)}`,
    `  reach of every node         ${ms(reachMs)} ms    target below 2000: ${verdict(reachMs < 2000)}`,
    `  articulation points         ${ms(articulationMs)} ms`,
    `  layout                      ${ms(layoutMs)} ms`,
  ]
}

async function time<T>(run: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now()
  const result = await run()
  return [result, performance.now() - start]
}

/** The widest gap between two turns of the event loop, milliseconds. */
function watchEventLoop(): { stop(): Promise<number> } {
  let widest = 0
  let running = true
  let last = performance.now()
  const look = () => {
    const now = performance.now()
    widest = Math.max(widest, now - last)
    last = now
    if (running) setImmediate(look)
  }
  setImmediate(look)
  return {
    // One more turn, so that work that never gave way is seen too.
    stop: () =>
      new Promise((resolve) =>
        setImmediate(() => {
          running = false
          resolve(widest)
        }),
      ),
  }
}

function drawGraph(nodes: number, edges: number): AppGraph {
  const draw = createRandom(SEED)
  const pairs = new Set<number>()
  while (pairs.size < edges) {
    const [from, to] = [draw(nodes), draw(nodes)]
    if (from !== to) pairs.add(from * nodes + to)
  }
  return {
    nodes: Array.from({ length: nodes }, (_, place) => ({ app: `app-${place}`, env: 'prod' })),
    edges: {
      from: Uint32Array.from(pairs, (pair) => Math.floor(pair / nodes)),
      to: Uint32Array.from(pairs, (pair) => pair % nodes),
      connections: new Float64Array(pairs.size).fill(1),
    },
  }
}

/** Marsaglia's xorshift of 32 bits: whole numbers from 0 up to, not including, the limit. */
function createRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % limit
  }
}
