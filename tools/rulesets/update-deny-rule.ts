import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { RuleChangeInput, ResolvedServices, StoredDenyRuleOut } from '../../schemas/rule-shapes.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { findRule, warnOfEnd } from '../../domain/inventory/read-rules.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { readableEnds, readableScopes } from '../../domain/inventory/require-rule-shape.js'
import { keepEnd } from '../../domain/drafts/plan-expiry.js'
import { planRuleChange, showResolved } from '../../domain/drafts/plan-rules.js'
import { createPolicyLookups } from '../../domain/inventory/find-object.js'
import { denyType } from '../../domain/policy/rule-type.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showStoredRule } from '../answers/show-rules.js'
import { warnOfWideChange } from '../../domain/drafts/warn-of-wide-ends.js'
import { refuseByRelease, warnOfDenyLimits } from '../../domain/drafts/limits-of-deny.js'
import { warnOfBecoming } from '../../domain/drafts/warn-of-repetition.js'
import { warnOfBecomingCovered } from '../../domain/hygiene/warn-of-covered.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'

const output = Type.Object({
  ...UpdateOutput,
  ...ObservedOut,
  rule: Type.Optional(StoredDenyRuleOut),
  ingress_services_resolved: ResolvedServices,
})

export default defineTool({
  name: 'update-deny-rule',
  summary: 'Replace fields of a deny or override-deny rule.',
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
      href: Type.String({ description: '.../deny_rules/ID', listed: '' }),
      ...RuleChangeInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/1', enabled: false },
  async handler({ href, dry_run: dryRun, ...change }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    requireFields(change, Object.keys(RuleChangeInput))
    const { rule: current, ruleSetHref } = await findRule(pce, 'deny_rules', href, signal)
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const { warnings: ofEnd, ...described } = keepEnd(current.description, change.description, ctx.now())
    const planned = await planRuleChange(lookups, { ...change, ...described }, { deny: true })
    const ruleSet = await pce.ruleSets.getByReference(ruleSetHref, { signal })
    const stored = readableEnds(current)
    const rule = {
      type: denyType(current),
      providers: planned.providers ?? stored.providers,
      consumers: planned.consumers ?? stored.consumers,
      unscoped: (planned.body.unscoped_consumers as boolean | undefined) ?? current.unscoped_consumers === true,
    }
    // Only these four fields decide which workloads enforce the rule.
    const isMoved = [change.providers, change.consumers, change.unscoped_consumers, change.enabled].some(
      (field) => field !== undefined && field !== false,
    )
    const changed = { collection: 'deny_rules' as const, rule: current, change: planned.body }
    const becoming = await warnOfBecoming(pce, ruleSet, changed, signal)
    const plan = {
      what: current.override === true ? 'the override deny rule' : 'the deny rule',
      current,
      holder: ruleSet,
      body: planned.body,
      read: (changed: string) => pce.denyRules.getByReference(changed),
      warnings: [
        ...warnOfEnd(ruleSet),
        ...ofEnd,
        ...(await refuseByRelease(pce, [{ type: rule.type, providers: [], consumers: [], ...planned }], signal)),
        ...(isMoved ? await warnOfDenyLimits(ctx, lookups, readableScopes(ruleSet.scopes), [rule]) : []),
        ...(await warnOfWideChange(lookups, current, planned, { deny: true, signal })),
        ...(becoming.length > 0 ? becoming : await warnOfBecomingCovered(ctx, lookups.labels, ruleSet, changed)),
      ],
      ends: ruleSet.update_type === 'delete',
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const becomes = { is: 'rule', ruleSet: ruleSetHref, collection: 'deny_rules', href, rule: answer.stored } as const
    const { warnings, ...observed } = showObserved(await observeDryRun(ctx, answer, becomes))
    return {
      ...withoutStored({ ...answer, updated_fields: answer.updated_fields?.sort() }),
      ...observed,
      ...withWarnings(warnings, answer.warnings),
      ...(await showStoredRule(ctx, answer, denyType(answer.stored))),
      ...(planned.services && { ingress_services_resolved: showResolved(planned.services) }),
    }
  },
})
