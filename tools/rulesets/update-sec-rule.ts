import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import {
  RuleChangeInput,
  NamedServicesInput,
  ResolvedServices,
  StoredRuleOut,
  WideningOut,
} from '../../schemas/rule-shapes.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { findRule, warnOfEnd } from '../../domain/inventory/read-rules.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { keepEnd } from '../../domain/drafts/plan-expiry.js'
import { planRuleChange, showNamed, showResolved } from '../../domain/drafts/plan-rules.js'
import { warnOfChange } from '../../domain/drafts/warn-of-widening.js'
import { createPolicyLookups } from '../../domain/inventory/find-object.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showStoredRule } from '../answers/show-rules.js'
import { warnOfWideChange } from '../../domain/drafts/warn-of-wide-ends.js'
import { warnOfBecoming } from '../../domain/drafts/warn-of-repetition.js'
import { warnOfBecomingCovered } from '../../domain/hygiene/warn-of-covered.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'

const output = Type.Object({
  ...UpdateOutput,
  ...ObservedOut,
  rule: Type.Optional(StoredRuleOut),
  ingress_services_resolved: ResolvedServices,
  egress_services_resolved: ResolvedServices,
  policy_widening_warning: WideningOut,
})

export default defineTool({
  name: 'update-sec-rule',
  summary: 'Replace fields of an allow rule.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      href: Type.String({ description: '.../sec_rules/ID', listed: '' }),
      ...RuleChangeInput,
      egress_services: Type.Optional(NamedServicesInput('[] clears')),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1', enabled: false },
  async handler({ href, dry_run: dryRun, ...change }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    requireFields(change, [...Object.keys(RuleChangeInput), 'egress_services'])
    const { rule: current, ruleSetHref } = await findRule(pce, 'sec_rules', href, signal)
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const { warnings: ofEnd, ...described } = keepEnd(current.description, change.description, ctx.now())
    const planned = await planRuleChange(lookups, { ...change, ...described }, { deny: false })
    const ruleSet = await pce.ruleSets.getByReference(ruleSetHref, { signal })
    const widening = await warnOfChange(pce, lookups, current, ruleSet.scopes, planned, signal)
    const changed = { collection: 'sec_rules' as const, rule: current, change: planned.body }
    const becoming = await warnOfBecoming(pce, ruleSet, changed, signal)
    const plan = {
      what: 'the allow rule',
      current,
      holder: ruleSet,
      body: planned.body,
      read: (changed: string) => pce.rules.getByReference(changed),
      warnings: [
        ...warnOfEnd(ruleSet),
        ...ofEnd,
        ...(await warnOfWideChange(lookups, current, planned, { deny: false, signal })),
        ...(becoming.length > 0 ? becoming : await warnOfBecomingCovered(ctx, lookups.labels, ruleSet, changed)),
      ],
      ends: ruleSet.update_type === 'delete',
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const becomes = { is: 'rule', ruleSet: ruleSetHref, collection: 'sec_rules', href, rule: answer.stored } as const
    const { warnings, ...observed } = showObserved(await observeDryRun(ctx, answer, becomes))
    return {
      ...withoutStored({ ...answer, updated_fields: answer.updated_fields?.sort() }),
      ...observed,
      ...withWarnings(warnings, answer.warnings),
      ...(await showStoredRule(ctx, answer, 'allow')),
      ...(planned.services && { ingress_services_resolved: showResolved(planned.services) }),
      ...(planned.egress && { egress_services_resolved: planned.egress.map(showNamed) }),
      ...(widening && { policy_widening_warning: widening }),
    }
  },
})
