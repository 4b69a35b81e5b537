import { Type } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { ActorOut, ScopeOut } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../../domain/call.js'
import { type PlannedRule, showNamed, showResolved } from '../../domain/drafts/plan-rules.js'
import { namesOrHrefs, type ReferenceNames } from '../../domain/inventory/reference-names.js'
import { showNamesInside } from '../../domain/policy/describe-changes.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { selectorOf } from '../../domain/policy/read-actor.js'
import { conditionFieldsOf, describeConditions } from '../../domain/policy/rule-conditions.js'
import { trimBlanks } from '../../domain/text/escape-text.js'
import { answerBudget, jsonBytes } from './byte-budget.js'
import { isWritable } from './show-label.js'
import { isInForce } from '../../domain/policy/load-snapshot.js'
import { denyType, type RuleType } from '../../domain/policy/rule-type.js'

/**
 * Converts actors to their output form, which contains the type. For an actor that refers to an object, it also
 * contains the href, and the key and value of a label or the name of any other object.
 */
function showActors(actors: readonly Actor[] | null | undefined, names: ReferenceNames): ActorOut[] {
  return (actors ?? []).map((actor) => {
    const [selector, target] = selectorOf(actor)
    const excluded = actor.exclusion === true && { exclusion: true }
    if (typeof target === 'string')
      return { ...(selector === 'actors' ? { type: target } : { type: selector, key: target }), ...excluded }
    const href = (target as { href?: string } | undefined)?.href
    return { type: selector, ...(href === undefined ? {} : { href, ...names(href) }), ...excluded }
  })
}

/** Converts scopes to lists of label conditions. */
export function showScopes(scopes: readonly ScopeEntry[][] | null | undefined, names: ReferenceNames): ScopeOut[][] {
  return (scopes ?? []).map((scope) =>
    scope.map(({ label, label_group: group, exclusion }) => {
      const href = (label ?? group)?.href ?? ''
      return { href, ...names(href), ...(exclusion === true && { exclusion }) }
    }),
  )
}

export type RuleServiceOut =
  | { href: string; name?: string }
  | { port?: number; to_port?: number; proto: number; icmp_type?: number; icmp_code?: number }

/** Converts services to objects with href and name, or to ports with the protocol number. */
function showServices(services: readonly IngressService[] | null | undefined, names: ReferenceNames): RuleServiceOut[] {
  return (services ?? []).map((service) =>
    'href' in service
      ? { href: service.href, name: names(service.href).name }
      : {
          port: service.port,
          ...(service.to_port != null && { to_port: service.to_port }),
          proto: service.proto,
          ...(service.icmp_type != null && { icmp_type: service.icmp_type }),
          ...(service.icmp_code != null && { icmp_code: service.icmp_code }),
        },
  )
}

/** Returns the parts of a rule that refer to other objects, so that the names of these objects can be shown. */
export const referencesOf = (rule: Rule | DenyRule): unknown[] => [
  rule.providers,
  rule.consumers,
  rule.ingress_services,
  rule.egress_services,
  conditionFieldsOf(rule),
]

/**
 * Returns the fields of a rule that narrow or widen it and differ from their default, and `log_flow` if the rule is
 * logged. Names are added next to hrefs. Consumers, providers and services are not included.
 */
export const showConditionFields = (rule: Rule | DenyRule, names: ReferenceNames): Record<string, unknown> => ({
  ...showNamesInside(conditionFieldsOf(rule), names),
  ...(rule.log_flow === true && { log_flow: true }),
})

/** Converts a rule or deny rule to its output form. Its conditions have the names and values that the PCE uses. */
export function showRule(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  return { ...showParts(rule, type, names), ...showConditionFields(rule, names) }
}

function showParts(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  const egress = showServices(rule.egress_services, names)
  return {
    rule_type: type,
    href: rule.href,
    ...(rule.enabled != null && { enabled: rule.enabled }),
    description: rule.description ?? null,
    consumers: showActors(rule.consumers, names),
    providers: showActors(rule.providers, names),
    ingress_services: showServices(rule.ingress_services, names),
    ...(egress.length > 0 && { egress_services: egress }),
    unscoped_consumers: rule.unscoped_consumers ?? false,
    ...(rule.update_type != null && { update_type: rule.update_type }),
  }
}

/** A function that decides whether a rule of a rule set is shown. Without it, all rules are shown. */
type RuleTest = (rule: Rule | DenyRule) => boolean

/** Counts the iptables rules of a rule set. Answers show only their number, because their effect is not evaluated. */
function showIpTables({ ip_tables_rules: tables }: RuleSet) {
  const enabled = (tables ?? []).filter(isInForce).length
  const note = 'In the syntax of iptables: not shown, not judged.'
  return { ...(tables != null && tables.length > 0 && { ip_tables_rules: { total: tables.length, enabled, note } }) }
}

/**
 * Converts a rule set to its output form, with allow and deny rules in one list; `denyError` says why deny rules are
 * missing. At detail `standard`, labels, actors and services are written as tool arguments (such as `key=value`); at
 * detail `full`, they are objects with hrefs.
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
  const rules = wanted.map(({ rule, type }) => (isBrief ? writeRule(rule, type, names) : showRule(rule, type, names)))
  return {
    href: ruleSet.href,
    name: ruleSet.name,
    enabled: ruleSet.enabled,
    description: ruleSet.description ?? null,
    scopes: (isBrief ? writeScopes : showScopes)(ruleSet.scopes, names),
    ...(ruleSet.update_type != null && { update_type: ruleSet.update_type }),
    ...(denyError !== undefined && { deny_rules_error: denyError }),
    rules_total: all.length,
    ...showIpTables(ruleSet),
    ...(isWanted !== undefined && { rules_matching: rules.length }),
    rules,
  }
}

/** Output fields with the ports of the services to which the shown rules refer. */
export const ServicesOut = {
  services: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Ports' })),
  services_left_out: Type.Optional(Type.Integer({ description: 'Not in services' })),
}

/** The ports of services may take up at most the answer's budget divided by this number. */
const SERVICES_SHARE = 4

/**
 * Returns the ports of the services to which the rules refer (`{DNS: "53/udp"}`), and the number of services that were
 * left out. The ports take at most a quarter of the answer. A name that several services have is followed by the href.
 * Fewer rules never give a larger result, so the result for all rules shows how much space to reserve.
 */
export function showPorts(
  rules: readonly (Rule | DenyRule)[],
  names: ReferenceNames,
  limits: Limits,
): { services?: Record<string, string>; services_left_out?: number } {
  const services = rules.flatMap((rule) => [...(rule.ingress_services ?? []), ...(rule.egress_services ?? [])])
  const hrefs = [...new Set(services.flatMap((service) => ('href' in service ? [toDraftHref(service.href)] : [])))]
  const known = hrefs.flatMap((href): [string, string][] => {
    const [{ name }, ports] = [names(href), names.portsOf?.(href)]
    if (name === undefined || ports === undefined) return []
    return [[names.isShared?.(href) === true ? `${name} (${href})` : name, ports]]
  })
  let left = answerBudget(limits) / SERVICES_SHARE
  const end = known.findIndex((one) => (left -= jsonBytes(one)) < 0)
  const shown = end === -1 ? known : known.slice(0, end)
  const leftOut = known.length - shown.length
  return {
    ...(shown.length > 0 && { services: Object.fromEntries(shown) }),
    ...(leftOut > 0 && { services_left_out: leftOut }),
  }
}

const NAMED_BY: Record<string, string> = { ip_list: 'iplist', label_group: 'labelgroup' }

/**
 * Formats a consumer, provider or scope condition as callers write it: `ams`, `key=value`, `!key=value` (all but
 * these), `iplist:NAME` (T4). If a string would not identify it, as with workloads and IP lists whose names are not
 * unique, the result is an object.
 */
function shortActor(actor: ActorOut | ScopeOut, names: ReferenceNames): string | Partial<ActorOut | ScopeOut> {
  const { href = '', key, value, name, exclusion } = actor
  const type = 'type' in actor ? actor.type : name === undefined ? 'label' : 'label_group'
  if (type === 'ams' && exclusion !== true) return type
  const prefix = NAMED_BY[type]
  const text =
    type === 'label' && key !== undefined ? `${key}=${value}` : prefix && name !== undefined && `${prefix}:${name}`
  if (!text) return actor
  const isPlain = key === undefined ? name === trimBlanks(name ?? '') : isWritable({ key, value: value ?? '' })
  if (!isPlain || names.isShared?.(href) === true) return actor
  if (exclusion !== true) return text
  return type === 'label' || type === 'label_group' ? `!${text}` : actor
}

/** Formats a service as its name if the name is unique, otherwise as an object. */
const shortService = (service: RuleServiceOut, names: ReferenceNames): string | RuleServiceOut =>
  'name' in service && service.name !== undefined && names.isShared?.(service.href) !== true ? service.name : service

const writeActors = (actors: readonly Actor[] | null | undefined, names: ReferenceNames) =>
  showActors(actors, names).map((actor) => shortActor(actor, names))

const writeServices = (services: readonly IngressService[] | null | undefined, names: ReferenceNames) =>
  showServices(services, names).map((service) => shortService(service, names))

/** Formats scopes in the form that callers use. */
export const writeScopes = (scopes: readonly ScopeEntry[][] | null | undefined, names: ReferenceNames) =>
  showScopes(scopes, names).map((scope) => scope.map((condition) => shortActor(condition, names)))

/** The fields of a rule that refer to other objects, each with the function that formats it as callers write it. */
const WRITTEN: Record<string, typeof writeActors | typeof writeServices> = {
  consumers: writeActors,
  providers: writeActors,
  ingress_services: writeServices,
  egress_services: writeServices,
}

/** Converts fields of a stored rule to the tool arguments that would set the same fields again. */
function writeFields(fields: Record<string, unknown>, names: ReferenceNames): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => [field, WRITTEN[field]?.(value as never, names) ?? value]),
  )
}

/**
 * Works like `showRule`, but writes consumers, providers and services as tool arguments (such as `key=value`), and
 * conditions in words.
 */
function writeRule(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  const shown = showParts(rule, type, names)
  const { resolve_labels_as: resolution } = conditionFieldsOf(rule)
  const conditions = describeConditions(rule, names, 'resolve_labels_as')
  return {
    ...shown,
    consumers: writeActors(rule.consumers, names),
    providers: writeActors(rule.providers, names),
    ingress_services: writeServices(rule.ingress_services, names),
    ...(shown.egress_services !== undefined && { egress_services: writeServices(rule.egress_services, names) }),
    ...(resolution !== undefined && { resolve_labels_as: resolution as object }),
    ...(conditions.length > 0 && { conditions }),
  }
}

/**
 * Shows a rule after a write, with the previous values of its changed fields. If the names of objects to which it
 * refers cannot be read, their hrefs are shown.
 */
export async function showStoredRule(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  { stored, previous }: { stored: Rule | DenyRule; previous?: Record<string, unknown> },
  type: RuleType,
) {
  const names = await namesOrHrefs(ctx.pce, [referencesOf(stored), previous], ctx)
  const { description, ...rule } = writeRule(stored, type, names)
  return {
    ...(previous !== undefined && { previous: writeFields(previous, names) }),
    rule: { ...rule, ...(description && { description }) },
  }
}

/**
 * Shows a planned rule in the form that answers use. The names of the objects in it are not looked up, because the plan
 * contains them.
 */
export function showPlannedRule(rule: PlannedRule) {
  const ends = [...rule.providers, ...rule.consumers].flatMap((actor) => Object.values(actor) as unknown[])
  const known = new Map(ends.flatMap((end) => (isNamed(end) ? [[end.href, end] as const] : [])))
  const nameOf = (href: string) => {
    const { key, value, name } = known.get(href) ?? {}
    return { key, value, name: name ?? undefined }
  }
  // If the caller gave an IP list by href, nothing has checked whether its name is unique. Therefore no names except
  // those of labels count as unique.
  const names = Object.assign(nameOf, { isShared: (href: string) => !href.includes('/labels/') })
  return {
    rule_type: rule.type,
    providers: writeActors(rule.providers, names),
    consumers: writeActors(rule.consumers, names),
    ingress_services: showResolved(rule.services),
    ...(rule.egress.length > 0 && { egress_services: rule.egress.map(showNamed) }),
    unscoped_consumers: rule.unscoped,
  }
}

function isNamed(end: unknown): end is { href: string; key?: string; value?: string; name?: string | null } {
  return typeof end === 'object' && end !== null && 'href' in end
}
