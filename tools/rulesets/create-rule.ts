import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { ResolvedServices, RuleInput, StoredRuleOut, WideningOut } from '../../schemas/rule-shapes.js'
import { DifferencesOut } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { tellCovered, warnOfCovered } from '../../domain/hygiene/warn-of-covered.js'
import { addRule } from '../../domain/drafts/add-rule.js'
import { describeWithEnd, tellEnd } from '../../domain/drafts/plan-expiry.js'
import { observeChange } from '../../domain/drafts/observe-change.js'
import { planRule, showNamed, showResolved } from '../../domain/drafts/plan-rules.js'
import { refuseByRelease, warnOfDenyLimits } from '../../domain/drafts/limits-of-deny.js'
import { warnOfNobody } from '../../domain/drafts/warn-of-nobody.js'
import { warnOfOthers } from '../../domain/drafts/warn-of-others.js'
import { warnOfWideEnds } from '../../domain/drafts/warn-of-wide-ends.js'
import { warnOfRepetition } from '../../domain/drafts/warn-of-repetition.js'
import { warnOfWidening } from '../../domain/drafts/warn-of-widening.js'
import { createPolicyLookups, describeObject, findObject } from '../../domain/inventory/find-object.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { readableScopes } from '../../domain/inventory/require-rule-shape.js'
import { readRulesOfKind, warnOfEnd } from '../../domain/inventory/read-rules.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import { OVERRIDE_WARNING } from '../answers/policy-words.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { showStoredRule } from '../answers/show-rules.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  rule: Type.Optional(StoredRuleOut),
  ingress_services_resolved: ResolvedServices,
  egress_services_resolved: ResolvedServices,
  policy_widening_warning: WideningOut,
  override_deny_warning: Type.Optional(Type.String()),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...ObservedOut,
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-rule',
  summary: 'Add an allow, deny or override-deny rule to a rule set.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy: it compares the rule with all other rules, and a deny rule also with the traffic that it would
  // cut. A real call is not heavy and so never waits for a worker.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  pceRequests: {
    atMost: 26,
    and: 'up to three for each object that the rule names, those for the consumers of a rule about Windows programs, for a deny rule up to four for what its workloads enforce and one for each label group of its ends and scopes and inside these, with up to 20 where the release lists deny rules apart, and in a dry run that denies, up to twelve for the draft and the traffic, 20 for the modes of its ends or the list of managed workloads, six more for active policy where anything is pending, one for each rule set of both on releases that list deny rules apart, and up to ten for addresses that the traffic names from off the corporate network',
  },
  input: Type.Object(
    {
      ruleset_href: Type.Optional(
        Type.String({ description: 'The href of the rule set, unless ruleset_name is given', listed: '' }),
      ),
      ruleset_name: ByName,
      ...RuleInput.properties,
      expires: Type.Optional(
        Type.String({ minLength: 1, description: 'Last day, UTC: YYYY-MM-DD, kept in the description' }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: {
    ruleset_name: 'payments | prod',
    providers: ['role=web'],
    consumers: ['app=ordering', 'env=prod'],
    ingress_services: [{ port: 8443, proto: 6 }],
    unscoped_consumers: true,
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { ruleset_href: href, ruleset_name: name, dry_run: dryRun, expires, ...given } = args
    const description = describeWithEnd(given.description, expires, ctx.now())
    const asked = { ...given, ...(description !== undefined && { description }) }
    const names = { hrefArgument: 'ruleset_href', nameArgument: 'ruleset_name' }
    const ruleSet = await findObject(pce, 'rule_sets', { href, name }, signal, names)
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const scopes = readableScopes(ruleSet.scopes)
    const planned = await planRule(lookups, asked)
    const widening = await warnOfWidening(pce, lookups, scopes, planned, signal)
    const shown = {
      ingress_services_resolved: showResolved(planned.services),
      ...(planned.egress.length > 0 && { egress_services_resolved: planned.egress.map(showNamed) }),
      ...(widening && { policy_widening_warning: widening }),
      ...(planned.type === 'override_deny' && { override_deny_warning: OVERRIDE_WARNING }),
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
      ...(await warnOfWideEnds(lookups, { ...planned, deny: planned.type !== 'allow' }, signal)),
      ...(await warnOfOthers(ctx, ruleSet)),
      ...(await refuseByRelease(pce, [planned], signal)),
      ...(await warnOfDenyLimits(ctx, lookups, scopes, [planned])),
    ]
    const parent = toDraftHref(ruleSet.href)
    const what = `the ${planned.type.replace('_', ' ')} rule`
    const where = describeObject('rule_sets', ruleSet)
    if (dryRun === true) {
      const request = { method: 'POST', path: `${parent}/${planned.collection}`, body: planned.body }
      const message = `Would add ${what} to ${where}.`
      const added = { collection: planned.collection, href: `${request.path}/new`, rule: planned.body }
      const change = { is: 'rule', ruleSet: parent, ...added } as const
      const { warnings, ...observed } = showObserved(planned.type === 'allow' ? null : await observeChange(ctx, change))
      const answer = { dry_run: true, message, requests: [request], ...shown, ...observed }
      return { ...answer, ...withWarnings(warnings, before) }
    }
    const { stored, warnings } = await addRule(ctx, ruleSet, planned, siblings)
    const all = [...before, ...warnings]
    return {
      message: `Added ${what} to ${where} in draft.${pending.length > 0 ? '' : ' It takes effect when provisioned.'}`,
      ...(await showStoredRule(ctx, { stored }, planned.type)),
      ...shown,
      ...listDifferences(findDifferences(planned.body, stored)),
      ...(all.length > 0 && { warnings: all }),
    }
  },
})
