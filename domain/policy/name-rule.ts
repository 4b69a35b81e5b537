import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import { namePorts } from '../inventory/name-ports.js'
import { quote } from '../text/escape-text.js'
import { nameReference } from './name-reference.js'
import { selectorOf } from './read-actor.js'
import { describeConditions } from './rule-conditions.js'
import type { AnyRule } from './rule-in-force.js'

/** Maximum number of entries listed for each side and for the services, which is enough to recognise the rule. */
const MOST_NAMED = 4

const IN_LINE: ReadonlySet<string> = new Set(['consumers', 'providers', 'ingress_services', 'egress_services'])

/**
 * Returns true if the one-line description of a rule lists all entries of this field. It can list only the sides and
 * the services.
 */
export const isWholeInLine = (field: string, value: unknown): boolean =>
  IN_LINE.has(field) && Array.isArray(value) && value.length <= MOST_NAMED

/**
 * Describes a rule in one line that contains every condition other than the default, such as `role=web to role=db,
 * 5432/tcp; only authenticated machines (machine_auth)`. Two rules with different conditions have different
 * descriptions.
 */
export function nameRule(rule: AnyRule, names: ReferenceNames): string {
  const { consumers, providers, ingress_services: services, egress_services: programs } = rule
  const [from, to] = [consumers, providers].map((side) => shorten(side.map((actor) => nameActor(actor, names))))
  const ends = `${from} to ${to}, ${shorten(services.map((service) => nameService(service, names)))}`
  const egress = (programs ?? []).map((service) => nameService(service, names))
  return [
    ends,
    ...(egress.length > 0 ? [`only programs of ${shorten(egress)}`] : []),
    ...describeConditions(rule, names),
  ].join('; ')
}

/**
 * Describes a rule with its place, such as `"role=web to role=db, 5432/tcp" in "payments | prod"`.
 * @param ruleSet the name of its rule set; null for an enforcement boundary.
 */
export function nameRuleIn(rule: AnyRule, ruleSet: string | null, names: ReferenceNames): string {
  const where =
    ruleSet === null
      ? `the enforcement boundary ${quote((rule as { name?: string }).name ?? rule.href)}`
      : quote(ruleSet)
  return `${quote(nameRule(rule, names))} in ${where}`
}

function shorten(parts: readonly string[]): string {
  const rest = parts.length - MOST_NAMED
  return [...parts.slice(0, MOST_NAMED), ...(rest > 0 ? [`${rest} more`] : [])].join(' + ') || 'no service'
}

function nameActor(actor: Actor, names: ReferenceNames): string {
  const [selector, target] = selectorOf(actor)
  const isEveryone = selector === 'actors' && target === 'ams'
  return `${actor.exclusion === true ? 'not ' : ''}${isEveryone ? 'all workloads' : (nameReference(target, names) ?? selector)}`
}

function nameService(service: IngressService, names: ReferenceNames): string {
  return 'href' in service ? (nameReference(service, names) ?? service.href) : namePorts(service)
}
