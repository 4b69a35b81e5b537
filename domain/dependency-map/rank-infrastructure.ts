import type { Steps } from '../text/pace-work.js'
import { applicationKey } from '../traffic/applications.js'
import { degreeOf, filterEdges, layOutGraph, type Adjacency, type AppGraph } from './lay-out-graph.js'
import { measureBetweenness } from './measure-betweenness.js'

/** The env label values that count as production by default. Case is ignored (T17). */
export const PRODUCTION_ENVS: readonly string[] = ['prod', 'production']

interface InfrastructureOptions {
  /** Edges with fewer connections than this are dropped, together with nodes that have no edge left. */
  minConnections: number
  /** The env label values that count as production. Case is ignored. */
  productionEnvs: readonly string[]
}

export interface InfrastructureRow {
  /** Index of the application in the caller's list of nodes. */
  node: number
  app: string
  env: string
  is_production: boolean
  /**
   * A score from 0 to 100 with one decimal. The separate scores as provider and as consumer are those before
   * deductions.
   */
  infrastructure_score: number
  provider_score: number
  consumer_score: number
  tier: Tier
  dominant_pattern: 'provider' | 'consumer'
  in_degree: number
  out_degree: number
  /** A value from 0 to 1 with four decimals. */
  betweenness_centrality: number
  /** Share of incoming edges among all edges, from 0 to 1 with two decimals. */
  consumer_ratio: number
  inbound_connections: number
  outbound_connections: number
  total_connections: number
  /** Keys of neighbouring nodes, sorted. */
  consumed_by: string[]
  consumes: string[]
}

interface InfrastructureRanking {
  /**
   * All nodes with at least one edge that is not dropped, highest score first. Nodes with equal scores are in the order
   * of their keys.
   */
  rows: InfrastructureRow[]
  /** Number of edges with enough connections. */
  edges: number
  /** Number of rows in each tier. */
  tier_counts: { core_infrastructure: number; shared_service: number; standard_application: number }
}

/** Ranks applications by how much they serve as infrastructure for others (T17). */
export function* rankInfrastructure(graph: AppGraph, options: InfrastructureOptions): Steps<InfrastructureRanking> {
  const { given, ...kept } = keepBusyEdges(graph, options.minConnections)
  const { edges } = kept
  const layout = layOutGraph(kept)
  const { nodes, incoming, outgoing, placed } = layout
  const [inbound, outbound] = [new Float64Array(nodes.length), new Float64Array(nodes.length)]
  for (const [edge, connections] of edges.connections.entries()) {
    outbound[placed[edges.from[edge]!]!]! += connections
    inbound[placed[edges.to[edge]!]!]! += connections
  }
  const betweenness = yield* measureBetweenness(layout.neighbours)
  const measures = nodes.map((_, node) => ({
    inDegree: degreeOf(incoming, node),
    outDegree: degreeOf(outgoing, node),
    betweenness: betweenness[node]!,
    totalConnections: inbound[node]! + outbound[node]!,
  }))
  const greatest = greatestOf(measures)
  const production = new Set(options.productionEnvs.map((env) => env.toLowerCase()))
  const keys = nodes.map(applicationKey)

  const rows = measures.map((own, node): InfrastructureRow => {
    const { app, env } = nodes[node]!
    const isProduction = production.has(env.toLowerCase())
    const { score, provider, consumer, tier, pattern } = scoreInfrastructure(own, greatest, isProduction)
    return {
      node: given[layout.given[node]!]!,
      app,
      env,
      is_production: isProduction,
      infrastructure_score: score,
      provider_score: provider,
      consumer_score: consumer,
      tier,
      dominant_pattern: pattern,
      in_degree: own.inDegree,
      out_degree: own.outDegree,
      betweenness_centrality: round(own.betweenness, 4),
      consumer_ratio: round(consumerRatio(own), 2),
      inbound_connections: inbound[node]!,
      outbound_connections: outbound[node]!,
      total_connections: own.totalConnections,
      consumed_by: pick(keys, incoming, node),
      consumes: pick(keys, outgoing, node),
    }
  })
  // The rows are already in the order of their keys, and the sort is stable.
  rows.sort((a, b) => b.infrastructure_score - a.infrastructure_score)
  const count = (tier: Tier) => rows.filter((row) => row.tier === tier).length
  return {
    rows,
    edges: edges.from.length,
    tier_counts: {
      core_infrastructure: count('Core Infrastructure'),
      shared_service: count('Shared Service'),
      standard_application: count('Standard Application'),
    },
  }
}

/**
 * Returns the edges between different nodes that have enough connections, and the nodes that they connect. `given`
 * contains the indices of these nodes in `graph`.
 */
function keepBusyEdges({ nodes, edges }: AppGraph, minConnections: number): AppGraph & { given: Uint32Array } {
  const busy = filterEdges(
    edges,
    (edge) => edges.from[edge] !== edges.to[edge] && edges.connections[edge]! >= minConnections,
  )
  const joined = new Uint8Array(nodes.length)
  for (const ends of [busy.from, busy.to]) for (const node of ends) joined[node] = 1
  const given = Uint32Array.from(nodes.keys()).filter((node) => joined[node] === 1)
  const places = new Uint32Array(nodes.length)
  for (const [place, node] of given.entries()) places[node] = place
  const renumber = (ends: Uint32Array) => ends.map((node) => places[node]!)
  return {
    given,
    nodes: Array.from(given, (node) => nodes[node]!),
    edges: { from: renumber(busy.from), to: renumber(busy.to), connections: busy.connections },
  }
}

const pick = (keys: readonly string[], { starts, targets }: Adjacency, node: number) =>
  Array.from(targets.subarray(starts[node], starts[node + 1]), (other) => keys[other]!)

export type Tier = 'Core Infrastructure' | 'Shared Service' | 'Standard Application'

/** The measures from which the score of one node is computed. */
interface NodeMeasures {
  inDegree: number
  outDegree: number
  /** A value from 0 to 1. */
  betweenness: number
  /** Sum of inbound and outbound connections. */
  totalConnections: number
}

interface InfrastructureScore {
  /** The greater of the scores as provider and as consumer after deductions, from 0 to 100 with one decimal. */
  score: number
  /** The scores as provider and as consumer before deductions, from 0 to 100 with one decimal. */
  provider: number
  consumer: number
  pattern: 'provider' | 'consumer'
  tier: Tier
}

/** Returns the maximum of each measure over all nodes, with which the score compares each node. */
function greatestOf(all: readonly NodeMeasures[]): NodeMeasures {
  const greatest: NodeMeasures = { inDegree: 0, outDegree: 0, betweenness: 0, totalConnections: 0 }
  for (const measures of all) {
    for (const name of Object.keys(greatest) as (keyof NodeMeasures)[])
      greatest[name] = Math.max(greatest[name], measures[name])
  }
  return greatest
}

/** Tolerance for comparing sums, because sums that are mathematically equal may differ in the last bit. */
const EQUAL_WITHIN = 1e-9

/**
 * Scores how much a node serves as infrastructure for others (T17). Two things lower the score: providing as well as
 * consuming, because such a node is in the middle of a chain, and not being in production, because the node then
 * matters less. The tier is derived from the rounded score, so that it agrees with the displayed one.
 */
export function scoreInfrastructure(
  node: NodeMeasures,
  greatest: NodeMeasures,
  isProduction: boolean,
): InfrastructureScore {
  const share = (name: keyof NodeMeasures) => (greatest[name] === 0 ? 0 : (100 * node[name]) / greatest[name])
  const both = 0.25 * share('betweenness') + 0.05 * share('totalConnections')
  const consumed = consumerRatio(node)
  const provider = 0.4 * share('inDegree') + 0.3 * consumed * 100 + both
  const consumer = 0.4 * share('outDegree') + 0.3 * (1 - consumed) * 100 + both
  const lesser = Math.min(node.inDegree, node.outDegree)
  const score = round((Math.max(provider, consumer) / (1 + 0.3 * lesser)) * (isProduction ? 1 : 0.5), 1)
  return {
    score,
    provider: round(provider, 1),
    consumer: round(consumer, 1),
    pattern: provider >= consumer - EQUAL_WITHIN ? 'provider' : 'consumer',
    tier: score >= 75 ? 'Core Infrastructure' : score >= 50 ? 'Shared Service' : 'Standard Application',
  }
}

/** Returns the share of incoming edges among all edges of a node, from 0 to 1. The node must have an edge. */
const consumerRatio = ({ inDegree, outDegree }: NodeMeasures): number => inDegree / (inDegree + outDegree)

export function round(value: number, decimals: number): number {
  const unit = 10 ** decimals
  return Math.round(value * unit) / unit
}
