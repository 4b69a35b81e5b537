import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, Nullable, StringEnum } from '../../schemas/common.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import { FieldsInput, LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import { MOST_NAMED_WORKLOADS } from '../../schemas/workload-choice.js'
import { ToolError } from '../../schemas/errors.js'
import {
  COMPATIBILITY,
  findCandidates,
  meaningOfCheck,
  readCompatibility,
  type CheckedWorkload,
  type Compatibility,
} from '../../domain/ven-actions/read-compatibility.js'
import { compareTexts } from '../../domain/text/compare-texts.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { defineTool } from '../define.js'

const NAME = 'get-compatibility-reports'
/** Maximum number of workloads whose reports one call reads, because each report takes a request of its own. */
const MOST_ASKED = 200
const MOST_CHECKS = 10
/** Number of bytes that are kept free for a cursor, and for the totals of checks. */
const CURSOR_BYTES = 400
const Text = (description: string) => Nullable(Type.String({ description }))

const Row = Type.Object({
  name: Type.String(),
  href: Type.String(),
  status: StringEnum(COMPATIBILITY, {
    description:
      'red, yellow, green: of the report; not_reported: there is none yet; not_idle: VENs check in idle only',
  }),
  failed: Type.Array(Type.String(), { description: 'Checks that are not green: name, what was found, status' }),
  last_updated_at: Text('Of the report; null: not told'),
  is_old: Type.Optional(Type.Boolean({ description: 'Not known to be of the last two days; VENs check daily' })),
  online: Nullable(Type.Boolean({ description: 'null: not known' })),
  os: Text('os_id'),
  enforcement_mode: Text('Mode'),
  note: Type.Optional(Type.String({ description: 'Why it is not clear' })),
})

const output = Type.Object({
  summary: Type.String({ description: 'What was found' }),
  workloads: Counts('idle, not_idle and unmanaged ones that match; asked by this call; left: the next pages ask'),
  counts: Counts('Workloads of this page by status, listed or not'),
  old_reports: Count('Reports of this page that are not known to be of the last two days'),
  checks: Type.Array(
    Type.Object({
      check: Type.String({ description: "The PCE's word" }),
      means: Type.String({ description: 'In plain words' }),
      red: Count('Workloads: major incompatibility'),
      yellow: Count('Workloads: potential incompatibility'),
    }),
    { description: 'What failed on this page, most serious first' },
  ),
  checks_total: Type.Optional(Type.Integer({ description: 'If not all are listed' })),
  reports: Type.Array(Type.Partial(Row), { description: 'Worst first' }),
  not_listed: Counts('Workloads of this page that `status` leaves out, by status'),
  truncated: PagingOutput.truncated,
  next_cursor: PagingOutput.next_cursor,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What is not known' })),
})

export default defineTool({
  name: NAME,
  summary: 'Compatibility reports of idle workloads: what keeps each from leaving idle mode.',
  effect: 'read',
  reads: 'everything',
  toolset: 'vens-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: {
    atMost: 14,
    and: `one for each workload (${MOST_ASKED} at most) and label group, and up to three for each name`,
  },
  input: Type.Object(
    {
      workloads: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          maxItems: MOST_NAMED_WORKLOADS,
          description: 'Only these: hrefs, or exact names or host names, if unique',
          listed: 'Names or hrefs; absent: all idle ones',
        }),
      ),
      labels: LabelsFilter,
      status: Type.Optional(
        Type.Array(StringEnum(COMPATIBILITY), {
          minItems: 1,
          maxItems: COMPATIBILITY.length,
          description: 'List these; default: all but green, and not_idle only of workloads that are named',
          listed: '',
        }),
      ),
      max_results: pagingInput(LONG_ROWS).max_results,
      cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
      ...FieldsInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { labels: ['app=payments', 'env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: most = LONG_ROWS, fields, ...question } = args
    const { workloads: named, labels, status } = question
    if (named !== undefined && labels !== undefined) {
      const text = 'Say which workloads in one way: workloads or labels.'
      throw new ToolError('conflicting_identifiers', text, { arguments: ['workloads', 'labels'] })
    }
    const select = selectFields(fields, Row)
    const { offset } = await decodeCursor(ctx, NAME, question, cursor)
    const { idle, notIdle, unmanaged } = await findCandidates(ctx, { workloads: named, labels })
    const isListed = (one: CheckedWorkload): boolean =>
      status?.includes(one.status) ??
      (one.status === 'not_idle' ? named !== undefined : one.status !== 'green' || one.isOld)
    const { read, isGivenUp } = await readCompatibility(
      ctx,
      idle.slice(offset, offset + MOST_ASKED),
      (known) => known.filter(isListed).length >= most,
    )
    const end = offset + read.length
    const seen = end < idle.length ? read : [...read, ...notIdle.slice(end - idle.length)]
    const total = idle.length + notIdle.length
    const rowOf = (one: CheckedWorkload) => select(showReport(one))
    /** Builds the answer that covers the first `kept` of the examined workloads. */
    const cover = async (kept: number, rows: number) => {
      const page = seen.slice(0, kept)
      const next = { offset: offset + kept, after: null, within: null }
      const left = Math.max(0, idle.length - next.offset)
      const { checks, checks_total: checksTotal } = countChecks(page)
      const counts = countStatuses(page)
      const asked = Math.min(kept, read.length)
      const warnings = warnOf(counts, isGivenUp && kept >= read.length, unmanaged)
      const hidden = givenStatuses(page.filter((one) => !isListed(one)))
      const more = next.offset < total ? await encodeCursor(ctx, NAME, question, next) : undefined
      return {
        summary: `${summarise(counts, asked, left)}${status === undefined ? adviseOnHidden(hidden) : ''}`,
        workloads: { idle: idle.length, not_idle: notIdle.length, unmanaged, asked, left },
        counts,
        old_reports: page.filter(({ isOld }) => isOld).length,
        checks,
        ...(checksTotal > checks.length && { checks_total: checksTotal }),
        reports: page.filter(isListed).slice(0, rows).sort(worstFirst).map(rowOf),
        not_listed: hidden,
        truncated: more !== undefined,
        ...(more !== undefined && { next_cursor: more }),
        ...(warnings.length > 0 && { warnings }),
      }
    }
    const listed = seen.flatMap((one, at) => (isListed(one) ? [at] : []))
    const whole = await cover(seen.length, 0)
    const fitting = countRowsThatFit(
      listed.slice(0, most).map((at) => rowOf(seen[at]!)),
      [whole, ' '.repeat(CURSOR_BYTES)],
      ctx.limits,
    )
    // If a workload that should be listed does not fit, the page ends before it.
    return cover(listed[fitting] ?? seen.length, fitting)
  },
})

const worstFirst = (a: CheckedWorkload, b: CheckedWorkload): number =>
  COMPATIBILITY.indexOf(a.status) - COMPATIBILITY.indexOf(b.status) ||
  compareTexts(a.name, b.name) ||
  compareTexts(a.href, b.href)

const showReport = ({ href, name, status, failed, updatedAt, isOld, online, os, mode, note }: CheckedWorkload) => ({
  name,
  href,
  status,
  failed: failed.map(({ check, found, status: verdict }) => `${check}: ${found} (${verdict})`),
  last_updated_at: updatedAt,
  ...(isOld && { is_old: true }),
  online,
  os,
  enforcement_mode: mode,
  ...(note !== null && { note }),
})

const countStatuses = (page: readonly CheckedWorkload[]): Record<Compatibility, number> =>
  Object.fromEntries(
    COMPATIBILITY.map((status) => [status, page.filter((one) => one.status === status).length]),
  ) as Record<Compatibility, number>

/** Counts workloads by status. A status that no workload has is left out. */
const givenStatuses = (page: readonly CheckedWorkload[]): Partial<Record<Compatibility, number>> =>
  Object.fromEntries(Object.entries(countStatuses(page)).filter(([, many]) => many > 0))

/** Returns a sentence on how to see the workloads that are not listed; an empty text if all are listed. */
function adviseOnHidden(hidden: Partial<Record<Compatibility, number>>): string {
  const [first, ...others] = Object.keys(hidden)
  if (first === undefined) return ''
  const counts = Object.entries(hidden).map(([status, many]) => `${many} ${status}`)
  const asked = [first, ...others].map((status) => `"${status}"`).join(', ')
  return ` Not listed: ${counts.join(', ')}; status [${asked}] lists them.`
}

/** Counts the workloads on which each check failed. Checks that are red on the most workloads come first. */
function countChecks(page: readonly CheckedWorkload[]) {
  const found = new Map<string, { red: number; yellow: number }>()
  for (const { failed } of page)
    for (const [check, status] of new Map(failed.map((one) => [one.check, one.status]))) {
      const count = found.get(check) ?? { red: 0, yellow: 0 }
      if (status === 'red') count.red += 1
      else count.yellow += 1
      found.set(check, count)
    }
  const checks = [...found]
    .sort(([a, of], [b, other]) => other.red - of.red || other.yellow - of.yellow || compareTexts(a, b))
    .map(([check, count]) => ({ check, means: meaningOfCheck(check), ...count }))
  return { checks: checks.slice(0, MOST_CHECKS), checks_total: checks.length }
}

function warnOf(counts: Record<Compatibility, number>, isGivenUp: boolean, unmanaged: number): string[] {
  return [
    ...(counts.not_read > 0 ? [`The reports of ${countOf(counts.not_read, 'workload')} could not be read.`] : []),
    ...(isGivenUp ? ['The PCE answered for none of the last workloads, so no more were asked for.'] : []),
    ...(unmanaged > 0 ? [`${countOf(unmanaged, 'workload')} without a VEN have no report.`] : []),
  ]
}

/** The words for each status in the summary, in the order in which the summary mentions them. */
const WORDS: Readonly<Partial<Record<Compatibility, string>>> = {
  red: 'red (a major incompatibility: solve it before they leave idle mode)',
  yellow: 'yellow (a potential one: look at it first)',
  green: 'green',
  unclear: 'unclear',
  not_reported: 'without a report yet',
  not_read: 'that could not be read',
}

function summarise(counts: Record<Compatibility, number>, asked: number, left: number): string {
  const other = counts.not_idle > 0 ? ` ${counts.not_idle} not idle, so without a report.` : ''
  if (asked === 0) return `No idle workload with a VEN was asked about.${other}`
  const parts = Object.entries(WORDS).flatMap(([status, words]) => {
    const many = counts[status as Compatibility]
    return many === 0 ? [] : [`${many} ${words}`]
  })
  const rest = left > 0 ? ` ${left} more were not asked about: next_cursor goes on.` : ''
  return `${countOf(asked, 'idle workload')}: ${parts.join(', ')}.${rest}${other}`
}
