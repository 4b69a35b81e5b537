import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import type { Entry } from '../store/policy-store.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { UNCERTAIN } from '../uncertain.js'
import type { Shape } from '../validate/shape.js'
import { birthStamp, updateStamp, type World } from '../world.js'
import { checkAllowRule, checkDenyRule, checkIpTablesRule } from './check-rule.js'
import {
  ALLOW_CREATE,
  ALLOW_UPDATE,
  DENY_CREATE,
  DENY_UPDATE,
  IP_TABLES_CREATE,
  IP_TABLES_UPDATE,
} from './rule-shapes.js'

/**
 * The definition of a kind of rules. `list` names the field of the rule set in which rules of this kind are stored. The
 * href of a rule consists of the rule set's href, `segment` and an id.
 */
export interface RuleKind {
  segment: 'sec_rules' | 'deny_rules' | 'ip_tables_rules'
  list: 'rules' | 'deny_rules' | 'ip_tables_rules'
  noun: string
  create: Shape
  update: Shape
  defaults: Json
  /** The read-only fields that a GET returns in addition to the stored ones. */
  extra: Json
  check(world: World, rule: Json): void
}

const CORE_DEFAULTS = { description: null, egress_services: [], network_type: 'brn', unscoped_consumers: false }

export const ALLOW_RULES: RuleKind = {
  segment: 'sec_rules',
  list: 'rules',
  noun: 'sec_rule',
  create: ALLOW_CREATE,
  update: ALLOW_UPDATE,
  defaults: {
    ...CORE_DEFAULTS,
    sec_connect: false,
    stateless: false,
    machine_auth: false,
    consuming_security_principals: [],
    use_workload_subnets: [],
    log_flow: false,
    external_data_set: null,
    external_data_reference: null,
  },
  extra: {},
  check: checkAllowRule,
}

export const DENY_RULES: RuleKind = {
  segment: 'deny_rules',
  list: 'deny_rules',
  noun: 'deny_rule',
  create: DENY_CREATE,
  update: DENY_UPDATE,
  defaults: { override: false, ...CORE_DEFAULTS },
  extra: { caps: ['write'] },
  check: checkDenyRule,
}

/** Custom iptables rules, which can only be written together with their rule set (P19). */
export const IP_TABLES_RULES: RuleKind = {
  segment: 'ip_tables_rules',
  list: 'ip_tables_rules',
  noun: 'ip_tables_rule',
  create: IP_TABLES_CREATE,
  update: IP_TABLES_UPDATE,
  defaults: { description: null },
  extra: {},
  check: checkIpTablesRule,
}

/** The kinds of rules that have paths of their own. */
export const RULE_KINDS = [ALLOW_RULES, DENY_RULES]

/** All kinds of rules that a rule set can contain. */
export const HELD_KINDS = [...RULE_KINDS, IP_TABLES_RULES]

export function rulesOf(ruleSet: VersionedObject, kind: RuleKind): VersionedObject[] {
  return (ruleSet[kind.list] ?? []) as VersionedObject[]
}

/** Builds a new rule for a draft rule set. Throws 406 if its fields are invalid. */
export function buildRule(world: World, kind: RuleKind, ruleSetHref: () => string, body: unknown): VersionedObject {
  const fields = kind.create.read(body) as Json
  kind.check(world, fields)
  requireFreeKey(world, kind, fields, null)
  return {
    href: `${ruleSetHref()}/${kind.segment}/${world.ids.int(kind.segment)}`,
    ...kind.defaults,
    ...bareReferences(fields),
    update_type: 'create',
    ...birthStamp(world),
    deleted_at: null,
    deleted_by: null,
  }
}

/**
 * Applies the fields of a PUT to a rule. If the creation or the deletion of the rule is pending, it stays pending.
 * Throws 406 for invalid fields.
 */
export function changeRule(world: World, kind: RuleKind, rule: VersionedObject, body: unknown): VersionedObject {
  const { update_type: _said, ...fields } = kind.update.read(body) as Json
  if (Object.keys(fields).length === 0) return rule
  const changed: VersionedObject = {
    ...rule,
    ...bareReferences(fields),
    ...updateStamp(world),
    update_type: rule.update_type ?? 'update',
  }
  kind.check(world, { ...changed, ...fields })
  requireFreeKey(world, kind, changed, rule)
  return changed
}

/** Requires that no other rule has the same external data (P49). */
function requireFreeKey(world: World, kind: RuleKind, fields: Json, own: VersionedObject | null): void {
  const others = world.policy.entries('rule_sets').flatMap(({ draft }) => rulesOf(draft, kind))
  requireFreeExternalData(
    others.filter((other) => other !== own),
    fields,
  )
}

/**
 * Returns the rules of a rule set without the given rule. If the active policy contains the rule, it stays in the list
 * and is marked as deleted.
 */
export function withoutRule(world: World, kind: RuleKind, entry: Entry, rule: VersionedObject): VersionedObject[] {
  const rules = rulesOf(entry.draft, kind)
  const isActive = entry.active !== null && rulesOf(entry.active, kind).some(({ href }) => href === rule.href)
  if (!isActive) return rules.filter((other) => other !== rule)
  const stamp = { deleted_at: world.now(), deleted_by: { href: world.user.href }, ...updateStamp(world) }
  return rules.map((other) => (other === rule ? { ...rule, ...stamp, update_type: 'delete' as const } : other))
}

/**
 * Reduces every reference to its href, because the names of referenced objects are looked up when they are shown. Hrefs
 * become draft hrefs, because a draft refers to drafts even if a client names the active version.
 */
export function bareReferences(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, strip(value)]))
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip)
  if (typeof value !== 'object' || value === null) return value
  if ('href' in value) return { href: draftReference(value.href) }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, strip(inner)]))
}

function draftReference(href: unknown): unknown {
  const convert = UNCERTAIN.draftsTakeActiveReferences && typeof href === 'string'
  return convert ? href.replace('/sec_policy/active/', '/sec_policy/draft/') : href
}
