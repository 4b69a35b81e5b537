export type Tier = 'Core Infrastructure' | 'Shared Service' | 'Standard Application'

/** What the score of a node is made of. */
export interface NodeMeasures {
  inDegree: number
  outDegree: number
  /** 0..1. */
  betweenness: number
  /** Connections in and out. */
  totalConnections: number
}

export interface InfrastructureScore {
  /** 0..100, one decimal: the greater of the two below after the deductions. */
  score: number
  /** 0..100, one decimal, before any deduction. */
  provider: number
  consumer: number
  pattern: 'provider' | 'consumer'
  tier: Tier
}

/** The greatest of each measure, which scores 100. */
export function greatestOf(all: readonly NodeMeasures[]): NodeMeasures {
  const greatest: NodeMeasures = { inDegree: 0, outDegree: 0, betweenness: 0, totalConnections: 0 }
  for (const measures of all) {
    for (const name of Object.keys(greatest) as (keyof NodeMeasures)[])
      greatest[name] = Math.max(greatest[name], measures[name])
  }
  return greatest
}

/** Two sums that are equal on paper may differ in their last bit. */
const EQUAL_WITHIN = 1e-9

/**
 * How much a node is infrastructure to others (tools contract, B6). A node that both provides and consumes is an application on
 * the way of something rather than its end, and one outside production matters less: both lower the score. The tier is that of the
 * rounded score, so that it agrees with the figure shown.
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

/** 0..1: the incoming edges among all edges of a node that has any. */
export const consumerRatio = ({ inDegree, outDegree }: NodeMeasures): number => inDegree / (inDegree + outDegree)

export function round(value: number, decimals: number): number {
  const unit = 10 ** decimals
  return Math.round(value * unit) / unit
}
