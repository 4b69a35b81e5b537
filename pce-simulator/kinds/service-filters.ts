import type { PceObject } from '../../schemas/pce/reference.js'
import { invalidInput } from '../refusal.js'
import type { Filter } from '../validate/query-filters.js'

interface PortSpan {
  port?: number | null
  to_port?: number | null
  proto?: number | null
}

/** Creates a filter by the href of a service. The draft and the active href of a service are treated as equal. */
export function byService(servicesOf: (object: PceObject) => readonly object[]): Filter {
  return (value) => {
    const wanted = value.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/')
    return (object) => servicesOf(object).some((entry) => (entry as { href?: string }).href === wanted)
  }
}

/** Creates a filter by a port number, which may be listed individually or be within a range. */
export function byPort(spansOf: (object: PceObject) => readonly PortSpan[]): Filter {
  return (value) => {
    const wanted = readNumber(value, 65_535)
    return (object) =>
      spansOf(object).some(({ port, to_port }) => port != null && port <= wanted && wanted <= (to_port ?? port))
  }
}

export function byProtocol(spansOf: (object: PceObject) => readonly PortSpan[]): Filter {
  return (value) => {
    const wanted = readNumber(value, 255)
    return (object) => spansOf(object).some(({ proto }) => proto === wanted)
  }
}

function readNumber(value: string, most: number): number {
  const number = /^\d{1,5}$/.test(value) ? Number(value) : NaN
  if (!(number <= most)) throw invalidInput(`${value} is not a whole number from 0 to ${most}`)
  return number
}
