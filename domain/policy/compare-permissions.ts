import type { ChangeEffect } from '../../schemas/policy-changes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { type Allowance, type Box, TooManySteps, isCovered } from './boxes.js'
import { type Reading, type RuleInForce, type RuleSpace, type WrittenEnd, createRuleSpace } from './rule-boxes.js'
import type { RuleType } from './rule-type.js'
import type { Reason } from './three-valued.js'

/** What replacing some rules by others does, whatever other rules there are: each is true where some other rules let it happen. */
export interface Movement {
  /** A connection becomes permitted. */
  opens: boolean
  /** A connection is no longer permitted. */
  closes: boolean
  /** Why it may be less than both; empty where it is known. */
  because: readonly Reason[]
}

export const UNMOVED: Movement = { opens: false, closes: false, because: [] }

/** What cannot be told: it may open and close. */
export const unknownMovement = (...because: Reason[]): Movement => ({ opens: true, closes: true, because })

/** The effect in one word; undefined where it opens and closes, so that other rules decide what is left of either. */
export function effectOf({ opens, closes }: Movement): ChangeEffect | undefined {
  if (opens && closes) return undefined
  return opens ? 'widening' : closes ? 'narrowing' : 'neutral'
}

/** What may happen where one of several movements does. */
export function joinMovements(movements: readonly Movement[]): Movement {
  return {
    opens: movements.some(({ opens }) => opens),
    closes: movements.some(({ closes }) => closes),
    because: [...new Set(movements.flatMap(({ because }) => because))].sort(),
  }
}

/** About a tenth of a second; rules that need more are rare, and nobody could follow the answer. */
const MOST_STEPS = 400_000
/** Of all rules, in each version. */
const MOST_BOXES = 20_000

/**
 * What becomes permitted, and what is no longer, when one set of rules takes the place of another (D90). At an end, rules put a
 * connection on one of four steps, from the hardest to the mildest: override deny, deny, nothing, allow (P50). A step towards milder
 * opens it beside some other rules, a step towards harder closes it beside some. What no source defines is read both ways, and
 * what happens in either counts.
 */
export function compareRules(before: readonly RuleInForce[], after: readonly RuleInForce[]): Movement {
  const space = createRuleSpace([...before, ...after])
  try {
    const allowance = { steps: MOST_STEPS }
    const first = compareIn(space, before, after, new Set(), allowance)
    const readings = subsetsOf([...space.ambiguities]).filter(({ size }) => size > 0)
    const movement = joinMovements([
      first,
      ...readings.map((reading) => compareIn(space, before, after, reading, allowance)),
    ])
    return movement.opens && movement.closes ? { ...movement, because: findReasons(space, before, after) } : movement
  } catch (error) {
    if (!(error instanceof TooManySteps)) throw error
    return unknownMovement('size')
  }
}

/** The boxes of rules of one type, with the rule that each is of. */
type Boxes = readonly { box: Box; owner: string }[]
type Level = Record<RuleType, Boxes>

function compareIn(
  space: RuleSpace,
  before: readonly RuleInForce[],
  after: readonly RuleInForce[],
  reading: Reading,
  allowance: Allowance,
): Movement {
  const isOutside = (boxes: Boxes, ...others: readonly Boxes[]): boolean => {
    const all = others.flat()
    const covering = all.map(({ box }) => box)
    const byOwner = new Map<string, Box[]>()
    for (const { box, owner } of all) byOwner.set(owner, [...(byOwner.get(owner) ?? []), box])
    return boxes.some(({ box, owner }) => {
      // Most often a box lies in what its own rule was, or will be.
      const own = byOwner.get(owner) ?? []
      const isIn = (some: readonly Box[]) => isCovered(box, some, space.dimensions, allowance)
      return !isIn(own) && !isIn(covering)
    })
  }
  const moves = (from: Level, to: Level) =>
    isOutside(from.override_deny, to.override_deny) ||
    isOutside(to.allow, from.allow, from.override_deny, to.override_deny) ||
    isOutside(from.deny, to.deny, from.allow, to.allow, from.override_deny, to.override_deny)
  return joinMovements(
    (['dst', 'src'] as const).map((end) => {
      const [was, is] = [before, after].map((rules) => readLevel(space, rules, end, reading)) as [Level, Level]
      return { opens: moves(was, is), closes: moves(is, was), because: [] }
    }),
  )
}

function readLevel(space: RuleSpace, rules: readonly RuleInForce[], end: WrittenEnd, reading: Reading): Level {
  const level: Record<RuleType, { box: Box; owner: string }[]> = { allow: [], deny: [], override_deny: [] }
  let boxes = 0
  for (const rule of rules) {
    const own = space.boxesOf(rule, end, reading)
    boxes += own.length
    if (boxes > MOST_BOXES) throw new TooManySteps()
    const owner = toDraftHref(rule.rule.href)
    for (const box of own) level[rule.type].push({ box, owner })
  }
  return level
}

/** Why it is not known where rules differ in something that can only be compared with itself. */
function findReasons(space: RuleSpace, before: readonly RuleInForce[], after: readonly RuleInForce[]): Reason[] {
  const read = (rules: readonly RuleInForce[]) => new Map(rules.flatMap((rule) => [...space.opaqueOf(rule)]))
  const [was, is] = [read(before), read(after)]
  const differing = [...[...was].filter(([what]) => !is.has(what)), ...[...is].filter(([what]) => !was.has(what))]
  return [...new Set(differing.map(([, reason]) => reason))].sort()
}

/** Every set of some of these, the empty one first. */
export function subsetsOf<T>(items: readonly T[]): Set<T>[] {
  return items.reduce<Set<T>[]>(
    (found, item) => [...found, ...found.map((subset) => new Set([...subset, item]))],
    [new Set()],
  )
}
