import { judge } from './judge.js'
import { findArticulationPoints } from '../../domain/dependency-map/find-components.js'
import { countReachable } from '../../domain/dependency-map/rank-reach.js'
import { layOutGraph, type AppGraph } from '../../domain/dependency-map/lay-out-graph.js'
import { measureBetweenness } from '../../domain/dependency-map/measure-betweenness.js'
import { rankInfrastructure } from '../../domain/dependency-map/rank-infrastructure.js'
import { workInTurns } from '../../domain/text/pace-work.js'

export interface GraphFigures {
  nodes: number
  edges: number
  /** The times for the whole ranking, in milliseconds: until the answer, and of the processor. */
  rankingMs: number
  cpuMs: number
  /**
   * The longest delay of the event loop, in milliseconds, during betweenness, which is the longest part of the ranking.
   */
  longestBlockMs: number
  /** The duration of each other graph measure, in milliseconds. */
  layoutMs: number
  reachMs: number
  articulationMs: number
}

const SEED = 20_240_611

/**
 * Measures graphs of the largest estate that the server promises to support. The graph is random, but the same in every
 * run.
 */
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

/** Formats the results as lines of the report, with the targets for the two graph tools. */
export function describeGraph(figures: GraphFigures): string[] {
  const { nodes, edges, rankingMs, cpuMs, longestBlockMs, layoutMs, reachMs, articulationMs } = figures
  const ms = (value: number) => value.toFixed(0).padStart(7)
  return [
    `Graph measures of ${nodes} applications and ${edges} edges, in the process that serves`,
    `  ranking of infrastructure   ${ms(rankingMs)} ms`,
    `    processor time            ${ms(cpuMs)} ms    ${judge(cpuMs, { atMost: 3000 })}`,
    `  longest wait of others      ${ms(longestBlockMs)} ms    ${judge(longestBlockMs, { atMost: 50 })}`,
    `  reach of every node         ${ms(reachMs)} ms    ${judge(reachMs, { atMost: 2000 })}`,
    `  articulation points         ${ms(articulationMs)} ms`,
    `  layout                      ${ms(layoutMs)} ms`,
  ]
}

async function time<T>(run: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now()
  const result = await run()
  return [result, performance.now() - start]
}

/** Watches the event loop. `stop` resolves with the longest gap between two of its turns, in milliseconds. */
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
    // One more turn is awaited, so that work that never yields is measured too.
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

/**
 * Creates Marsaglia's 32-bit xorshift generator. It returns whole numbers that are at least 0 and less than the limit.
 */
function createRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % limit
  }
}
