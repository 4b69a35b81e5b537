import type { PceClient } from '../../pce-client/index.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { collectAssumedFacts } from './assumed-facts.js'
import { noDisagreement } from './compare-record.js'
import { createRowDecider } from './decide-rows.js'
import { createPresentModes } from './present-modes.js'
import { readWholePolicy } from './read-whole-policy.js'
import { undecidedBecause, type Answer } from './three-valued.js'

/** A traffic row, and whether its traffic would pass today. */
export interface JudgedRow {
  /**
   * A copy of the row in which the decision of the rules replaces the recorded one. The next call of `judge` overwrites
   * this object.
   */
  row: FlowRow
  /** Whether the traffic passes. */
  passes: 'yes' | 'no' | 'perhaps'
}

/** The reservations about an answer, collected from the rows on which the answer relies. */
export interface PassageDoubts {
  /**
   * A phrase `undecided because of …` with the reasons; empty if it is known for every row whether its traffic passes.
   */
  because: string
  /** Numbers of connections whose recorded decisions contradict the rules. */
  recorded: RecordedOtherwise
  /** The unconfirmed facts about the PCE on which the answer depends. */
  assumes: readonly string[]
  /** Notes about sources and destinations whose present mode is not known. */
  modes: readonly string[]
}

/** Functions that determine whether the traffic of rows would pass today, whatever decision the PCE recorded. */
export interface PassageJudge {
  /**
   * Determines whether the traffic of a row passes. If `isReliedOn` is true, the reservations about this row are
   * collected as well.
   */
  judge: (row: FlowRow, isReliedOn: boolean) => JudgedRow
  /** Returns the reservations about all rows so far. It must be called after the last row. */
  doubts: () => PassageDoubts
}

/**
 * Reads the active policy and the present modes of workloads, from which it creates a `PassageJudge`. If the policy
 * cannot be read, everything that depends on rules is undecided. Rejects if the call is cancelled.
 */
export async function createPassageJudge(
  source: { pce: PceClient; signal: AbortSignal },
  { encoder, labels }: { encoder: FlowEncoder; labels: LabelIndex },
): Promise<PassageJudge> {
  const present = createPresentModes(source)
  // All workloads are looked up, because any of them may be an end of observed traffic.
  const [policy] = await Promise.all([readWholePolicy(source, 'active', labels), present.look()])
  const decide = createRowDecider(encoder, policy, present.modeOf)
  const open = new Set<Answer>()
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()
  return {
    judge(given, isReliedOn) {
      const { row, word, possible, undecided, disagreement } = decide(given)
      const passes = !possible.includes('blocked') ? 'yes' : possible.length === 1 ? 'no' : 'perhaps'
      if (!isReliedOn) return { row, passes }
      if (word !== 'unknown') assumed.add(undecided, encoder.ends.end(row.src), encoder.ends.end(row.dst))
      if (disagreement !== null) recorded[disagreement] += row.connections
      if (passes === 'perhaps') open.add(undecided)
      return { row, passes }
    },
    doubts: () => ({ because: undecidedBecause(open), recorded, assumes: assumed.list(), modes: present.notes() }),
  }
}
