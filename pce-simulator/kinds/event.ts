import type { PceObject } from '../../schemas/pce/reference.js'
import { readRoute, type Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { exact, timeBound, type Filters } from '../validate/query-filters.js'
import { answerCollection } from './answer-collection.js'

const EVENT_FILTERS: Filters = {
  event_type: exact('event_type'),
  severity: exact('severity'),
  status: (value) => (event) => (event.status ?? 'nil') === value,
  created_by: (value) => (event) => creators(event).includes(value),
  'timestamp[gte]': timeBound(timeOf, 'gte'),
  'timestamp[lte]': timeBound(timeOf, 'lte'),
}

/** The routes of events. They are listed newest first, 100 by default and at most 10,000 (P8, P26). */
export const eventRoutes: Route[] = [
  readRoute('/orgs/:org/events', (call) =>
    answerCollection(call, {
      // The cast to PceObject is safe. Events describe their authors in another form than other objects do, but neither
      // the filters nor the truncation of lists reads the authors.
      objects: call.world.events.newestFirst() as object[] as PceObject[],
      filters: EVENT_FILTERS,
      render: (event) => event,
      defaultMaxResults: 100,
      ceiling: 10_000,
    }),
  ),
  readRoute('/orgs/:org/events/:id', ({ world, path }) => {
    const event = world.events.get(path)
    if (!event) throw notFound()
    return { status: 200, json: event }
  }),
]

function timeOf(event: PceObject): string {
  return event.timestamp as string
}

function creators(event: PceObject): (string | undefined)[] {
  return Object.values(event.created_by as Record<string, { href?: string }>).map(({ href }) => href)
}
