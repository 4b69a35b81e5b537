import type { Preview, ToolContext } from '../../../domain/call.js'
import type { OrderedEntry } from '../../../domain/ringfence/run-batch.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { BatchOutcome, RingfenceDone } from '../../../domain/ringfence/run-batch.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { coverageNote } from '../../../domain/traffic/read-flows.js'
import type { TrafficWindow } from '../../../domain/traffic/traffic-window.js'
import { clipSentence, clipText, quote } from '../../../domain/text/escape-text.js'
import { showRingfencesForApproval } from '../approval/show-ringfences.js'
import { answerBudget, jsonBytes, rowsWithin } from '../byte-budget.js'
import { listForeign, named, warnOfBatch } from './warn-of-ringfence.js'
import { groupLosses, listCut, type LossGroup } from './list-losses.js'
import { showRingfence } from './show-ringfence.js'

export interface Batch {
  order: readonly OrderedEntry[]
  results: readonly BatchOutcome[]
  warnings: readonly string[]
  window: TrafficWindow
  dryRun: boolean
  autoOrder: boolean
}

/**
 * Limits for an application for which the answer has little space: maximum number of characters per warning, and of
 * rows in would_be_cut.
 */
const CLIPPED = 300
const MOST_CUT = 5
/** Maximum number of characters of the single warning that remains if not even a result's counts fit. */
const BRIEF_WARNING = 100
/**
 * A sentence in the batch's note that applies to all results that are shortened to a line, so that none has to repeat
 * it.
 */
const HOW_TO_SEE_MORE = 'create-ringfence with dry_run shows each shortened application alone.'
/**
 * A sentence in the note of a batch whose results contain no plans. It says where the plans are: the preview showed
 * them before anything was written, so the real call does not repeat them (D257).
 */
const WHERE_PLANS_ARE = 'Plans and their warnings (warnings_of_plan) are shown by the same call with dry_run.'

/**
 * Builds the answer of a batch (T16). The results of the applications share the part of the budget that the answer's
 * other fields leave free.
 */
export function showBatch(ctx: Pick<ToolContext<true>, 'pce' | 'limits'>, batch: Batch) {
  const { results } = batch
  const around = describeBatch(batch)
  const bare = results.map((outcome) => (outcome.status === 'success' ? { ...namesOf(outcome), result: {} } : outcome))
  const note = noteOf(results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : [])))
  let room =
    answerBudget(ctx.limits) -
    jsonBytes({ ...around, note: `${note.note ?? ''} ${HOW_TO_SEE_MORE} ${WHERE_PLANS_ARE}`, results: bare })
  let left = around.summary.successful
  const shortened: RingfenceDone[] = []
  const show = (done: RingfenceDone) => {
    const { prepared, written } = done
    // Space that one application does not need is available to those after it.
    const share = Math.floor(room / left)
    const limits = { ...ctx.limits, responseBudgetBytes: share }
    const whole = showRingfence(prepared, written, {
      detail: 'standard',
      limits,
      orgId: ctx.pce.orgId,
      isOfBatch: true,
    })
    const fits = jsonBytes(whole) <= share
    if (!fits) shortened.push(done)
    const shown = fits ? whole : shorten(whole, groupLosses(prepared.plan.sources), share)
    room -= jsonBytes(shown)
    left -= 1
    return shown
  }
  const shown = results.map((outcome) =>
    outcome.status === 'success' ? { ...namesOf(outcome), result: show(outcome.done) } : outcome,
  )
  const { note: completeness = '' } = noteOf(shortened)
  const said = [
    completeness,
    shown.some(isBare) ? HOW_TO_SEE_MORE : '',
    results.some(hasUnshownPlan) ? WHERE_PLANS_ARE : '',
  ]
    .filter((text) => text !== '')
    .join(' ')
  return { ...around, ...(said !== '' && { note: said }), results: shown }
}

/** Returns true for an application whose ringfence was written, so that its result does not contain the plan. */
const hasUnshownPlan = (outcome: BatchOutcome): boolean => outcome.status === 'success' && outcome.done.written !== null

/** Returns true if an application's result has room for only a line. */
const isBare = (shown: object): boolean =>
  'result' in shown && typeof shown.result === 'object' && shown.result !== null && !('message' in shown.result)

/**
 * Returns one note on how completely the traffic for these ringfences was read, so that their shortened results need no
 * note of their own.
 */
function noteOf(done: readonly RingfenceDone[]): { note?: string } {
  const note = coverageNote(...done.flatMap(({ prepared }) => Object.values(prepared.discovery.reads)))
  return note === '' ? {} : { note }
}

const namesOf = ({ app, env, status }: BatchOutcome) => ({ app, env, status })

/** Builds the answer without its `results`. */
function describeBatch({ order, results, warnings, window, dryRun, autoOrder }: Batch) {
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
    window,
    flows_truncated: done.some(({ prepared: { discovery, ranking } }) =>
      [
        discovery.reads.inbound,
        discovery.reads.outbound,
        ...(typeof ranking === 'object' && ranking !== null ? [ranking.read] : []),
      ].some(({ truncated }) => truncated),
    ),
  }
}

/**
 * Shortens an application's result that does not fit even with empty lists. It keeps the counts, and as many of the
 * most serious entries as fit. If the batch is so large that not even the counts fit, it keeps what exists or would
 * exist, the facts on which that depends, and the beginning of the first warning.
 */
function shorten(answer: ReturnType<typeof showRingfence>, losses: readonly LossGroup[], share: number) {
  const { message, merged, ruleset, section_totals: totals, warnings, assumes, recorded_otherwise: otherwise } = answer
  const { warnings_of_plan: ofPlan } = answer
  const cut = losses.slice(0, MOST_CUT)
  const { href, name } = ruleset
  const shown = {
    message,
    merged,
    ruleset: { ...(href !== undefined && { href }), name },
    ...(assumes !== undefined && { assumes }),
    ...(otherwise !== undefined && { recorded_otherwise: otherwise }),
    section_totals: totals,
    ...(ofPlan !== undefined && { warnings_of_plan: ofPlan }),
    warnings_total: warnings.length,
    warnings: [] as string[],
    would_be_cut: [] as typeof cut,
    truncation_note: 'Shortened. create-ringfence with dry_run shows this application alone.',
  }
  const clipped = warnings.map((text) => (text.length > CLIPPED ? `${text.slice(0, CLIPPED - 1)}…` : text))
  if (jsonBytes({ ...shown, warnings: clipped.slice(0, 1) }) > share)
    return {
      ruleset: shown.ruleset,
      ...(assumes !== undefined && { assumes }),
      ...(otherwise !== undefined && { recorded_otherwise: otherwise }),
      section_totals: { rules: totals?.['rules'] ?? 0 },
      ...(ofPlan !== undefined && { warnings_of_plan: ofPlan }),
      warnings_total: warnings.length,
      warnings: warnings.slice(0, 1).map((text) => clipSentence(text, BRIEF_WARNING)),
    }
  const add = <T>(list: T[], items: readonly T[]) => {
    for (const item of items) {
      list.push(item)
      if (jsonBytes(shown) <= share) continue
      list.pop()
      return
    }
  }
  // The first warning and the worst loss of traffic are added before all other entries, so that at least these two are
  // kept.
  add(shown.warnings, clipped.slice(0, 1))
  add(shown.would_be_cut, cut.slice(0, 1))
  add(shown.warnings, clipped.slice(1))
  add(shown.would_be_cut, cut.slice(1))
  return shown
}

/**
 * Maximum sizes, in bytes, of the lists in a preview. The applications with the worst losses are described; those that
 * do not fit are only counted.
 */
const LIST_BYTES = 5000
const ORDER_BYTES = 3000
const MOST_WARNINGS = 3
const MOST_PORTS = 3
const LONGEST_TEXT = 240
const LONGEST_NAME = 60

type Context = Pick<ToolContext<true>, 'pce' | 'limits'>

/**
 * Describes, for the person who confirms the call, what a batch would write and which sources it would cut off.
 * `results` are the outcomes of a dry run.
 */
export function previewBatch(
  ctx: Context,
  { order, results, warnings, isDryRun }: Pick<Batch, 'order' | 'results' | 'warnings'> & { isDryRun: boolean },
): Omit<Preview, 'boundTo'> {
  const planned = results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : []))
  const ringfences = planned.map(({ prepared }) => prepared)
  const rows = results.map((outcome) => describe(ctx, outcome))
  const shown = worstThatFit(rows)
  const inOrder = rowsWithin(
    order.map(({ app, env }) => nameOf(app, env)),
    ORDER_BYTES,
  )
  const said = [...warnOfBatch(planned), ...warnings].map(clipped).slice(0, MOST_WARNINGS)
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  return {
    summary: `${[describeWrites(ringfences), describeDenies(ringfences), describeForeign(ringfences), describeLeftOut(ringfences), describeLosses(ringfences), describeFailures(results)].filter(Boolean).join(' ')} None of it takes effect until it is provisioned.${dry}`,
    details: {
      order: inOrder,
      ...(inOrder.length < order.length && { order_left_out: order.length - inOrder.length }),
      applications: shown,
      ...(shown.length < rows.length && { applications_left_out: rows.length - shown.length }),
      ...(said.length > 0 && { warnings: said }),
      look_closer:
        'The same call with dry_run, or create-ringfence with dry_run for one application, shows every rule.',
    },
    page: showRingfencesForApproval({ limits: ctx.limits, orgId: ctx.pce.orgId }, { results, warnings }),
  }
}

const nameOf = (app: string, env: string) => `${short(app)} (${short(env)})`
const quotePlan = ({ application: [app, env] }: Prepared) => quote(nameOf(app.value, env.value))
const deniesOf = ({ rules }: Prepared) => rules.some(({ collection }) => collection === 'deny_rules')

function describeWrites(ringfences: readonly Prepared[]): string {
  const rules = ringfences.reduce((sum, prepared) => sum + prepared.rules.length, 0)
  const fresh = ringfences.filter(({ ruleSet }) => ruleSet === null).length
  if (rules + fresh === 0) return 'Nothing would be written.'
  return `Writes ${countOf(fresh, 'new rule set')} and ${countOf(rules, 'rule')} into the draft, for ${countOf(ringfences.length, 'application')} in this order: ${named(ringfences.map(quotePlan))}.`
}

function describeDenies(ringfences: readonly Prepared[]): string {
  const denying = ringfences.filter(deniesOf).map(quotePlan)
  if (denying.length === 0) return 'No deny rule is written.'
  return `A deny rule blocks all other inbound traffic of ${countOf(denying.length, 'application')}: ${named(denying)}.`
}

function describeForeign(ringfences: readonly Prepared[]): string {
  const foreign = ringfences.flatMap((prepared) =>
    listForeign(prepared).map(({ app, env }) => `${quote(nameOf(app, env))} to ${quotePlan(prepared)}`),
  )
  return foreign.length === 0 ? '' : `Lets in sources of other environments: ${named(foreign)}.`
}

function describeLeftOut(ringfences: readonly Prepared[]): string {
  const out = ringfences.flatMap((prepared) =>
    prepared.plan.remotes.flatMap(({ app, env, rule }) =>
      rule === 'excluded' ? [`${quote(nameOf(app, env))} to ${quotePlan(prepared)}`] : [],
    ),
  )
  return out.length === 0 ? '' : `Left out, without a rule: ${named(out)}.`
}

function describeLosses(ringfences: readonly Prepared[]): string {
  const losses = ringfences.flatMap((prepared) =>
    listCut(prepared.plan.sources).map((cut) => ({ ...cut, target: quotePlan(prepared) })),
  )
  // Sources that are certainly cut off come before those that are only possibly cut off, as in `listCut`.
  const certain = losses.filter(({ effect }) => effect !== 'possibly_cut')
  const [worst] = (certain.length > 0 ? certain : losses).toSorted((a, b) => b.connections - a.connections)
  if (worst === undefined) return 'No source seen in the traffic would be cut.'
  const ports = worst.ports.slice(0, MOST_PORTS).join(', ')
  return `Once enforced, ${countOf(losses.length, 'source')} would lose traffic (${certain.length} for certain); the busiest is ${quote(short(worst.source))} to ${worst.target}, ${countOf(worst.connections, 'connection')} on ${ports}.`
}

function describeFailures(results: readonly BatchOutcome[]): string {
  const of = (status: BatchOutcome['status']) =>
    results.filter((outcome) => outcome.status === status).map(({ app, env }) => quote(nameOf(app, env)))
  const [failed, skipped] = [of('error'), of('skipped')]
  return [
    failed.length > 0 ? `Would fail: ${named(failed)}.` : '',
    skipped.length > 0 ? `Would be skipped: ${named(skipped)}.` : '',
  ]
    .filter(Boolean)
    .join(' ')
}

interface Row {
  app: string
  env: string
  status: BatchOutcome['status']
  [fact: string]: unknown
}

function describe(ctx: Context, outcome: BatchOutcome): Row {
  const row = { app: short(outcome.app), env: short(outcome.env), status: outcome.status }
  if (outcome.status === 'skipped') return { ...row, reason: outcome.reason }
  if (outcome.status === 'error') {
    const { error, message } = outcome.error
    return { ...row, error, message: clipped(String(message)) }
  }
  const { prepared } = outcome.done
  const cut = listCut(prepared.plan.sources)
  const { warnings } = showRingfence(prepared, null, { detail: 'standard', limits: ctx.limits, orgId: ctx.pce.orgId })
  return {
    ...row,
    ruleset: short(prepared.name),
    new_ruleset: prepared.ruleSet === null,
    rules: prepared.rules.length,
    denies: deniesOf(prepared),
    sources_cut: cut.length,
    ...(cut[0] !== undefined && {
      worst_cut: { ...cut[0], source: short(cut[0].source), ports: cut[0].ports.slice(0, MOST_PORTS) },
    }),
    ...(warnings.length > 0 && { warnings_total: warnings.length, warning: clipped(warnings[0] ?? '') }),
  }
}

/**
 * Returns the rows in their order if all of them fit; otherwise, rows with failures, losses or deny rules come first.
 */
function worstThatFit(rows: readonly Row[]): Row[] {
  const weight = (row: Row) =>
    row.status === 'error' ? 0 : Number(row['sources_cut'] ?? 0) > 0 ? 1 : row['denies'] === true ? 2 : 3
  const whole = rowsWithin(rows, LIST_BYTES)
  return whole.length === rows.length
    ? whole
    : rowsWithin(
        rows.toSorted((a, b) => weight(a) - weight(b)),
        LIST_BYTES,
      )
}

const short = (text: string) => clipText(text, LONGEST_NAME)
const clipped = (text: string) => clipSentence(text, LONGEST_TEXT)
