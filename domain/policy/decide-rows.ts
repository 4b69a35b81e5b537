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

/** What the rules decide about traffic: one of the PCE's words for decisions, or `undecided`. */
export type DecidedWord = PolicyDecision | 'undecided'

/** What the rules decide about a connection, given the enforcement modes of its source and destination. */
export interface DecidedEnds {
  word: DecidedWord
  /** The possible decisions. There are several if it is not certain what happens to the traffic. */
  possible: readonly PolicyDecision[]
  /**
   * The reasons why it is not certain what happens to the traffic. They are given even if it is certain that no rule
   * allows it.
   */
  undecided: Answer
  /** True if it is possible, but not certain, that the traffic is blocked. */
  mayBeBlocked: boolean
  /** The enforcement modes of the source and the destination. */
  modes: readonly [source: EndMode, destination: EndMode]
  /** The verdicts at the source and the destination. "Allowed" in a verdict means that rules permit the connection. */
  verdicts: readonly [source: EndVerdict, destination: EndVerdict]
}

/** A traffic row with what the rules decide about its traffic. */
export interface DecidedRow extends Omit<DecidedEnds, 'verdicts'> {
  /**
   * A copy of the row with the decision of the rules (`word`) in place of the recorded one. The decider's next call
   * overwrites this object.
   */
  row: FlowRow
  /** How the recorded decision contradicts the rules. */
  disagreement: Disagreement
}

/**
 * Decides about a connection by the rules and the enforcement modes of its source and destination. The decision is
 * `allowed` if rules permit the connection at both ends, `potentially_blocked` if it passes only because of a mode, and
 * `unknown` if neither end applies rules, because each is idle or has no VEN.
 */
export function decideEnds(judge: EndJudge, modes: DecidedEnds['modes']): DecidedEnds {
  const verdicts = [requireRules(judge('src', modes[0])), requireRules(judge('dst', modes[1]))] as const
  const { decision, possible, undecided } = decide(...verdicts)
  const isOut = modes.every((mode) => mode === 'none' || mode === 'idle')
  const isUncertain = !isOut && decision === 'uncertain'
  // If "allowed" is not among the possible decisions, certainly no rule allows the connection. All that is uncertain is
  // whether it is blocked or potentially blocked.
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
 * Creates a function that decides about traffic rows by the rules of one policy version and the modes of their ends.
 * The decision that the PCE recorded is ignored.
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
