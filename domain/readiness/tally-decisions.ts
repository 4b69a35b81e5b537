import { type PceClient } from '../../pce-client/index.js'
import {
  JUDGED_DECISIONS,
  mapDecisions,
  readDecision,
  type PolicyDecision,
} from '../../schemas/pce/policy-decisions.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { isUnread, pickEvery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isManaged } from '../inventory/workloads.js'
import { assumedOfIpTables, countIpTables } from '../policy/ip-tables.js'
import { someWorkloadWith } from '../policy/match-rules.js'
import { createAllowedJudge } from '../policy/judge-allowed.js'
import { isModeUntold, mayPassByDefault } from '../policy/mode-effects.js'
import { loadSnapshot, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { undecidedBecause, type Answer } from '../policy/three-valued.js'
import { percentOf } from '../text/describe-numbers.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { endColumns, portColumn, protocolColumn, textColumn, wholeEndColumn } from '../traffic/columns.js'
import type { DictionaryName, FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'

/** Number of rows (flows) and of connections per policy decision. */
export interface Decisions {
  flows: Record<PolicyDecision, number>
  connections: Record<PolicyDecision, number>
}

interface DecisionTally {
  add(row: FlowRow): void
  result(): Decisions
}

/** Counts rows by the decision of the active policy, or by another decision column. */
export function tallyDecisions(encoder: FlowEncoder, column: DictionaryName = 'decision'): DecisionTally {
  const groups = groupRows({ decision: textColumn(encoder, column) })
  return {
    add: groups.add,
    result() {
      const result = noDecisions()
      for (const { keys, rows, measures } of groups) {
        const decision = readDecision(keys.decision)
        result.flows[decision] += rows
        result.connections[decision] += measures.connections
      }
      return result
    },
  }
}

/** Returns the number of rows or connections that a VEN judged. */
export const judged = (counts: Record<PolicyDecision, number>): number =>
  JUDGED_DECISIONS.reduce((sum, word) => sum + counts[word], 0)

/**
 * Returns the share of allowed rows among those that were judged, in percent with one decimal; null if none were
 * judged.
 */
export function coverage(counts: Record<PolicyDecision, number>): number | null {
  const all = judged(counts)
  return all === 0 ? null : percentOf(counts.allowed, all)
}

function noDecisions(): Decisions {
  const none = () => mapDecisions(() => 0)
  return { flows: none(), connections: none() }
}

/** Allowed rows whose decision does not prove that a rule allows them. */
export interface WeaklyAllowed {
  /**
   * Number of rows at an end in selective mode, or in an unknown mode, that are possibly allowed only because no deny
   * rule matched.
   */
  byDefault: number
  /** Number of these rows that are at an end whose mode is not known. */
  untold: number
  /** How many of these rows are undecided and why, such as `2 undecided because of …`; empty if none are. */
  undecided: string
  /** Number of iptables rules for the application, which are not judged; null if they could not be counted. */
  iptables: number | null
  /** The facts about the PCE that no source settles and on which these numbers depend. */
  assumes: readonly string[]
  /** Number of rows that only the other end judged, because the application's own end is idle or has no VEN. */
  elsewhere: number
}

/**
 * Counts the weakly allowed rows of an application. The modes of its own `workloads` are their current ones; those of
 * other ends come from the rows.
 */
export function countWeaklyAllowed(encoder: FlowEncoder, workloads: readonly Workload[]) {
  const own = new Map(
    workloads.map((one) => [one.href, isManaged(one) ? (one.enforcement_mode ?? 'unknown') : null] as const),
  )
  const modeOf = ({ workload, managed, mode }: FlowEnd) => {
    const known = workload === null ? undefined : own.get(workload)
    return known === undefined ? (managed ? (mode ?? 'unknown') : null) : known
  }
  const modes = endColumns(encoder, modeOf)
  const decision = textColumn(encoder, 'decision')
  const doubtful = groupRows({
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    port: portColumn,
    proto: protocolColumn,
  })
  let elsewhere = 0

  function* judge(policy: PolicySnapshot | null): Steps<Omit<WeaklyAllowed, 'iptables'>> {
    const judgeAllowed = createAllowedJudge(policy)
    const answers = new Map<Answer, number>()
    let untold = 0
    const assumed = collectAssumedFacts()
    for (const { keys, rows } of doubtful) {
      const [sourceMode, destinationMode] = [modeOf(keys.source), modeOf(keys.destination)]
      const answer = judgeAllowed({ ...keys, sourceMode, destinationMode })
      assumed.add(answer, keys.source, keys.destination)
      if (answer !== 'yes' && [sourceMode, destinationMode].some(isModeUntold)) untold += rows
      if (answer !== 'yes') answers.set(answer, (answers.get(answer) ?? 0) + rows)
      yield
    }
    const sum = (counts: Iterable<readonly [Answer, number]>) =>
      [...counts].reduce((total, [, rows]) => total + rows, 0)
    const open = [...answers].filter(([answer]) => answer !== 'no')
    return {
      byDefault: sum(answers),
      untold,
      undecided: open.length === 0 ? '' : `${sum(open)} ${undecidedBecause(open.map(([answer]) => answer))}`,
      assumes: assumed.list(),
      elsewhere,
    }
  }

  return {
    add(row: FlowRow, path: FlowPath): void {
      if (decision.value(decision.code(row)) !== 'allowed') return
      const [src, dst] = [modes.src.value(modes.src.code(row)), modes.dst.value(modes.dst.code(row))]
      if (mayPassByDefault(src, dst)) doubtful.add(row)
      const [near, far] = path === 'outbound' ? [src, dst] : [dst, src]
      if (judgesNothing(near) && !judgesNothing(far)) elsewhere += row.count
    },
    /**
     * Returns the counts. Reads the active policy if a row depends on it, or if it has iptables rules; if it cannot be
     * read, such rows are undecided. Rejects when cancelled.
     */
    async result(
      { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
      labels: LabelIndex,
      application: readonly Label[],
    ): Promise<WeaklyAllowed> {
      const hasTables = await hasIpTables(pce, signal)
      const isNeeded = doubtful.size > 0 || hasTables === true
      const policy = isNeeded ? await readPolicyInForce(pce, signal, labels) : null
      const found = policy === null ? null : countIpTables(policy, someWorkloadWith(application))
      const iptables = hasTables === false ? 0 : found
      const weakly = await workInTurns(judge(policy), signal)
      return { ...weakly, iptables, assumes: [...weakly.assumes, ...assumedOfIpTables(iptables)] }
    },
  }
}

const judgesNothing = (mode: string | null) => mode === null || mode === 'idle'

/**
 * Returns whether a rule set in force has iptables rules; null if the rule sets cannot be read, or only in part.
 * Rejects when cancelled.
 */
async function hasIpTables(pce: PceClient, signal: AbortSignal): Promise<boolean | null> {
  const hasOwn = ({ ip_tables_rules: own }: RuleSet) => (own != null && own.length > 0 ? true : undefined)
  return orNull(signal, async () => {
    const found = await pickEvery({ api: pce.ruleSets, policyVersion: 'active', params: {}, signal }, hasOwn)
    return found.length > 0
  })
}

/**
 * Reads the active policy with its deny rules; returns null if it cannot be read completely. Rejects when cancelled.
 */
export async function readPolicyInForce(
  pce: PceClient,
  signal: AbortSignal,
  labels: LabelIndex,
): Promise<PolicySnapshot | null> {
  return orNull(signal, async () =>
    withDenyRules({ pce, signal }, await loadSnapshot({ pce, signal }, 'active', labels)),
  )
}

async function orNull<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return null
  }
}
