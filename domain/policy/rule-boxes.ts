import type { Box, Dimensions } from './boxes.js'
import { createAddresses } from './rule-boxes/address-boxes.js'
import { createBits } from './rule-boxes/bits.js'
import { type Breadth, measureBreadth } from './rule-boxes/breadth.js'
import { ALL_NETWORKS, type Conditions, ambiguitiesOfNetwork, conditionsOf } from './rule-boxes/condition-boxes.js'
import { type NamedEnd, createEnds } from './rule-boxes/end-boxes.js'
import { createLabels } from './rule-boxes/label-boxes.js'
import type { Ambiguity, Reading, WrittenEnd } from './rule-boxes/readings.js'
import { createServices } from './rule-boxes/service-boxes.js'
import type { RuleInForce } from './rule-in-force.js'
import { type Steps, finishAtOnce } from '../text/pace-work.js'

/** The space of all connections, in which rules are boxes. */
export interface RuleSpace {
  dimensions: Dimensions
  /** Returns the connections about which a rule decides at one of their ends. */
  boxesOf(rule: RuleInForce, end: WrittenEnd, reading: Reading): Box[]
  /**
   * Determines whether a rule covers any address, or everything. Such a rule is worth a warning, whatever other rules
   * say.
   */
  breadthOf(rule: RuleInForce): Breadth
  /**
   * What a comparison of two boxes of this space costs, as a multiple of what it costs in a small space, because masks
   * are as long as a dimension has values. The number of steps of a comparison is divided by it.
   */
  stepCost: number
  /**
   * False if determining which patterns of domain names contain which would have taken too long. Then a box that is
   * covered is covered for certain, and a box that is not covered may be covered nevertheless.
   */
  isComplete: boolean
  /** The ambiguities that have occurred in the rules whose boxes were read so far. */
  ambiguities: ReadonlySet<Ambiguity>
}

/** Number of values that a mask may have before comparing it takes longer than everything around it. */
const VALUES_PER_COST = 16_384

/** Creates a space of rules without a pause; otherwise like `createRuleSpaceInSteps`. */
export const createRuleSpace = (rules: readonly RuleInForce[]): RuleSpace => finishAtOnce(createRuleSpaceInSteps(rules))

/**
 * Creates a space in which the given rules can be compared. The rules determine its values: two addresses that are on
 * the same lists of these rules are one value, and so are two ports that are in the same services.
 */
export function* createRuleSpaceInSteps(rules: readonly RuleInForce[]): Steps<RuleSpace> {
  const ambiguities = new Set<Ambiguity>(rules.flatMap(ambiguitiesOfNetwork))
  const bit = createBits()
  const addresses = yield* createAddresses(rules, bit)
  const services = yield* createServices(rules, bit)
  const { endsOf } = createEnds(addresses, createLabels(rules, bit, ambiguities), bit, ambiguities)

  /** Lists the pairs of ends that a rule names, in each scope of its rule set. */
  const pairsOf = (placed: RuleInForce, reading: Reading): Pair[] => {
    const { rule, scopes } = placed
    const { virtual, plain } = conditionsOf(placed, services, bit, reading)
    if (scopes.length === 0) ambiguities.add('no_scope')
    const within = scopes.length === 0 && reading.has('no_scope') ? [[]] : scopes
    return within.flatMap((scope) => {
      const sources = endsOf(placed, 'consumers', rule.unscoped_consumers === true ? [] : scope, reading)
      return endsOf(placed, 'providers', scope, reading).flatMap((dst) =>
        sources
          // No rule decides about connections from a workload to itself.
          .filter((src) => src.self === undefined || src.self !== dst.self)
          .map((src) => ({ src, dst, conditions: dst.isVirtual ? virtual : plain })),
      )
    })
  }

  return {
    dimensions: new Map([
      ['network', ALL_NETWORKS],
      ['src.ip', addresses.all],
      ['dst.ip', addresses.all],
    ]),
    stepCost: 1 + Math.floor(addresses.values / VALUES_PER_COST),
    isComplete: addresses.isComplete,
    ambiguities,
    boxesOf: (placed, end, reading) =>
      pairsOf(placed, reading)
        .filter((pair) => pair[end].isWritten)
        .flatMap(toBoxes),
    breadthOf: (placed) =>
      // Pairs of addresses count here, although such a rule is written for neither end and decides nothing.
      measureBreadth(placed.rule, () => pairsOf(placed, new Set()).flatMap(toBoxes), addresses.isMost),
  }
}

interface Pair {
  src: NamedEnd
  dst: NamedEnd
  conditions: Conditions['plain']
}

const toBoxes = ({ src, dst, conditions }: Pair): Box[] =>
  conditions.map((one) => new Map([...atEnd('src', src.box), ...atEnd('dst', dst.box), ...one]))

const atEnd = (end: WrittenEnd, box: Box) => [...box].map(([dimension, mask]) => [`${end}.${dimension}`, mask] as const)
