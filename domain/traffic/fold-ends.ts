import { TCP, UDP } from '../inventory/protocols.js'
import { applicationOf, nameEnd } from './applications.js'
import { dashed, endColumn, portColumn, protocolNameColumn, type Column } from './columns.js'
import type { Columns } from './dimensions.js'
import type { FlowEncoder } from './encode-flow.js'
import { tellingLists, type FlowEnd } from './flow-ends.js'

/** The last port. */
const LAST_PORT = 65_535

/** The name under which all public sources of which nothing is known count as one. */
export const PUBLIC_ADDRESSES = 'public addresses'

/** The code of all folded ports together. A missing port is -1. */
const FOLDED = -2

/**
 * Creates a column for the destination port in which all TCP and UDP ports from `from` on are one value, such as
 * `49152-65535`. A program that is given another port at each start would otherwise be new and gone at the same time.
 */
export function foldedPortColumn(from: number): Column<number | string | null> {
  const range = `${from}-${LAST_PORT}`
  return {
    code: (row) => (row.port >= from && (row.proto === TCP || row.proto === UDP) ? FOLDED : row.port),
    value: (code) => (code === FOLDED ? range : portColumn.value(code)),
  }
}

/**
 * Creates the columns by which pairs are compared unless the caller chooses others: the applications of both ends, or
 * their hosts, names or addresses where they have none, with port and protocol. Sources outside the inventory are
 * folded, because the visitors of a service are others every day: those of the same IP lists are one, and so are all
 * public ones of which nothing is known. Destinations never are, because a new one may be where data leaves to.
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

/** Returns the name that a source outside the inventory shares with others; null if it has a name of its own. */
function foldedSource(end: FlowEnd, isPublic: (address: string) => boolean): string | null {
  const { ip, fqdn, name, workload } = end
  if (fqdn !== null || name !== null || workload !== null || applicationOf(end) !== null) return null
  const lists = tellingLists(end)
  if (lists.length > 0) return lists.join(', ')
  return ip !== null && isPublic(ip) ? PUBLIC_ADDRESSES : null
}
