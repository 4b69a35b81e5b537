import type { ToolContext } from '../../../domain/call.js'
import { countOf } from '../../../domain/text/count-of.js'
import { answerBudget, jsonBytes } from '../split-format.js'
import type { OrderedEntry } from '../../../domain/ringfence/order-batch.js'
import type { BatchOutcome, RingfenceDone } from '../../../domain/ringfence/run-batch.js'
import { warnOfBatch } from './grave-warnings.js'
import { listCut, type CutSource } from './list-cut.js'
import { showRingfence } from './show-ringfence.js'

export interface Batch {
  order: readonly OrderedEntry[]
  results: readonly BatchOutcome[]
  warnings: readonly string[]
  dryRun: boolean
  autoOrder: boolean
}

/** Characters of a warning, and rows of would_be_cut, where an application has little room. */
const CLIPPED = 300
const MOST_CUT = 5

/** The answer of a batch (T16). What stands around the results is counted; they share the rest of the budget. */
export function showBatch(ctx: Pick<ToolContext<true>, 'pce' | 'limits'>, batch: Batch) {
  const { results } = batch
  const around = describeBatch(batch)
  const bare = results.map((outcome) => (outcome.status === 'success' ? { ...namesOf(outcome), result: {} } : outcome))
  let room = answerBudget(ctx.limits) - jsonBytes({ ...around, results: bare })
  let left = around.summary.successful
  const show = ({ prepared, written }: RingfenceDone) => {
    // What one does not need is for those after it.
    const share = Math.floor(room / left)
    const limits = { ...ctx.limits, responseBudgetBytes: share }
    const whole = showRingfence(prepared, written, { detail: 'standard', limits, orgId: ctx.pce.orgId })
    const shown = jsonBytes(whole) <= share ? whole : shorten(whole, listCut(prepared.plan.sources), share)
    room -= jsonBytes(shown)
    left -= 1
    return shown
  }
  const shown = results.map((outcome) =>
    outcome.status === 'success' ? { ...namesOf(outcome), result: show(outcome.done) } : outcome,
  )
  return { ...around, results: shown }
}

const namesOf = ({ app, env, status }: BatchOutcome) => ({ app, env, status })

/** All but the results. */
function describeBatch({ order, results, warnings, dryRun, autoOrder }: Batch) {
  const done = results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : []))
  const count = (status: BatchOutcome['status']) => results.filter((outcome) => outcome.status === status).length
  const written = done.filter((one) => one.written !== null)
  const errors = count('error')
  const what = dryRun ? 'Planned' : 'Wrote'
  return {
    message: `${what} ${countOf(done.length, 'ringfence')}${errors > 0 ? `; ${countOf(errors, 'application')} failed` : ''}.`,
    summary: {
      total_apps: results.length,
      successful: done.length,
      errors,
      skipped: count('skipped'),
      dry_run: dryRun,
      auto_ordered: autoOrder && warnings.length === 0,
      rulesets_created: written.filter(({ prepared }) => prepared.ruleSet === null).length,
      rules_created: written.reduce((sum, one) => sum + (one.written?.ruleHrefs.length ?? 0), 0),
      sources_cut: done.reduce((sum, { prepared }) => sum + listCut(prepared.plan.sources).length, 0),
    },
    order: order.map(({ app, env, score }) => ({
      app,
      env,
      ...(score !== undefined && { infrastructure_score: score }),
    })),
    warnings: [...warnOfBatch(done), ...warnings],
    flows_truncated: done.some(({ prepared: { discovery, ranking } }) =>
      [
        discovery.reads.inbound,
        discovery.reads.outbound,
        ...(typeof ranking === 'object' && ranking !== null ? [ranking.read] : []),
      ].some(({ truncated }) => truncated),
    ),
  }
}

/** What is said of an application when its lists, even empty, do not fit: the gravest that does, and how much there is. */
function shorten(answer: ReturnType<typeof showRingfence>, losses: readonly CutSource[], share: number) {
  const { message, merged, ruleset, section_totals: totals, warnings } = answer
  const cut = losses.slice(0, MOST_CUT)
  const { href, name } = ruleset
  const shown = {
    message,
    merged,
    ruleset: { ...(href !== undefined && { href }), name },
    section_totals: totals,
    warnings_total: warnings.length,
    warnings: [] as string[],
    would_be_cut: [] as typeof cut,
    truncation_note: 'Shortened. create-ringfence with dry_run shows this application alone.',
  }
  const add = <T>(list: T[], items: readonly T[]) => {
    for (const item of items) {
      list.push(item)
      if (jsonBytes(shown) <= share) continue
      list.pop()
      return
    }
  }
  const clipped = warnings.map((text) => (text.length > CLIPPED ? `${text.slice(0, CLIPPED - 1)}…` : text))
  // The first warning and the worst loss before all others.
  add(shown.warnings, clipped.slice(0, 1))
  add(shown.would_be_cut, cut.slice(0, 1))
  add(shown.warnings, clipped.slice(1))
  add(shown.would_be_cut, cut.slice(1))
  return shown
}
