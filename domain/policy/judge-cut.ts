import { dropsOf, ENFORCEMENT_MODES, isMode, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import type { CuttingRule } from './apply-change.js'
import { compileByDestination } from './compile-rules.js'
import { createConnectionJudge, dropsBy, standsForOthers, type Connection } from './judge-connection.js'
import type { PolicySnapshot } from './load-snapshot.js'
import { anyOf, both, isUnknown, not, unknown, type Answer } from './three-valued.js'

/**
 * What a change of policy does to traffic that its rules concern. `cut_once_enforced`: nothing that enforces policy
 * today drops it, but with one or both ends in a stricter mode it would be dropped, and only because of the change.
 * `cut_if_alone`: only other changes that are not provisioned keep it. `draft_only`: active policy drops it, too.
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

/** The fate of a connection, and why it is undecided if it is. */
export interface CutVerdict {
  fate: CutFate
  undecided: Answer
}

/** What a change is judged by. */
export interface ComparedPolicies {
  /** The draft without the change. */
  was: PolicySnapshot
  /** The draft with the change. */
  is: PolicySnapshot
  /**
   * Active policy, and what would be in force without and with the change if only its object were provisioned. Null if
   * the draft has no other changes, so that it is active policy.
   */
  pending: { active: PolicySnapshot; was: PolicySnapshot; is: PolicySnapshot } | null
}

/** Returns the mode of an end today, and then all modes that enforce more. */
const modesFrom = (mode: EndMode): readonly EndMode[] =>
  isMode(mode) ? [mode, ...ENFORCEMENT_MODES.filter((other) => dropsOf(other) > dropsOf(mode))] : [mode]

/** Creates the function that returns whether any of the rules by which a change may cut can concern a connection. */
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
 * Creates the judge of what a change cuts: it compares what the draft decides about a connection without and with the
 * change, as explain-flow would, in the modes of `modeOf` and whatever the PCE recorded. Where active policy differs from
 * the draft, only what active policy lets pass is cut.
 */
export function createCutJudge(
  { was, is, pending }: ComparedPolicies,
  modeOf: (end: FlowEnd) => EndMode,
): (connection: Connection) => CutVerdict {
  const policies = pending === null ? [was, is] : [was, is, pending.active, pending.was, pending.is]
  const createJudges = policies.map(createConnectionJudge)
  return (connection) => {
    const judges = createJudges.map((createJudge) => createJudge(connection))
    const dropsAt = (side: Side, end: FlowEnd) =>
      modesFrom(modeOf(end)).map((mode) => judges.map((judge) => dropsBy(judge(side, mode))))
    const [atSource, atDestination] = [dropsAt('src', connection.source), dropsAt('dst', connection.destination)]
    // Each end has a mode of its own, because an end that drops the connection hides a loss at the other one.
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

/** Returns whether a connection that is not dropped before is dropped after. */
function compare(before: Answer, after: Answer): Answer {
  // What hangs on the same fact about the PCE and on nothing else is the same, whatever the fact is.
  if (before === 'yes' || after === 'no' || (before === P51_ALONE && after === P51_ALONE)) return 'no'
  return isUnknown(before) || isUnknown(after) ? anyOf([before, after].filter(isUnknown)) : 'yes'
}
