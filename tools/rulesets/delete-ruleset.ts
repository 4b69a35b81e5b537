import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import type { DenyRule } from '../../schemas/pce/rule-set.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { loadDenyRules } from '../../domain/inventory/read-rules.js'

const output = Type.Object({
  ...DeleteOutput,
  ...ObservedOut,
  name: Type.Optional(Type.String()),
  rules_removed: Type.Optional(
    Type.Object(
      { allow: Type.Integer(), deny: Type.Optional(Type.Integer()), override_deny: Type.Optional(Type.Integer()) },
      { description: 'Rules that go with it' },
    ),
  ),
})

export default defineTool({
  name: 'delete-ruleset',
  summary: 'Delete a rule set with its rules.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'rules',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'retired app | prod' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findObject(ctx.pce, 'rule_sets', { href, name }, ctx.signal)
    const [found] = await loadDenyRules(ctx.pce, [current], ctx.signal)
    const allow = { allow: current.rules?.length ?? 0 }
    const removed =
      found?.error === undefined ? { ...allow, ...countDenyRules(found?.ruleSet.deny_rules ?? []) } : allow
    const warnings = found?.error === undefined ? [] : ['Its deny rules could not be counted.']
    const answer = await deleteObject(ctx, { what: describeObject('rule_sets', current), current, warnings }, dryRun)
    const change = { is: 'rule_set', href: answer.href, fields: null } as const
    const { warnings: cut, ...observed } = showObserved(await observeDryRun(ctx, answer, change))
    const { name: own } = current
    return { ...answer, name: own, rules_removed: removed, ...observed, ...withWarnings(cut, answer.warnings) }
  },
})

function countDenyRules(rules: readonly DenyRule[]) {
  const override = rules.filter((rule) => rule.override === true).length
  return { deny: rules.length - override, override_deny: override }
}
