import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { LabelGroupWrittenOut, MembersInput } from '../../schemas/label-group-shapes.js'
import { NewLabelKey, NewName } from '../../schemas/new-name.js'
import { CreateOutput } from '../../schemas/update-output.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { createObject } from '../../domain/drafts/create-object.js'
import { findMembers, membersBody, requireKey } from '../../domain/drafts/plan-label-group.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { showWrittenGroup } from '../answers/show-label-group.js'
import { withWarnings } from '../answers/show-observed.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...CreateOutput,
  ...Type.Partial(LabelGroupWrittenOut).properties,
})

export default defineTool({
  name: 'create-label-group',
  summary: 'Create a label group of labels, and of groups, with one key.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 9, and: 'two for each named group' },
  input: Type.Object(
    {
      name: NewName('New name'),
      key: Type.Optional(NewLabelKey('Absent: that of its members')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...MembersInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Everything but production', labels: ['env=dev', 'env=test'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { name, key: given, description, labels, sub_groups: groups, dry_run: dryRun } = args
    refuseHidden({ name, ...(given !== undefined && { key: given }) })
    const members = await findMembers(ctx, { labels, sub_groups: groups })
    const key = await requireKey(ctx, given, members)
    const body = { name, key, ...(description !== undefined && { description }), ...membersBody(members) }
    const warnings = warnOfSentences({ name })
    if ((members.labels ?? []).length + (members.sub_groups ?? []).length === 0)
      warnings.push('It has no members, so nothing is in it: a rule that names it reaches no workload.')
    const plan = {
      kind: 'label_groups' as const,
      body,
      read: (href: string) => ctx.pce.labelGroups.getByReference(href),
      next: 'Rules can use it; it takes effect when provisioned.',
      warnings,
    }
    const { stored, ...answer } = await createObject(ctx, plan, dryRun)
    if (stored === undefined) return fitAnswer(answer, ctx.limits)
    const { expand, warnings: unread } = await nameLabels(ctx, stored.labels, true)
    const shown = showWrittenGroup(stored, expand, members.sub_groups ?? [])
    return fitAnswer({ ...answer, ...withWarnings(unread, answer.warnings), ...shown }, ctx.limits)
  },
})
