import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { portColumn, protocolColumn, textColumn } from '../traffic/columns.js'
import { emptyRow, type FlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { createTupleTable } from '../traffic/group-tables.js'
import { compareRecord, type Disagreement } from './compare-record.js'
import { createConnectionJudge, type EndJudge } from './judge-connection.js'
import { decide, requireRules, type EndVerdict } from './judge-end.js'
import type { PolicySnapshot } from './load-snapshot.js'
import type { Answer } from './three-valued.js'

/** What the rules decide about traffic: as the PCE would, or that it is not decidable here. */
export type DecidedWord = PolicyDecision | 'undecided'

/** What the rules decide about a connection between ends in certain modes. */
export interface DecidedEnds {
  word: DecidedWord
  /** The decisions that are possible; more than one if it is not certain what happens to the traffic. */
  possible: readonly PolicyDecision[]
  /** Why it is not certain what happens to the traffic, even where it is certain that no rule allows it. */
  undecided: Answer
  /** True if the traffic may be blocked already, but is not certain to be. */
  mayBeBlocked: boolean
  /** The modes of its ends. */
  modes: readonly [source: EndMode, destination: EndMode]
  /** The verdicts of its ends, where "allowed" is what rules permit. */
  verdicts: readonly [source: EndVerdict, destination: EndVerdict]
}

/** A row with what the rules decide about its traffic. */
export interface DecidedRow extends Omit<DecidedEnds, 'verdicts'> {
  /** A copy of the row with the word in place of the recorded decision; valid until the next call. */
  row: FlowRow
  /** How the recorded decision differs from the rules. */
  disagreement: Disagreement
}

/**
 * Decides about a connection by the rules and by the modes of its ends. `allowed` is what rules permit at both ends; what
 * passes only because of a mode is `potentially_blocked`, and traffic of which neither end judges anything, being idle
 * or without a VEN, is `unknown`.
 */
export function decideEnds(judge: EndJudge, modes: DecidedEnds['modes']): DecidedEnds {
  const verdicts = [requireRules(judge('src', modes[0])), requireRules(judge('dst', modes[1]))] as const
  const { decision, possible, undecided } = decide(...verdicts)
  const isOut = modes.every((mode) => mode === 'none' || mode === 'idle')
  const isUncertain = !isOut && decision === 'uncertain'
  // Where only the mode is not known, or whether a source drops what it may, it is certain that no rule allows the traffic.
  const least = possible.includes('allowed') ? 'undecided' : 'potentially_blocked'
  return {
    word: isOut ? 'unknown' : decision === 'uncertain' ? least : decision,
    possible: isOut ? ['unknown'] : possible,
    undecided: isUncertain ? undecided : 'no',
    mayBeBlocked: isUncertain && possible.includes('blocked'),
    modes,
    verdicts,
  }
}

/**
 * Creates the function that decides rows by the rules of a version of the policy and by the modes of their ends, whatever
 * the PCE recorded.
 */
export function createRowDecider(
  encoder: FlowEncoder,
  policy: PolicySnapshot | null,
  modeOf: (end: FlowEnd) => EndMode,
): (row: FlowRow) => DecidedRow {
  const judge = createConnectionJudge(policy)
  const recorded = textColumn(encoder, 'decision')
  const table = createTupleTable(4)
  const tuple = new Int32Array(4)
  const known: (DecidedEnds & { code: number })[] = []
  const copy = emptyRow()

  const decideOne = (row: FlowRow) => {
    const [source, destination] = [encoder.ends.end(row.src), encoder.ends.end(row.dst)]
    const port = portColumn.value(portColumn.code(row))
    const proto = protocolColumn.value(protocolColumn.code(row))
    const decided = decideEnds(judge({ source, destination, port, proto }), [modeOf(source), modeOf(destination)])
    return { ...decided, code: encoder.dictionaries.decision.code(decided.word) }
  }

  return (row) => {
    tuple[0] = row.src
    tuple[1] = row.dst
    tuple[2] = row.port
    tuple[3] = row.proto
    const slot = table.slot(tuple)
    const { code, verdicts, ...decided } = (known[slot] ??= decideOne(row))
    const disagreement = compareRecord(recorded.value(recorded.code(row)), verdicts)
    return { ...decided, row: Object.assign(copy, row, { decision: code, recorded: row.decision }), disagreement }
  }
}
