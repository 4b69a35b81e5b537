import type { Limits } from '../../schemas/config.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import { answerBudget, jsonBytes } from './split-format.js'

/** Room left for the paging facts and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * An event as answers show it. One that would not fit an answer of its own (a bulk write changes thousands of objects) loses
 * what is too large, and says in `omitted` how many changes and notifications that were.
 */
export function showEvent(event: PceEvent, limits: Limits) {
  const told = event.notifications ?? []
  const shown = {
    href: event.href,
    event_type: event.event_type,
    timestamp: event.timestamp,
    severity: event.severity,
    status: event.status ?? null,
    created_by: event.created_by ?? null,
    pce_fqdn: event.pce_fqdn ?? null,
    notification_type: told[0]?.notification_type ?? null,
    info: told[0]?.info ?? null,
    action: event.action ?? null,
    resource_changes: event.resource_changes ?? [],
    notifications: told,
  }
  let room = answerBudget(limits) - ENVELOPE_BYTES - jsonBytes(shown)
  if (room >= 0) return shown

  const { info, action, resource_changes: changes, notifications } = shown
  const bare = { ...shown, info: null, action: null, resource_changes: [], notifications: [] }
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
  return { ...bare, ...kept, omitted }
}
