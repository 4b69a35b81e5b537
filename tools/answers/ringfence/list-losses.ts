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
import type { PlannedRemote, RingfencePlan } from '../../../domain/ringfence/plan-ringfence.js'
import type { EstateRanking } from '../../../domain/ringfence/share-reads.js'

/** Effects that take traffic away or leave it blocked, worst first. */
const LOSSES = ['blocked_by_override_deny', 'cut', 'possibly_cut'] as const satisfies readonly FlowEffect[]
type Loss = (typeof LOSSES)[number]

/** A source that loses traffic, whatever it keeps. */
export interface CutSource {
  kind: SourceKind
  /** `app (env)`, otherwise its host name, FQDN or address. */
  source: string
  /** The worst of its ports. */
  effect: Loss
  /** On the ports that it loses. */
  connections: number
  /** As `443/tcp`, busiest first. */
  ports: string[]
}

/** Everyone who loses traffic; certain losses first, then the busiest. */
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

/** What is lost in the same way: by one application, or by sources of one kind on one port. */
export interface LossGroup {
  effect: Loss
  kind: SourceKind
  /** The busiest of them. */
  source: string
  sources: number
  connections: number
  /** As `443/tcp`, busiest first. */
  ports: string[]
  depends_on?: string
}

/**
 * What would be lost, the worst first. An effect is said of exactly the ports that have it: a source that loses some ports for
 * certain and others only possibly is in two groups.
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

/** The same order for sources without labels: who loses for certain, who possibly, who nothing; the busiest first. */
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

/** The worst that happens on any of these ports; null when nothing is lost. */
export const worstOf = (ports: readonly ObservedPort[]): Loss | null =>
  LOSSES.find((loss) => ports.some(({ effect }) => effect === loss)) ?? null

const isLoss = (effect: FlowEffect | undefined): effect is Loss =>
  (LOSSES as readonly (FlowEffect | undefined)[]).includes(effect)

/** An infrastructure service among the sources. */
export interface InfrastructureSource {
  app: string
  env: string
  tier: string
  infrastructure_score: number
  rule: PlannedRemote['rule']
  /** Some of its traffic is lost. */
  loses_traffic: boolean
}

/** The sources that others depend on, from tier Shared Service up (T15), highest score first. */
export function listInfrastructure({ remotes }: RingfencePlan, ranking: EstateRanking): InfrastructureSource[] {
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
