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
import type { Steps } from '../text/pace-work.js'

/** The space of all connections. The connections about which a rule decides form a set of boxes in it. */
export interface RuleSpace {
  dimensions: Dimensions
  /** Returns, as boxes, the connections about which a rule decides at the given end. */
  boxesOf(rule: RuleInForce, end: WrittenEnd, reading: Reading): Box[]
  /**
   * Determines whether a rule covers nearly any address or nearly any connection, and therefore deserves a warning,
   * whatever other rules there are.
   */
  breadthOf(rule: RuleInForce): Breadth
  /**
   * The cost of comparing two boxes, as a multiple of the cost in a small space. It grows with the number of values per
   * dimension, because a mask has one bit for each value. The permitted number of steps is divided by this cost.
   */
  stepCost: number
  /**
   * False if it would have taken too long to determine which domain name patterns contain which others. A box that is
   * found to be covered is then certainly covered, but other boxes may be covered too.
   */
  isComplete: boolean
  /** The ambiguities found so far in the rules that were converted to boxes. */
  ambiguities: ReadonlySet<Ambiguity>
}

/** Up to this number of values, masks add nothing noticeable to the cost of comparing two boxes. */
const VALUES_PER_COST = 16_384

/**
 * Creates a space in which the given rules can be compared. The rules determine the values of its dimensions: all
 * addresses that are on exactly the same IP lists are one value, and so are all ports that are in the same services.
 */
export function* createRuleSpace(rules: readonly RuleInForce[]): Steps<RuleSpace> {
  const ambiguities = new Set<Ambiguity>(rules.flatMap(ambiguitiesOfNetwork))
  const bit = createBits()
  const addresses = yield* createAddresses(rules, bit)
  const services = yield* createServices(rules, bit)
  const { endsOf } = createEnds(addresses, createLabels(rules, bit, ambiguities), bit, ambiguities)

  /** Lists the pairs of source and destination that a rule names within each scope of its rule set. */
  const pairsOf = (placed: RuleInForce, reading: Reading): Pair[] => {
    const { rule, scopes } = placed
    const { virtual, plain } = conditionsOf(placed, services, bit, reading)
    if (scopes.length === 0) ambiguities.add('no_scope')
    const within = scopes.length === 0 && reading.has('no_scope') ? [[]] : scopes
    return within.flatMap((scope) => {
      const sources = endsOf(placed, 'consumers', rule.unscoped_consumers === true ? [] : scope, reading)
      return endsOf(placed, 'providers', scope, reading).flatMap((dst) =>
        sources
          // No rule decides about connections of a workload to itself, so pairs of a workload with itself are left out.
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
      // Pairs of two addresses count towards the breadth of a rule. The rule has no effect on such pairs, because
      // neither end is a workload to which the PCE could send the rule.
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
