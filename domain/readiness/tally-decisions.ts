import type { PceClient } from '../../pce-client/index.js'
import { JUDGED_DECISIONS, isStopped, mapDecisions, readDecision } from '../../schemas/pce/policy-decisions.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { LabelIndex } from '../inventory/labels.js'
import { modeOf } from '../inventory/workloads.js'
import { noDisagreement } from '../policy/compare-record.js'
import { createRowDecider, type DecidedWord } from '../policy/decide-rows.js'
import { assumedOfIpTables, countIpTables } from '../policy/ip-tables.js'
import { someWorkloadWith } from '../policy/match-rules.js'
import { mayPassByDefault } from '../policy/mode-effects.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { createPresentModes, type PresentModes } from '../policy/present-modes.js'
import { readWholePolicy } from '../policy/read-whole-policy.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { isUnknown, undecidedBecause, type Answer } from '../policy/three-valued.js'
import { percentOf } from '../text/describe-numbers.js'
import { textColumn } from '../traffic/columns.js'
import type { DictionaryName, FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'

/** The numbers of rows (`flows`) and of connections for each policy decision. */
export interface Decisions {
  flows: Record<DecidedWord, number>
  connections: Record<DecidedWord, number>
}

interface DecisionTally {
  add(row: FlowRow): void
  result(): Decisions
}

/** Counts rows by the decision in one of their columns. */
export function tallyDecisions(encoder: FlowEncoder, column: DictionaryName = 'decision'): DecisionTally {
  const groups = groupRows({ decision: textColumn(encoder, column) })
  return {
    add: groups.add,
    result() {
      const result = noDecisions()
      for (const { keys, rows, measures } of groups) {
        const decision = readWord(keys.decision)
        result.flows[decision] += rows
        result.connections[decision] += measures.connections
      }
      return result
    },
  }
}

/** Converts the string in a decision column to a decision. */
export const readWord = (word: string | null): DecidedWord => (word === 'undecided' ? word : readDecision(word))

/** Returns true if traffic with this decision is not known to be allowed by any rule. */
export const isUncovered = (word: DecidedWord): boolean => word === 'undecided' || isStopped(word)

/** Returns true if it is certain that no rule allows traffic with this decision. */
export const isNotAllowed = (word: DecidedWord): boolean => word !== 'undecided' && isStopped(word)

/**
 * Returns the number of rows or connections about which policy can decide, which are all except `unknown` ones.
 * Undecided ones are included.
 */
export const judged = (counts: Record<DecidedWord, number>): number =>
  JUDGED_DECISIONS.reduce((sum, word) => sum + counts[word], counts.undecided)

/** Returns the number of rows or connections that no rule allows for certain. */
export const notAllowed = (counts: Record<DecidedWord, number>): number =>
  judged(counts) - counts.allowed - counts.undecided

/**
 * Returns the percentage of allowed rows among all rows except `unknown` ones, with one decimal; null if there are no
 * such rows, or if all of them are undecided.
 */
export function coverage(counts: Record<DecidedWord, number>): number | null {
  const all = judged(counts)
  return all === counts.undecided ? null : percentOf(counts.allowed, all)
}

function noDecisions(): Decisions {
  const none = () => ({ ...mapDecisions(() => 0), undecided: 0 })
  return { flows: none(), connections: none() }
}

/** Facts that limit how reliable the decisions on an application's rows are. */
export interface Reliance {
  /**
   * Number of rows that no rule is known to allow and that pass, or may pass, because an end is in selective mode or in
   * an unknown mode.
   */
  byDefault: number
  /**
   * Number of rows for which it is undecided whether rules allow them. Protocols that VENs always allow are not
   * counted.
   */
  open: number
  /** A phrase `undecided because of …` with the reasons why rows are undecided; empty if no row is. */
  undecided: string
  /**
   * Number of rows that may already be blocked, but not certainly. `uncovered` is the number of those that no rule
   * allows; `because` says why it is undecided whether they are blocked.
   */
  maybeBlocked: { rows: number; uncovered: number; because: string }
  /**
   * Number of iptables rules that apply to the application, whose effect cannot be determined; null if they could not
   * be counted.
   */
  iptables: number | null
  /** The unconfirmed assumptions about the PCE on which these numbers depend. */
  assumes: readonly string[]
  /**
   * Number of allowed rows about which only the remote party decides, because the application's own workload has no
   * VEN.
   */
  elsewhere: number
  /** Numbers of connections whose recorded decision contradicts the rules. */
  recorded: RecordedOtherwise
  /** Notes about workloads whose present mode is not known. */
  modes: readonly string[]
}

/**
 * Decides about the rows of an application by the policy in force and the present modes of both ends, whatever the PCE
 * recorded (D78). If a draft is given, it also decides about the rows; without pending changes, it is the same object
 * as `policy`. The PCE's own draft decision is not used, because it may say "allowed" without a rule if an end enforces
 * nothing.
 */
export function decideByRules(
  encoder: FlowEncoder,
  policy: PolicySnapshot | null,
  { present, application, draft }: { present: PresentModes; application: readonly Label[]; draft?: PolicySnapshot },
) {
  const decide = createRowDecider(encoder, policy, present.modeOf)
  // A draft without pending changes decides in the same way as the policy in force.
  const decideDraft = draft === undefined || draft === policy ? null : createRowDecider(encoder, draft, present.modeOf)
  const answers = new Set<Answer>()
  const blockedAnswers = new Set<Answer>()
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()
  let [byDefault, open, elsewhere, mayStop, mayStopUncovered] = [0, 0, 0, 0, 0]
  return {
    /** Decides about a row by the rules and passes it on with this decision in place of the recorded one. */
    take(given: FlowRow, path: FlowPath, pass: (row: FlowRow, path: FlowPath) => void): void {
      const { row, word, undecided, mayBeBlocked, modes, disagreement } = decide(given)
      const { src, dst, count, connections } = row
      if (word !== 'unknown') assumed.add(undecided, encoder.ends.end(src), encoder.ends.end(dst))
      if (disagreement !== null) recorded[disagreement] += connections
      if (mayBeBlocked) mayStop += count
      if (word === 'undecided') {
        answers.add(undecided)
        if (isUnknown(undecided) && undecided.unknown.some((reason) => reason !== 'essential')) open += count
      } else if (mayBeBlocked) {
        blockedAnswers.add(undecided)
        mayStopUncovered += count
      }
      const passes = word === 'undecided' || word === 'potentially_blocked'
      if (passes && mayPassByDefault(...modes.map((mode) => (mode === 'none' ? null : mode)))) byDefault += count
      if (word === 'allowed' && modes[path === 'outbound' ? 0 : 1] === 'none') elsewhere += count
      if (draft !== undefined) {
        const drafted = decideDraft?.(given) ?? { word, undecided }
        if (drafted.word !== 'unknown') assumed.add(drafted.undecided)
        row.draftDecision = encoder.dictionaries.draftDecision.code(drafted.word)
      }
      pass(row, path)
    },
    result(): Reliance {
      const iptables = policy === null ? null : countIpTables(policy, someWorkloadWith(application))
      return {
        byDefault,
        open,
        undecided: undecidedBecause(answers),
        maybeBlocked: { rows: mayStop, uncovered: mayStopUncovered, because: undecidedBecause(blockedAnswers) },
        iptables,
        assumes: [...assumed.list(), ...assumedOfIpTables(iptables)],
        elsewhere,
        recorded,
        modes: present.notes(),
      }
    },
  }
}

/**
 * Creates the collection of present modes for an application's traffic. The modes of the application's own workloads
 * have already been read.
 */
export const createModesBeside = (
  source: { pce: PceClient; signal: AbortSignal },
  workloads: readonly Workload[],
): PresentModes =>
  createPresentModes(source, { known: new Map(workloads.map((one) => [one.href, modeOf(one)] as const)) })

/**
 * Reads the active policy with its deny rules. Returns null if it cannot be read completely. Rejects if the call is
 * cancelled.
 */
export const readPolicyInForce = (
  pce: PceClient,
  signal: AbortSignal,
  labels: LabelIndex,
): Promise<PolicySnapshot | null> => readWholePolicy({ pce, signal }, 'active', labels)
