import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { ActorOut, ScopeOut } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../../domain/call.js'
import { type PlannedRule, showNamed, showResolved } from '../../domain/drafts/plan-rules.js'
import { namesOrHrefs, type ReferenceNames } from '../../domain/inventory/reference-names.js'
import { trimBlanks } from '../../domain/text/escape-text.js'
import { isWritable } from './show-label.js'
import { denyType, type RuleType } from '../../domain/policy/rule-type.js'

/** Actors with their type, and key and value or name beside each href. */
function showActors(actors: readonly Actor[] | null | undefined, names: ReferenceNames): ActorOut[] {
  return (actors ?? []).map(({ exclusion, ...actor }) => {
    if (actor.actors !== undefined) return { type: actor.actors }
    const [type, target] = Object.entries(actor)[0] ?? ['unknown', undefined]
    const href = (target as { href?: string } | undefined)?.href
    return { type, ...(href === undefined ? {} : { href, ...names(href) }), ...(exclusion === true && { exclusion }) }
  })
}

/** Scopes as lists of label conditions. */
export function showScopes(scopes: readonly ScopeEntry[][] | null | undefined, names: ReferenceNames): ScopeOut[][] {
  return (scopes ?? []).map((scope) =>
    scope.map(({ label, label_group: group, exclusion }) => {
      const href = (label ?? group)?.href ?? ''
      return { href, ...names(href), ...(exclusion === true && { exclusion }) }
    }),
  )
}

export type RuleServiceOut = { href: string; name?: string } | { port?: number; to_port?: number; proto: number }

/** Services by href and name, or as ports with the protocol's number. */
function showServices(services: readonly IngressService[] | null | undefined, names: ReferenceNames): RuleServiceOut[] {
  return (services ?? []).map((service) =>
    'href' in service
      ? { href: service.href, name: names(service.href).name }
      : {
          port: service.port,
          ...(service.to_port != null && { to_port: service.to_port }),
          proto: service.proto,
        },
  )
}

/** A rule or deny rule as answers show it. */
export function showRule(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  const egress = showServices(rule.egress_services, names)
  return {
    rule_type: type,
    href: rule.href,
    enabled: rule.enabled,
    description: rule.description ?? null,
    ...resolutionOf(rule),
    consumers: showActors(rule.consumers, names),
    providers: showActors(rule.providers, names),
    ingress_services: showServices(rule.ingress_services, names),
    ...(egress.length > 0 && { egress_services: egress }),
    unscoped_consumers: rule.unscoped_consumers ?? false,
    ...(rule.update_type != null && { update_type: rule.update_type }),
  }
}

/** How the labels of an allow rule are resolved, where it is not to workloads alone. */
function resolutionOf(rule: Rule | DenyRule): Partial<Pick<Rule, 'resolve_labels_as'>> {
  const given = (rule as Partial<Rule>).resolve_labels_as
  const isUsual = (kinds?: readonly string[]) => kinds?.length === 1 && kinds[0] === 'workloads'
  if (!given || (isUsual(given.providers) && isUsual(given.consumers))) return {}
  return { resolve_labels_as: given }
}

/** Which rules of a rule set are shown; absent: all. */
type RuleTest = (rule: Rule | DenyRule) => boolean

/**
 * A rule set with its allow and deny rules in one list; `denyError` says why the deny rules are missing from it. Detail `standard` writes
 * labels, actors and services as callers do, `full` as objects with hrefs.
 */
export function showRuleSet(
  ruleSet: RuleSet,
  names: ReferenceNames,
  { detail, denyError, isWanted }: { detail: 'standard' | 'full'; denyError?: string; isWanted?: RuleTest },
) {
  const all = [
    ...(ruleSet.rules ?? []).map((rule) => ({ rule, type: 'allow' as const })),
    ...(ruleSet.deny_rules ?? []).map((rule) => ({ rule, type: denyType(rule) })),
  ]
  const wanted = isWanted === undefined ? all : all.filter(({ rule }) => isWanted(rule))
  const isBrief = detail === 'standard'
  const rules = wanted.map(({ rule, type }) => (isBrief ? writeRule : showRule)(rule, type, names))
  return {
    href: ruleSet.href,
    name: ruleSet.name,
    enabled: ruleSet.enabled,
    description: ruleSet.description ?? null,
    scopes: (isBrief ? writeScopes : showScopes)(ruleSet.scopes, names),
    ...(ruleSet.update_type != null && { update_type: ruleSet.update_type }),
    ...(denyError !== undefined && { deny_rules_error: denyError }),
    rules_total: all.length,
    ...(isWanted !== undefined && { rules_matching: rules.length }),
    rules,
  }
}

const NAMED_BY: Record<string, string> = { ip_list: 'iplist', label_group: 'labelgroup' }

/**
 * An end of a rule, or a condition of a scope, as callers write it: `ams`, `key=value`, `iplist:NAME`, {key, value, exclusion} (T4).
 * What a text would not name again, such as a workload, or a list whose name another one has, stays whole.
 */
function shortActor(actor: ActorOut | ScopeOut, names: ReferenceNames): string | Partial<ActorOut | ScopeOut> {
  const { href = '', key, value, name, exclusion } = actor
  const type = 'type' in actor ? actor.type : name === undefined ? 'label' : 'label_group'
  if (type === 'ams') return type
  const prefix = NAMED_BY[type]
  const text =
    type === 'label' && key !== undefined ? `${key}=${value}` : prefix && name !== undefined && `${prefix}:${name}`
  if (!text) return actor
  const isPlain = key === undefined ? name === trimBlanks(name ?? '') : isWritable({ key, value: value ?? '' })
  if (!isPlain || names.isShared?.(href) === true) return actor
  if (exclusion !== true) return text
  return key === undefined ? actor : { key, value, exclusion }
}

/** A service by its name where no other has it, otherwise whole. */
const shortService = (service: RuleServiceOut, names: ReferenceNames): string | RuleServiceOut =>
  'name' in service && service.name !== undefined && names.isShared?.(service.href) !== true ? service.name : service

const writeActors = (actors: readonly Actor[] | null | undefined, names: ReferenceNames) =>
  showActors(actors, names).map((actor) => shortActor(actor, names))

const writeServices = (services: readonly IngressService[] | null | undefined, names: ReferenceNames) =>
  showServices(services, names).map((service) => shortService(service, names))

/** Scopes as callers write them. */
export const writeScopes = (scopes: readonly ScopeEntry[][] | null | undefined, names: ReferenceNames) =>
  showScopes(scopes, names).map((scope) => scope.map((condition) => shortActor(condition, names)))

/** The parts of a rule that point at something, each as callers write it. */
const WRITTEN: Record<string, typeof writeActors | typeof writeServices> = {
  consumers: writeActors,
  providers: writeActors,
  ingress_services: writeServices,
  egress_services: writeServices,
}

/** Fields of a stored rule, what they point at as callers write it: arguments that would write them again. */
function writeFields(fields: Record<string, unknown>, names: ReferenceNames): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => [field, WRITTEN[field]?.(value as never, names) ?? value]),
  )
}

/** A rule as showRule does, its ends and services as callers write them. */
function writeRule(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  const shown = showRule(rule, type, names)
  return {
    ...shown,
    consumers: writeActors(rule.consumers, names),
    providers: writeActors(rule.providers, names),
    ingress_services: writeServices(rule.ingress_services, names),
    ...(shown.egress_services !== undefined && { egress_services: writeServices(rule.egress_services, names) }),
  }
}

/** A rule after a write and what its changed fields were, with the names of what they point at as far as they can be read. */
export async function showStoredRule(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  { stored, previous }: { stored: Rule | DenyRule; previous?: Record<string, unknown> },
  type: RuleType,
) {
  const { providers, consumers, ingress_services: ingress, egress_services: egress } = stored
  const names = await namesOrHrefs(ctx.pce, [providers, consumers, ingress, egress, previous], ctx)
  const { description, ...rule } = writeRule(stored, type, names)
  return {
    ...(previous !== undefined && { previous: writeFields(previous, names) }),
    rule: { ...rule, ...(description && { description }) },
  }
}

/** A rule in the words of the answer; names come from its own resolution. */
export function showPlannedRule(rule: PlannedRule) {
  const ends = [...rule.providers, ...rule.consumers].flatMap((actor) => Object.values(actor) as unknown[])
  const known = new Map(ends.flatMap((end) => (isNamed(end) ? [[end.href, end] as const] : [])))
  const nameOf = (href: string) => {
    const { key, value, name } = known.get(href) ?? {}
    return { key, value, name: name ?? undefined }
  }
  // Whether another list has the name of one that was given by href was not looked up.
  const names = Object.assign(nameOf, { isShared: (href: string) => !href.includes('/labels/') })
  return {
    rule_type: rule.type,
    providers: writeActors(rule.providers, names),
    consumers: writeActors(rule.consumers, names),
    services: showResolved(rule.services),
    ...(rule.egress.length > 0 && { egress_services: rule.egress.map(showNamed) }),
    unscoped_consumers: rule.unscoped,
  }
}

function isNamed(end: unknown): end is { href: string; key?: string; value?: string; name?: string | null } {
  return typeof end === 'object' && end !== null && 'href' in end
}
