import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import { portName } from '../inventory/protocols.js'
import type { AnyRule } from './rule-in-force.js'

/** The most entries listed per side and for the services. The line is only meant to recognise the rule. */
const MOST_NAMED = 4

/** Describes a rule in one line: `role=web to role=db, 5432/tcp`. */
export function nameRule({ consumers, providers, ingress_services: services }: AnyRule, names: ReferenceNames): string {
  const [from, to] = [consumers, providers].map((side) => shorten(side.map((actor) => nameActor(actor, names))))
  return `${from} to ${to}, ${shorten(services.map((service) => nameService(service, names)))}`
}

function shorten(parts: readonly string[]): string {
  const rest = parts.length - MOST_NAMED
  return [...parts.slice(0, MOST_NAMED), ...(rest > 0 ? [`${rest} more`] : [])].join(' + ') || 'no service'
}

function nameActor({ exclusion, actors, ...actor }: Actor, names: ReferenceNames): string {
  if (actors !== undefined) return actors === 'ams' ? 'all workloads' : actors
  const [selector = 'unknown', target] = Object.entries(actor)[0] ?? []
  return `${exclusion === true ? 'not ' : ''}${nameReference(target, names) ?? selector}`
}

function nameService(service: IngressService, names: ReferenceNames): string {
  if ('href' in service) return nameReference(service, names) ?? service.href
  const { port, to_port: toPort, proto } = service
  const isRange = toPort != null && toPort !== port
  return isRange ? `${port}-${portName({ port: toPort, proto })}` : portName({ port: port ?? null, proto })
}

function nameReference(target: unknown, names: ReferenceNames): string | undefined {
  if (typeof target !== 'object' || target === null) return typeof target === 'string' ? target : undefined
  const { href = '', ...own } = target as { href?: string; key?: string; value?: string; name?: string }
  const { key, value, name } = { ...names(href), ...own }
  return key !== undefined && value !== undefined ? `${key}=${value}` : (name ?? href)
}
