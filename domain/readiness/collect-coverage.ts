import type { Application } from '../traffic/applications.js'
import { textColumn, type Side } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { collectUncovered } from './collect-uncovered.js'
import { isUncovered, tallyDecisions, toDecision } from './tally-decisions.js'

/** A draft rule that matches rows which are not allowed yet and which the draft would allow. */
interface MatchingRule {
  /** Href, or the name of an essential rule. */
  rule: string
  flows: number
  connections: number
}

export type Coverage = ReturnType<ReturnType<typeof collectCoverage>['result']>
export type PathCoverage = Coverage['inbound']

/** Takes an application's rows, each once; what runs inside it counts for both directions and for itself. */
export function collectCoverage(encoder: FlowEncoder) {
  const decision = textColumn(encoder, 'decision')
  const draft = textColumn(encoder, 'draftDecision')
  const paths = { inbound: coverPath('src'), outbound: coverPath('dst'), intra: coverPath('src') }
  // Each row once, whatever path it counts for.
  const overall = { active: tallyDecisions(encoder), draft: tallyDecisions(encoder, 'draftDecision') }
  const matching = groupRows({ rules: textColumn(encoder, 'rules') })

  function coverPath(side: Side) {
    const [active, drafted, uncovered] = [
      tallyDecisions(encoder),
      tallyDecisions(encoder, 'draftDecision'),
      collectUncovered(encoder, side),
    ]
    return {
      add(row: FlowRow, isStopped: boolean) {
        active.add(row)
        drafted.add(row)
        if (isStopped) uncovered.add(row)
      },
      result: (own: Application, hasDraft: boolean) => ({
        decisions: active.result(),
        draft: hasDraft ? drafted.result() : null,
        uncovered: uncovered.result(own, hasDraft),
      }),
    }
  }

  return {
    take: (row: FlowRow, path: FlowPath): void => {
      const isStopped = isUncovered(toDecision(decision.value(decision.code(row))))
      overall.active.add(row)
      overall.draft.add(row)
      paths[path].add(row, isStopped)
      if (path === 'intra') {
        paths.inbound.add(row, isStopped)
        paths.outbound.add(row, isStopped)
      }
      if (isStopped && toDecision(draft.value(draft.code(row))) === 'allowed') matching.add(row)
    },
    result: (own: Application, hasDraft: boolean) => ({
      inbound: paths.inbound.result(own, hasDraft),
      outbound: paths.outbound.result(own, hasDraft),
      intra: paths.intra.result(own, hasDraft),
      overall: { decisions: overall.active.result(), draft: hasDraft ? overall.draft.result() : null },
      rules: hasDraft ? countRules(matching) : [],
      /** Uncovered rows that the draft would allow. */
      wouldAllow: [...matching].reduce((sum, { rows }) => sum + rows, 0),
    }),
  }
}

/** A row may match several rules, which the encoder joins (T8). */
function countRules(
  groups: Iterable<{ keys: { rules: string | null }; rows: number; measures: { connections: number } }>,
) {
  const found = new Map<string, MatchingRule>()
  for (const { keys, rows, measures } of groups) {
    for (const rule of keys.rules?.split(', ') ?? []) {
      const one = found.get(rule) ?? { rule, flows: 0, connections: 0 }
      found.set(rule, one)
      one.flows += rows
      one.connections += measures.connections
    }
  }
  return [...found.values()].sort((a, b) => b.connections - a.connections || (a.rule < b.rule ? -1 : 1))
}
