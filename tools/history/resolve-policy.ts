import { requireInside } from '../../domain/inventory/limited-reading.js'
import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { ApplicationReference, LabelReference } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput } from '../../schemas/paging.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../../domain/call.js'
import { chooseVersion, loadVersions } from '../../domain/history/read-versions.js'
import { resolvePolicy, type Subject } from '../../domain/history/resolve-policy.js'
import { ROW_DIRECTIONS, type RowPart } from '../../domain/history/resolve-rows.js'
import {
  resolveApplicationReference,
  type ApplicationReference as Application,
} from '../../domain/inventory/find-application.js'
import { resolveLabels, unresolvedFilter, type LabelReference as Reference } from '../../domain/inventory/labels.js'
import { readPolicyVersion } from '../../domain/inventory/policy-version.js'
import { quote } from '../../domain/text/escape-text.js'
import { answerBudget, OVERVIEW_BYTES } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import {
  chooseResolvedFields,
  describeResolved,
  HOW_TO_READ,
  NotResolvedOut,
  ResolvedRowOut,
  ResolvedWorkloadsOut,
  showNotResolved,
  showRow,
  writeHeader,
  writeRow,
} from '../answers/show-resolved.js'
import { defineTool } from '../define.js'

const NAME = 'resolve-policy'

const output = Type.Object({
  summary: Type.String({ description: 'What the rows are' }),
  policy_version: Type.String({ description: 'Number, draft or active' }),
  workloads: Type.Optional(ResolvedWorkloadsOut),
  rules_total: Type.Integer({ description: 'Rules with rows' }),
  rows_total: Type.Integer({ description: 'All there are; one with more than 50 addresses at an end is several' }),
  rows_by: Type.Record(Type.String(), Type.Integer(), { description: 'By action and direction' }),
  not_resolved: Type.Array(NotResolvedOut, { description: 'What no address or port says; empty: all is said' }),
  how_to_read: Type.String({ description: 'In which order rows decide' }),
  rules: Type.Optional(
    Type.Array(Type.Partial(ResolvedRowOut), {
      description: 'As rows, in the order in which they decide; absent with csv',
    }),
  ),
  csv: Type.Optional(
    Type.String({
      description:
        'The same rows as CSV (RFC 4180), each page with the header; "; " parts several values in a cell; the last columns say what, of which version and when',
    }),
  ),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
})

export default defineTool({
  name: NAME,
  summary: 'Rules of an application, label or rule set as addresses and ports, also as CSV.',
  effect: 'read',
  reads: 'judged',
  toolset: 'history',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 40,
    and: 'one for each user group that rules name (50 at most), for each rule set where the release keeps deny rules apart, and for long lists one more each',
  },
  input: Type.Object(
    {
      application: Type.Optional(Type.Union(ApplicationReference.anyOf, { description: 'app|env, app=X or env=X' })),
      labels: Type.Optional(
        Type.Array(LabelReference, {
          minItems: 1,
          maxItems: 20,
          description: 'Or: rules of workloads with all of these',
          listed: 'Or all of these',
        }),
      ),
      rule_set: Type.Optional(
        Type.String({ minLength: 1, description: 'Or: href or exact name', listed: 'Or name, href' }),
      ),
      policy_version: Type.Optional(
        Type.Union([Type.String(), Type.Integer()], { description: 'active (default), draft, number', listed: '' }),
      ),
      direction: Type.Optional(
        StringEnum(ROW_DIRECTIONS, {
          default: 'both',
          description: 'Only where it is enforced inbound or outbound',
          listed: 'Of rows',
        }),
      ),
      csv: Type.Optional(Type.Boolean({ default: false, description: 'As CSV text' })),
      detail_level: DetailLevel('full: rules in words, longer pages'),
      ...pagingInput(LONG_ROWS),
      fields: Type.Optional(
        Type.Array(Type.String(), { description: 'Only these, and always action, only and besides', listed: '' }),
      ),
    },
    { additionalProperties: false },
  ),
  output,
  example: { application: 'app=payments', csv: true },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, fields, csv = false, detail_level: detail = 'standard', max_results: asked } = args
    const columns = chooseResolvedFields(fields)
    const select = selectFields(fields && columns, ResolvedRowOut)
    const wanted = readPolicyVersion(args.policy_version ?? 'active')
    const { subject, name } = await chooseSubject(ctx, args)
    const version = chooseVersion(await loadVersions(ctx.pce, ctx.signal), wanted)
    const { application, labels, rule_set: ruleSet, direction = 'both' } = args
    const filters = {
      application,
      labels,
      rule_set: ruleSet,
      version: version.selector,
      direction,
      csv,
      detail,
      fields,
    }
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const resolved = await resolvePolicy(ctx, version.selector, subject, direction)
    const { parts, workloads, rules } = resolved
    const isShort = asked === undefined && detail === 'standard'
    const limits = isShort
      ? { ...ctx.limits, responseBudgetBytes: Math.min(answerBudget(ctx.limits), OVERVIEW_BYTES) }
      : ctx.limits
    const slice = sliceOfList(parts, position, asked ?? (detail === 'full' ? parts.length : LONG_ROWS))
    const envelope = {
      summary: describeResolved(name, version.name, resolved, direction),
      policy_version: String(version.selector),
      ...(resolved.ruleSet === undefined && {
        workloads: { total: workloads.total, modes: workloads.modes, address_ranges: workloads.intervals },
      }),
      rules_total: rules,
      rows_total: parts.length,
      rows_by: countBy(parts),
      not_resolved: showNotResolved(resolved),
      how_to_read: HOW_TO_READ,
    }
    const rows = slice.items.map((part) => showRow(part, detail === 'full' || csv || fields !== undefined))
    const page = { ...ctx, limits }
    if (!csv) {
      const { rows: shown, paging } = await answerPage(NAME, filters, slice, rows.map(select), page, envelope)
      return { ...envelope, rules: shown, ...pagingOf(paging) }
    }
    const header = writeHeader(columns)
    const record = {
      about: direction === 'both' ? name : `${name}, ${direction} only`,
      policy_version: envelope.policy_version,
      resolved_at: new Date(ctx.now()).toISOString(),
    }
    // Each line is measured in the form in which it is sent, including its line break.
    const lines = rows.map((row, at) => ({
      csv: writeRow(row, columns, { ...record, row: `${slice.start + at + 1} of ${parts.length}` }),
    }))
    const { rows: shown, paging } = await answerPage(NAME, filters, slice, lines, page, { ...envelope, csv: header })
    return { ...envelope, csv: [header, ...shown.map(({ csv: line }) => line)].join(''), ...pagingOf(paging) }
  },
})

const pagingOf = ({ truncated, next_cursor: next }: { truncated: boolean; next_cursor?: string }) => ({
  truncated,
  ...(next !== undefined && { next_cursor: next }),
})

function countBy(parts: readonly RowPart[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { row } of parts) {
    const key = `${row.action} ${row.direction}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

interface Asked {
  application?: Application
  labels?: Reference[]
  rule_set?: string
}

/**
 * Returns the application or labels whose rules were requested, with a phrase for sentences.
 *
 * @throws {ToolError} missing_identifier or conflicting_identifiers unless exactly one is named; the errors of
 * `resolveApplicationReference`; unresolved_label_filter; invalid_argument if two labels have the same key.
 */
async function chooseSubject(ctx: ToolContext<true>, asked: Asked): Promise<{ subject: Subject; name: string }> {
  const { application, labels: references, rule_set: ruleSet } = asked
  const known = ['application', 'labels', 'rule_set']
  const given = known.filter((argument) => asked[argument as keyof Asked] !== undefined)
  if (given.length === 0)
    throw new ToolError('missing_identifier', 'Say whose rules: give application, labels or rule_set.', {
      arguments: known,
    })
  if (given.length > 1)
    throw new ToolError('conflicting_identifiers', `Give one of ${given.join(' and ')}.`, { arguments: given })
  // What a whole rule set reaches is known only after it was resolved, so a caller with limited reading is refused.
  if (ruleSet !== undefined) await requireInside(ctx.pce, 'Everything that a rule set reaches', [])
  if (ruleSet !== undefined) return { subject: { ruleSet }, name: `rule set ${quote(ruleSet.trim())}` }
  const labels =
    application === undefined
      ? await resolveLabels(ctx.pce, references ?? [], ctx, unresolvedFilter)
      : await resolveApplicationReference(ctx, application, 'application')
  refuseTwice(labels)
  await requireInside(
    ctx.pce,
    labels.map(({ key, value }) => quote(`${key}=${value}`)).join(' and '),
    labels.map(({ href }) => href),
  )
  return { subject: { labels }, name: labels.map(({ key, value }) => quote(`${key}=${value}`)).join(' and ') }
}

function refuseTwice(labels: readonly Label[]): void {
  const twice = labels.find(({ key }, at) => labels.findIndex((other) => other.key === key) !== at)
  if (twice === undefined) return
  const text = `labels names the key ${quote(twice.key)} twice; a workload has one label of a key.`
  throw new ToolError('invalid_argument', text, { argument: 'labels' }, { hint: 'Ask once for each value.' })
}
