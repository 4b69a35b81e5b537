import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { LabelOut } from '../../schemas/label-reference.js'
import { NewName } from '../../schemas/new-name.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { labelExists, warnOfCaseVariants } from '../../domain/drafts/create-labels.js'
import { findLabel } from '../../domain/inventory/find-labels.js'
import { forgetLabels, loadLabels, showLabel } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { updateObject, withoutStored } from '../../domain/drafts/change-object.js'

const output = Type.Object({
  ...UpdateOutput,
  label: Type.Optional(LabelOut),
  previous_value: Type.Optional(Type.String()),
})

export default defineTool({
  name: 'update-label',
  area: 'labels',
  summary: 'Rename the value of a label wherever it is used, at once.',
  effect: 'write',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or key and value' })),
      key: Type.Optional(Type.String({ description: 'Key' })),
      value: Type.Optional(Type.String({ description: 'Current value' })),
      new_value: NewName('New value'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'app', value: 'ordering', new_value: 'order-entry' },
  async handler({ href, key, value, new_value: next, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    refuseHidden({ new_value: next })
    const index = await loadLabels(ctx.pce, ctx, 'fresh')
    const current = findLabel(index, { href, key, value }, ctx.pce.orgId)
    const taken = index.find(current.key, next)
    if (taken !== undefined && taken.href !== current.href) throw labelExists(taken)
    const warning = warnOfCaseVariants(index, current.key, next, current.href)
    const plan = {
      what: `the label ${current.key}=${current.value}`,
      current,
      body: { value: next },
      read: (changed: string) => ctx.pce.labels.getByReference(changed),
      warnings: warning === undefined ? [] : [warning],
    }
    try {
      const answer = await updateObject(ctx, plan, dryRun)
      return { ...withoutStored(answer), label: showLabel(answer.stored), previous_value: showLabel(current).value }
    } finally {
      if (dryRun !== true) forgetLabels(ctx.pce)
    }
  },
})
