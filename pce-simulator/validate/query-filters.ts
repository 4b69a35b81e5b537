import type { PceObject } from '../../schemas/pce/reference.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'

export type Test = (object: PceObject) => boolean
/**
 * A function that reads the value of one query parameter and returns a test for objects. Throws 406 if the value is
 * invalid.
 */
export type Filter = (value: string, world: World) => Test
/** The filters by parameter name. Parameters without a filter are ignored (P8). */
export type Filters = Readonly<Record<string, Filter>>

/** Creates a filter that matches if a field contains the given text (P8). */
export function partial(field: string): Filter {
  return (value) => {
    const wanted = folded(value)
    return (object) => folded(textOf(object[field])).includes(wanted)
  }
}

function folded(text: string): string {
  return UNCERTAIN.filtersIgnoreCase ? text.toLowerCase() : text
}

export function exact(field: string): Filter {
  return (value) => (object) => textOf(object[field]) === value
}

export function flag(field: string): Filter {
  return (value) => {
    const wanted = readFlag(value, field)
    return (object) => (object[field] === true) === wanted
  }
}

/** Creates a filter that matches any of several values, given as a JSON list. */
export function anyOf(field: string): Filter {
  return (value) => {
    const wanted = new Set(readJsonList(value))
    return (object) => wanted.has(object[field])
  }
}

/** Creates a filter for a field that contains an object `{href}`. The value of the parameter is the wanted href. */
export function pointsTo(field: string): Filter {
  return (value) => (object) => (object[field] as { href?: string } | null | undefined)?.href === value
}

/** Works like `pointsTo`, but the value of the parameter is a JSON list of hrefs, any of which may match. */
export function pointsToAny(field: string): Filter {
  return (value) => {
    const wanted = new Set(readJsonList(value))
    return (object) => wanted.has((object[field] as { href?: string } | null | undefined)?.href)
  }
}

/**
 * Creates a filter by labels. In `labels=[["/orgs/1/labels/1","/orgs/1/labels/7"],["/orgs/1/labels/9"]]`, the labels of
 * an inner list are combined with AND, and the inner lists with OR. Any other form and an unknown label are refused
 * with 406 invalid_uri (P8). An object can have several sets of labels, such as one for each scope of a rule set.
 */
export function byLabels(labelSetsOf: (object: PceObject) => readonly ReadonlySet<string>[]): Filter {
  return (value, world) => {
    const groups = readJsonList(value)
    for (const group of groups) {
      if (!Array.isArray(group)) throw invalidUri(value)
      for (const href of group as unknown[]) {
        if (typeof href !== 'string' || !world.labels.get(href)) throw invalidUri(href)
      }
    }
    return (object) => {
      const sets = labelSetsOf(object)
      return (groups as string[][]).some((group) => sets.some((set) => group.every((href) => set.has(href))))
    }
  }
}

/**
 * Creates a filter that matches an object if at least one of its addresses contains the given text. A text that cannot
 * be part of an address is refused with 406 invalid_ip_address.
 */
export function byAddress(addressesOf: (object: PceObject) => readonly string[]): Filter {
  return (value) => {
    if (!/^[0-9a-f.:/]+$/i.test(value)) throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
    const wanted = value.toLowerCase()
    return (object) => addressesOf(object).some((address) => address.toLowerCase().includes(wanted))
  }
}

/**
 * Creates a filter for a query parameter such as `name[gte]` or `name[lte]`. The time in the parameter must include a
 * time zone (P8).
 */
export function timeBound(timeOf: (object: PceObject) => string | null | undefined, bound: 'gte' | 'lte'): Filter {
  return (value) => {
    const limit = readTime(value)
    if (limit === null) throw invalidInput(`${value} is not a timestamp with a time zone`)
    return (object) => {
      const time = Date.parse(timeOf(object) ?? '')
      return bound === 'gte' ? time >= limit : time <= limit
    }
  }
}

export const EXTERNAL_DATA_FILTERS: Filters = {
  external_data_set: exact('external_data_set'),
  external_data_reference: exact('external_data_reference'),
}

/** Parses an ISO 8601 timestamp with a time zone to milliseconds since the epoch. Returns null for anything else. */
export function readTime(value: string): number | null {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/
  const time = form.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(time) ? null : time
}

export function readFlag(value: string, name: string): boolean {
  const text = UNCERTAIN.flagsIgnoreCase ? value.toLowerCase() : value
  if (text !== 'true' && text !== 'false') throw invalidInput(`The parameter ${name} must be true or false`)
  return text === 'true'
}

/** Parses a JSON list. Throws 406 invalid_uri for anything else. */
export function readJsonList(value: string): unknown[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    throw invalidUri(value)
  }
  if (!Array.isArray(parsed)) throw invalidUri(value)
  return parsed
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value)
}
