import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { Count, Counts, StringEnum } from '../../schemas/common.js'
import { FieldsInput, pagingInput, PagingOutput } from '../../schemas/paging.js'
import { WorkloadSelection } from '../../schemas/workload-selection.js'
import {
  DOUBTS,
  type Doubt,
  readListeners,
  readTalk,
  type ListeningWorkload,
} from '../../domain/hygiene/find-listeners.js'
import { resolveSelection } from '../../domain/hygiene/select-workloads.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { describeReading, Reading, type FlowsRead } from '../../domain/traffic/read-flows.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { LISTENER_USES, ListenerOut, showListeners, type ListenerRow } from '../answers/hygiene/show-listeners.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { defineTool } from '../define.js'

const NAME = 'find-listeners'
const DEFAULT_DAYS = 30
const DEFAULT_RESULTS = 25
/**
 * Maximum number of workloads per call: each may have to be read individually, and the traffic query lists them all.
 */
const MOST_WORKLOADS = 200
/** Number of bytes that are kept free for a cursor. */
const CURSOR_BYTES = 400

const output = Type.Object({
  summary: Type.String({ description: 'What was found' }),
  workloads: Counts('matched; examined; unmanaged, left, unreported and unread: of these nothing is known here'),
  doubts: Type.Optional(Counts('Examined workloads of which silence proves nothing, or whose report is old')),
  local_only: Count('Ports that only the workload itself can reach: not listed'),
  listeners_total: Count('Listeners that match, shown or not'),
  counts: Counts('All listeners, by use'),
  listeners: Type.Array(Type.Partial(ListenerOut), {
    description: 'By port and process, those that nobody uses first',
  }),
  truncated: PagingOutput.truncated,
  next_cursor: PagingOutput.next_cursor,
  window: Type.Optional(Reading.window),
  flows_truncated: Type.Optional(Reading.flows_truncated),
  analysed: Type.Optional(Reading.analysed),
  ...AssumesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What is not known' })),
})

export default defineTool({
  name: NAME,
  summary: 'Processes that listen on ports of workloads, and which of them nobody talked to.',
  effect: 'read',
  reads: 'shown',
  toolset: 'hygiene',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: { atMost: 20, and: `one for each workload (${MOST_WORKLOADS} at most) and label group` },
  input: Type.Object(
    {
      labels: WorkloadSelection.labels,
      name: WorkloadSelection.name,
      hostname: WorkloadSelection.hostname,
      exact: WorkloadSelection.exact,
      port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: 'Only this', listed: '' })),
      process: Type.Optional(
        Type.String({ minLength: 1, description: 'Contains; of a process or Windows service', listed: '' }),
      ),
      use: Type.Optional(
        StringEnum(LISTENER_USES, { description: 'Only these; not_known: on some workload', listed: '' }),
      ),
      ...windowInput(DEFAULT_DAYS),
      max_results: pagingInput(DEFAULT_RESULTS).max_results,
      cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
      ...FieldsInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { labels: ['app=payments', 'env=prod'], use: 'unused' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: most = DEFAULT_RESULTS, fields, ...question } = args
    const select = selectFields(fields, ListenerOut)
    const { labels, name, hostname, exact, port, process, use } = question
    const { window, period } = chooseWindow(ctx.now(), question, DEFAULT_DAYS)
    const { offset } = await decodeCursor(ctx, NAME, question, cursor)
    ctx.progress({ progress: 0, total: 2, message: 'Reading what listens' })
    const selection = await resolveSelection(ctx.pce, { labels, name, hostname, exact }, ctx)
    const { workloads, counts } = await readListeners(ctx, selection, window, MOST_WORKLOADS)
    const part = process?.toLowerCase()
    const wanted = workloads.map(({ listeners, ...one }) => ({
      ...one,
      listeners: listeners.filter(
        (own) =>
          (port === undefined || own.port === port) &&
          (part === undefined ||
            [own.process, own.windowsService].some((text) => isLike(text?.toLowerCase() ?? '', part, exact === true))),
      ),
    }))
    ctx.progress({ progress: 1, total: 2, message: 'Reading who talked to it' })
    const heard = wanted.some(({ listeners }) => listeners.length > 0)
      ? await readTalk(ctx, wanted, await loadLabels(ctx.pce, ctx), window)
      : null
    const all = showListeners(wanted, heard?.talk ?? new Map(), heard?.read.truncated ?? false)
    const rows = use === undefined ? all : all.filter((row) => isOfUse(row, use))
    const page = rows.slice(offset, offset + most).map(select)
    const doubts = countDoubts(workloads)
    const warnings = [...warnOf(counts, heard?.read ?? null), ...explainDoubts(doubts)]
    const facts = {
      summary: summarise(all, { examined: workloads.length, matched: counts.matched }, period),
      workloads: { ...counts, examined: workloads.length },
      ...(Object.keys(doubts).length > 0 && { doubts }),
      local_only: workloads.reduce((sum, { local }) => sum + local, 0),
      listeners_total: rows.length,
      counts: Object.fromEntries(LISTENER_USES.map((word) => [word, all.filter((row) => row.use === word).length])),
    }
    const tail = {
      ...(heard !== null && describeReading(heard.read)),
      ...showAssumed(['P129']),
      ...(warnings.length > 0 && { warnings }),
    }
    const kept = countRowsThatFit(page, [facts, tail, ' '.repeat(CURSOR_BYTES)], ctx.limits)
    const next = { offset: offset + kept, after: null, within: null }
    const more = next.offset < rows.length ? await encodeCursor(ctx, NAME, question, next) : undefined
    return {
      ...facts,
      listeners: page.slice(0, kept),
      truncated: more !== undefined,
      ...(more !== undefined && { next_cursor: more }),
      ...tail,
    }
  },
})

/**
 * Tests a listener for a kind of use. One that is used on some workloads may be uncertain on others, and then counts as
 * not known as well.
 */
const isOfUse = (row: ListenerRow, use: ListenerRow['use']): boolean =>
  row.use === use || (use === 'not_known' && row.not_known !== undefined)

const isLike = (text: string, wanted: string, isExact: boolean): boolean =>
  isExact ? text === wanted : text.includes(wanted)

function countDoubts(workloads: readonly ListeningWorkload[]): Record<string, number> {
  const counted = DOUBTS.map(
    (doubt) => [doubt, workloads.filter(({ doubts }) => doubts.includes(doubt)).length] as const,
  )
  return Object.fromEntries(counted.filter(([, count]) => count > 0))
}

const IN_WORDS: Record<Doubt, string> = {
  offline: 'offline or stopped',
  idle: 'in idle mode',
  visibility_off: 'report no flows, or only blocked ones',
  paired_later: 'paired within the window',
  old_report: 'reported their ports more than 7 days ago, or at an unknown time',
}

/** Explains the words that `doubts` contains. */
function explainDoubts(doubts: Record<string, number>): string[] {
  const said = DOUBTS.flatMap((doubt) => (doubt in doubts ? [`${doubts[doubt]} ${IN_WORDS[doubt]} (${doubt})`] : []))
  return said.length === 0 ? [] : [`Of the workloads that were examined: ${said.join(', ')}.`]
}

function warnOf(counts: { left: number; unreported: number; unread: number }, read: FlowsRead | null): string[] {
  return [
    ...(counts.left > 0
      ? [`${countOf(counts.left, 'workload')} beyond ${MOST_WORKLOADS} were not looked at: narrow the selection.`]
      : []),
    ...(counts.unreported > 0 ? [`${countOf(counts.unreported, 'workload')} reported no listeners.`] : []),
    ...(counts.unread > 0 ? [`${countOf(counts.unread, 'workload')} could not be read.`] : []),
    ...(read !== null && read.rows === 0 && !read.truncated
      ? ['No traffic to any of these ports is in the window. If the PCE keeps none that old, silence proves nothing.']
      : []),
    ...(read?.truncated === true ? ['Not all of their traffic was read, so that nothing is called unused.'] : []),
  ]
}

function summarise(
  rows: readonly ListenerRow[],
  { examined, matched }: { examined: number; matched: number },
  period: string,
): string {
  const all = matched === examined ? '' : ` (${matched} match)`
  if (rows.length === 0)
    return `No listener that matches on ${countOf(examined, 'workload')} that reported listeners${all}, so nothing was asked about traffic.`
  const where = `${countOf(examined, 'workload')}${all}`
  const unused = rows.filter(({ use }) => use === 'unused').length
  const unsure = rows.filter(({ use }) => use === 'not_known').length
  const doubt = unsure === 0 ? '' : `, and of ${unsure} that is not known`
  return `${countOf(rows.length, 'listener')} on ${where}; nobody talked to ${unused} of them in ${period}${doubt}.`
}
