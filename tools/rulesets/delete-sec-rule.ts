import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { findRule } from '../../domain/inventory/read-rules.js'

const output = Type.Object({
  ...DeleteOutput,
  ...ObservedOut,
  note: Type.Optional(Type.String()),
})

export default defineTool({
  name: 'delete-sec-rule',
  summary: 'Delete an allow rule: what only it allows is cut once provisioned.',
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
      href: Type.String({ description: '.../sec_rules/ID', listed: '' }),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1' },
  async handler({ href, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const { rule: current, ruleSetHref } = await findRule(ctx.pce, 'sec_rules', href, ctx.signal)
    const holder = await ctx.pce.ruleSets.getByReference(ruleSetHref, { signal: ctx.signal })
    const answer = await deleteObject(ctx, { what: 'the allow rule', current, holder }, dryRun)
    const change = { is: 'rule', ruleSet: ruleSetHref, collection: 'sec_rules', href: answer.href, rule: null } as const
    const { warnings, ...observed } = showObserved(await observeDryRun(ctx, answer, change))
    const note = `A draft change of the rule set ${ruleSetHref}; provision that to make it active.`
    return { ...answer, ...observed, ...withWarnings(warnings, answer.warnings), note }
  },
})
