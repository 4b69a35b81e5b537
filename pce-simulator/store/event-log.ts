import type { PceEvent } from '../../schemas/pce/event.js'
import type { Json } from '../model.js'
import type { Reality } from '../options.js'
import type { Refusal } from '../refusal.js'
import type { Ids } from './ids.js'
import { tellListChanges } from './list-changes.js'

const KEPT = 20_000

interface Context {
  orgId: number
  pceFqdn: string
  user: () => { href: string; username: string }
  ids: Ids
  now: () => string
  reality: Reality
}

/** The HTTP request that caused a write, as the event describes it. `path` does not include `/api/v2`. */
interface Write {
  verb: string
  path: string
  sourceIp: string
}

/**
 * The log of events. It records one event for every successful write, every login, and every request that is refused
 * because of its credentials or its organisation. Reads cause no event (P26).
 */
export class EventLog {
  readonly #events: PceEvent[]
  readonly #context: Context
  readonly #kept: number

  /** Creates the log. `past` contains the events that have already happened, oldest first. */
  constructor(context: Context, past: readonly PceEvent[] = []) {
    this.#context = context
    this.#events = [...past]
    this.#kept = Math.max(KEPT, past.length)
  }

  /** Lists the events, newest first. */
  newestFirst(): PceEvent[] {
    return this.#events.toReversed()
  }

  get(href: string): PceEvent | undefined {
    return this.#events.find((event) => event.href === href)
  }

  recordWrite(eventType: string, call: Write, answer: { status: number; changes?: Change[] }): void {
    const changes = (answer.changes ?? []).map((change) => ({
      uuid: this.#context.ids.uuid('event-part'),
      resource: change.resource,
      changes: this.#context.reality === 'lab' ? (change.changes ?? {}) : tellListChanges(change.changes ?? {}),
      change_type: change.type,
    }))
    this.#add(eventType, 'success', 'info', {
      created_by: this.#actor(),
      action: this.#action(`/api/v2${call.path}`, call.verb, answer.status, call.sourceIp, []),
      resource_changes: changes,
      notifications: [],
    })
  }

  recordFailedWrite(eventType: string, call: Write, refusal: Refusal): void {
    this.#add(eventType, 'failure', 'err', {
      created_by: this.#actor(),
      action: this.#action(`/api/v2${call.path}`, call.verb, refusal.status, call.sourceIp, [...refusal.errors]),
      resource_changes: [],
      notifications: [],
    })
  }

  /**
   * Logs the event of a login. As in events of real PCEs, its author is the system, and the user is named in a
   * notification instead (P26).
   */
  recordLogin(eventType: string, call: Write, answer: { status: number; changes: Change[] }): void {
    if (this.#context.reality === 'lab') return this.recordWrite(eventType, call, answer)
    this.#add(eventType, 'success', 'info', {
      created_by: { system: {} },
      action: this.#action(`/api/v2${call.path}`, call.verb, answer.status, call.sourceIp, []),
      resource_changes: [],
      notifications: this.#notify('user.pce_session_created', { user: this.#context.user() }),
    })
  }

  /**
   * Logs a refused request.
   *
   * @param supplied the user name of a refused login, which may belong to no user.
   */
  recordRefusedRequest(
    eventType: string,
    path: string,
    method: string,
    status: number,
    sourceIp: string,
    supplied?: string,
  ): void {
    const isNamed = this.#context.reality !== 'lab' && supplied !== undefined
    this.#add(eventType, 'failure', 'warning', {
      created_by: { system: {} },
      action: this.#action(path, method, status, sourceIp, []),
      resource_changes: [],
      notifications: isNamed ? this.#notify(eventType, { associated_user: { supplied_username: supplied } }) : [],
    })
  }

  #notify(type: string, info: Json): Json[] {
    return [{ uuid: this.#context.ids.uuid('event-part'), notification_type: type, info }]
  }

  /** Describes who caused the event. The name of a service account is the user name of its keys (P26). */
  #actor(): Json {
    const { href, username } = this.#context.user()
    return href.startsWith('/users/') ? { user: { href, username } } : { service_account: { href, name: username } }
  }

  #action(endpoint: string, method: string, status: number, sourceIp: string, errors: unknown[]): Json {
    return {
      uuid: this.#context.ids.uuid('event-part'),
      api_endpoint: endpoint,
      api_method: method,
      http_status_code: status,
      src_ip: sourceIp,
      info: {},
      errors,
    }
  }

  #add(eventType: string, status: string, severity: string, details: Json): void {
    const { orgId, pceFqdn, ids, now } = this.#context
    this.#events.push({
      href: `/orgs/${orgId}/events/${ids.uuid('event')}`,
      timestamp: now(),
      pce_fqdn: pceFqdn,
      event_type: eventType,
      status,
      severity,
      ...details,
    })
    if (this.#events.length > this.#kept) this.#events.shift()
  }
}

/** The change that a write made to an object, for the event log. */
export interface Change {
  resource: Json
  type: 'create' | 'update' | 'delete'
  changes?: Record<string, { before: unknown; after: unknown }>
}
