import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { Counts, StringEnum } from '../../schemas/common.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { LabelKeys, WorkloadSelection } from '../../schemas/workload-selection.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { findLookAlikes } from '../../domain/hygiene/find-look-alikes.js'
import { countLeftOut, requireKeys, resolveSelection } from '../../domain/hygiene/select-workloads.js'
import { createSuggester, SOURCES, STRENGTHS, type Subject } from '../../domain/hygiene/suggest-labels.js'
import { scanEvery } from '../../domain/inventory/fetch-every.js'
import { hintAtHostname } from '../../domain/inventory/hint-at-hostname.js'
import { NONE_LEFT_OUT, tellUnread } from '../../domain/inventory/kubernetes-workloads.js'
import { createLabelExpander, loadLabels, type LabelIndex } from '../../domain/inventory/labels.js'
import { isManaged } from '../../domain/inventory/workloads.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { anything } from '../../domain/traffic/applications.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { chooseWindow, windowInput, type TrafficWindow } from '../../domain/traffic/traffic-window.js'
import { answerBudget, rowsWithin } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'find-unlabelled-workloads'
const DEFAULT_MAX_RESULTS = 25
/** Maximum number of workloads on a page. It is limited because the traffic query lists them all. */
const MOST_RESULTS = 200
const DEFAULT_DAYS = 7
const DEFAULT_KEYS = ['role', 'app', 'env', 'loc']
const MOST_LOOK_ALIKES = 50
/** The list of look-alikes may take up at most the answer's budget divided by this number. */
const SHARE_OF_LOOK_ALIKES = 4

const Row = Type.Object({
  href: Type.String(),
  name: Type.String({ description: 'Own name, otherwise host name' }),
  ip_addresses: Type.Array(Type.String(), { description: 'Of its interfaces' }),
  managed: Type.Boolean(),
  labels: Type.Array(Type.String(), { description: 'key=value' }),
  missing: Type.Array(Type.String(), { description: 'Keys' }),
  suggestions: Type.Array(
    Type.Object({
      label: Type.String({ description: 'key=value, which exists' }),
      strength: StringEnum(STRENGTHS, { description: 'strong: two sources agree, one solidly, none says otherwise' }),
      because: Type.Array(Type.String(), { description: 'The evidence' }),
    }),
    { description: 'Never written; decide for yourself' },
  ),
})

const output = Type.Object({
  summary: Type.String({ description: 'How many lack what' }),
  workloads_total: Type.Integer({ description: 'Workloads that the filters match, labelled or not' }),
  kubernetes_workloads_left_out: Type.Optional(
    Type.Integer({ description: 'First page only: that they match, too; their labels are those of their namespaces' }),
  ),
  missing_by_key: Counts('Of these, how many lack each key'),
  workloads: Type.Array(Type.Partial(Row), {
    description: 'Those of this page that lack labels, strongest evidence first',
  }),
  ...PagingOutput,
  look_alikes: Type.Optional(
    Type.Array(
      Type.Object({
        key: Type.String(),
        differ_by: Type.String({ description: 'case, spacing, or near: a typing error' }),
        labels: Type.Array(
          Type.Object({
            value: Type.String(),
            href: Type.String(),
            workloads: Type.Integer({ description: 'That have it' }),
          }),
          { description: 'Most workloads first' },
        ),
      }),
      { description: 'First page only: labels that may be meant as one; rules may name any of them' },
    ),
  ),
  look_alikes_total: Type.Optional(Type.Integer({ description: 'All there are, shown or not' })),
  window: Type.Optional(TrafficCounts.window),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What the suggestions lack' })),
})

export default defineTool({
  name: NAME,
  summary: 'Workloads that lack labels, with suggestions; labels that look alike.',
  effect: 'read',
  reads: 'shown',
  toolset: 'hygiene',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 16,
    and: 'one for each label group inside another, and up to ten for addresses that the traffic names from off the corporate network',
  },
  input: Type.Object(
    {
      missing: LabelKeys('Keys; default role, app, env, loc'),
      ...WorkloadSelection,
      suggest_from: Type.Optional(
        Type.Array(StringEnum(SOURCES), {
          maxItems: 3,
          description: 'Default all; [] for none',
          listed: '[]: nothing',
        }),
      ),
      ...windowInput(DEFAULT_DAYS),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { missing: ['role', 'app'], managed: true },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, ...question } = args
    const { missing: asked, suggest_from: sources = SOURCES, ...rest } = question
    const { lookback_days: _days, start_date: _start, end_date: _end, ...filters } = rest
    const { window } = chooseWindow(ctx.now(), question, DEFAULT_DAYS)
    const select = selectFields(fields, Row)
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const index = await loadLabels(ctx.pce, ctx)
    if (asked !== undefined) requireKeys(index, asked, 'missing')
    const inUse = DEFAULT_KEYS.filter((key) => index.values(key).length > 0)
    const keys = asked !== undefined && asked.length > 0 ? [...new Set(asked)] : inUse.length > 0 ? inUse : DEFAULT_KEYS
    const { params, ownFilter, selectsPod } = await resolveSelection(ctx.pce, filters, ctx)
    const expander = createLabelExpander(ctx.pce, ctx)

    const labelsOf = new WeakMap<Workload, LabelRef[]>()
    let total = 0
    let lacking = new Map<string, number>()
    const missingOf = (workload: Workload) => {
      const had = new Set((labelsOf.get(workload) ?? []).map(({ key }) => key))
      return keys.filter((key) => !had.has(key))
    }
    const isUnlabelled = (workload: Workload) => {
      if (ownFilter?.(workload) === false) return false
      total += 1
      const missing = missingOf(workload)
      for (const key of missing) lacking.set(key, (lacking.get(key) ?? 0) + 1)
      return missing.length > 0
    }
    const expand = async (items: readonly Workload[]) => {
      const named = await expander(items.flatMap(({ labels }) => labels ?? []))
      for (const item of items) labelsOf.set(item, (item.labels ?? []).map(named))
    }
    const api: Pick<typeof ctx.pce.workloads, 'scan'> = {
      scan: (version, parent, options) =>
        ctx.pce.workloads.scan(version, parent, {
          ...options,
          onBegin() {
            total = 0
            lacking = new Map()
            options.onBegin?.()
          },
          async onItems(items) {
            await expand(items)
            return options.onItems(items)
          },
        }),
    }
    const limit = Math.min(pageSize(maxResults, ctx.limits, fields), MOST_RESULTS)
    const slice = await fetchSlice({ api, params, signal: ctx.signal }, position, limit, isUnlabelled)
    const query = { api: ctx.pce.workloads, params, signal: ctx.signal }

    const subjects = slice.items.map((workload): Subject => ({
      href: workload.href,
      workload,
      missing: missingOf(workload),
    }))
    const isFirst = cursor === undefined
    const suggester = createSuggester(subjects, index, sources)
    const uses = new Map<string, number>()
    const isNeeded = isFirst || (subjects.length > 0 && (sources.includes('names') || sources.includes('addresses')))
    const see = () =>
      scanEvery(
        { api: ctx.pce.workloads, params: { include: 'labels' }, signal: ctx.signal },
        {
          onBegin() {
            suggester.begin()
            uses.clear()
          },
          async onItems(items) {
            await expand(items)
            for (const workload of items) {
              const labels = labelsOf.get(workload) ?? []
              for (const { href } of labels) uses.set(href, (uses.get(href) ?? 0) + 1)
              suggester.seeWorkload(workload, labels)
            }
          },
        },
      )
    const isWhole = !isNeeded || (await see()).isWhole
    const readsTraffic = subjects.length > 0 && sources.includes('traffic')
    const warnings = readsTraffic ? await readPeers(ctx, index, subjects, suggester, window) : []
    if (!isWhole)
      warnings.push(
        'The PCE did not give the whole list of workloads: suggestions and look-alikes rest on a part of it.',
      )

    const leftOut = isFirst ? await countLeftOut(ctx.pce, { selectsPod }, ctx.signal) : NONE_LEFT_OUT
    warnings.push(...tellUnread(leftOut.unread))

    const suggestions = subjects.map((subject) => suggester.suggest(subject))
    const rows = slice.items.map((workload, at) => {
      const subject = subjects[at] as Subject
      return select({
        href: workload.href,
        name: workload.name || workload.hostname || workload.href,
        ip_addresses: (workload.interfaces ?? []).flatMap(({ address }) => address ?? []),
        managed: isManaged(workload),
        labels: (labelsOf.get(workload) ?? []).map(({ key, value, href }) =>
          key == null || value == null ? href : `${key}=${value}`,
        ),
        missing: [...subject.missing],
        suggestions: (suggestions[at] ?? []).map(({ key, value, ...suggestion }) => ({
          label: `${key}=${value}`,
          ...suggestion,
        })),
      })
    })
    const missing_by_key = Object.fromEntries(keys.map((key) => [key, lacking.get(key) ?? 0]))
    const hint = total === 0 ? await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined }) : null
    const facts = {
      summary: `${summarise(slice.totalCount, total, missing_by_key, filters)}${hint === null ? '' : ` ${hint}`}`,
      workloads_total: total,
      ...(leftOut.left > 0 && { kubernetes_workloads_left_out: leftOut.left }),
      missing_by_key,
      ...(isFirst && (await lookAlikes(index, uses, ctx))),
      ...(readsTraffic && { window }),
      ...(warnings.length > 0 && { warnings }),
    }
    const { rows: kept, paging } = await answerPage(NAME, question, slice, rows, ctx, { ...facts, workloads: [] })
    // The rows are sorted only after the page was cut, so the cursor for the next page does not depend on the sorting.
    const ranks = suggestions.map(rankOf)
    const workloads = kept
      .map((row, at) => ({ row, rank: ranks[at] ?? 0 }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ row }) => row)
    const { look_alikes, look_alikes_total, ...head } = facts as typeof facts & LookAlikesOut
    return {
      ...head,
      workloads,
      ...paging,
      ...(look_alikes !== undefined && { look_alikes, look_alikes_total }),
    }
  },
})

/**
 * Returns the rank of a workload by its best suggestion: 0 for the strongest. Workloads without suggestions rank last.
 */
const rankOf = (suggestions: readonly { strength: (typeof STRENGTHS)[number] }[]): number =>
  Math.min(STRENGTHS.length, ...suggestions.map(({ strength }) => STRENGTHS.indexOf(strength)))

type LookAlikesOut = Partial<Awaited<ReturnType<typeof lookAlikes>>>

async function lookAlikes(index: LabelIndex, uses: ReadonlyMap<string, number>, { signal, limits }: ToolContext<true>) {
  const found = await workInTurns(
    findLookAlikes(index, (href) => uses.get(href) ?? 0),
    signal,
  )
  const shown = found.length === 0 ? [] : rowsWithin(found, answerBudget(limits) / SHARE_OF_LOOK_ALIKES)
  return { look_alikes: shown.slice(0, MOST_LOOK_ALIKES), look_alikes_total: found.length }
}

/**
 * Reads the traffic of the page's workloads and passes their peers to the suggester. Returns warnings about traffic
 * that could not be read.
 */
async function readPeers(
  ctx: ToolContext<true>,
  index: LabelIndex,
  subjects: readonly Subject[],
  suggester: ReturnType<typeof createSuggester>,
  window: TrafficWindow,
): Promise<string[]> {
  const own = new Set(subjects.map(({ href }) => href))
  const ours = { include: subjects.map(({ href }) => [{ workload: { href } }]), exclude: [] }
  const encoder = createFlowEncoder(index)
  const read = createFlowReader(ctx, encoder)
  const request = { name: 'mcp-unlabelled-workloads', window }
  const see = (subject: number, peer: number) => {
    const [end, other] = [encoder.ends.end(subject), encoder.ends.end(peer)]
    if (end.workload === null || !own.has(end.workload) || other.workload === null) return
    if (end.workload !== other.workload) suggester.seePeer(end.workload, other.workload, other.labels)
  }
  try {
    const reads = [
      await read({ ...request, filters: { sources: anything(), destinations: ours } }, ({ src, dst }) => see(dst, src)),
      await read({ ...request, filters: { sources: ours, destinations: anything() } }, ({ src, dst }) => see(src, dst)),
    ]
    return reads.some(({ truncated }) => truncated)
      ? ['Not all of their traffic could be read, so some peers are missing from the evidence.']
      : []
  } catch (error) {
    if (!(error instanceof PceError) || ctx.signal.aborted) throw error
    return [`Their traffic could not be read, so the suggestions do without: ${error.message}`]
  }
}

function summarise(
  unlabelled: number,
  total: number,
  byKey: Record<string, number>,
  filters: Record<string, unknown>,
): string {
  const those = Object.values(filters).every((value) => value === undefined) ? '' : ' that match'
  const keys = Object.keys(byKey)
  if (total === 0) return 'No workload matches.'
  if (unlabelled === 0) return `None of ${countOf(total, 'workload')}${those} lacks ${keys.map(quote).join(', ')}.`
  const parts = Object.entries(byKey).flatMap(([key, count]) => (count === 0 ? [] : [`${count} ${quote(key)}`]))
  return `${unlabelled} of ${countOf(total, 'workload')}${those} lack labels: ${parts.join(', ')}.`
}
