import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { Count, Counts, StringEnum } from '../../schemas/common.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import { LabelOut, LabelReference } from '../../schemas/label-reference.js'
import { pagingInput } from '../../schemas/paging.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { labelRequests, plannedLabels, writePlannedLabels } from '../../domain/drafts/create-labels.js'
import { inOrderOfLabels } from '../../domain/drafts/order-of.js'
import { writeWithRollback } from '../../domain/drafts/write-with-rollback.js'
import { judgeRelabelling } from '../../domain/hygiene/judge-relabelling.js'
import { labelColumnsOf } from '../../domain/hygiene/label-columns.js'
import { planImport, readMeant, type PlannedRow } from '../../domain/hygiene/plan-import.js'
import { isChanged, NO_WISH, relabel, type Relabelling } from '../../domain/hygiene/plan-labels.js'
import {
  IMPORT_COLUMNS,
  MOST_ADDRESSES,
  MOST_ROWS,
  readImportCsv,
  readImportRows,
  type ImportRows,
} from '../../domain/hygiene/read-import.js'
import {
  bodyOf,
  isWriting,
  writeImport,
  type ImportWritten,
  type WritingRow,
} from '../../domain/hygiene/write-import.js'
import { planAgain } from '../../domain/hygiene/write-labels.js'
import { loadLabels, type LabelIndex, type LabelOutput } from '../../domain/inventory/labels.js'
import { mayHaveHappened, withDetails } from '../../domain/inventory/pce-errors.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { answerBudget } from '../answers/byte-budget.js'
import {
  ConflictsOut,
  countConflicts,
  countRows,
  DEFAULT_ROWS,
  LinesOut,
  listLines,
  pageRows,
  PLANNED,
  RowsOut,
  showPlanned,
  showWritten,
} from '../answers/hygiene/show-import.js'
import { describeEffect, EffectOut, showEffect } from '../answers/hygiene/show-relabelling.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'

const NAME = 'import-workloads'
/** Maximum length of the CSV text. An MCP request over HTTP may have 1 MiB in total. */
const LONGEST_CSV = 800_000
/** Maximum number of rows on a page. */
const MOST_LISTED = 200
/** Maximum number of written rows for which a dry run shows the requests. */
const MOST_REQUESTED = 5
/** Maximum number of rule sets that the effect names. */
const MOST_RULE_SETS = 5
/** Maximum number of written workloads named in an error. Their line numbers are listed for all of them. */
const MOST_WRITTEN = 20
/** Maximum number of new labels named in an answer. */
const MOST_LABELS = 20

const input = Type.Object(
  {
    csv: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LONGEST_CSV,
        description: 'Columns name, hostname, ip_addresses, description, label keys; empty cells change nothing',
      }),
    ),
    rows: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.Optional(Type.String({ description: 'Name' })),
            hostname: Type.Optional(Type.String({ description: 'Host name', listed: '' })),
            ip_addresses: Type.Optional(
              Type.Array(Type.String(), { maxItems: MOST_ADDRESSES, description: 'IPv4 or IPv6', listed: '' }),
            ),
            description: Type.Optional(Type.String({ description: 'Text' })),
            labels: Type.Optional(Type.Array(LabelReference, { maxItems: 50, description: 'One per key' })),
          },
          { additionalProperties: false },
        ),
        { minItems: 1, maxItems: MOST_ROWS, description: 'Or these' },
      ),
    ),
    create_missing_labels: Type.Optional(Type.Boolean({ description: 'Else an unknown label is an error' })),
    replace_addresses: Type.Optional(Type.Boolean({ description: 'Of known workloads; else new ones conflict' })),
    outcome: Type.Optional(StringEnum(PLANNED, { description: 'Dry run: list these rows' })),
    max_results: pagingInput(DEFAULT_ROWS).max_results,
    cursor: Type.Optional(Type.String({ description: 'Dry run: next_cursor', listed: '' })),
    ...DryRunInput,
  },
  { additionalProperties: false },
)
type Arguments = Static<typeof input>

const output = Type.Object({
  message: Type.String({ description: 'What happened, or would' }),
  rows_total: Count('Rows that were given'),
  outcomes: Counts('All rows, by what became of them or would'),
  conflicts: ConflictsOut,
  listed: RowsOut,
  truncated: Type.Optional(Type.Boolean({ description: 'Dry run: more rows follow' })),
  next_cursor: Type.Optional(Type.String({ description: 'For the next rows of a dry run' })),
  lines: LinesOut,
  effect: Type.Optional(EffectOut),
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'The first 20 labels that did not exist before' })),
  labels_created_total: Type.Optional(Count('All of them')),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})
type Output = Static<typeof output>
type Ctx = ToolContext<true>

export default defineTool({
  name: NAME,
  summary:
    'Create unmanaged workloads from a table or update those that are there, at once. Conflicts are left out; dry_run first.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'inventory-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 60,
    and: 'one for each label that it creates, two for each 1,000 rows, and in a dry run one for each rule set whose deny rules the PCE keeps apart',
  },
  input,
  output,
  example: { csv: 'name,ip_addresses,app,env\nlegacy-db-07,10.200.0.77,payments,prod', dry_run: true },
  async handler(args, ctx): Promise<Output> {
    checkArguments(args)
    if (args.dry_run === true) {
      const { read, index, planned } = await plan(args, ctx)
      return showDryRun(args, ctx, read, planned, index)
    }
    // Imports run one after the other, so that two equal concurrent calls do not create each workload twice.
    return ctx.inOrder('import of workloads', async () => {
      const { read, index, planned } = await plan(args, ctx)
      const relabelled = planned.flatMap((one) => (one.action === 'update' && isChanged(one.labels) ? [one] : []))
      const hrefs = relabelled.map(({ machine }) => machine.href)
      return inOrderOfLabels(ctx.inOrder, hrefs, async () => {
        const now = hrefs.length === 0 ? planned : await planLabelsAgain(ctx, planned)
        ctx.beforeWriting.throwIfAborted()
        return write(args, ctx, { read, index, planned: now })
      })
    })
  },
})

function checkArguments({ csv, rows, dry_run: dryRun, outcome, cursor }: Arguments): void {
  if ((csv === undefined) === (rows === undefined)) {
    const text = 'Give the workloads in one way: csv or rows.'
    throw new ToolError(csv === undefined ? 'missing_identifier' : 'conflicting_identifiers', text, {
      arguments: ['csv', 'rows'],
    })
  }
  const argument = outcome !== undefined ? 'outcome' : cursor !== undefined ? 'cursor' : undefined
  if (dryRun === true || argument === undefined) return
  const text = `${argument} chooses which rows a dry run lists, and not which are written. Leave it out, or set dry_run.`
  throw new ToolError('invalid_argument', text, { argument })
}

/** Returns the maximum number of rows that an answer lists. */
const mostListed = ({ max_results: most = DEFAULT_ROWS }: Arguments): number => Math.min(most, MOST_LISTED)

/**
 * Reads and checks all rows, then reads the workloads that match them. All mistakes are found before the first write.
 */
async function plan(args: Arguments, ctx: Ctx) {
  const reading = { ...ctx, signal: ctx.beforeWriting }
  const index = await loadLabels(ctx.pce, reading, 'fresh')
  const mayCreate = args.create_missing_labels === true
  const read: ImportRows =
    args.csv === undefined
      ? readImportRows(args.rows ?? [], index, mayCreate)
      : readImportCsv(args.csv, await labelColumnsOf(args.csv, IMPORT_COLUMNS, reading, index), index, mayCreate)
  ctx.progress({ progress: 0, message: 'Reading the workloads that are there' })
  const machines = await readMeant(reading, read.rows)
  const how = { replaceAddresses: args.replace_addresses === true }
  return { read, index, planned: planImport(read.rows, machines, index, how) }
}

/** Plans the label changes again for the labels that the workloads have once it is this call's turn to write (D225). */
async function planLabelsAgain(ctx: Ctx, planned: readonly PlannedRow[]): Promise<PlannedRow[]> {
  const relabelled = planned.flatMap((one) => (one.action === 'update' && isChanged(one.labels) ? [one.labels] : []))
  const again = await planAgain({ pce: ctx.pce, signal: ctx.beforeWriting }, relabelled)
  const labelsOf = new Map(again.changes.map((one) => [one.workload.href, one]))
  return planned.map((one): PlannedRow => {
    if (one.action !== 'update') return one
    const { row, machine, fields } = one
    const labels = labelsOf.get(machine.href) ?? one.labels
    const isThere = Object.keys(fields).length === 0 && !isChanged(labels)
    return isThere ? { row, action: 'unchanged', machine } : { ...one, labels }
  })
}

/** Returns the labels that rows to be written need and that do not exist yet. */
function newLabels({ labels }: ImportRows, writing: readonly WritingRow[]): ImportRows['labels'] {
  const needed = new Set(writing.flatMap(({ row }) => [...row.set.values()].map(({ href }) => href)))
  const missing = labels.entries.filter((entry) => 'missing' in entry)
  const entries = missing.filter((_, at) => needed.has(plannedLabels({ entries: missing, warnings: [] })[at]!.href))
  return { entries, warnings: [] }
}

/** Returns the labels of all workloads that are created or changed, before and after, in the form of a relabelling. */
const relabellingsOf = (writing: readonly WritingRow[], index: LabelIndex): Relabelling[] =>
  writing.map((one) => {
    if (one.action === 'update') return one.labels
    const nobody = { href: '', name: one.name, ownName: one.name, hostname: one.hostname, managed: false, mode: null }
    return relabel({ ...nobody, labels: [] }, { ...NO_WISH, set: one.row.set }, index)
  })

async function showDryRun(
  args: Arguments,
  ctx: Ctx,
  read: ImportRows,
  planned: readonly PlannedRow[],
  index: LabelIndex,
): Promise<Output> {
  const { cursor, max_results: _most, ...question } = args
  const { offset } = await decodeCursor(ctx, NAME, question, cursor)
  const writing = planned.filter(isWriting)
  const created = newLabels(read, writing)
  const warnings = [...read.labels.warnings]
  let effect: Awaited<ReturnType<typeof judgeRelabelling>> | undefined
  const changes = relabellingsOf(writing, index).filter(isChanged)
  const isFirst = cursor === undefined
  if (changes.length > 0 && isFirst && ctx.isBindingOnly !== true)
    try {
      effect = await judgeRelabelling({ ...ctx, signal: ctx.beforeWriting }, changes)
    } catch (error) {
      if (!(error instanceof PceError) || ctx.beforeWriting.aborted) throw error
      warnings.push(`The policy could not be read, so what the labels do to it is not known: ${error.message}`)
    }
  const rows = showPlanned(planned)
  const outcomes = countRows(rows, PLANNED)
  const shownEffect = effect === undefined ? undefined : showEffect(effect)
  const conflicts = countConflicts(planned)
  const said = [...(effect === undefined ? [] : describeEffect(effect)), ...warnings]
  // The answer for a confirmation, whose budget is infinite, has all requests, because the confirmation covers them.
  const isShort = isFirst && (writing.length <= MOST_REQUESTED || answerBudget(ctx.limits) === Infinity)
  const envelope = {
    dry_run: true,
    message: describePlan(outcomes, created),
    ...(isFirst && said.length > 0 && { warnings: said }),
    rows_total: planned.length,
    outcomes,
    ...(conflicts !== undefined && { conflicts }),
    ...(shownEffect !== undefined && {
      effect: { ...shownEffect, rule_sets: shownEffect.rule_sets.slice(0, MOST_RULE_SETS) },
    }),
    ...(isShort && { requests: [...labelRequests(ctx.pce.orgId, created), ...requestsOf(ctx, writing)] }),
  }
  const wanted = args.outcome === undefined ? rows : rows.filter(({ outcome }) => outcome === args.outcome)
  const page = pageRows(wanted, { offset, most: mostListed(args) }, envelope, ctx.limits)
  const next =
    page.next === null
      ? undefined
      : await encodeCursor(ctx, NAME, question, { offset: page.next, after: null, within: null })
  return {
    ...envelope,
    listed: page.listed,
    truncated: page.next !== null,
    ...(next !== undefined && { next_cursor: next }),
  }
}

function describePlan(outcomes: Record<string, number>, { entries }: ImportRows['labels']): string {
  const { create = 0, update = 0, unchanged = 0, conflict = 0 } = outcomes
  const made = entries.flatMap((entry) =>
    'missing' in entry ? [quote(`${entry.missing.key}=${entry.missing.value}`)] : [],
  )
  const more = made.length > MOST_LABELS ? ` and ${made.length - MOST_LABELS} more` : ''
  return [
    `Would create ${countOf(create, 'unmanaged workload')} and update ${update}; ${unchanged} ${unchanged === 1 ? 'is' : 'are'} there already.`,
    ...(conflict > 0 ? [`${countOf(conflict, 'row')} would not be written: see conflicts.`] : []),
    ...(made.length > 0 ? [`New labels: ${made.slice(0, MOST_LABELS).join(', ')}${more}.`] : []),
  ].join(' ')
}

/** Returns the requests that write the rows. Each contains all its objects. */
function requestsOf({ pce }: Ctx, writing: readonly WritingRow[]) {
  const verbs = { create: 'bulk_create', update: 'bulk_update' } as const
  return (['create', 'update'] as const).flatMap((action) => {
    const body = writing.filter((one) => one.action === action).map((one) => bodyOf(one))
    return body.length === 0 ? [] : [{ method: 'PUT', path: `/orgs/${pce.orgId}/workloads/${verbs[action]}`, body }]
  })
}

/**
 * Creates missing labels, then writes the rows. If certainly no workload was written, the new labels are deleted again.
 */
async function write(
  args: Arguments,
  ctx: Ctx,
  { read, index, planned }: { read: ImportRows; index: LabelIndex; planned: readonly PlannedRow[] },
): Promise<Output> {
  const writing = planned.filter(isWriting)
  const others = planned.filter((one) => !isWriting(one))
  const missing = newLabels(read, writing)
  const placeholders = plannedLabels(missing)
  const created: LabelOutput[] = []
  const replaceAddresses = args.replace_addresses === true
  const nothing: ImportWritten = { results: [], failure: null, unread: null }
  const written =
    writing.length === 0
      ? nothing
      : await writeWithRollback(ctx.pce, {
          describe: (left) => ({ labels_created: created.filter((label) => left.includes(label.href)) }),
          async write(log): Promise<ImportWritten> {
            const made = await writePlannedLabels(ctx, missing, log, created)
            const real = new Map(placeholders.map(({ href }, at) => [href, made[at] as LabelOutput]))
            const result = await writeImport(ctx, writing, index, { real, replaceAddresses })
            // If certainly no workload was written, this error causes the new labels to be deleted again.
            const { failure, results } = result
            const isOpen = mayHaveHappened(failure?.error) || results.some(({ outcome }) => outcome !== 'not_done')
            if (failure !== null && !isOpen) throw failure.error
            return result
          },
        })
  const rows = showWritten(written.results, others)
  const outcomes = countRows(rows, ['created', 'updated', 'unchanged', 'conflict'])
  const conflicts = countConflicts(planned)
  const isWhole = written.failure === null && countBad(outcomes) === 0
  const facts = {
    rows_total: planned.length,
    outcomes,
    ...(conflicts !== undefined && { conflicts }),
    ...(!isWhole && { lines: listLines(rows) }),
    ...(created.length > 0 && {
      labels_created: created.slice(0, MOST_LABELS),
      labels_created_total: created.length,
    }),
  }
  const most = mostListed(args)
  if (written.failure !== null) {
    const done = written.results.filter(({ outcome }) => outcome === 'created' || outcome === 'updated')
    const hrefs = [...created.map(({ href }) => href), ...done.flatMap(({ href }) => href ?? [])]
    const details: ErrorDetails = {
      ...facts,
      ...(hrefs.length > 0 && {
        partial: true,
        written: hrefs.slice(0, MOST_WRITTEN).map((href) => ({ href })),
        written_total: hrefs.length,
      }),
    }
    const { listed } = pageRows(rows, { most }, details, ctx.limits)
    throw withDetails(written.failure.error, { ...details, listed }, describeFailure(outcomes, written))
  }
  const warnings = [
    ...read.labels.warnings,
    ...(written.unread === null ? [] : [`The workloads could not be read back: ${written.unread}`]),
  ]
  const envelope = {
    message: describeWritten(outcomes),
    ...(warnings.length > 0 && { warnings }),
    ...facts,
  }
  return { ...envelope, listed: pageRows(rows, { most }, envelope, ctx.limits).listed }
}

/** Returns the number of attempted rows whose result is wrong or not known. */
const countBad = ({ refused = 0, differs = 0, unknown = 0, not_done: notDone = 0 }: Record<string, number>): number =>
  refused + differs + unknown + notDone

function describeWritten(outcomes: Record<string, number>): string {
  const { created = 0, updated = 0, unchanged = 0, conflict = 0 } = outcomes
  const bad = countBad(outcomes)
  const head =
    created + updated + bad === 0
      ? 'Nothing was written:'
      : `Created ${countOf(created, 'unmanaged workload')} and updated ${updated};`
  return [
    `${head} ${unchanged} ${unchanged === 1 ? 'is' : 'are'} there already.`,
    ...(bad > 0 ? [`${countOf(bad, 'row')} ${bad === 1 ? 'is' : 'are'} not as asked for: see listed.`] : []),
    ...(conflict > 0
      ? [`${countOf(conflict, 'row')} ${conflict === 1 ? 'was' : 'were'} left out: see conflicts.`]
      : []),
  ].join(' ')
}

function describeFailure(outcomes: Record<string, number>, { unread }: ImportWritten): string {
  const { created = 0, updated = 0, not_done: notDone = 0, unknown = 0, refused = 0, differs = 0 } = outcomes
  const by = unread === null ? 'Read back' : `By the answers of the PCE (they could not be read back: ${unread})`
  const open = refused + differs > 0 ? `, ${refused + differs} otherwise (listed first)` : ''
  const lost = unknown > 0 ? `, of ${unknown} it is not known` : ''
  const wait = unknown > 0 ? ' Wait a few minutes first: the PCE may still be at work on what it has not answered.' : ''
  return `${by}, ${created} are created, ${updated} updated, ${notDone} not written${open}${lost}. The same call completes it: what is done is left alone.${wait}`
}
