import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { findRule } from '../../domain/inventory/read-rules.js'

const output = Type.Object({
  ...DeleteOutput,
  was_override: Type.Optional(Type.Boolean()),
  note: Type.Optional(Type.String()),
})

export default defineTool({
  name: 'delete-deny-rule',
  summary: 'Delete a deny or override-deny rule: what it blocks may flow once provisioned.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'rules',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      href: Type.String({ description: '.../deny_rules/ID', listed: '' }),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/1' },
  async handler({ href, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const { rule: current, ruleSetHref } = await findRule(ctx.pce, 'deny_rules', href, ctx.signal)
    const override = current.override === true
    const holder = await ctx.pce.ruleSets.getByReference(ruleSetHref, { signal: ctx.signal })
    const what = override ? 'the override deny rule' : 'the deny rule'
    const answer = await deleteObject(ctx, { what, current, holder }, dryRun)
    const note = `A draft change of the rule set ${ruleSetHref}; provision that to make it active.`
    return { ...answer, was_override: override, note }
  },
})
