import { Type } from '@sinclair/typebox'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Json } from '../model.js'
import { invalidUri } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, byLabels, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Href, Name, OneOf, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { collectHrefs } from './find-usage.js'
import {
  ALLOW_RULES,
  HELD_KINDS,
  IP_TABLES_RULES,
  buildRule,
  changeRule,
  rulesOf,
  withoutRule,
  type RuleKind,
} from './rule-kind.js'
import { readScopes, renderScopes } from './scopes.js'
import { requireFreeName } from './policy-version.js'
import type { VersionedKind } from './versioned-kind.js'

const Scope = Type.Array(
  Type.Object({
    exclusion: Type.Optional(Type.Boolean()),
    label: Type.Optional(Href),
    label_group: Type.Optional(Href),
  }),
)
const Entries = Type.Optional(Type.Array(Type.Object({ href: Type.Optional(Type.String()) })))
const OPTIONAL = {
  description: Type.Optional(Text),
  enabled: Type.Optional(Type.Boolean()),
  /** The rules in the body are checked later, each with the schema of its type. */
  rules: Entries,
  ip_tables_rules: Entries,
  ...EXTERNAL_DATA,
}
const CREATE = new Shape(
  'sec_policy_rule_sets_post',
  Type.Object({ name: Name, scopes: Type.Array(Scope), ...OPTIONAL }, CLOSED),
)
const UPDATE = new Shape(
  'sec_policy_rule_sets_put',
  Type.Object(
    {
      name: Type.Optional(Name),
      scopes: Type.Optional(Type.Array(Scope)),
      update_type: Type.Optional(OneOf('create', 'update', 'delete')),
      ...OPTIONAL,
    },
    CLOSED,
  ),
)

const TAKEN = ['rule_set_name_in_use', 'Rule set name in use'] as const

/** The object kind for rule sets, including their rules (P19). */
export const ruleSet: VersionedKind = {
  type: 'rule_sets',
  noun: 'rule_set',
  ids: 'int',
  filters: {
    name: partial('name'),
    description: partial('description'),
    labels: byLabels((object) => (object.scopes as unknown[][]).map((scope) => collectHrefs(scope))),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body, takeHref) {
    const fields = CREATE.read(body)
    requireFreeName(world, 'rule_sets', fields.name, null, TAKEN)
    requireFreeExternalData(drafts(world), fields)
    const scopes = readScopes(world, fields.scopes)
    return {
      name: fields.name,
      description: fields.description ?? null,
      enabled: fields.enabled ?? true,
      scopes,
      rules: (fields.rules ?? []).map((rule) => buildRule(world, ALLOW_RULES, takeHref, rule)),
      deny_rules: [],
      ip_tables_rules: (fields.ip_tables_rules ?? []).map((rule) => buildRule(world, IP_TABLES_RULES, takeHref, rule)),
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
    }
  },

  change(world, entry, body) {
    const { update_type: _said, rules, ip_tables_rules, scopes, ...fields } = UPDATE.read(body)
    const { href } = entry.draft
    if (fields.name !== undefined) requireFreeName(world, 'rule_sets', fields.name, href, TAKEN)
    const others = drafts(world).filter((other) => other.href !== href)
    requireFreeExternalData(others, { ...entry.draft, ...fields })
    return {
      ...fields,
      ...(scopes ? { scopes: readScopes(world, scopes) } : {}),
      ...(rules ? { rules: replaceRules(world, ALLOW_RULES, entry, rules) } : {}),
      ...(ip_tables_rules ? { ip_tables_rules: replaceRules(world, IP_TABLES_RULES, entry, ip_tables_rules) } : {}),
    }
  },

  refuseRemoval() {
    // No object refers to a rule set, so its deletion is never refused.
  },

  render(world, body) {
    const rules = HELD_KINDS.map((kind) => [kind.list, rulesOf(body, kind).map((rule) => ({ ...rule, ...kind.extra }))])
    return { ...body, ...Object.fromEntries(rules), scopes: renderScopes(world, body.scopes as ScopeEntry[][]) }
  },

  settle(draft) {
    const rules = HELD_KINDS.map((kind) => {
      const kept = rulesOf(draft, kind).filter((rule) => rule.update_type !== 'delete')
      return [kind.list, kept.map((rule) => ({ ...rule, update_type: null }))]
    })
    return { ...draft, ...(Object.fromEntries(rules) as Json) }
  },
}

function drafts(world: World): VersionedObject[] {
  return world.policy.entries('rule_sets').map(({ draft }) => draft)
}

/**
 * Replaces the rules of a rule set with the list in the body of a PUT. A rule with an href is kept or changed, a rule
 * without one is created, and a rule that is not in the list is deleted.
 */
function replaceRules(world: World, kind: RuleKind, entry: Entry, given: { href?: string }[]): VersionedObject[] {
  const current = rulesOf(entry.draft, kind)
  const kept = given.map(({ href, ...body }) => {
    if (href === undefined) return buildRule(world, kind, () => entry.draft.href, body)
    const rule = current.find((candidate) => candidate.href === href)
    if (!rule) throw invalidUri(href)
    return changeRule(world, kind, rule, body)
  })
  const named = new Set(given.map(({ href }) => href))
  const dropped = current.filter(({ href }) => !named.has(href))
  const marked = dropped.flatMap((rule) => {
    return withoutRule(world, kind, entry, rule).filter(({ href }) => href === rule.href)
  })
  return [...kept, ...marked]
}
