import type { Preview, ToolContext } from '../../../domain/call.js'
import { countOf } from '../../../domain/text/count-of.js'
import { clipText } from '../../../domain/text/escape-text.js'
import { rowsWithin } from '../show-briefly.js'
import { named, warnOfBatch } from './grave-warnings.js'
import { listCut } from './list-cut.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { BatchOutcome } from '../../../domain/ringfence/run-batch.js'
import type { Batch } from './show-batch.js'
import { showRingfence } from './show-ringfence.js'

/** Of the applications: what the worst of them do is told, the rest is counted. */
const LIST_BYTES = 5000
const ORDER_BYTES = 3000
const MOST_WARNINGS = 3
const MOST_PORTS = 3
const LONGEST_TEXT = 240
const LONGEST_NAME = 60

type Context = Pick<ToolContext<true>, 'pce' | 'limits'>

/** What a batch would write and whom that would cut, for the person who confirms it. `results` are those of a run without writes. */
export function previewBatch(
  ctx: Context,
  { order, results, warnings, isDryRun }: Pick<Batch, 'order' | 'results' | 'warnings'> & { isDryRun: boolean },
): Preview {
  const planned = results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : []))
  const ringfences = planned.map(({ prepared }) => prepared)
  const rows = results.map((outcome) => describe(ctx, outcome))
  const shown = worstThatFit(rows)
  const inOrder = rowsWithin(
    order.map(({ app, env }) => nameOf(app, env)),
    ORDER_BYTES,
  )
  const said = [...warnOfBatch(planned), ...warnings].map(clipped).slice(0, MOST_WARNINGS)
  const dry = isDryRun ? ' It is a dry run: it only answers what a real call would send.' : ''
  return {
    summary: `${[describeWrites(ringfences), describeDenies(ringfences), describeLosses(ringfences), describeFailures(results)].filter(Boolean).join(' ')} Nothing of it takes effect before it is provisioned.${dry}`,
    details: {
      order: inOrder,
      ...(inOrder.length < order.length && { order_left_out: order.length - inOrder.length }),
      applications: shown,
      ...(shown.length < rows.length && { applications_left_out: rows.length - shown.length }),
      ...(said.length > 0 && { warnings: said }),
      look_closer:
        'The same call with dry_run, or create-ringfence with dry_run for one application, shows every rule.',
    },
  }
}

const nameOf = (app: string, env: string) => `${short(app)} (${short(env)})`
const nameOfPlan = ({ application: [app, env] }: Prepared) => nameOf(app.value, env.value)
const deniesOf = ({ rules }: Prepared) => rules.some(({ collection }) => collection === 'deny_rules')

function describeWrites(ringfences: readonly Prepared[]): string {
  const rules = ringfences.reduce((sum, prepared) => sum + prepared.rules.length, 0)
  const fresh = ringfences.filter(({ ruleSet }) => ruleSet === null).length
  if (rules + fresh === 0) return 'Nothing would be written.'
  return `Writes ${countOf(fresh, 'new rule set')} and ${countOf(rules, 'rule')} into the draft, for ${countOf(ringfences.length, 'application')} in this order: ${named(ringfences.map(nameOfPlan))}.`
}

function describeDenies(ringfences: readonly Prepared[]): string {
  const denying = ringfences.filter(deniesOf).map(nameOfPlan)
  if (denying.length === 0) return 'No deny rule is written.'
  return `A deny rule blocks all other inbound traffic of ${countOf(denying.length, 'application')}: ${named(denying)}.`
}

function describeLosses(ringfences: readonly Prepared[]): string {
  const losses = ringfences.flatMap((prepared) =>
    listCut(prepared.plan.sources).map((cut) => ({ ...cut, target: nameOfPlan(prepared) })),
  )
  // As listCut orders the losses of one application.
  const certain = losses.filter(({ effect }) => effect !== 'possibly_cut')
  const [worst] = (certain.length > 0 ? certain : losses).toSorted((a, b) => b.connections - a.connections)
  if (worst === undefined) return 'No source seen in the traffic would be cut.'
  const ports = worst.ports.slice(0, MOST_PORTS).join(', ')
  return `Once enforced, ${countOf(losses.length, 'source')} would lose traffic (${certain.length} for certain); the busiest is ${short(worst.source)} to ${worst.target}, ${countOf(worst.connections, 'connection')} on ${ports}.`
}

function describeFailures(results: readonly BatchOutcome[]): string {
  const of = (status: BatchOutcome['status']) =>
    results.filter((outcome) => outcome.status === status).map(({ app, env }) => nameOf(app, env))
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

/** All rows in their order; where they do not fit, what fails, cuts or denies before what does not. */
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
const clipped = (text: string) => clipText(text, LONGEST_TEXT)
