import { Type, type Static } from '@sinclair/typebox'
import { Counts, Nullable, StringEnum } from '../../schemas/common.js'
import { ApplicationReference } from '../../schemas/label-reference.js'
import { pagingInput } from '../../schemas/paging.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import {
  type HistoryEntry,
  isFailed,
  mentions,
  readEvent,
  readVersionSteps,
  touches,
} from '../../domain/history/collect-history.js'
import { type Target, type TargetKind, TARGET_KINDS, findTarget } from '../../domain/history/find-target.js'
import { type Span, readSpan } from '../../domain/history/read-span.js'
import {
  type EventSearch,
  type VersionSearch,
  searchEvents,
  searchVersions,
} from '../../domain/history/search-history.js'
import { tellOnce } from '../../domain/history/tell-once.js'
import { parseHref } from '../../domain/inventory/parse-href.js'
import { loadAuthorNames, loadReferenceNames, type ReferenceNames } from '../../domain/inventory/reference-names.js'
import { showNamesInside } from '../../domain/policy/describe-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { fitRow } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, pageSize, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'who-changed'
const DEFAULT_MAX_RESULTS = 25
const DAY_MS = 86_400_000
/** Maximum number of people named in the summary. */
const MOST_NAMED = 5

const Part = Type.Object({
  href: Type.String(),
  type: Type.String({ description: 'rule_set, sec_rule, workload …' }),
  name: Type.Optional(Type.String()),
  change: Type.String({ description: 'create, update or delete' }),
  fields: Type.Array(
    Type.Object({
      field: Type.String({ description: 'Field' }),
      before: Type.Optional(Type.Unknown({ description: 'Before' })),
      after: Type.Optional(Type.Unknown({ description: 'After' })),
      removed: Type.Optional(
        Type.Array(Type.Unknown(), { description: 'What went from a list, if only that is known' }),
      ),
      added: Type.Optional(Type.Array(Type.Unknown(), { description: 'What came' })),
      updated: Type.Optional(Type.Array(Type.Unknown(), { description: 'What changed within' })),
    }),
    { description: 'What differs' },
  ),
  note: Type.Optional(Type.String({ description: 'Fields that are not here, or why' })),
})

const Row = Type.Object({
  at: Type.String({ description: 'When, UTC' }),
  by: Type.String({ description: 'Who' }),
  what: Type.String({
    description: 'Type of the event (an edit of the draft, or at once); provisioned: a policy version',
  }),
  href: Type.String({ description: 'Of the event or version' }),
  version: Type.Optional(Type.Integer({ description: 'Policy version that made it active' })),
  commit_message: Type.Optional(Type.String({ description: 'Of the version' })),
  parts: Type.Array(Part, { description: 'What it changed, as far as it is what was asked for' }),
  omitted: Type.Optional(Type.String({ description: 'What was left out, for size' })),
})

const output = Type.Object({
  what: Type.String({ description: 'What the history is of' }),
  summary: Type.String({ description: 'How many changes, by whom, from when to when' }),
  changes: Type.Array(Type.Partial(Row), { description: 'Newest first' }),
  by: Counts('Changes by who made them'),
  failed_attempts: Type.Optional(Type.Integer({ description: 'Calls that failed and changed nothing' })),
  events: Type.Object(
    {
      searched: Type.Integer({ description: 'Events looked at' }),
      from: Nullable(Type.String({ description: 'Oldest one looked at' })),
      complete: Type.Boolean({ description: 'All that the PCE has of this time were looked at' }),
      kept_days: Nullable(Type.Number({ description: 'How long the PCE keeps events; null: it does not say' })),
    },
    { description: 'How far the search of events reached' },
  ),
  versions: Type.Object(
    {
      searched: Type.Integer({ description: 'Versions looked into' }),
      in_time: Type.Integer({ description: 'Versions of this time' }),
      total: Type.Integer({ description: 'Versions of all time' }),
      complete: Type.Boolean({ description: 'All of this time were looked into' }),
    },
    { description: 'How far the search of policy versions reached' },
  ),
  covers: Type.String({ description: 'What was looked for' }),
  notes: Type.Array(Type.String(), { description: 'What the answer does not know' }),
  total_count: Type.Integer({ description: 'Changes found' }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
})

export default defineTool({
  name: NAME,
  summary: 'Who changed an object, rule or application, when and how.',
  effect: 'read',
  reads: 'everything',
  toolset: 'history',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 40,
    and: 'one for each version (40 at most), two for each change in them (200 at most), one for each workload that is named (50 at most), and for an application two for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      href: Type.Optional(
        Type.String({ description: 'Object or rule, also one that is gone', listed: 'Object or rule, also deleted' }),
      ),
      name: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'Exact name, with kind, refused if two have it; a label is key=value',
          listed: 'With kind; a label is key=value',
        }),
      ),
      kind: Type.Optional(
        StringEnum([...Object.keys(TARGET_KINDS), 'label'] as TargetKind[], { description: 'Of the name', listed: '' }),
      ),
      application: Type.Optional(Type.Union(ApplicationReference.anyOf, { description: 'app|env, app=X or env=X' })),
      since: Type.Optional(Type.String({ description: 'Only changes from this date or time on', listed: '' })),
      until: Type.Optional(Type.String({ description: 'Only changes up to this date or time, inclusive', listed: '' })),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Default', kind: 'rule_set' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, ...filters } = args
    const select = selectFields(fields, Row)
    const span = readSpan(filters)
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const target = await findTarget(ctx, filters)
    const versions = await searchVersions(ctx, span)
    const steps = await readVersionSteps(ctx, target, versions.steps)
    const reports = new Map<string, string>()
    const events = await searchEvents(ctx, span, (event) => {
      if (touches(target, event)) return true
      if (mentions(target, event)) reports.set(event.href, event.event_type ?? 'unknown')
      return false
    })
    const edits = events.events.filter((event) => !isFailed(event))
    const failed = events.events.length - edits.length
    const found = await nameAuthors(ctx, [...steps, ...edits.map((event) => readEvent(target, event))])
    const entries = tellOnce(newestFirst(found))
    if (entries.length === 0 && reports.size === 0 && target.gone !== undefined) throw target.gone.error
    const facts = {
      what: target.what,
      summary: summarise(target, entries, events, versions),
      by: countBy(entries),
      ...(failed > 0 && { failed_attempts: failed }),
      ...showReach(events, versions),
      covers: target.covers,
      notes: [...noteOnReports(reports), ...notesOn(ctx.now(), span, events, versions)],
    }
    const slice = sliceOfList(entries, position, pageSize(maxResults, ctx.limits, fields))
    const names = await loadReferenceNames(
      ctx.pce,
      slice.items.map(({ parts }) => parts.map((part) => part.fields)),
      ctx,
    )
    const named = slice.items.map((entry) => withNames(entry, names))
    const notes = [...(named.some(hasUnnamedGroup) ? [UNNAMED_GROUPS] : []), ...facts.notes]
    const shown = named.map((entry) => select(fitRow(entry, ctx.limits)))
    const { rows, paging } = await answerPage(NAME, filters, slice, shown, ctx, { ...facts, notes, changes: [] })
    const { pce_total: _all, ...page } = paging
    const { what, summary, ...rest } = { ...facts, notes }
    return { what, summary, changes: rows, ...rest, ...page }
  },
})

const withNames = (entry: HistoryEntry, names: ReferenceNames): HistoryEntry => ({
  ...entry,
  parts: entry.parts.map((part) => ({ ...part, fields: showNamesInside(part.fields, names) })),
})

const UNNAMED_GROUPS = 'User groups that could not be read are hrefs (security_principals).'

/** Returns true if an entry shows a user group only by its href. */
function hasUnnamedGroup(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { href, name } = value as { href?: unknown; name?: unknown }
  if (typeof href === 'string' && name === undefined && parseHref(href)?.kind === 'security_principals') return true
  return Object.values(value).some(hasUnnamedGroup)
}

/** Sorts entries, newest first. If times are equal, a provisioning comes before the edits that it put into effect. */
function newestFirst(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const timeOf = ({ at }: HistoryEntry) => (at === '' ? -Infinity : Date.parse(at))
  return entries.toSorted((a, b) => timeOf(b) - timeOf(a) || (b.version ?? 0) - (a.version ?? 0))
}

/**
 * Replaces the hrefs of authors with names. Policy versions contain only the author's href, whereas events usually
 * contain the name.
 */
async function nameAuthors(
  { pce, signal }: ToolContext<true>,
  entries: readonly HistoryEntry[],
): Promise<HistoryEntry[]> {
  const names = await loadAuthorNames(
    pce,
    entries.map(({ by }) => by),
    signal,
  )
  return entries.map((entry) => ({ ...entry, by: names.get(entry.by) ?? entry.by }))
}

function countBy(entries: readonly HistoryEntry[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { by } of entries) counts.set(by, (counts.get(by) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)))
}

function summarise(
  { what }: Target,
  entries: readonly HistoryEntry[],
  { searched }: EventSearch,
  { steps }: VersionSearch,
): string {
  const [last] = entries
  const first = entries.at(-1)
  if (last === undefined || first === undefined)
    return `No change of ${what} was found in ${countOf(searched, 'event')} and ${countOf(steps.length, 'policy version')}.`
  const people = Object.keys(countBy(entries))
  const more = people.length > MOST_NAMED ? ` and ${people.length - MOST_NAMED} more` : ''
  const versions = entries.filter(({ version }) => version !== undefined).length
  const when = entries.length === 1 ? `at ${last.at}` : `from ${first.at} to ${last.at}`
  return `${countOf(entries.length, 'change')} of ${what} ${when}, by ${people.slice(0, MOST_NAMED).map(quote).join(', ')}${more}; ${versions} of them ${versions === 1 ? 'is a provisioning' : 'are provisionings'}. The last: ${describeKind(last)} by ${quote(last.by)}.`
}

/** Describes an event type in words: `workloads.bulk_update` becomes a bulk update of workloads. */
function describeKind({ what, version }: HistoryEntry): string {
  if (version !== undefined) return `version ${version}, provisioned`
  const [noun = '', verb] = what.replaceAll('_', ' ').split('.')
  return verb === undefined ? noun : `${verb} of ${noun}`
}

const showReach = (events: EventSearch, { steps, inSpan, total, isComplete }: VersionSearch) => ({
  events: {
    searched: events.searched,
    from: events.oldest ?? null,
    complete: events.isComplete,
    kept_days: events.keptDays,
  },
  versions: { searched: steps.length, in_time: inSpan, total, complete: isComplete },
})

/**
 * Returns notes about events that name the target but did not change it. `reports` has the types of these events by
 * href.
 */
function noteOnReports(reports: ReadonlyMap<string, string>): string[] {
  if (reports.size === 0) return []
  const types = [...new Set(reports.values())].sort()
  const more = types.length > MOST_NAMED ? ` and ${types.length - MOST_NAMED} more types` : ''
  return [
    `${countOf(reports.size, 'event')} only ${reports.size === 1 ? 'mentions' : 'mention'} it (${types.slice(0, MOST_NAMED).join(', ')}${more}); get-events with object lists such events.`,
  ]
}

/** Returns notes about parts of the history that the search could not cover. */
function notesOn(now: number, { since }: Span, events: EventSearch, versions: VersionSearch): string[] {
  const keptSince = events.keptDays === null ? null : new Date(now - events.keptDays * DAY_MS).toISOString()
  const asksForOlder = keptSince !== null && (since === undefined || Date.parse(since) < Date.parse(keptSince))
  const oldest = versions.steps.at(-1)?.version
  return [
    ...(events.isComplete
      ? []
      : [
          `Only the newest ${countOf(events.searched, 'event')} were searched, back to ${events.oldest ?? 'none'}: go on with until.`,
        ]),
    ...(events.isComplete && asksForOlder
      ? [`The PCE keeps events for ${events.keptDays} days: of the time before ${keptSince} only versions are known.`]
      : []),
    ...(events.isComplete && events.keptDays === null
      ? ['The PCE does not say how long it keeps events: older ones may be gone.']
      : []),
    ...(versions.isComplete
      ? []
      : [
          `Of ${versions.inSpan} versions of this time the newest ${versions.steps.length} were looked into, back to version ${oldest?.version ?? 'none'}: go on with until.`,
        ]),
  ]
}
