import { dropsOf, ENFORCEMENT_MODES, isMode, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import type { CuttingRule } from './apply-change.js'
import { compileByDestination } from './compile-rules.js'
import { createConnectionJudge, dropsBy, standsForOthers, type Connection } from './judge-connection.js'
import type { PolicySnapshot } from './load-snapshot.js'
import { anyOf, both, isUnknown, not, unknown, type Answer } from './three-valued.js'

/**
 * The possible effects of a policy change on traffic to which the changed rules may apply. `cut_once_enforced`: the
 * traffic passes in the present modes of its ends, but the change would cut it if one or both were in a stricter mode.
 * `cut_if_alone`: the change cuts the traffic if it is provisioned without other pending changes. `draft_only`: the
 * change makes a difference in the draft only, because the active policy drops the traffic anyway.
 */
export const CUT_FATES = [
  'cut',
  'cut_once_enforced',
  'cut_if_alone',
  'undecided',
  'draft_only',
  'not_affected',
] as const
export type CutFate = (typeof CUT_FATES)[number]

/** The effect of a change on one connection. If it is uncertain, `undecided` has the reasons. */
export interface CutVerdict {
  fate: CutFate
  undecided: Answer
}

/** The policies that are compared to determine the effect of a change. */
export interface ComparedPolicies {
  /** The draft without the change. */
  was: PolicySnapshot
  /** The draft with the change. */
  is: PolicySnapshot
  /**
   * The policies without the draft's other pending changes; null if there are no other changes, so that draft and
   * active policy are the same. `active` is the active policy. `was` and `is` are the policies that would be in force
   * if only the changed object were provisioned, without and with the change.
   */
  pending: { active: PolicySnapshot; was: PolicySnapshot; is: PolicySnapshot } | null
}

/**
 * Returns the judge of a policy. A caller with many changes keeps the judges, because creating one takes work on the
 * whole policy.
 */
export type JudgeOf = (policy: PolicySnapshot) => ReturnType<typeof createConnectionJudge>

/** Returns a function that creates the judge of each policy only once, however often it is called. */
export function keepJudges(): JudgeOf {
  const judges = new WeakMap<PolicySnapshot, ReturnType<JudgeOf>>()
  return (policy) => {
    const judge = judges.get(policy) ?? createConnectionJudge(policy)
    judges.set(policy, judge)
    return judge
  }
}

/** Returns the present mode of an end, followed by all modes that drop more traffic. */
const modesFrom = (mode: EndMode): readonly EndMode[] =>
  isMode(mode) ? [mode, ...ENFORCEMENT_MODES.filter((other) => dropsOf(other) > dropsOf(mode))] : [mode]

/**
 * Creates a function that returns true if any of the given rules, through which a change may cut traffic, may match a
 * connection.
 */
export function createConcern(cutting: readonly CuttingRule[]): (connection: Connection) => boolean {
  const compiled = [...new Set(cutting.map(({ policy }) => policy))].map((policy) =>
    compileByDestination(
      cutting.filter((rule) => rule.policy === policy).map(({ placed }) => placed),
      policy,
    ),
  )
  return ({ source, destination, port, proto }) =>
    standsForOthers(source) ||
    standsForOthers(destination) ||
    compiled.some((matchesOf) =>
      matchesOf(destination).some(
        (match) => match.atDestination(source, port, proto) !== 'no' || match.atSource(source, port, proto) !== 'no',
      ),
    )
}

/**
 * Creates a function that determines whether a change cuts a connection. It compares what the draft decides without and
 * with the change, in the modes that `modeOf` returns. It decides like explain-flow and ignores the decisions that the
 * PCE recorded. If the active policy differs from the draft, a connection is cut only if the active policy lets it
 * pass.
 */
export function createCutJudge(
  { was, is, pending }: ComparedPolicies,
  modeOf: (end: FlowEnd) => EndMode,
  judgeOf: JudgeOf = createConnectionJudge,
): (connection: Connection) => CutVerdict {
  const policies = pending === null ? [was, is] : [was, is, pending.active, pending.was, pending.is]
  const createJudges = policies.map((policy) => judgeOf(policy))
  return (connection) => {
    const judges = createJudges.map((createJudge) => createJudge(connection))
    const dropsAt = (side: Side, end: FlowEnd) =>
      modesFrom(modeOf(end)).map((mode) => judges.map((judge) => dropsBy(judge(side, mode))))
    const [atSource, atDestination] = [dropsAt('src', connection.source), dropsAt('dst', connection.destination)]
    // Every combination of the two ends' modes is compared: an end that drops the connection before and after the
    // change hides the change's effect at the other end.
    const stages = atSource.flatMap((src) =>
      atDestination.map((dst) => {
        const drops = src.map((one, at) => anyOf([one, dst[at] as Answer]))
        const [before, after, active = before, aloneBefore = before, aloneAfter = after] = drops as [Answer, Answer]
        const draft = compare(before, after)
        const passesToday = not(active)
        return {
          draft,
          whole: both(draft, passesToday),
          alone: both(compare(aloneBefore, aloneAfter), passesToday),
        }
      }),
    )
    const [now, ...later] = stages.map(({ whole }) => whole) as [Answer, ...Answer[]]
    if (now === 'yes') return { fate: 'cut', undecided: 'no' }
    if (isUnknown(now)) return { fate: 'undecided', undecided: now }
    const once = anyOf(later)
    if (once === 'yes') return { fate: 'cut_once_enforced', undecided: 'no' }
    const alone = anyOf(stages.map((stage) => stage.alone))
    if (alone === 'yes') return { fate: 'cut_if_alone', undecided: 'no' }
    const open = anyOf([once, alone])
    if (isUnknown(open)) return { fate: 'undecided', undecided: open }
    const isDraft = stages.some(({ draft }) => draft !== 'no')
    return { fate: isDraft ? 'draft_only' : 'not_affected', undecided: 'no' }
  }
}

const P51_ALONE = unknown('selective_outbound')

/** Returns whether a connection that is not dropped before the change is dropped after it. */
function compare(before: Answer, after: Answer): Answer {
  // If the same unconfirmed fact about the PCE is the only reason why both answers are undecided, the answers are equal
  // whether or not the fact is true.
  if (before === 'yes' || after === 'no' || (before === P51_ALONE && after === P51_ALONE)) return 'no'
  return isUnknown(before) || isUnknown(after) ? anyOf([before, after].filter(isUnknown)) : 'yes'
}
