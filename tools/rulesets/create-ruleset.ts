import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { NewName } from '../../schemas/new-name.js'
import { ActorInput, RuleInput, RuleTypeOut, WideningOut, WrittenOut } from '../../schemas/rule-shapes.js'
import { defineTool } from '../define.js'
import { listDifferences } from '../../domain/policy/compare-stored.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { tellEnd } from '../../domain/drafts/plan-expiry.js'
import { planRules } from '../../domain/drafts/plan-rules.js'
import { observeChange } from '../../domain/drafts/observe-change.js'
import { plannedRuleSet } from '../../domain/drafts/write-rule-set.js'
import { createPolicyLookups } from '../../domain/inventory/find-object.js'
import { resolveScopes, toWireScopes } from '../../domain/drafts/resolve-actors.js'
import { refuseByRelease, warnOfDenyLimits } from '../../domain/drafts/limits-of-deny.js'
import { warnOfNobody } from '../../domain/drafts/warn-of-nobody.js'
import { warnOfWideEnds } from '../../domain/drafts/warn-of-wide-ends.js'
import { warnOfRepeated } from '../../domain/drafts/warn-of-repetition.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { tellCovered, warnOfCovered } from '../../domain/hygiene/warn-of-covered.js'
import { showPlannedRule } from '../answers/show-rules.js'
import { verifyRuleSet, writeRuleSet } from '../../domain/drafts/write-rule-set.js'
import { warnOfWidening, type WideningWarning } from '../../domain/drafts/warn-of-widening.js'
import { quote } from '../../domain/text/escape-text.js'
import { DifferencesOut } from '../../schemas/update-output.js'

/** The answer of create-ruleset: the new rule set, or the plan of a dry run. */
const RuleSetCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  ruleset: Type.Optional(
    Type.Object(
      {
        href: Type.String(),
        name: Type.String(),
        description: Type.Optional(Type.String()),
        rules: Type.Array(
          Type.Object({
            href: Type.String(),
            rule_type: RuleTypeOut,
            providers: Type.Array(WrittenOut, { description: 'Destinations' }),
            consumers: Type.Array(WrittenOut, { description: 'Sources' }),
            ingress_services: Type.Array(Type.Object({}), {
              description: '{href, name} or {port, to_port?, proto}',
            }),
            egress_services: Type.Optional(Type.Array(Type.Object({}), { description: '{href, name}' })),
            unscoped_consumers: Type.Boolean({ description: 'Extra-scope rule' }),
            policy_widening_warning: WideningOut,
            differences: DifferencesOut,
          }),
          { description: 'In the order given' },
        ),
        differences: DifferencesOut,
      },
      { description: 'The new draft rule set' },
    ),
  ),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...ObservedOut,
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-ruleset',
  summary: 'Create a rule set with its rules, all or nothing.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy: it compares the rules with all others, and deny rules also with the traffic that they would
  // cut. A real call is not heavy and so never waits for a worker.
  isHeavy: ({ dry_run: dryRun, rules = [] }) => dryRun === true && rules.length > 0,
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      scopes: Type.Array(Type.Array(ActorInput, { maxItems: 20 }), {
        maxItems: 100,
        description: 'Lists of ANDed labels; [[]] is all workloads',
      }),
      rules: Type.Optional(Type.Array(RuleInput, { maxItems: 200, description: 'In order', listed: '' })),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: RuleSetCreated,
  example: {
    name: 'payments web access',
    scopes: [['app=payments', 'env=prod']],
    rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 6 }] }],
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
    const warnings = warnOfSentences({ name })
    if (scopes.some((scope) => scope.length === 0))
      warnings.push('The scope is empty: the rule set covers all workloads.')
    warnings.push(...warnOfRepeated(rules), ...(await refuseByRelease(pce, rules, signal)))
    for (const [index, rule] of rules.entries()) {
      const said = [
        ...tellEnd(rule.body.description, ctx.now()),
        ...warnOfNobody(lookups.labels, scopes, rule),
        ...(await warnOfWideEnds(lookups, { ...rule, deny: rule.type !== 'allow' }, signal)),
      ]
      warnings.push(...said.map((warning) => `Rule ${index}: ${warning}`))
    }
    warnings.push(...(await warnOfDenyLimits(ctx, lookups, scopes, rules, { isNumbered: true })))
    const coming = { scopes: body.scopes, rules }
    warnings.push(...tellCovered(await warnOfCovered(ctx, lookups.labels, coming), true))
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
      const message = `Would create the rule set ${quote(name)} with ${countOf(rules.length, 'rule')} in draft.`
      const change = { is: 'new_rule_set', ruleSet: plannedRuleSet(`${collection}/new`, body, rules) } as const
      const denies = rules.some(({ type }) => type !== 'allow')
      const { warnings: cut, ...observed } = showObserved(denies ? await observeChange(ctx, change) : null)
      return { dry_run: true, message, requests, ...observed, ...withWarnings(cut, warnings) }
    }

    const { ruleSet, ruleHrefs } = await writeRuleSet(ctx, body, rules)
    const stored = await verifyRuleSet(pce, ruleSet.href, body, rules, ruleHrefs, signal)
    if (stored.warning !== undefined) warnings.push(stored.warning)
    return {
      message: `Created the rule set ${quote(name)} with ${countOf(rules.length, 'rule')} in draft. It takes effect when provisioned.`,
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
