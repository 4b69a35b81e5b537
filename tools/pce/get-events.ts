import { Type, type Static } from '@sinclair/typebox'
import { Counts, Nullable, StringEnum } from '../../schemas/common.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import { defineTool } from '../define.js'
import { scanEvery } from '../../domain/inventory/fetch-every.js'
import { type EventFilter, createEventCount, filterEvents } from '../../domain/inventory/search-events.js'
import { quote } from '../../domain/text/escape-text.js'
import { readTime } from '../../domain/traffic/traffic-window.js'
import { answerBudget, jsonBytes } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, fetchSlice, pageSize, type Slice } from '../answers/page-list.js'
import { selectFields, type Select } from '../answers/select-fields.js'

const NAME = 'get-events'
/** Maximum number of events that the PCE returns in one answer, newest first (P8). */
const PCE_MOST = 10_000
const SEVERITIES = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'] as const
const Bound = (description: string) => Type.Optional(Type.String({ description, listed: '' }))

const Row = Type.Object({
  href: Type.String(),
  event_type: Nullable(Type.String({ description: 'rule_set.update …' })),
  timestamp: Nullable(Type.String()),
  severity: Nullable(Type.String()),
  status: Nullable(Type.String()),
  created_by: Type.Unknown({
    description: '{user|agent|ven|service_account|system: {href, username|hostname|name}}',
  }),
  pce_fqdn: Nullable(Type.String({ description: 'PCE' })),
  notification_type: Nullable(Type.String({ description: 'Of its first notification' })),
  info: Nullable(Type.Unknown({ description: 'Of its first notification' })),
  action: Nullable(Type.Unknown({ description: 'API call: endpoint, method, status, source' })),
  resource_changes: Type.Array(Type.Unknown(), { description: 'What changed, before and after' }),
  notifications: Type.Array(Type.Unknown(), { description: 'All notifications' }),
  omitted: Type.Optional(Type.Integer({ description: 'Changes and notifications too large to show' })),
})

const output = Type.Object({
  events: Type.Array(Type.Partial(Row), { description: 'Newest first' }),
  counts: Type.Optional(
    Type.Object(
      {
        event_type: Counts('By type'),
        created_by: Counts('By name, otherwise kind'),
        status: Counts('By outcome'),
        severity: Counts('By severity'),
      },
      { description: 'With counts: of everything that matches' },
    ),
  ),
  ...PagingOutput,
  note: Type.Optional(Type.String({ description: 'What is out of reach, or why there is nothing' })),
})

export default defineTool({
  name: NAME,
  summary: 'Audit events, newest first: who changed what, logins, VEN problems.',
  effect: 'read',
  reads: 'everything',
  toolset: 'server',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      event_type: Type.Optional(
        Type.String({ minLength: 1, description: 'e.g. user.login, rule_set.create', listed: 'e.g. rule_set.create' }),
      ),
      severity: Type.Optional(StringEnum(SEVERITIES, { description: 'Severity' })),
      status: Type.Optional(StringEnum(['success', 'failure'] as const, { description: 'Outcome', listed: '' })),
      created_by: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'user, ven, system …, name or href',
          listed: 'user, ven, system, name, href',
        }),
      ),
      object: Type.Optional(
        Type.String({ minLength: 1, description: 'What changed: name or href', listed: 'Name or href' }),
      ),
      timestamp_gte: Bound('From'),
      timestamp_lte: Bound('Until'),
      counts: Type.Optional(Type.Boolean({ description: 'Count instead' })),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { event_type: 'user.login', max_results: 20 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults = LONG_ROWS, counts, fields, ...filters } = args
    const select = selectFields(fields, Row)
    const [from, until] = readWindow(filters)
    const asked = [
      filters.event_type && ` of type ${quote(filters.event_type)}`,
      filters.severity && ` of severity ${quote(filters.severity)}`,
      filters.status && ` of status ${quote(filters.status)}`,
      from && ` from ${from}`,
      until && ` until ${until}`,
    ].join('')
    const filter = filterEvents({ created_by: filters.created_by?.trim(), object: filters.object?.trim() })
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const params = {
      event_type: filters.event_type,
      severity: filters.severity,
      status: filters.status,
      'timestamp[gte]': from,
      'timestamp[lte]': until,
    }
    const query = { api: pce.events, params, signal }
    if (counts === true) {
      let counted = createEventCount()
      const read = await scanEvery(query, {
        onBegin: () => void (counted = createEventCount()),
        onItems: (items) => items.filter((event) => filter.test?.(event) !== false).forEach(counted.count),
      })
      const found = counted.total()
      const totals = {
        total_count: found,
        pce_total: read.totalCount ?? read.items,
        truncated: !read.isWhole && read.items < PCE_MOST,
      }
      const seen = { pceTotal: totals.pce_total, seen: read.items, isWithheld: !read.isWhole }
      return { events: [], counts: counted.counts(), ...totals, ...noteOn(filters, asked, seen, found, filter) }
    }
    const found = await fetchSlice(query, position, pageSize(maxResults, limits, fields), filter.test)
    // If the PCE's limit was reached, the note already says that later pages lack events, so they are not reported as
    // withheld as well.
    const slice = { ...found, isWithheld: found.isWithheld === true && found.seen !== PCE_MOST }
    const notes = noteOn(filters, asked, found, slice.totalCount, filter)
    const shown = slice.items.map((event) => showEvent(event, limits, select))
    const { rows, paging } = await answerPage(NAME, filters, slice, shown, ctx, { events: [], ...notes })
    return { events: rows, ...paging, ...notes }
  },
})

type Reach = Pick<Slice<PceEvent>, 'pceTotal' | 'seen' | 'isWithheld'>

/** Returns notes about events that are missing from the answer, and about why no events were found. */
function noteOn(
  filters: object,
  asked: string,
  reach: Reach,
  found: number,
  { explainNone }: EventFilter,
): { note?: string } {
  const isCut = reach.isWithheld === true || reach.seen === PCE_MOST
  const notes = [
    found === 0 ? explainNone(reach.seen ?? 0, asked, isCut) : '',
    isOutOfReach(filters, reach, found)
      ? `The PCE gives the newest ${PCE_MOST} at most; go further back with timestamp_lte.`
      : '',
  ].filter((note) => note !== '')
  return notes.length === 0 ? {} : { note: notes.join(' ') }
}

/**
 * Returns true if there are older events that no page can show. If filters were used, X-Total-Count may count all
 * events nevertheless (P6). In this case, events can be missing only if the PCE returned as many as its limit permits.
 */
function isOutOfReach(filters: object, { pceTotal, seen = 0 }: Reach, found: number): boolean {
  if (pceTotal <= PCE_MOST) return false
  return seen === PCE_MOST || found > PCE_MOST || Object.values(filters).every((value) => value === undefined)
}

/**
 * Converts both bounds of the time window to the form that the PCE accepts, with a time zone (P26). Throws
 * invalid_argument if a bound is not a time, or if the window ends before it begins.
 */
function readWindow(filters: { timestamp_gte?: string; timestamp_lte?: string }): (string | undefined)[] {
  const bounds = Object.entries({ timestamp_gte: '00:00:00', timestamp_lte: '23:59:59.999' }).map(
    ([argument, ofDate]) => {
      const text = filters[argument as keyof typeof filters]
      if (text === undefined) return undefined
      const time = readTime(text, ofDate)
      if (time !== null) return time
      const why = `${argument} ${quote(text)} is not a time. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`
      throw new ToolError('invalid_argument', why, { argument })
    },
  )
  const [from, until] = bounds
  if (from === undefined || until === undefined || Date.parse(from) <= Date.parse(until)) return bounds
  throw new ToolError('invalid_argument', 'timestamp_gte is after timestamp_lte; swap them.', {
    argument: 'timestamp_gte',
  })
}

/** Bytes reserved for the paging fields and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * Shows an event. The event of a bulk write may be too large for an answer, because it lists thousands of changed
 * objects. In this case, the largest parts are left out, and `omitted` gives the number of changes and notifications.
 */
function showEvent(event: PceEvent, limits: Limits, select: Select) {
  const told = event.notifications ?? []
  const whole = {
    href: event.href,
    event_type: event.event_type ?? null,
    timestamp: event.timestamp ?? null,
    severity: event.severity ?? null,
    status: event.status ?? null,
    created_by: event.created_by ?? null,
    pce_fqdn: event.pce_fqdn ?? null,
    notification_type: told[0]?.notification_type ?? null,
    info: told[0]?.info ?? null,
    action: event.action ?? null,
    resource_changes: event.resource_changes ?? [],
    notifications: told,
  }
  const shown = select(whole)
  let room = answerBudget(limits) - ENVELOPE_BYTES - jsonBytes(shown)
  if (room >= 0) return shown

  const { info = null, action = null, resource_changes: changes = [], notifications = [] } = shown
  const bare = select({ ...whole, info: null, action: null, resource_changes: [], notifications: [] })
  room = answerBudget(limits) - ENVELOPE_BYTES - jsonBytes(bare)
  const fits = (part: unknown) => {
    const size = jsonBytes(part) + 1
    if (size > room) return false
    room -= size
    return true
  }
  const kept = {
    action: fits(action) ? action : null,
    info: fits(info) ? info : null,
    notifications: notifications.filter(fits),
    resource_changes: changes.filter(fits),
  }
  const omitted = changes.length + notifications.length - kept.resource_changes.length - kept.notifications.length
  return { ...bare, ...select(kept), omitted }
}
