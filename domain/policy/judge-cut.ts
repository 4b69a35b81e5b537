import { dropsOf, ENFORCEMENT_MODES, isMode, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import type { CuttingRule } from './apply-change.js'
import { compileByDestination } from './compile-rules.js'
import { createConnectionJudge, dropsBy, endModeOf, standsForOthers, type Connection } from './judge-connection.js'
import type { PolicySnapshot } from './load-snapshot.js'
import { anyOf, isUnknown, unknown, type Answer } from './three-valued.js'

/**
 * What a change of policy does to traffic that its rules concern. `cut_once_enforced`: nothing that enforces policy
 * today drops it, but with one or both ends in a stricter mode it would be dropped, and only because of the change.
 */
export const CUT_FATES = ['cut', 'cut_once_enforced', 'undecided', 'not_affected'] as const
export type CutFate = (typeof CUT_FATES)[number]

/** The fate of a connection, and why it is undecided if it is. */
export interface CutVerdict {
  fate: CutFate
  undecided: Answer
}

/** Returns the mode of an end today, and then all modes that enforce more. */
const modesFrom = (mode: EndMode): readonly EndMode[] =>
  isMode(mode) ? [mode, ...ENFORCEMENT_MODES.filter((other) => dropsOf(other) > dropsOf(mode))] : [mode]

/**
 * Creates the judge of what a change cuts: it compares what the policy decides about a connection without and with the
 * change, as explain-flow would, whatever the PCE recorded. Returns null for a connection that none of the rules by
 * which the change may cut can concern.
 */
export function createCutJudge(
  was: PolicySnapshot,
  is: PolicySnapshot,
  cutting: readonly CuttingRule[],
): (connection: Connection) => CutVerdict | null {
  const [judgeBefore, judgeAfter] = [createConnectionJudge(was), createConnectionJudge(is)]
  const compiled = [was, is].map((policy) =>
    compileByDestination(
      cutting.filter((rule) => rule.policy === policy).map(({ placed }) => placed),
      policy,
    ),
  )

  const mayConcern = ({ source, destination, port, proto }: Connection): boolean =>
    standsForOthers(source) ||
    standsForOthers(destination) ||
    compiled.some((matchesOf) =>
      matchesOf(destination).some(
        (match) => match.atDestination(source, port, proto) !== 'no' || match.atSource(source, port, proto) !== 'no',
      ),
    )

  return (connection) => {
    if (!mayConcern(connection)) return null
    const judges = [judgeBefore(connection), judgeAfter(connection)]
    const dropsAt = (side: Side, end: FlowEnd) =>
      modesFrom(endModeOf(end)).map((mode) => judges.map((judge) => dropsBy(judge(side, mode))))
    const [atSource, atDestination] = [dropsAt('src', connection.source), dropsAt('dst', connection.destination)]
    // Each end has a mode of its own, because an end that drops the connection hides a loss at the other one.
    const stages = atSource.flatMap((src) =>
      atDestination.map((dst) => {
        const [before, after] = src.map((drops, at) => anyOf([drops, dst[at] as Answer])) as [Answer, Answer]
        return compare(before, after)
      }),
    )
    const [now, ...later] = stages as [Answer, ...Answer[]]
    if (now === 'yes') return { fate: 'cut', undecided: 'no' }
    if (isUnknown(now)) return { fate: 'undecided', undecided: now }
    const once = anyOf(later)
    if (once === 'yes') return { fate: 'cut_once_enforced', undecided: 'no' }
    return isUnknown(once) ? { fate: 'undecided', undecided: once } : { fate: 'not_affected', undecided: 'no' }
  }
}

const P51_ALONE = unknown('selective_outbound')

/** Returns whether a connection that is not dropped before is dropped after. */
function compare(before: Answer, after: Answer): Answer {
  // What hangs on the same fact about the PCE and on nothing else is the same, whatever the fact is.
  if (before === 'yes' || after === 'no' || (before === P51_ALONE && after === P51_ALONE)) return 'no'
  return isUnknown(before) || isUnknown(after) ? anyOf([before, after].filter(isUnknown)) : 'yes'
}
