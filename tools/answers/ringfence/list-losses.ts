import { portName } from '../../../domain/inventory/protocols.js'
import {
  isSameApplication,
  nameOf,
  type ObservedPort,
  type SourceKind,
  type Sources,
} from '../../../domain/ringfence/discover-peers.js'
import type { FlowEffect } from '../../../domain/ringfence/judge-flow.js'
import type { PlannedRemote, RingfencePlan } from '../../../domain/ringfence/plan-ringfence.js'
import type { EstateRanking } from '../../../domain/ringfence/share-reads.js'

/** Effects that take traffic away or leave it blocked, worst first. */
const LOSSES = ['blocked_by_override_deny', 'cut', 'possibly_cut'] as const satisfies readonly FlowEffect[]
type Loss = (typeof LOSSES)[number]

/** A source that loses traffic, and on which ports. */
export interface CutSource {
  kind: SourceKind
  /** `app (env)`, otherwise its host name, FQDN or address. */
  source: string
  ip?: string
  /** The worst of its ports. */
  effect: Loss
  /** On these ports. */
  connections: number
  /** As `443/tcp`, busiest first. */
  ports: string[]
}

/** Everyone who loses traffic; certain losses first, then the busiest. */
export function listCut({ applications, others }: Sources): CutSource[] {
  const lost = [
    ...applications.map((one) => ({
      kind: 'application' as const,
      source: `${one.app} (${one.env})`,
      ports: one.ports,
    })),
    ...others.map((one) => ({
      kind: one.kind,
      source: nameOf(one),
      ...(one.ip !== null && one.ip !== nameOf(one) && { ip: one.ip }),
      ports: one.ports,
    })),
  ]
  return lost
    .flatMap(({ ports, ...who }): CutSource[] => {
      const effect = worstOf(ports)
      if (effect === null) return []
      const concerned = ports.filter((port) => isLoss(port.effect))
      const connections = concerned.reduce((sum, port) => sum + port.connections, 0)
      return [{ ...who, effect, connections, ports: [...new Set(concerned.map(portName))] }]
    })
    .sort(
      (a, b) =>
        Number(a.effect === 'possibly_cut') - Number(b.effect === 'possibly_cut') || b.connections - a.connections,
    )
}

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
