import type { ChangeEffect } from '../../schemas/policy-changes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Steps } from '../text/pace-work.js'
import { type Allowance, type Box, TooManySteps, isCovered } from './boxes.js'
import { type RuleSpace, createRuleSpace } from './rule-boxes.js'
import { opaqueOf } from './rule-boxes/opaque-parts.js'
import { type Ambiguity, type Reading, type WrittenEnd, UNSETTLED } from './rule-boxes/readings.js'
import type { RuleInForce } from './rule-in-force.js'
import type { RuleType } from './rule-type.js'
import { type Reason, assumedBy, unknown } from './three-valued.js'

/**
 * The effect of replacing some rules of a policy with new ones. The policy's other rules are not known, so `opens` or
 * `closes` is true if there is at least one possible set of other rules with which the replacement has this effect.
 */
export interface Movement {
  /** True if at least one connection becomes permitted. */
  opens: boolean
  /** True if at least one connection is no longer permitted. */
  closes: boolean
  /**
   * The reasons why the effect is uncertain; empty if it is certain. If there are reasons, `opens` and `closes` say
   * only what is possible.
   */
  because: readonly Reason[]
  /** The unconfirmed facts about the PCE on which the effect depends. */
  assumes: readonly string[]
}

export const UNMOVED: Movement = { opens: false, closes: false, because: [], assumes: [] }

/** Creates an effect that is unknown for the given reasons: the change may both open and close connections. */
export const unknownMovement = (...because: Reason[]): Movement => ({
  opens: true,
  closes: true,
  because,
  assumes: assumedBy([unknown(...because)]),
})

/**
 * Returns the word for an effect: `widening`, `narrowing` or `neutral`. Returns undefined if a change both opens and
 * closes connections, because no single word describes that.
 */
export function effectOf({ opens, closes }: Movement): ChangeEffect | undefined {
  if (opens && closes) return undefined
  return opens ? 'widening' : closes ? 'narrowing' : 'neutral'
}

/** Combines the effects of several changes that happen together. */
export function joinMovements(movements: readonly Movement[]): Movement {
  return {
    opens: movements.some(({ opens }) => opens),
    closes: movements.some(({ closes }) => closes),
    because: [...new Set(movements.flatMap(({ because }) => because))].sort(),
    assumes: [...new Set(movements.flatMap(({ assumes }) => assumes))].sort(),
  }
}

/**
 * Maximum number of steps of one comparison. This many steps take about a tenth of a second. Rules that need more steps
 * are rare, and their differences would be too complex for anyone to understand.
 */
const MOST_STEPS = 400_000
/** Maximum total number of boxes for all rules of one policy version, counted for one end of a connection. */
const MOST_BOXES = 20_000

/**
 * Determines which connections become permitted, and which cease to be permitted, when one set of rules replaces
 * another (D90). At each end, rules put a connection on one of four levels, from strictest to mildest: override deny,
 * deny, no rule, allow (P50). A connection that moves to a milder level becomes permitted in some policies with these
 * rules; one that moves to a stricter level ceases to be permitted in some of them. If the meaning of a rule is not
 * documented, the rules are compared once for each possible meaning, and the effects of all these readings count.
 */
export function* compareRules(before: readonly RuleInForce[], after: readonly RuleInForce[]): Steps<Movement> {
  const space = yield* createRuleSpace([...before, ...after])
  if (!space.isComplete) return unknownMovement('size')
  try {
    const allowance = { steps: MOST_STEPS / space.stepCost }
    const read = function* (reading: Reading): Steps<Read> {
      return { reading, movement: yield* compareIn(space, before, after, reading, allowance) }
    }
    const reads = [yield* read(new Set())]
    // The ambiguities in the rules are known only after the first reading, which converts the rules to boxes.
    for (const other of subsetsOf([...space.ambiguities])) if (other.size > 0) reads.push(yield* read(other))
    return joinReadings(reads, before, after)
  } catch (error) {
    if (!(error instanceof TooManySteps)) throw error
    return unknownMovement('size')
  }
}

interface Read {
  reading: Reading
  movement: Movement
}

/**
 * Combines the effects that a change has under all readings of its rules. If the effects differ, the result is
 * uncertain, and its reasons are the ambiguities that cause the differences. A change certainly both opens and closes
 * connections only if it does so in every reading.
 */
function joinReadings(reads: readonly Read[], before: readonly RuleInForce[], after: readonly RuleInForce[]): Movement {
  const idOf = (questions: Iterable<Ambiguity>) => [...questions].sort().join(' ')
  const known = new Map(reads.map(({ reading, movement }) => [idOf(reading), movement]))
  const decides = (question: Ambiguity) =>
    reads.some(({ reading, movement }) => {
      const other = known.get(idOf([...reading].filter((one) => one !== question)))
      return other !== undefined && (other.opens !== movement.opens || other.closes !== movement.closes)
    })
  const open = [...new Set(reads.flatMap(({ reading }) => [...reading]))].filter(decides).map((one) => UNSETTLED[one])
  const joined = joinMovements(reads.map(({ movement }) => movement))
  const assumes = [...new Set([...joined.assumes, ...open.map(({ fact }) => fact)])].sort()
  if (!joined.opens || !joined.closes) return { ...joined, assumes }
  const isMixed = reads.every(({ movement }) => movement.opens && movement.closes)
  const because = [...findReasons(before, after), ...(isMixed ? [] : open.map(({ reason }) => reason))]
  return { ...joined, because: [...new Set(because)].sort(), assumes }
}

/** The boxes of all rules of one type, each with the href of the rule it came from. */
type Boxes = readonly { box: Box; owner: string }[]
type Level = Record<RuleType, Boxes>

function* compareIn(
  space: RuleSpace,
  before: readonly RuleInForce[],
  after: readonly RuleInForce[],
  reading: Reading,
  allowance: Allowance,
): Steps<Movement> {
  const isOutside = function* (boxes: Boxes, ...others: readonly Boxes[]): Steps<boolean> {
    if (boxes.length === 0) return false
    const all = others.flat()
    const covering = all.map(({ box }) => box)
    const byOwner = new Map<string, Box[]>()
    for (const { box, owner } of all) {
      const known = byOwner.get(owner)
      if (known === undefined) byOwner.set(owner, [box])
      else known.push(box)
    }
    for (const { box, owner } of boxes) {
      yield
      // A box is usually covered by the boxes of the same rule in the other version, so these are tried first.
      const own = byOwner.get(owner) ?? []
      const isIn = (some: readonly Box[]) => isCovered(box, some, space.dimensions, allowance)
      if (!isIn(own) && !isIn(covering)) return true
    }
    return false
  }
  const moves = function* (from: Level, to: Level): Steps<boolean> {
    return (
      (yield* isOutside(from.override_deny, to.override_deny)) ||
      (yield* isOutside(to.allow, from.allow, from.override_deny, to.override_deny))
    )
  }
  const stopsDenying = (from: Level, to: Level) =>
    isOutside(from.deny, to.deny, from.allow, to.allow, from.override_deny, to.override_deny)
  const levelsAt = function* (end: WrittenEnd): Steps<[Level, Level]> {
    return [yield* readLevel(space, before, end, reading), yield* readLevel(space, after, end, reading)]
  }
  const [dst, src] = [yield* levelsAt('dst'), yield* levelsAt('src')]
  /**
   * Determines whether the change opens connections, and whether it does so only through deny rules at the sources of
   * connections. What a change closes is what the opposite change would open. Therefore, calling this with a `turn`
   * that swaps the old and the new level answers the same questions for closed connections.
   */
  const read = function* (turn: (levels: [Level, Level]) => [Level, Level]): Steps<Moved> {
    const [there, here] = [turn(dst), turn(src)]
    if ((yield* moves(...there)) || (yield* stopsDenying(...there)) || (yield* moves(...here)))
      return { is: true, isDeniedAtSource: false }
    const isDenied = yield* stopsDenying(...here)
    return { is: isDenied, isDeniedAtSource: isDenied }
  }
  const opens = yield* read((levels) => levels)
  const closes = yield* read(([was, is]) => [is, was])
  const isAtSource = opens.isDeniedAtSource || closes.isDeniedAtSource
  return {
    opens: opens.is,
    closes: closes.is,
    because: [],
    // An ordinary deny rule matters only in a mode that lets connections pass by default. What a deny rule at the
    // source of a connection does in such a mode is not known.
    assumes: isAtSource ? assumedBy([unknown('selective_outbound')]) : [],
  }
}

interface Moved {
  is: boolean
  isDeniedAtSource: boolean
}

/** Number of rules that are converted to boxes before other work may run. */
const RULES_PER_STEP = 20

function* readLevel(space: RuleSpace, rules: readonly RuleInForce[], end: WrittenEnd, reading: Reading): Steps<Level> {
  const level: Record<RuleType, { box: Box; owner: string }[]> = { allow: [], deny: [], override_deny: [] }
  let boxes = 0
  for (const [at, rule] of rules.entries()) {
    if (at % RULES_PER_STEP === 0) yield
    const own = space.boxesOf(rule, end, reading)
    boxes += own.length
    if (boxes > MOST_BOXES) throw new TooManySteps()
    const owner = toDraftHref(rule.rule.href)
    for (const box of own) level[rule.type].push({ box, owner })
  }
  return level
}

/**
 * Lists the reasons why a comparison is uncertain: parts of the rules that differ between both versions, if it is not
 * known in which version they cover more.
 */
function findReasons(before: readonly RuleInForce[], after: readonly RuleInForce[]): Reason[] {
  const read = (rules: readonly RuleInForce[]) => new Map(rules.flatMap((rule) => [...opaqueOf(rule)]))
  const [was, is] = [read(before), read(after)]
  const differing = [...[...was].filter(([what]) => !is.has(what)), ...[...is].filter(([what]) => !was.has(what))]
  return [...new Set(differing.map(([, reason]) => reason))].sort()
}

/** Lists all subsets of a set, beginning with the empty one. */
export function subsetsOf<T>(items: readonly T[]): Set<T>[] {
  return items.reduce<Set<T>[]>(
    (found, item) => [...found, ...found.map((subset) => new Set([...subset, item]))],
    [new Set()],
  )
}
