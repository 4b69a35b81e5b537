import { TCP, UDP } from '../inventory/protocols.js'
import { applicationOf, nameEnd } from './applications.js'
import { dashed, endColumn, portColumn, protocolNameColumn, type Column } from './columns.js'
import type { Columns } from './dimensions.js'
import type { FlowEncoder } from './encode-flow.js'
import { tellingLists, type FlowEnd } from './flow-ends.js'

/** The highest port number. */
const LAST_PORT = 65_535

/** The one name for all public sources that are in no IP list and have no name of their own. */
export const PUBLIC_ADDRESSES = 'public addresses'

/** The code that stands for all folded ports together. (A missing port has the code -1.) */
const FOLDED = -2

/**
 * Creates a column for the destination port that shows all TCP and UDP ports from `from` upwards as one value, such as
 * `49152-65535`. Otherwise a program that gets a different port at each start would be reported as both new and gone.
 */
export function foldedPortColumn(from: number): Column<number | string | null> {
  const range = `${from}-${LAST_PORT}`
  return {
    code: (row) => (row.port >= from && (row.proto === TCP || row.proto === UDP) ? FOLDED : row.port),
    value: (code) => (code === FOLDED ? range : portColumn.value(code)),
  }
}

/**
 * Creates the columns by which traffic is compared by default: source and destination (each as its application, or else
 * its host, name or address), port and protocol. Sources outside the inventory are folded, because the visitors of a
 * service change every day: all sources in the same IP lists count as one source, and so do all other public addresses.
 * Destinations are never folded, because a new destination may be a place to which data leaks.
 *
 * @param isPublic returns whether an address is public (P61)
 */
export function pairColumns(encoder: FlowEncoder, foldFrom: number, isPublic: (address: string) => boolean): Columns {
  return {
    from: dashed(endColumn(encoder, 'src', (end) => foldedSource(end, isPublic) ?? nameEnd(end))),
    to: dashed(endColumn(encoder, 'dst', nameEnd)),
    port: foldedPortColumn(foldFrom),
    proto: protocolNameColumn,
  }
}

/**
 * Returns the shared name of a folded source, which must be outside the inventory; null for a source with a name of its
 * own.
 */
function foldedSource(end: FlowEnd, isPublic: (address: string) => boolean): string | null {
  const { ip, fqdn, name, workload } = end
  if (fqdn !== null || name !== null || workload !== null || applicationOf(end) !== null) return null
  const lists = tellingLists(end)
  if (lists.length > 0) return lists.join(', ')
  return ip !== null && isPublic(ip) ? PUBLIC_ADDRESSES : null
}
