import type { PceObject } from '../../schemas/pce/reference.js'
import { readRoute, type Route } from '../http/route.js'
import { answerCollection } from '../kinds/answer-collection.js'
import { EVENT_FILTERS } from '../kinds/event.js'
import { notFound } from '../refusal.js'
import { PCE_FQDN, type World } from '../world.js'

const HOUR = 3_600_000
/** What the PCE did by itself, hours ago: the last day of its own housekeeping. */
const TASKS = [
  { hoursAgo: 1, event_type: 'system_task.agent_missed_heartbeats_check', status: 'success', severity: 'info' },
  { hoursAgo: 2, event_type: 'system_task.agent_offline_check', status: 'success', severity: 'info' },
  { hoursAgo: 7, event_type: 'system_task.agent_missed_heartbeats_check', status: 'failure', severity: 'err' },
  { hoursAgo: 12, event_type: 'system_task.prune_old_log_events', status: 'success', severity: 'info' },
  { hoursAgo: 23, event_type: 'system_task.agent_offline_check', status: 'success', severity: 'info' },
]

/** Events of the whole PCE: no organisation in their path, otherwise as the others (P9, P12). */
export const systemEventRoutes: Route[] = [
  readRoute('/system_events', (call) =>
    answerCollection(call, {
      objects: call.world.store('system_events').live(),
      filters: EVENT_FILTERS,
      render: (event) => event,
      defaultMaxResults: 100,
      ceiling: 10_000,
    }),
  ),
  readRoute('/system_events/:id', ({ world, path }) => {
    const event = world.store('system_events').get(path)
    if (!event) throw notFound()
    return { status: 200, json: event }
  }),
]

/** Newest first. */
export function seedSystemEvents(world: World): void {
  for (const { hoursAgo, event_type, status, severity } of TASKS) {
    const event = {
      href: `/system_events/${world.ids.uuid('system_events')}`,
      timestamp: new Date(world.clock() - hoursAgo * HOUR).toISOString(),
      pce_fqdn: PCE_FQDN,
      event_type,
      status,
      severity,
      created_by: { system: {} },
      action: null,
      resource_changes: [],
      notifications: [],
    }
    // Events name their authors in a way of their own.
    world.store('system_events').set(event as object as PceObject)
  }
}
