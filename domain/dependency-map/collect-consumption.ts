import { applicationId, applicationIds, type Application } from '../traffic/applications.js'
import { endColumn, portColumn, protocolNameColumn } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'

export interface PortUse {
  port: number | null
  proto: string | null
  connections: number
}

/** What reaches an application. */
export interface Consumed {
  /** The busiest ports, traffic inside the application left out. */
  ports: PortUse[]
  ports_total: number
  /** Distinct source addresses without an app label. */
  unmanaged_sources: number
}

/** What reaches applications: on which ports, and from how many addresses without an app label (tools contract, B6). */
export interface Consumption {
  readonly add: (row: FlowRow) => void
  /** Of these applications, in their order, with at most `ports` ports each. */
  of(applications: readonly Application[], ports: number): Consumed[]
}

export function collectConsumption(encoder: FlowEncoder): Consumption {
  const { src, dst } = applicationIds(encoder)
  const unlabelled = endColumn(encoder, 'src', ({ ip, labels }) => (labels['app'] === undefined ? (ip ?? '-') : null))
  const ports = groupRows({ dst, port: portColumn, proto: protocolNameColumn })
  const sources = groupRows({ dst, ip: unlabelled })
  return {
    add(row) {
      const target = dst.code(row)
      if (target === 0) return
      if (src.code(row) !== target) ports.add(row)
      if (unlabelled.code(row) !== 0) sources.add(row)
    },
    of(applications, limit) {
      const ids = new Set<string | null>(applications.map(applicationId))
      const busiest = ports.busiestWithin('dst', ids, limit)
      const counts = sources.busiestWithin('dst', ids, 0)
      return applications.map((application) => {
        const used = busiest.get(applicationId(application))
        return {
          ports: (used?.groups ?? []).map(({ keys: { port, proto }, measures: { connections } }) => ({
            port,
            proto,
            connections,
          })),
          ports_total: used?.total ?? 0,
          unmanaged_sources: counts.get(applicationId(application))?.total ?? 0,
        }
      })
    },
  }
}
