import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { portName } from '../inventory/protocols.js'
import { nameEnd } from '../traffic/applications.js'
import { endColumns, portColumn, protocolColumn, recordedColumn, textColumn, type Column } from '../traffic/columns.js'
import { createDictionary, type FlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel } from '../traffic/flow-ends.js'
import { groupWithParts } from '../traffic/group-rows.js'

/** Maximum number of pairs of source and destination that are listed, and of ports that are listed for each pair. */
const MOST_PAIRS = 10
const MOST_PORTS = 5

/** Connections from one source to one destination whose recorded decision contradicts the rules. */
export interface Otherwise {
  source: string
  destination: string
  recorded: string
  decided: PolicyDecision
  connections: number
  /** The ports with the most connections, such as `443/tcp`. */
  ports: string[]
}

/** The busiest pairs of source and destination, and the number of all pairs. */
export interface OtherwiseList {
  total: number
  pairs: Otherwise[]
}

interface Keys {
  source: string | null
  destination: string | null
  recorded: string | null
  decided: string | null
}

/**
 * Creates a collection of traffic rows whose recorded decision contradicts the rules. It lists the busiest pairs of
 * source and destination. Rows are grouped as they are added, and objects are built only for the listed pairs, because
 * there may be 200,000 pairs.
 */
export function collectOtherwise(encoder: FlowEncoder): { add(row: FlowRow): void; list(): OtherwiseList } {
  const groups = groupWithParts<Keys, { port: string }>(
    { ...pairColumns(encoder), recorded: recordedColumn(encoder), decided: textColumn(encoder, 'decision') },
    { port: portNameColumn() },
  )
  return {
    add: (row) => void groups.add(row),
    list() {
      const { total, groups: busiest } = groups.busiest(MOST_PAIRS)
      return {
        total,
        pairs: busiest.map(({ keys, measures, parts }) => ({
          source: keys.source ?? 'unknown',
          destination: keys.destination ?? 'unknown',
          recorded: keys.recorded ?? 'unknown',
          decided: keys.decided as PolicyDecision,
          connections: measures.connections,
          ports: parts.port.busiest(MOST_PORTS).map(({ value }) => value),
        })),
      }
    },
  }
}

/**
 * Creates the columns for the names of source and destination: their applications, or their hosts if both belong to the
 * same application.
 */
function pairColumns(encoder: FlowEncoder): Record<'source' | 'destination', Column<string | null>> {
  const names = endColumns(encoder, nameEnd)
  const hosts = endColumns(encoder, endpointLabel)
  const column = (side: 'src' | 'dst'): Column<string | null> => ({
    // An even code stands for the name of an application, an odd code for the name of a host.
    code: (row) =>
      names.src.code(row) === names.dst.code(row) ? 2 * hosts[side].code(row) + 1 : 2 * names[side].code(row),
    value: (code) => (code % 2 === 1 ? hosts : names)[side].value(Math.floor(code / 2)),
  })
  return { source: column('src'), destination: column('dst') }
}

function portNameColumn(): Column<string> {
  const texts = createDictionary()
  return {
    code: (row) =>
      texts.code(
        portName({
          port: portColumn.value(portColumn.code(row)),
          proto: protocolColumn.value(protocolColumn.code(row)),
        }),
      ),
    value: (code) => texts.value(code) ?? '',
  }
}
