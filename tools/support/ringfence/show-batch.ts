import type { ToolContext } from '../../define.js'
import { cleanDeep } from '../clean-text.js'
import { countOf } from '../count-of.js'
import { answerBudget, jsonBytes } from '../split-format.js'
import type { OrderedEntry } from './order-batch.js'
import type { BatchOutcome, RingfenceDone } from './run-batch.js'
import { showRingfence } from './show-ringfence.js'

export interface Batch {
  order: readonly OrderedEntry[]
  results: readonly BatchOutcome[]
  warnings: readonly string[]
  dryRun: boolean
  autoOrder: boolean
}

/** Room for what stands around the results, in all and per application. */
const ENVELOPE_BYTES = 1_000
const ENTRY_BYTES = 250

/** The answer of a batch (tools contract, B5). The budget is shared evenly by the applications that have a result. */
export function showBatch(
  { pce, limits }: Pick<ToolContext<true>, 'pce' | 'limits'>,
  { order, results, warnings, dryRun, autoOrder }: Batch,
) {
  const done = results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : []))
  const count = (status: BatchOutcome['status']) => results.filter((outcome) => outcome.status === status).length
  const room = answerBudget(limits) - ENVELOPE_BYTES - ENTRY_BYTES * results.length
  const share = Math.floor(room / Math.max(1, done.length))
  const show = (one: RingfenceDone) => {
    const own = { ...limits, responseBudgetBytes: share }
    const answer = showRingfence(one.prepared, one.written, { detail: 'standard', limits: own, orgId: pce.orgId })
    return jsonBytes(answer) <= share ? answer : shorten(answer)
  }
  const answers = results.map((outcome) =>
    outcome.status === 'success'
      ? { app: outcome.app, env: outcome.env, status: outcome.status, result: show(outcome.done) }
      : outcome,
  )
  const written = done.filter((one) => one.written !== null)
  const rules = written.reduce((sum, one) => sum + (one.written?.ruleHrefs.length ?? 0), 0)
  const cut = answers.reduce(
    (sum, one) => sum + ('result' in one ? (one.result.section_totals.would_be_cut ?? 0) : 0),
    0,
  )
  const created = written.filter(({ prepared }) => prepared.ruleSet === null).length
  const errors = count('error')
  const what = dryRun ? 'Planned' : 'Wrote'
  return cleanDeep({
    message: `${what} ${countOf(done.length, 'ringfence')}${errors > 0 ? `; ${countOf(errors, 'application')} failed` : ''}.`,
    summary: {
      total_apps: results.length,
      successful: done.length,
      errors,
      skipped: count('skipped'),
      dry_run: dryRun,
      auto_ordered: autoOrder && warnings.length === 0,
      rulesets_created: created,
      rules_created: rules,
      sources_cut: cut,
    },
    order: order.map(({ app, env, score }) => ({
      app,
      env,
      ...(score !== undefined && { infrastructure_score: score }),
    })),
    results: answers,
    warnings: [...warnings],
    flows_truncated: done.some(({ prepared: { discovery, ranking } }) =>
      [
        discovery.reads.inbound,
        discovery.reads.outbound,
        ...(typeof ranking === 'object' && ranking !== null ? [ranking.read] : []),
      ].some(({ truncated }) => truncated),
    ),
  })
}

/** What is said of an application when its lists, even empty, do not fit. */
function shorten({ message, merged, ruleset, section_totals: totals, warnings }: ReturnType<typeof showRingfence>) {
  const { href, name } = ruleset
  return {
    message,
    merged,
    ruleset: { ...(href !== undefined && { href }), name },
    section_totals: totals,
    warnings_total: warnings.length,
    truncation_note: 'Only totals fit. create-ringfence with dry_run shows this application alone.',
  }
}
