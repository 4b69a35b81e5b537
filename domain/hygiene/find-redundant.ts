import { type Allowance, type Box, TooManySteps, isCovered } from '../policy/boxes.js'
import { type RuleSpace, createRuleSpace } from '../policy/rule-boxes.js'
import type { Reading, WrittenEnd } from '../policy/rule-boxes/readings.js'
import type { RuleInForce } from '../policy/rule-in-force.js'
import { DECIDING_ORDER, type RuleType } from '../policy/rule-type.js'
import { subsetsOf } from '../policy/compare-permissions.js'
import type { Steps } from '../text/pace-work.js'
import { compareTexts } from '../text/compare-texts.js'
import { type BoxIndex, type OwnedBox, indexBoxes } from './box-index.js'

/**
 * The ways in which a rule can be redundant. All redundant rules can be removed together without changing any decision.
 */
export type RedundantKind = 'duplicate' | 'covered' | 'always_denied' | 'always_allowed' | 'names_nobody'

/** A redundant rule, and the rules that make it redundant. */
export interface Redundancy {
  kind: RedundantKind
  /** Index of the rule in the list of rules. */
  rule: number
  /**
   * Indices of the rules that together decide about every connection of this rule. The list is minimal, unless the
   * search for a smaller list had to be cut short.
   */
  by: readonly number[]
}

export interface RedundantRules {
  redundant: Redundancy[]
  /** Indices of allow rules that allow everything from everywhere to everywhere. */
  anyToAny: number[]
  /**
   * Rules that may be redundant. It cannot be decided, because no source defines how the PCE behaves (`unclear`), or
   * because the computation would take too long (`size`).
   */
  undecided: { rule: number; because: 'unclear' | 'size' }[]
}

/** A rule with its creation time. Of two equal rules, the older one counts as needed and the newer one as redundant. */
export interface DatedRule extends RuleInForce {
  since: string
}

const ENDS = ['dst', 'src'] as const
/** The dimensions that stand for domain names. */
const NAMES = ['dst.fqdn', 'src.fqdn']
/**
 * Returns the given type of rule and all types that take precedence over it. A rule has no effect if rules of these
 * types decide about all its connections.
 */
const decidersOf = (type: RuleType) => DECIDING_ORDER.slice(0, DECIDING_ORDER.indexOf(type) + 1)
/**
 * Maximum numbers of steps: for a single rule (about a twentieth of a second), and for all rules together. They ensure
 * that the search ends even if all rules overlap. A step with long masks counts several times.
 */
const MOST_STEPS = 100_000
const MOST_STEPS_IN_ALL = 40_000_000
/** Maximum number of steps for the few rules that a call is about to write. It is low, because the caller waits. */
const MOST_STEPS_AMONG = 4_000_000
/** Maximum number of rules in a proof of redundancy that is shortened rule by rule. */
const MOST_IN_PROOF = 40

/**
 * Finds the rules that change nothing. Rules are examined from newest to oldest, and each is compared with the rules
 * not found redundant so far. Therefore all rules found can be removed together, and of several equal rules the oldest
 * one stays. A rule is redundant if other rules, of its type or of a type that takes precedence, decide about all its
 * connections at both ends, as far as the PCE sends the rule to these ends. Where the behaviour of the PCE is not
 * documented, this must be true for every possible behaviour.
 */
export function* findRedundantRules(rules: readonly DatedRule[]): Steps<RedundantRules> {
  const space = yield* createRuleSpace(rules)
  const found = yield* searchRules(space, rules, [...rules.keys()], MOST_STEPS_IN_ALL)
  const anyToAny: number[] = []
  for (const [at, rule] of rules.entries()) {
    if (rule.type === 'allow' && space.breadthOf(rule).anyToAny) anyToAny.push(at)
    if (at % 50 === 0) yield
  }
  return { ...found, anyToAny }
}

/**
 * Searches only the examined rules for rules that change nothing, but compares them with all rules. Apart from that, it
 * works like `findRedundantRules`.
 * @param examined indices of the examined rules.
 */
export function* findRedundantAmong(
  rules: readonly DatedRule[],
  examined: readonly number[],
): Steps<Omit<RedundantRules, 'anyToAny'>> {
  return yield* searchRules(yield* createRuleSpace(rules), rules, examined, MOST_STEPS_AMONG)
}

function* searchRules(
  space: RuleSpace,
  rules: readonly DatedRule[],
  examined: readonly number[],
  mostSteps: number,
): Steps<Omit<RedundantRules, 'anyToAny'>> {
  const boxes = yield* readBoxes(space, rules)
  const search = createSearch(space, rules, boxes)
  const left = new Set(rules.keys())
  const found: Omit<RedundantRules, 'anyToAny'> = { redundant: [], undecided: [] }
  const redundant: number[] = []
  const total = { steps: mostSteps / space.stepCost }
  const newestFirst = examined.toSorted((a, b) => compareAge(rules[b] as DatedRule, rules[a] as DatedRule))
  for (const rule of newestFirst) {
    yield
    left.delete(rule)
    const answer = total.steps < 0 ? 'size' : search.isRedundant(rule, left, total)
    if (answer === 'yes') redundant.push(rule)
    else left.add(rule)
    if (answer === 'unclear' || answer === 'size') found.undecided.push({ rule, because: answer })
  }
  // A rule that covers another one may itself be found redundant later. Therefore the proofs are built last, and only
  // from rules that are not redundant.
  for (const rule of redundant) {
    yield
    found.redundant.push(search.prove(rule, left))
  }
  return found
}

const compareAge = (a: DatedRule, b: DatedRule) =>
  compareTexts(a.since, b.since) || compareHrefs(a.rule.href, b.rule.href)

/**
 * Returns the id at the end of an href. Ids are usually ascending numbers, so they show which of two rules is older.
 */
const idOf = (href: string) => href.slice(href.lastIndexOf('/') + 1)
const compareHrefs = (a: string, b: string) =>
  idOf(a).length - idOf(b).length || compareTexts(idOf(a), idOf(b)) || compareTexts(a, b)

type EndBoxes = Record<WrittenEnd, readonly Box[]>

const NOTHING_OPEN: Reading = new Set()

function* readBoxes(space: RuleSpace, rules: readonly DatedRule[]): Steps<EndBoxes[]> {
  const boxes: EndBoxes[] = []
  for (const rule of rules) {
    boxes.push(boxesIn(space, rule, NOTHING_OPEN))
    if (boxes.length % 20 === 0) yield
  }
  return boxes
}

const boxesIn = (space: RuleSpace, rule: RuleInForce, reading: Reading): EndBoxes => ({
  dst: space.boxesOf(rule, 'dst', reading),
  src: space.boxesOf(rule, 'src', reading),
})

type Verdict = 'yes' | 'no' | 'unclear' | 'size'

function createSearch(space: RuleSpace, rules: readonly DatedRule[], boxes: readonly EndBoxes[]) {
  const indexOf = (end: WrittenEnd): BoxIndex =>
    indexBoxes(boxes.flatMap((own, owner) => own[end].map((box): OwnedBox => ({ box, owner }))))
  const index = { dst: indexOf('dst'), src: indexOf('src') }
  const mostSteps = MOST_STEPS / space.stepCost
  const readings = [...subsetsOf([...space.ambiguities])].filter(({ size }) => size > 0)
  const otherwise = new Map<Reading, Map<number, EndBoxes>>(readings.map((reading) => [reading, new Map()]))
  const boxesOf = (rule: number, reading: Reading): EndBoxes => {
    const known = otherwise.get(reading)
    if (known === undefined) return boxes[rule] as EndBoxes
    const own = known.get(rule) ?? boxesIn(space, rules[rule] as DatedRule, reading)
    known.set(rule, own)
    return own
  }
  /** Returns true if the other rules together decide about every connection of the rule. */
  const areEnough = (rule: number, others: readonly number[], reading: Reading, allowance: Allowance): boolean => {
    const own = boxesOf(rule, reading)
    return ENDS.every((end) => {
      const theirs = others.flatMap((other) => boxesOf(other, reading)[end])
      return own[end].every((box) => isCovered(box, theirs, space.dimensions, allowance))
    })
  }
  const isEnough = (rule: number, others: readonly number[], allowance: Allowance): boolean => {
    try {
      return [NOTHING_OPEN, ...readings].every((reading) => areEnough(rule, others, reading, allowance))
    } catch (error) {
      if (!(error instanceof TooManySteps)) throw error
      return false
    }
  }

  /** Returns the rules in `among` that may decide about some of this rule's connections. */
  const neighboursOf = (rule: number, among: ReadonlySet<number>, types: readonly RuleType[]): number[] => {
    const found = new Set<number>()
    for (const end of ENDS)
      for (const box of (boxes[rule] as EndBoxes)[end])
        for (const { owner } of index[end].near(box))
          if (owner !== rule && among.has(owner) && types.includes((rules[owner] as DatedRule).type)) found.add(owner)
    return [...found].sort((a, b) => a - b)
  }
  const typesFor = (rule: number) => decidersOf((rules[rule] as DatedRule).type)

  /**
   * A cheap test that returns false for most rules, because most have a connection about which no other rule decides.
   * Returns true if the rule may be redundant.
   */
  const isCoveredAtAll = (rule: number, among: ReadonlySet<number>, allowance: Allowance): boolean => {
    const types = typesFor(rule)
    return ENDS.every((end) =>
      (boxes[rule] as EndBoxes)[end].every((box) => {
        const near = index[end].near(box)
        allowance.steps -= near.length
        if (allowance.steps < 0) throw new TooManySteps()
        const others = near.filter(
          ({ owner }) => owner !== rule && among.has(owner) && types.includes((rules[owner] as DatedRule).type),
        )
        return isCovered(
          box,
          others.map((one) => one.box),
          space.dimensions,
          allowance,
        )
      }),
    )
  }

  /** Returns false if domain name patterns that were not compared might cover the rule. */
  const isDecided = (rule: number) =>
    space.isComplete ||
    !ENDS.some((end) => (boxes[rule] as EndBoxes)[end].some((box) => NAMES.some((one) => box.has(one))))

  function isRedundant(rule: number, among: ReadonlySet<number>, total: Allowance): Verdict {
    const allowance = { steps: mostSteps }
    try {
      if (!isCoveredAtAll(rule, among, allowance)) return isDecided(rule) ? 'no' : 'size'
      const neighbours = neighboursOf(rule, among, typesFor(rule))
      return readings.every((reading) => areEnough(rule, neighbours, reading, allowance)) ? 'yes' : 'unclear'
    } catch (error) {
      if (!(error instanceof TooManySteps)) throw error
      return 'size'
    } finally {
      total.steps -= mostSteps - Math.max(0, allowance.steps)
    }
  }

  const namesNobody = (rule: number) =>
    [NOTHING_OPEN, ...readings].every((reading) => ENDS.every((end) => boxesOf(rule, reading)[end].length === 0))

  /**
   * Finds a small set of rules that makes a rule redundant. It tries single rules first, and then a larger set from
   * which unnecessary rules are dropped one by one.
   */
  function prove(rule: number, among: ReadonlySet<number>): Redundancy {
    const { type } = rules[rule] as DatedRule
    if (namesNobody(rule)) return { kind: 'names_nobody', rule, by: [] }
    // Each check in a proof may take as many steps as it took at most to find the rule redundant. When the steps are
    // used up, no further rules are dropped, so the proof may name more rules than necessary.
    const asking = () => {
      const allowance = { steps: mostSteps }
      return (others: readonly number[], of = rule) => isEnough(of, others, allowance)
    }
    const alike = neighboursOf(rule, among, [type])
    const isAlone = asking()
    const singles = alike.filter((one) => isAlone([one]))
    const isEqual = asking()
    const equal = singles.find((one) => isEqual([rule], one))
    const single = equal ?? singles[0]
    if (single !== undefined) return { kind: equal === undefined ? 'covered' : 'duplicate', rule, by: [single] }
    const all = neighboursOf(rule, among, typesFor(rule))
    const before = all.filter((one) => (rules[one] as DatedRule).type !== type)
    const start = before.length > 0 && asking()(before) ? before : asking()(alike) ? alike : all
    const by = leaveOut(start, asking())
    return { kind: kindOf(type, by, start === before), rule, by }
  }
  const kindOf = (type: RuleType, by: readonly number[], isBefore: boolean): RedundantKind => {
    if (!isBefore) return 'covered'
    const denies = by.every((one) => (rules[one] as DatedRule).type === 'override_deny')
    return denies ? (type === 'allow' ? 'always_denied' : 'covered') : 'always_allowed'
  }

  return { isRedundant, prove }
}

/**
 * Shortens a list of rules that together make another rule redundant. Returns a single rule if one is enough, otherwise
 * the list without the rules that are not needed. A list with more than `MOST_IN_PROOF` rules is not shortened rule by
 * rule.
 */
function leaveOut(list: readonly number[], isEnough: (rest: readonly number[]) => boolean): number[] {
  const single = list.find((one) => isEnough([one]))
  if (single !== undefined) return [single]
  let left = [...list]
  if (left.length > MOST_IN_PROOF) return left
  for (const one of list) {
    const rest = left.filter((other) => other !== one)
    if (isEnough(rest)) left = rest
  }
  return left
}
