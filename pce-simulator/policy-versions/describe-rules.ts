import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Json } from '../model.js'
import { bodiesAt, inVersion } from '../kinds/policy-version.js'
import { HELD_KINDS, rulesOf, type RuleKind } from '../kinds/rule-kind.js'
import { showRule } from '../kinds/rule-routes.js'
import { renderScopes } from '../kinds/scopes.js'
import type { World } from '../world.js'

/** For each type of rule, the key under which answers list the rules of that type (P27). */
export const RULE_TYPES = ['sec_rules', 'deny_rules', 'override_deny_rules', 'ip_tables_rules'] as const
export type RuleType = (typeof RULE_TYPES)[number]

export interface PlacedRule {
  type: RuleType
  kind: RuleKind
  rule: VersionedObject
  ruleSet: VersionedObject
}

/** Lists every rule in a version of the policy. Throws 404 for an unknown version. */
export function listRules(world: World, pversion: string): PlacedRule[] {
  return bodiesAt(world, 'rule_sets', pversion).flatMap(({ body }) =>
    HELD_KINDS.flatMap((kind) =>
      rulesOf(body, kind).map((rule) => {
        const type = kind.segment === 'deny_rules' && rule.override === true ? 'override_deny_rules' : kind.segment
        return { type, kind, rule, ruleSet: body }
      }),
    ),
  )
}

/** Renders a rule together with a summary of its rule set. */
export function describePlaced(world: World, { kind, rule, ruleSet }: PlacedRule, pversion: string): Json {
  const { href, name, enabled, scopes } = ruleSet
  const summary = { href, name, enabled, scopes: renderScopes(world, scopes as ScopeEntry[][]) }
  const rule_set = pversion === 'draft' ? summary : inVersion(summary, pversion)
  return { ...(showRule(kind, rule, pversion) as Json), rule_set }
}
