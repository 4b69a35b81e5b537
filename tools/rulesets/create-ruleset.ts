import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { ActorInput, RuleInput } from '../../schemas/rule-input.js'
import { RuleSetCreated } from '../../schemas/rule-set-created.js'
import { defineTool } from '../define.js'
import { listDifferences } from '../../domain/policy/compare-stored.js'
import { refuseTakenName } from '../../domain/drafts/create-named.js'
import { countOf } from '../../domain/text/count-of.js'
import { loadLabels } from '../../domain/inventory/load-labels.js'
import { planRules } from '../../domain/drafts/plan-rules.js'
import { createPolicyLookups } from '../../domain/inventory/policy-lookups.js'
import { refuseHidden } from '../../domain/drafts/refuse-hidden.js'
import { resolveScopes, toWireScopes } from '../../domain/drafts/resolve-scopes.js'
import { showPlannedRule } from '../answers/show-planned-rule.js'
import { verifyRuleSet } from '../../domain/drafts/verify-rule-set.js'
import { warnOfWidening, type WideningWarning } from '../../domain/drafts/warn-of-widening.js'
import { writeRuleSet } from '../../domain/drafts/write-rule-set.js'

export default defineTool({
  name: 'create-ruleset',
  area: 'rulesets',
  summary: 'Create a draft rule set with its rules, all or nothing. It takes effect only when provisioned.',
  effect: 'write',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: NewName('Unique name'),
      description: Type.Optional(Type.String({ description: 'Free text' })),
      scopes: Type.Array(Type.Array(ActorInput, { maxItems: 20 }), {
        maxItems: 100,
        description: 'Each inner list is one scope of ANDed labels. [] or [[]] is all workloads',
      }),
      rules: Type.Optional(Type.Array(RuleInput, { maxItems: 200, description: 'Created in order' })),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: RuleSetCreated,
  example: {
    name: 'payments web access',
    scopes: [['app=payments', 'env=prod']],
    rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }],
  },
  async handler(
    { name, description, scopes: askedScopes, rules: askedRules = [], dry_run: dryRun },
    ctx,
  ): Promise<Static<typeof RuleSetCreated>> {
    const { pce, signal } = ctx
    refuseHidden({ name })
    await refuseTakenName(pce, 'rule_sets', name, signal)
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const scopes = await resolveScopes(lookups, askedScopes)
    const rules = await planRules(lookups, askedRules)
    const widening: (WideningWarning | undefined)[] = []
    for (const rule of rules) widening.push(await warnOfWidening(pce, lookups, scopes, rule, signal))

    const body = { name, ...(description !== undefined && { description }), scopes: toWireScopes(scopes) }
    const warnings = scopes.some((scope) => scope.length === 0)
      ? ['The scope is empty: the rule set covers all workloads.']
      : []
    if (dryRun === true) {
      const collection = `/orgs/${pce.orgId}/sec_policy/draft/rule_sets`
      const requests = [
        { method: 'POST', path: collection, body },
        ...rules.map((rule) => ({
          method: 'POST',
          path: `${collection}/{id of ${name}}/${rule.collection}`,
          body: rule.body,
        })),
      ]
      warnings.push(
        ...widening.flatMap((warning, index) => (warning === undefined ? [] : `Rule ${index}: ${warning.message}`)),
      )
      const message = `Would create the rule set ${name} with ${countOf(rules.length, 'rule')} in draft.`
      return { dry_run: true, message, requests, ...(warnings.length > 0 && { warnings }) }
    }

    const { ruleSet, ruleHrefs } = await writeRuleSet(pce, body, rules, signal)
    const stored = await verifyRuleSet(pce, ruleSet.href, body, rules, ruleHrefs, signal)
    if (stored.warning !== undefined) warnings.push(stored.warning)
    return {
      message: `Created the rule set ${name} with ${countOf(rules.length, 'rule')} in draft. It takes effect when provisioned.`,
      ruleset: {
        href: ruleSet.href,
        name,
        ...(description !== undefined && { description }),
        rules: rules.map((rule, index) => ({
          href: ruleHrefs[index] ?? '',
          ...showPlannedRule(rule),
          ...(widening[index] !== undefined && { policy_widening_warning: widening[index] }),
          ...listDifferences(stored.ruleDifferences[index]),
        })),
        ...listDifferences(stored.differences),
      },
      ...(warnings.length > 0 && { warnings }),
    }
  },
})
