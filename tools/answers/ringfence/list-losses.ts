import { portName } from '../../../domain/inventory/protocols.js'
import {
  isSameApplication,
  nameOf,
  type ObservedPort,
  type OtherSource,
  type SourceKind,
  type Sources,
} from '../../../domain/ringfence/discover-peers.js'
import { describeReasons } from '../../../domain/policy/three-valued.js'
import type { FlowEffect } from '../../../domain/ringfence/judge-flow.js'
import type { PlannedRemote } from '../../../domain/ringfence/plan-ringfence.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'

/** The effects that mean that traffic is lost or stays blocked, worst first. */
const LOSSES = ['blocked_by_override_deny', 'cut', 'possibly_cut'] as const satisfies readonly FlowEffect[]
type Loss = (typeof LOSSES)[number]

/** A source that loses some or all of its traffic. */
export interface CutSource {
  kind: SourceKind
  /** The source's application as `app (env)`, or else its host name, FQDN or address. */
  source: string
  /** The most serious effect on any port on which the source loses traffic. */
  effect: Loss
  /** Number of connections on the ports on which the source loses traffic. */
  connections: number
  /** The ports on which the source loses traffic, such as `443/tcp`, busiest first. */
  ports: string[]
}

/**
 * Lists the sources that lose traffic: first those with certain losses, then those with possible losses, each with the
 * busiest sources first.
 */
export function listCut(sources: Sources): CutSource[] {
  return namePeers(sources)
    .flatMap(({ ports, ...who }): CutSource[] => {
      const effect = worstOf(ports)
      if (effect === null) return []
      const concerned = ports.filter((port) => isLoss(port.effect))
      const connections = concerned.reduce((sum, port) => sum + port.connections, 0)
      return [{ ...who, effect, connections, ports: [...new Set(concerned.map(portName))] }]
    })
    .sort(worstFirst)
}

/** A group of losses with the same effect: those of one application, or those of similar sources on one port. */
export interface LossGroup {
  effect: Loss
  kind: SourceKind
  /** The busiest source of the group. */
  source: string
  sources: number
  connections: number
  /** The ports on which traffic is lost, such as `443/tcp`, busiest first. */
  ports: string[]
  depends_on?: string
}

/**
 * Groups the losses, worst first. A group has only the ports with its effect, so a source that certainly loses traffic
 * on some ports and possibly on others appears in two groups.
 */
export function groupLosses(sources: Sources): LossGroup[] {
  const groups = new Map<string, { of: Omit<LossGroup, 'sources' | 'ports'>; names: Set<string>; ports: Set<string> }>()
  for (const { kind, source, ports } of namePeers(sources).sort((a, b) => b.connections - a.connections))
    for (const port of ports) {
      const { effect } = port
      if (!isLoss(effect)) continue
      const depends = port.dependsOn === undefined ? {} : { depends_on: describeReasons(port.dependsOn) }
      const at = kind === 'application' ? source : portName(port)
      const key = JSON.stringify([effect, kind, at, depends])
      const group = groups.get(key) ?? {
        of: { effect, kind, source, connections: 0, ...depends },
        names: new Set(),
        ports: new Set(),
      }
      group.of.connections += port.connections
      group.names.add(source)
      group.ports.add(portName(port))
      groups.set(key, group)
    }
  return [...groups.values()]
    .map(({ of: { depends_on: depends, ...of }, names, ports }) => ({
      ...of,
      sources: names.size,
      ports: [...ports],
      ...(depends !== undefined && { depends_on: depends }),
    }))
    .sort(worstFirst)
}

/**
 * Compares sources without labels for sorting: first those with certain losses, then those with possible losses, then
 * those without losses. Within each group, the busiest source comes first.
 */
export const byLoss = (a: OtherSource, b: OtherSource): number => rankOf(a) - rankOf(b) || b.connections - a.connections

const rankOf = ({ ports }: OtherSource) => {
  const worst = worstOf(ports)
  return worst === null ? 2 : Number(worst === 'possibly_cut')
}

const worstFirst = (a: Pick<CutSource, 'effect' | 'connections'>, b: Pick<CutSource, 'effect' | 'connections'>) =>
  Number(a.effect === 'possibly_cut') - Number(b.effect === 'possibly_cut') || b.connections - a.connections

const namePeers = ({ applications, others }: Sources) => [
  ...applications.map(({ app, env, ports, connections }) => ({
    kind: 'application' as const,
    source: `${app} (${env})`,
    connections,
    ports,
  })),
  ...others.map((one) => ({ kind: one.kind, source: nameOf(one), connections: one.connections, ports: one.ports })),
]

/** Returns the worst effect on any of these ports; null if nothing is lost. */
export const worstOf = (ports: readonly ObservedPort[]): Loss | null =>
  LOSSES.find((loss) => ports.some(({ effect }) => effect === loss)) ?? null

const isLoss = (effect: FlowEffect | undefined): effect is Loss =>
  (LOSSES as readonly (FlowEffect | undefined)[]).includes(effect)

/** A source that is an infrastructure service. */
export interface InfrastructureSource {
  app: string
  env: string
  tier: string
  infrastructure_score: number
  rule: PlannedRemote['rule']
  /** True if some of this source's traffic is lost or may be lost. */
  loses_traffic: boolean
}

/**
 * Lists the sources that are infrastructure services (tier Shared Service or higher, T15), highest score first. If
 * applications could not be ranked, the list is empty, and a warning about the plan says so.
 */
export function listInfrastructure({ plan: { remotes }, ranking }: Prepared): InfrastructureSource[] {
  if (ranking === null || typeof ranking === 'string') return []
  return ranking.rows
    .filter(({ tier }) => tier !== 'Standard Application')
    .flatMap(({ app, env, tier, infrastructure_score }) => {
      const remote = remotes.find((one) => isSameApplication(one, { app, env }))
      if (remote === undefined) return []
      return [
        { app, env, tier, infrastructure_score, rule: remote.rule, loses_traffic: worstOf(remote.ports) !== null },
      ]
    })
}
