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

/** A row whose traffic may pass today or not. */
export interface JudgedRow {
  /** A copy of the row with what the rules decide in place of the recorded decision; valid until the next call. */
  row: FlowRow
  /** Whether the traffic passes. */
  passes: 'yes' | 'no' | 'perhaps'
}

/** What is known about the judgements of the rows on which the answer relies. */
export interface PassageDoubts {
  /** Why it is open whether traffic passes, as in `undecided because of …`; empty if it is open for none. */
  because: string
  /** Connections that the PCE recorded otherwise. */
  recorded: RecordedOtherwise
  /** The facts about the PCE that no source settles and on which the judgements depend. */
  assumes: readonly string[]
  /** Sentences about ends whose mode of today is not known. */
  modes: readonly string[]
}

/** Judges rows by whether their traffic would pass today, whatever the PCE recorded. */
export interface PassageJudge {
  /** Judges a row. It adds to the doubts only if the answer relies on it. */
  judge: (row: FlowRow, isReliedOn: boolean) => JudgedRow
  /** Returns what the judgements depend on, after the last row. */
  doubts: () => PassageDoubts
}

/**
 * Reads the policy in force and the present modes of workloads, and creates the judge by these. If the policy cannot be
 * read, everything that hangs on rules is open. Rejects when cancelled.
 */
export async function createPassageJudge(
  source: { pce: PceClient; signal: AbortSignal },
  { encoder, labels }: { encoder: FlowEncoder; labels: LabelIndex },
): Promise<PassageJudge> {
  const present = createPresentModes(source)
  // Traffic of the whole estate may have any of its ends.
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
