import { ToolError } from '../../schemas/errors.js'
import type { IpRangeInput } from '../../schemas/ip-list-shapes.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Actor, IngressService, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import { refuseHidden } from '../drafts/create-named.js'
import { requireReadableEnd, warnOfWrittenEnd } from '../drafts/plan-expiry.js'
import { planFqdns, planRanges, refuseEmptyList } from '../drafts/plan-ip-list.js'
import { planService, refuseOtherKind } from '../drafts/plan-service.js'
import { type ActorReference, resolveActors, resolveScopes } from '../drafts/resolve-actors.js'
import { resolveEgressServices, resolveIngressServices } from '../drafts/resolve-services.js'
import type { WholePolicy } from '../history/load-policy.js'
import { type NamedObject, type PolicyLookups, nounOf } from '../inventory/find-object.js'
import { createGroupTree } from '../inventory/label-groups.js'
import { capital } from '../text/capital.js'
import { quote } from '../text/escape-text.js'
import { type ObjectDifference, whatOf } from './compare-files.js'
import type { NameBook } from './name-book.js'
import type { FileObject } from './read-files.js'

/**
 * Creates lookups in a version of the policy that find the new objects of files just like objects that exist on the
 * PCE.
 */
export function lookupsIn(policy: WholePolicy, book: NameBook): PolicyLookups {
  const byHref: PolicyLookups['byHref'] = (kind, href) => {
    if (kind === 'workloads') return Promise.resolve({ href, name: book.textOf('workloads', href) } as NamedObject)
    const found = (policy as Partial<Record<string, ReadonlyMap<string, PceObject>>>)[kind]?.get(href)
    if (found !== undefined) return Promise.resolve(found as NamedObject)
    return Promise.reject(new ToolError('not_found', `No ${nounOf(kind)} has the href ${quote(href)}.`, { href }))
  }
  return { labels: book.labels, byHref, byName: (kind, name) => byHref(kind, name) }
}

/** Reports a problem in the file of an object, at a path in the file; by default, at the object's name. */
export type Say = (why: string, path?: (string | number)[]) => void

/** Checks one object that would be written, and reports everything that the PCE would refuse. */
export async function checkObject(one: ObjectDifference, after: WholePolicy, lookups: PolicyLookups, fault: Say) {
  const { kind, before, object } = one
  const { wire, name } = object as FileObject
  const caps = before?.caps
  if (Array.isArray(caps) && !caps.includes('write')) fault(`this API key may not change ${whatOf(one)}.`)
  if (before === null) attempt(() => refuseHidden({ name }), fault)
  const has = (field: string) => one.fields.some((changed) => changed.field === field)
  if (kind === 'ip_lists') {
    const { ip_ranges: ranges = [], fqdns = [] } = wire as { ip_ranges?: IpRangeInput[]; fqdns?: { fqdn: string }[] }
    if (has('ip_ranges')) attempt(() => planRanges(ranges), fault, ['ip_ranges'])
    if (has('fqdns')) attempt(() => planFqdns(undefined, fqdns), fault, ['fqdns'])
    attempt(() => refuseEmptyList(ranges, fqdns), fault)
  }
  if (kind === 'services') checkService(one, wire, fault)
  if (kind === 'label_groups') checkGroup(one, wire, after, lookups, fault)
  if (kind === 'rule_sets') await checkRules(one, lookups, fault)
}

function checkService({ before, fields }: ObjectDifference, wire: PceObject, fault: Say) {
  const lists = Object.fromEntries(SERVICE_LISTS.map((list) => [list, wire[list] as object[] | undefined]))
  const [list] = SERVICE_LISTS.filter((one) => (lists[one] ?? []).length > 0)
  if (list === undefined)
    fault('a service needs at least one entry in service_ports, windows_services or windows_egress_services.')
  if (before !== null && list !== undefined) attempt(() => refuseOtherKind(before as Service, list), fault, [list])
  if (fields.some(({ field }) => (SERVICE_LISTS as readonly string[]).includes(field)))
    attempt(() => planService(lists), fault, list === undefined ? ['name'] : [list])
}

function checkGroup(
  { before }: ObjectDifference,
  wire: PceObject,
  after: WholePolicy,
  { labels }: PolicyLookups,
  fault: Say,
) {
  const { key, labels: members = [], sub_groups: inner = [] } = wire as unknown as LabelGroup
  if (before !== null && before.key !== key)
    fault(`the key of a label group cannot change: it is ${quote(String(before.key))}.`, ['key'])
  if (before === null && !labels.keys().includes(key)) fault(`no label has the key ${quote(key)}.`, ['key'])
  const group = after.label_groups.get(before?.href ?? wire.href) as unknown as LabelGroup
  const groups = [...after.label_groups.values()] as unknown as LabelGroup[]
  for (const { href } of members ?? []) {
    const label = labels.get(href)
    if (label !== undefined && label.key !== key)
      fault(`${quote(`${label.key}=${label.value}`)} does not have the key of the group, ${quote(key)}.`, ['labels'])
  }
  for (const { href } of inner ?? []) {
    const other = after.label_groups.get(href)
    if (other !== undefined && other.key !== key)
      fault(`the group ${quote(String(other.name))} does not have the key of this one, ${quote(key)}.`, ['sub_groups'])
  }
  if (createGroupTree(groups).membersOf(group).isCyclic) fault('the group would contain itself.', ['sub_groups'])
}

async function checkRules(one: ObjectDifference, lookups: PolicyLookups, fault: Say) {
  const { object, fields } = one
  const { wire } = object as FileObject
  if (fields.some(({ field }) => field === 'scopes')) {
    const scopes = (wire.scopes as ScopeEntry[][]).map((scope) => scope.map(referTo))
    if (scopes.length === 0) fault('scopes is empty. [[]] is all workloads.', ['scopes'])
    await attemptLater(() => resolveScopes(lookups, scopes), fault, ['scopes'])
  }
  for (const { rule, type, path } of writtenRules(one)) {
    const deny = type !== 'allow'
    const { providers, consumers } = sidesOf(rule)
    for (const [side, actors] of [
      ['providers', providers],
      ['consumers', consumers],
    ] as const) {
      if (actors.length === 0) fault(`${side} is empty: ams is all workloads.`, [...path, side])
      // Label dimensions and container hosts refer to no object that could be missing.
      const known = actors.filter((actor) => actor.label_dimension === undefined && actor.actors !== 'container_host')
      if (deny && known.length < actors.length)
        fault('a deny rule takes ams, labels, label groups, IP lists and workloads only.', [...path, side])
      await attemptLater(() => resolveActors(lookups, known.map(referTo), { side, deny }), fault, [...path, side])
    }
    const { ingress_services: ingress, egress_services: egress } = rule as PceObject & {
      ingress_services: IngressService[]
      egress_services?: { href: string }[]
    }
    // If the destination of a rule is a virtual service, the rule uses the ports of that virtual service.
    const isOfVirtual = ingress.length === 0 && providers.some((actor) => actor.virtual_service !== undefined)
    if (!isOfVirtual)
      await attemptLater(() => resolveIngressServices(lookups, ingress, { deny }), fault, [...path, 'ingress_services'])
    if (egress !== undefined)
      await attemptLater(() => resolveEgressServices(lookups, egress, { deny }), fault, [...path, 'egress_services'])
  }
}

/**
 * Checks the end dates in the descriptions of new and changed rules, as the tools that write single rules do. An end
 * that cannot be read is a fault. Returns warnings about ends that have passed or are written as prose. A description
 * that a rule of the draft already has is not checked, because it is not written again.
 *
 * @param now milliseconds since the epoch.
 */
export function checkEnds(one: ObjectDifference, fault: Say, now: number): string[] {
  if (one.kind !== 'rule_sets') return []
  const { rules = [], deny_rules: denies = [] } = (one.before ?? {}) as Record<string, { description?: string }[]>
  const known = new Set([...rules, ...denies].map(({ description }) => description))
  return writtenRules(one).flatMap(({ rule, path }) => {
    const { description } = rule as { description?: string }
    if (known.has(description)) return []
    attempt(() => requireReadableEnd(description), fault, [...path, 'description'])
    const place = `${capital(whatOf(one))}, rule ${Number(path[1]) + 1}`
    return warnOfWrittenEnd(description, now).map((text) => `${place}: ${text}`)
  })
}

/** Lists the rules of the file that are new or changed, each with its type and its path in the file. */
function writtenRules({ object, ruleHrefs, rules }: ObjectDifference) {
  const file = object as FileObject
  const changed = new Set(rules.flatMap(({ is }) => (is === null ? [] : [JSON.stringify(is)])))
  const texts = new Map(file.ruleHrefs.map((href, at) => [href, (file.document.rules as unknown[])[at]]))
  return rulesOf(file)
    .filter(({ rule }) => !ruleHrefs.has(rule.href) || changed.has(JSON.stringify(texts.get(rule.href))))
    .map((one) => ({ ...one, path: ['rules', Number(one.rule.href.slice(one.rule.href.lastIndexOf(':') + 1))] }))
}

/** Returns an actor in the form in which callers of the tools write it. */
function referTo({ exclusion, ...actor }: Actor | ScopeEntry): ActorReference {
  const [selector, target] = Object.entries(actor)[0] as [string, { href: string }]
  return selector === 'actors' ? 'ams' : { href: target.href, ...(exclusion === true && { exclusion }) }
}

export const sidesOf = (rule: PceObject) => rule as unknown as { providers: Actor[]; consumers: Actor[] }

/** Lists the rules of the object in a file, each with its type. */
export function rulesOf({ wire }: FileObject) {
  const { rules = [], deny_rules: denies = [] } = wire as { rules?: PceObject[]; deny_rules?: PceObject[] }
  return [
    ...rules.map((rule) => ({ rule, type: 'allow' as const })),
    ...denies.map((rule) => ({ rule, type: rule.override === true ? ('override_deny' as const) : ('deny' as const) })),
  ]
}

/** Runs a check that the tools use, and reports what it refuses as a fault of the file. */
function attempt(check: () => unknown, fault: Say, path?: (string | number)[]): void {
  try {
    check()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    fault(error.message, path)
  }
}

async function attemptLater(check: () => Promise<unknown>, fault: Say, path: (string | number)[]): Promise<void> {
  try {
    await check()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    fault(error.message, path)
  }
}
