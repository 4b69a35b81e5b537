import { applicationId, type Application } from '../traffic/applications.js'
import { isSameApplication, nameOf } from './collect-peers.js'
import type { Discovery } from './discover-flows.js'
import type { EndMode } from './judge-flow.js'
import { portName } from '../inventory/protocols.js'

/** A destination that the application may no longer reach. */
export interface LostDestination {
  /** Null for what is none. */
  application: Application | null
  name: string
  connections: number
  /** As `443/tcp`. */
  ports: string[]
}

/** Outbound traffic that workloads in full enforcement drop, because no rule lets it out. */
export interface LostOutbound {
  /** Connections that no rule allows today. */
  certain: number
  /** Connections that are allowed in selective mode, as far as known only because no deny rule matches. */
  byDefault: number
  /** Busiest first. */
  destinations: LostDestination[]
}

/** What the application's own workloads would no longer send, traffic inside the application left out. */
export function findLostOutbound({ outbound }: Pick<Discovery, 'outbound'>, own: Application): LostOutbound {
  const found = new Map<string, LostDestination & { portSet: Set<string> }>()
  const lost = { certain: 0, byDefault: 0 }
  for (const flow of outbound) {
    const { application, destination, connections } = flow
    const why = reasonOf(flow)
    if (why === null || (application !== null && isSameApplication(application, own))) continue
    lost[why] += connections
    const key =
      application === null
        ? `${destination.workload} ${destination.fqdn ?? destination.ip}`
        : applicationId(application)
    const one = found.get(key) ?? {
      application,
      name:
        application === null
          ? nameOf({ ...pick('hostname', destination.hostname), ...pick('fqdn', destination.fqdn), ip: destination.ip })
          : `${application.app} (${application.env})`,
      connections: 0,
      ports: [],
      portSet: new Set<string>(),
    }
    one.connections += connections
    one.portSet.add(portName(flow))
    found.set(key, one)
  }
  const destinations = [...found.values()]
    .map(({ portSet, ...one }) => ({ ...one, ports: [...portSet] }))
    .sort((a, b) => b.connections - a.connections || (a.name < b.name ? -1 : 1))
  return { ...lost, destinations }
}

const pick = <K extends string>(key: K, value: string | null) =>
  (value === null ? {} : { [key]: value }) as Partial<Record<K, string>>

interface Outgoing {
  sourceMode: EndMode
  decision: string
  hasDraftRules: boolean
}

function reasonOf({ sourceMode, decision, hasDraftRules }: Outgoing): 'certain' | 'byDefault' | null {
  if (decision !== 'allowed') return 'certain'
  return (sourceMode === 'selective' || sourceMode === 'unknown') && !hasDraftRules ? 'byDefault' : null
}
