import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { portName } from '../inventory/protocols.js'
import { compareTexts } from '../text/compare-texts.js'
import { nameEnds } from '../traffic/applications.js'
import { portColumn, protocolColumn, recordedColumn, textColumn, wholeEndColumn } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'

/** Connections between two ends that the PCE recorded otherwise than rules decide, by their decisions. */
export interface Otherwise {
  source: string
  destination: string
  recorded: string
  decided: PolicyDecision
  connections: number
  /** The busiest first. */
  ports: string[]
}

interface Keys {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  recorded: string | null
  decided: string | null
}

/** Collects the rows whose recorded decision the rules contradict, and lists them by pairs, the busiest first. */
export function collectOtherwise(encoder: FlowEncoder): { add(row: FlowRow): void; list(): Otherwise[] } {
  const groups = groupRows<Keys>({
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    port: portColumn,
    proto: protocolColumn,
    recorded: recordedColumn(encoder),
    decided: textColumn(encoder, 'decision'),
  })
  return {
    add: (row) => void groups.add(row),
    list() {
      const pairs = new Map<string, Omit<Otherwise, 'ports'> & { byPort: Map<string, number> }>()
      for (const { keys, measures } of groups) {
        const [source, destination] = nameEnds(keys)
        const recorded = keys.recorded ?? 'unknown'
        const decided = keys.decided as PolicyDecision
        const id = JSON.stringify([source, destination, recorded, decided])
        const known = pairs.get(id)
        const pair = known ?? { source, destination, recorded, decided, connections: 0, byPort: new Map() }
        if (known === undefined) pairs.set(id, pair)
        const port = portName(keys)
        pair.connections += measures.connections
        pair.byPort.set(port, (pair.byPort.get(port) ?? 0) + measures.connections)
      }
      return [...pairs.values()]
        .map(({ byPort, ...pair }) => ({ ...pair, ports: busiestFirst(byPort) }))
        .sort(
          (a, b) =>
            b.connections - a.connections ||
            compareTexts(a.source, b.source) ||
            compareTexts(a.destination, b.destination) ||
            compareTexts(a.decided, b.decided),
        )
    },
  }
}

const busiestFirst = (byPort: ReadonlyMap<string, number>): string[] =>
  [...byPort].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)).map(([port]) => port)
