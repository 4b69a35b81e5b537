import type { PceClient } from '../../pce-client/index.js'
import type { DecideBy } from '../../schemas/decided-traffic.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { FlowEncoder } from '../traffic/encode-flow.js'
import type { FlowRequest } from '../traffic/read-flows.js'
import { collectAssumedFacts } from './assumed-facts.js'
import { noDisagreement } from './compare-record.js'
import { createRowDecider } from './decide-rows.js'
import { collectOtherwise, type OtherwiseList } from './list-otherwise.js'
import { pendingHolders } from './load-snapshot.js'
import { createPresentModes } from './present-modes.js'
import { readWholePolicy } from './read-whole-policy.js'
import { undecidedBecause, type Answer } from './three-valued.js'

/** A summary of what the rules of one policy version decide about traffic rows. */
export interface DecidedTraffic {
  by: Exclude<DecideBy, 'recorded'>
  /** True if the draft equals the active policy because no change is pending; null if the policy could not be read. */
  isSame: boolean | null
  /**
   * The numbers of rows and connections for which the rules give no definite decision. They are shown as `unknown`, and
   * are counted even if the caller's filter excludes them.
   */
  undecided: { rows: number; connections: number }
  /** Number of connections that no rule allows and that are possibly, but not certainly, blocked already. */
  maybeBlocked: number
  /** A phrase `undecided because of …` with the reasons; empty if nothing is undecided. */
  because: string
  /** Numbers of connections in the answer whose recorded decisions contradict the rules. */
  recorded: RecordedOtherwise
  /** The pairs of source and destination that are counted in `recorded`, the busiest first. */
  otherwise: OtherwiseList
  /** The unconfirmed facts about the PCE on which the decisions depend. */
  assumes: readonly string[]
  /** Notes about sources and destinations whose present mode is not known. */
  modes: readonly string[]
}

/** What is needed to decide about the rows of one query. */
export interface TrafficDecider {
  /** The part of the traffic request that selects rows by their decisions. */
  request: Pick<FlowRequest, 'decisions' | 'replace' | 'prepare'>
  /**
   * Returns the summary of the decisions; null if the rows keep the decisions that the PCE recorded. It must be called
   * after the last row.
   */
  result(): DecidedTraffic | null
  /**
   * Returns a string with the number of connections for each decision so far. If it is equal for two queries, the rules
   * decided alike in both.
   */
  mark(): string
}

/**
 * Prepares the decisions on the rows of one query. If `by` is `active` or `draft`, this policy version and the present
 * modes of the workloads are read. Each row then gets the decision of the rules in these modes, or `unknown` if they
 * are undecided. In this case this server, not the PCE, applies the filter `decisions`, because the filter refers to
 * the decision that is shown.
 */
export async function createTrafficDecider(
  source: { pce: PceClient; signal: AbortSignal },
  { encoder, labels }: { encoder: FlowEncoder; labels: LabelIndex },
  by: DecideBy,
  decisions: readonly PolicyDecision[] | undefined,
): Promise<TrafficDecider> {
  if (by === 'recorded') return { request: { decisions }, result: () => null, mark: () => '' }
  const policy = await readWholePolicy(source, by, labels)
  const present = createPresentModes(source)
  const decide = createRowDecider(encoder, policy, present.modeOf)
  const unknownCode = encoder.dictionaries.decision.code('unknown')
  const wanted = decisions === undefined || decisions.length === 0 ? null : new Set(decisions)
  const undecided = { rows: 0, connections: 0 }
  const doubts = new Set<Answer>()
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()
  const otherwise = collectOtherwise(encoder)
  const connectionsBy: Partial<Record<PolicyDecision | 'undecided', number>> = {}
  let maybeBlocked = 0
  return {
    request: {
      prepare: present.look,
      replace: {
        filters: wanted === null ? [] : ['policy_decisions'],
        row(given) {
          const { row, word, undecided: doubt, mayBeBlocked, disagreement } = decide(given)
          const { count, connections, src, dst } = row
          if (word !== 'unknown') assumed.add(doubt, encoder.ends.end(src), encoder.ends.end(dst))
          connectionsBy[word] = (connectionsBy[word] ?? 0) + connections
          if (word === 'undecided') {
            undecided.rows += count
            undecided.connections += connections
            row.decision = unknownCode
          } else if (mayBeBlocked) maybeBlocked += connections
          if (word === 'undecided' || mayBeBlocked) doubts.add(doubt)
          if (wanted !== null && !wanted.has(word === 'undecided' ? 'unknown' : word)) return null
          if (disagreement === null) return row
          recorded[disagreement] += connections
          otherwise.add(row)
          return row
        },
      },
    },
    result: () => ({
      by,
      isSame:
        policy === null ? null : by === 'draft' && pendingHolders(policy).length + policy.pendingObjects.size === 0,
      undecided,
      maybeBlocked,
      because: undecidedBecause(doubts),
      recorded,
      otherwise: otherwise.list(),
      assumes: assumed.list(),
      modes: present.notes(),
    }),
    mark: () => JSON.stringify(Object.entries(connectionsBy).sort()),
  }
}
