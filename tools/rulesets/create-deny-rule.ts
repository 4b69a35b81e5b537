import { Type, type Static } from '@sinclair/typebox'
import { DifferencesOut } from '../../schemas/update-output.js'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import {
  ActorsInput,
  RuleParts,
  ServicesInput,
  ResolvedServices,
  StoredDenyRuleOut,
} from '../../schemas/rule-shapes.js'
import { defineTool } from '../define.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import { createPolicyLookups, describeObject, findObject } from '../../domain/inventory/find-object.js'
import { readRulesOfKind, warnOfEnd } from '../../domain/inventory/read-rules.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { readableScopes } from '../../domain/inventory/require-rule-shape.js'
import { tellEnd } from '../../domain/drafts/plan-expiry.js'
import { planRule, showResolved } from '../../domain/drafts/plan-rules.js'
import { refuseByRelease, warnOfDenyLimits } from '../../domain/drafts/limits-of-deny.js'
import { warnOfNobody } from '../../domain/drafts/warn-of-nobody.js'
import { warnOfOthers } from '../../domain/drafts/warn-of-others.js'
import { warnOfWideEnds } from '../../domain/drafts/warn-of-wide-ends.js'
import { warnOfRepetition } from '../../domain/drafts/warn-of-repetition.js'
import { tellCovered, warnOfCovered } from '../../domain/hygiene/warn-of-covered.js'
import { addRule } from '../../domain/drafts/add-rule.js'
import { observeChange } from '../../domain/drafts/observe-change.js'
import { OVERRIDE_WARNING } from '../answers/policy-words.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { showStoredRule } from '../answers/show-rules.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  rule: Type.Optional(StoredDenyRuleOut),
  ingress_services_resolved: ResolvedServices,
  override_deny_warning: Type.Optional(Type.String()),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...ObservedOut,
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-deny-rule',
  summary: 'Add a deny or override-deny rule to a rule set.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      ruleset_href: Type.Optional(Type.String({ description: 'Or ruleset_name', listed: '' })),
      ruleset_name: ByName,
      providers: ActorsInput('Destinations'),
      consumers: RuleParts.consumers,
      ingress_services: ServicesInput('By port and proto, service or href'),
      override_deny: Type.Optional(Type.Boolean({ default: false, description: 'Beats any allow' })),
      unscoped_consumers: Type.Optional(RuleParts.unscoped_consumers),
      description: Type.Optional(RuleParts.description),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: {
    ruleset_name: 'payments | prod',
    providers: ['ams'],
    consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'],
    ingress_services: [{ port: 23, proto: 6 }],
    unscoped_consumers: true,
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { ruleset_href: href, ruleset_name: name, override_deny: override = false, dry_run: dryRun, ...asked } = args
    const names = { hrefArgument: 'ruleset_href', nameArgument: 'ruleset_name' }
    const ruleSet = await findObject(pce, 'rule_sets', { href, name }, signal, names)
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const scopes = readableScopes(ruleSet.scopes)
    const planned = await planRule(lookups, { ...asked, rule_type: override ? 'override_deny' : 'deny' })
    const parent = toDraftHref(ruleSet.href)
    const shown = {
      ingress_services_resolved: showResolved(planned.services),
      ...(override && { override_deny_warning: OVERRIDE_WARNING }),
    }
    const pending = warnOfEnd(ruleSet)
    const siblings = await readRulesOfKind(pce, ruleSet, planned.collection, signal)
    const repetition = warnOfRepetition(ruleSet, siblings, planned)
    const coming = { scopes, rules: [planned] }
    const before = [
      ...pending,
      ...tellEnd(asked.description, ctx.now()),
      ...warnOfNobody(lookups.labels, scopes, planned),
      ...(repetition.length > 0 ? repetition : tellCovered(await warnOfCovered(ctx, lookups.labels, coming))),
      ...(await warnOfWideEnds(lookups, { ...planned, deny: true }, signal)),
      ...(await warnOfOthers(ctx, ruleSet)),
      ...(await refuseByRelease(pce, [planned], signal)),
      ...(await warnOfDenyLimits(ctx, lookups, scopes, [planned])),
    ]
    if (dryRun === true) {
      const request = { method: 'POST', path: `${parent}/deny_rules`, body: planned.body }
      const message = `Would add the rule to ${describeObject('rule_sets', ruleSet)}.`
      const added = { collection: planned.collection, href: `${request.path}/new`, rule: planned.body }
      const { warnings, ...observed } = showObserved(
        await observeChange(ctx, { is: 'rule', ruleSet: parent, ...added }),
      )
      const answer = { dry_run: true, message, requests: [request], ...shown, ...observed }
      return { ...answer, ...withWarnings(warnings, before) }
    }
    const { stored, warnings } = await addRule(ctx, ruleSet, planned, siblings)
    const all = [...before, ...warnings]
    return {
      message: `Added the rule to ${describeObject('rule_sets', ruleSet)} in draft.${pending.length > 0 ? '' : ' It takes effect when provisioned.'}`,
      ...(await showStoredRule(ctx, { stored }, planned.type)),
      ...shown,
      ...listDifferences(findDifferences(planned.body, stored)),
      ...(all.length > 0 && { warnings: all }),
    }
  },
})
