import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { Counts } from '../../schemas/common.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import { LabelOut, LabelReference } from '../../schemas/label-reference.js'
import { WorkloadSelection, LabelKeys } from '../../schemas/workload-selection.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { labelRequests, plannedLabels, writePlannedLabels } from '../../domain/drafts/create-labels.js'
import { inOrderOfLabels } from '../../domain/drafts/order-of.js'
import { writeWithRollback } from '../../domain/drafts/write-with-rollback.js'
import { judgeRelabelling } from '../../domain/hygiene/judge-relabelling.js'
import { countWishes, isChanged, type Relabelling, type WishPlan } from '../../domain/hygiene/plan-labels.js'
import {
  MOST_WORKLOADS,
  planRelabelling,
  type RelabellingArguments,
  type RelabellingPlan,
} from '../../domain/hygiene/plan-relabelling.js'
import { bodyOf, planAgain, writeLabels, type LabelsWritten } from '../../domain/hygiene/write-labels.js'
import { tellLeftOut } from '../../domain/inventory/kubernetes-workloads.js'
import { loadLabels, type LabelIndex, type LabelOutput } from '../../domain/inventory/labels.js'
import { mayHaveHappened, withDetails } from '../../domain/inventory/pce-errors.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { answerBudget, countRowsThatFit, jsonBytes, rowsWithin } from '../answers/byte-budget.js'
import {
  countOutcomes,
  describeEffect,
  describeUnchanged,
  describeWishes,
  EffectOut,
  firstOf,
  OUTCOME_COLUMNS,
  outcomeRows,
  PLAN_COLUMNS,
  planRows,
  RelabellingTable,
  showEffect,
  UNCHANGED_COLUMNS,
  unchangedRows,
  UnchangedTable,
} from '../answers/hygiene/show-relabelling.js'

/** Maximum number of table rows, small enough for a model to read. The counts cover all rows. */
const MOST_ROWS = 200
/** Maximum number of unchanged workloads that a dry run shows with their labels. */
const MOST_UNCHANGED = 50
/** Maximum number of workloads for which a dry run shows the request. */
const MOST_REQUESTED = 5
/** Maximum length of the CSV text, enough for about 10,000 lines with a name and a few labels. */
const LONGEST_CSV = 500_000

const References = (description: string) =>
  Type.Optional(Type.Array(LabelReference, { minItems: 1, maxItems: 20, description }))

const output = Type.Object({
  message: Type.String({ description: 'What happened, or would' }),
  matched: Type.Integer({ description: 'Workloads that were named' }),
  kubernetes_workloads_left_out: Type.Optional(
    Type.Integer({ description: 'That the selection matches, too: their labels are those of their namespaces' }),
  ),
  changed: Type.Integer({ description: 'Of these, whose labels differ from what is asked for' }),
  already: Type.Integer({ description: 'Of these, that have the labels already: not written' }),
  left_alone: Type.Integer({ description: 'Of these, that have other values where add asks for one: not written' }),
  kept: Type.Optional(Counts('Labels that add leaves, on written workloads too, by how many have them')),
  outcomes: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), { description: 'Of those that were written; absent in a dry run' }),
  ),
  effect: Type.Optional(EffectOut),
  changes: RelabellingTable,
  changes_cut: Type.Optional(Type.String({ description: 'Rows that are not shown' })),
  unchanged: Type.Optional(UnchangedTable),
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'Labels that did not exist before' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})
type Output = Static<typeof output>

export default defineTool({
  name: 'label-workloads',
  summary: 'Set, add or remove labels of workloads in bulk; others stay. At once: labels are policy, so dry_run first.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'hygiene',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 53,
    and: 'one for each label that it creates, one for each 1,000 workloads, and in a dry run one for each rule set whose deny rules the PCE keeps apart',
  },
  input: Type.Object(
    {
      workloads: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          maxItems: MOST_WORKLOADS,
          description: 'Hrefs, or exact names, also of hosts, with or without domain; refused if two have one',
          listed: '',
        }),
      ),
      selection: Type.Optional(
        Type.Object(
          { ...WorkloadSelection, without: LabelKeys('Lacks any of these keys') },
          { additionalProperties: false, description: 'Or all that match' },
        ),
      ),
      max_matches: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MOST_WORKLOADS,
          description: 'To write: how many the selection may match',
          listed: 'To write: most matches',
        }),
      ),
      csv: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: LONGEST_CSV,
          description: 'Or a table: columns href, name or hostname, and label keys; empty cells change nothing',
          listed: 'Or a table: href, name or hostname, and label keys; empty cells change nothing',
        }),
      ),
      remove_token: Type.Optional(
        Type.String({ minLength: 1, description: 'CSV cell that removes the label', listed: 'Cell that removes' }),
      ),
      set: References('Replaces any other value'),
      add: References('Where the key is missing'),
      remove: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          maxItems: 20,
          description: 'Keys, or key=value',
          listed: 'Keys or labels',
        }),
      ),
      create_missing_labels: Type.Optional(
        Type.Boolean({ description: 'Else an unknown label is an error', listed: 'Else an error' }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { selection: { labels: ['app=payments', 'env=prod'] }, set: ['role=web'], dry_run: true },
  async handler(args, ctx): Promise<Output> {
    checkArguments(args)
    const index = await loadLabels(ctx.pce, ctx, 'fresh')
    const plan = await planRelabelling(ctx, index, args)
    const changes = plan.relabellings.filter(isChanged)
    const facts = factsOf(plan)
    if (args.dry_run === true) return showDryRun(args, ctx, plan, changes, facts)
    if (args.selection !== undefined) requireBound(args.max_matches, facts.matched)
    if (changes.length === 0) return tellNothing(facts)
    ctx.beforeWriting.throwIfAborted()
    const hrefs = changes.map(({ workload }) => workload.href)
    return inOrderOfLabels(ctx.inOrder, hrefs, async () => {
      const again = await planAgain({ pce: ctx.pce, signal: ctx.beforeWriting }, changes)
      const byHref = new Map(again.changes.map((one) => [one.workload.href, one]))
      const relabellings = plan.relabellings.map((one) => byHref.get(one.workload.href) ?? one)
      const now = { ...plan, relabellings }
      const left = again.changes.filter(isChanged)
      const moved =
        again.moved === 0
          ? []
          : [`${countOf(again.moved, 'workload')} got other labels during this call; it was planned again on these.`]
      if (left.length === 0) return { ...tellNothing(factsOf(now)), ...(moved.length > 0 && { warnings: moved }) }
      ctx.beforeWriting.throwIfAborted()
      return write(ctx, index, now, left, factsOf(now), moved)
    })
  },
})

function factsOf({ relabellings, leftOut }: RelabellingPlan): Facts {
  const changed = relabellings.filter(isChanged).length
  const leftAlone = relabellings.filter((one) => one.kept.length > 0 && !isChanged(one)).length
  const { kept } = countWishes(relabellings)
  return {
    matched: relabellings.length,
    changed,
    already: relabellings.length - changed - leftAlone,
    left_alone: leftAlone,
    ...(Object.keys(kept).length > 0 && { kept: firstOf(kept) }),
    ...(leftOut.left > 0 && { kubernetes_workloads_left_out: leftOut.left }),
  }
}

const tellNothing = (facts: Facts): Output => ({
  message: `Nothing to do: ${describeUnchanged(facts)}.`,
  ...facts,
  changes: { columns: PLAN_COLUMNS, data: [] },
})

type Ctx = ToolContext<true>
type Arguments = RelabellingArguments & { max_matches?: number; dry_run?: boolean }
type Facts = Pick<Output, 'matched' | 'changed' | 'already' | 'left_alone' | 'kept' | 'kubernetes_workloads_left_out'>

function checkArguments({ workloads, selection, csv, remove_token: token, set, add, remove }: Arguments): void {
  const ways = Object.entries({ workloads, selection, csv }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  if (ways.length !== 1) {
    const names = ['workloads', 'selection', 'csv']
    const text = `Say which workloads in one way: ${names.join(', ')}.`
    throw new ToolError(ways.length === 0 ? 'missing_identifier' : 'conflicting_identifiers', text, {
      arguments: names,
    })
  }
  const wishes = Object.entries({ set, add, remove }).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  if (csv !== undefined && wishes.length > 0) {
    const text = `csv says for each workload what its labels are to be; leave out ${wishes.join(', ')}.`
    throw new ToolError('conflicting_identifiers', text, { arguments: ['csv', ...wishes] })
  }
  if (csv === undefined && wishes.length === 0) {
    const details = { arguments: ['set', 'add', 'remove'] }
    const hint = 'set: ["env=prod"], add: ["role=web"] or remove: ["loc"].'
    throw new ToolError('no_update_fields', 'Say what is to become of the labels: set, add or remove.', details, {
      hint,
    })
  }
  if (csv === undefined && token !== undefined)
    throw new ToolError('invalid_argument', 'remove_token is for csv.', { argument: 'remove_token' })
  const { exact: _exact, ...filters } = selection ?? {}
  if (selection !== undefined && Object.values(filters).every((value) => value === undefined)) {
    const text = 'selection is empty, which would be every workload. Name them by something they have in common.'
    throw new ToolError('invalid_argument', text, { argument: 'selection' })
  }
}

/**
 * Throws if a selection matches more workloads than `most` (the argument max_matches), or if `most` is missing. A call
 * that writes must give this limit, because the selection may match more workloads than when the caller last looked.
 */
function requireBound(most: number | undefined, matched: number): void {
  if (most !== undefined && matched <= most) return
  const text =
    most === undefined
      ? `The selection matches ${countOf(matched, 'workload')}. Repeat the call with max_matches ${matched} to write.`
      : `The selection matches ${countOf(matched, 'workload')}, more than max_matches allows (${most}). Nothing was written.`
  throw new ToolError('invalid_argument', text, { argument: 'max_matches', matched })
}

const newLabels = ({ entries }: WishPlan['labels']): WishPlan['labels'] => ({
  entries: entries.filter((entry) => 'missing' in entry),
  warnings: [],
})

async function showDryRun(
  args: Arguments,
  ctx: Ctx,
  { labels, leftOut, relabellings }: RelabellingPlan,
  changes: readonly Relabelling[],
  facts: Facts,
): Promise<Output> {
  const created = newLabels(labels)
  const warnings = [...labels.warnings, ...tellLeftOut(leftOut)]
  let effect: Awaited<ReturnType<typeof judgeRelabelling>> | undefined
  if (changes.length > 0)
    try {
      effect = await judgeRelabelling({ ...ctx, signal: ctx.beforeWriting }, changes)
    } catch (error) {
      if (!(error instanceof PceError) || ctx.beforeWriting.aborted) throw error
      warnings.push(`The policy could not be read, so what the new labels do to it is not known: ${error.message}`)
    }
  const counted = `Would change the labels of ${changes.length} of ${countOf(facts.matched, 'workload')}${describeWishes(changes, 'remove')}`
  const rest = noteUnchanged(facts)
  const names = plannedLabels(created).map(({ key, value }) => quote(`${key}=${value}`))
  const makes = names.length === 0 ? '' : ` New labels: ${names.slice(0, 20).join(', ')}.`
  const bound =
    args.selection === undefined || changes.length === 0
      ? ''
      : ` To write, repeat it with max_matches ${facts.matched}.`
  const envelope = {
    dry_run: true,
    message: `${counted}.${rest}${makes}${bound}`,
    ...((effect !== undefined || warnings.length > 0) && {
      warnings: [...(effect === undefined ? [] : describeEffect(effect)), ...warnings],
    }),
    ...facts,
    ...(effect !== undefined && { effect: showEffect(effect) }),
  }
  // The answer for a confirmation, whose budget is infinite, includes all requests, because the confirmation covers
  // them.
  const isShort = changes.length <= MOST_REQUESTED || answerBudget(ctx.limits) === Infinity
  const requests =
    changes.length === 0 || !isShort ? [] : [...labelRequests(ctx.pce.orgId, created), requestOf(ctx, changes)]
  const shown = table(PLAN_COLUMNS, planRows(changes), [envelope, isShort && requests], ctx)
  const answer = { ...envelope, ...shown, ...(isShort && { requests }) }
  const unchanged = unchangedRows(relabellings.filter((one) => !isChanged(one)))
  const fitting = rowsBeside(unchanged, [answer, UNCHANGED_COLUMNS, ' '.repeat(100)], ctx).slice(0, MOST_UNCHANGED)
  return { ...answer, ...(fitting.length > 0 && { unchanged: { columns: UNCHANGED_COLUMNS, data: fitting } }) }
}

/**
 * Returns a sentence about the workloads that do not change, for appending to another sentence; empty if there are
 * none.
 */
function noteUnchanged(facts: Facts): string {
  const text = describeUnchanged(facts)
  return text === '' ? '' : ` ${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

const requestOf = ({ pce }: Ctx, changes: readonly Relabelling[]) => ({
  method: 'PUT',
  path: `/orgs/${pce.orgId}/workloads/bulk_update`,
  body: changes.map(bodyOf),
})

/** Returns as many rows as fit next to the answer's other fields, possibly none. */
const rowsBeside = (rows: string[][], answer: unknown, { limits }: Pick<Ctx, 'limits'>): string[][] => {
  const left = answerBudget(limits) - jsonBytes(answer)
  return rowsWithin(rows, left).filter((row, at) => at > 0 || jsonBytes(row) < left)
}

/** Returns a table with as many rows as fit into the answer, and the number of rows left out. */
function table(columns: string[], rows: string[][], envelope: object, { limits }: Pick<Ctx, 'limits'>) {
  const kept = Math.min(MOST_ROWS, countRowsThatFit(rows, [envelope, columns, ' '.repeat(300)], limits))
  const cut = rows.length - kept
  return {
    changes: { columns, data: rows.slice(0, kept) },
    ...(cut > 0 && { changes_cut: `${countOf(cut, 'more workload')} not shown here; the counts count all.` }),
  }
}

/**
 * Creates missing labels, then changes the workloads. If certainly no workload was changed, the new labels are deleted
 * again.
 */
async function write(
  ctx: Ctx,
  index: LabelIndex,
  { labels, leftOut }: RelabellingPlan,
  changes: readonly Relabelling[],
  facts: Facts,
  moved: readonly string[],
): Promise<Output> {
  const created: LabelOutput[] = []
  const missing = newLabels(labels)
  const placeholders = plannedLabels(missing)
  const written = await writeWithRollback(ctx.pce, {
    describe: (left) => ({ labels_created: created.filter((label) => left.includes(label.href)) }),
    async write(log): Promise<LabelsWritten> {
      const made = await writePlannedLabels(ctx, missing, log, created)
      const real = new Map(placeholders.map(({ href }, at) => [href, made[at] as LabelOutput]))
      const whole = changes.map(({ after, ...change }) => ({
        ...change,
        after: after.map((label) => real.get(label.href) ?? label),
      }))
      const result = await writeLabels(ctx, whole)
      // If certainly no workload was changed, the error thrown here causes the new labels to be deleted again.
      const { failure, results } = result
      const isOpen = mayHaveHappened(failure?.error) || results.some(({ outcome }) => outcome !== 'not_done')
      if (failure !== null && !isOpen) throw failure.error
      return result
    },
  })
  const expand = (label: { href: string }) =>
    created.find(({ href }) => href === label.href) ?? index.get(label.href) ?? label
  const outcomes = countOutcomes(written.results)
  const rows = outcomeRows(written.results, expand)
  const warnings = [
    ...moved,
    ...labels.warnings,
    ...tellLeftOut(leftOut),
    ...(written.unread === null ? [] : [`The labels could not be read back: ${written.unread}`]),
  ]
  if (written.failure !== null) throw explainFailure(ctx, written, { outcomes, rows, created, facts })
  const wrong = changes.length - outcomes.updated
  const done = describeWishes(
    written.results.flatMap(({ outcome, change }) => (outcome === 'updated' ? [change] : [])),
    'removed',
  )
  const envelope = {
    message:
      wrong === 0
        ? `Changed the labels of ${countOf(changes.length, 'workload')}${done}.${noteUnchanged(facts)}`
        : `Changed the labels of ${outcomes.updated} of ${countOf(changes.length, 'workload')}${done}; ${wrong} ${wrong === 1 ? 'is' : 'are'} not as asked for.${noteUnchanged(facts)}`,
    ...facts,
    outcomes: { ...outcomes },
    ...(created.length > 0 && { labels_created: created }),
    ...(warnings.length > 0 && { warnings }),
  }
  return { ...envelope, ...table(OUTCOME_COLUMNS, rows, envelope, ctx) }
}

/** Creates the error for a write that ended early. Its details say which workloads were changed and which were not. */
function explainFailure(
  ctx: Ctx,
  { failure, unread, results }: LabelsWritten,
  { outcomes, created, ...shown }: { outcomes: Outcomes; rows: string[][]; created: LabelOutput[]; facts: object },
): ToolError {
  const { updated, not_done: notDone } = outcomes
  const open = results.length - updated - notDone
  const details: ErrorDetails = {
    ...shown.facts,
    outcomes,
    ...(created.length > 0 && {
      partial: true,
      written: created.map(({ href }) => ({ href })),
      labels_created: created,
    }),
  }
  const others = open > 0 ? `, ${open} otherwise or not known (in changes, first)` : ''
  const by = unread === null ? 'Read back' : `By the answers of the PCE (they could not be read back: ${unread})`
  const hint = `${by}, ${updated} of ${countOf(results.length, 'workload')} are changed, ${notDone} are as they were${others}. The same call completes it: what is done is skipped.`
  return withDetails(failure?.error, { ...details, ...table(OUTCOME_COLUMNS, shown.rows, details, ctx) }, hint)
}
type Outcomes = ReturnType<typeof countOutcomes>
