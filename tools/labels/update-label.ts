import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelOut } from '../../schemas/label-reference.js'
import { NewName } from '../../schemas/new-name.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { labelExists, warnOfLookAlikes } from '../../domain/drafts/create-labels.js'
import { findLabel } from '../../domain/inventory/find-labels.js'
import { forgetLabels, loadLabels, showLabel } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { quote } from '../../domain/text/escape-text.js'

const output = Type.Object({
  ...UpdateOutput,
  label: Type.Optional(LabelOut),
  previous_value: Type.Optional(Type.String()),
})

export default defineTool({
  name: 'update-label',
  summary: 'Rename a label wherever used, or change its external id. At once.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or key and value', listed: '' })),
      key: Type.Optional(Type.String({ description: 'Key' })),
      value: Type.Optional(Type.String({ description: 'Current value', listed: '' })),
      new_value: Type.Optional(NewName('New value')),
      external_data_set: Type.Optional(Type.String({ description: 'Source it is from', listed: '' })),
      external_data_reference: Type.Optional(Type.String({ description: 'Its id there', listed: '' })),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'app', value: 'ordering', new_value: 'order-entry' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { href, key, value, new_value: asked, dry_run: dryRun, ...source } = args
    if (asked === undefined && Object.keys(source).length === 0) {
      const text = 'new_value is required unless external_data_set or external_data_reference changes.'
      throw new ToolError('invalid_argument', text, { argument: 'new_value' })
    }
    if (asked !== undefined) refuseHidden({ new_value: asked })
    const index = await loadLabels(ctx.pce, ctx, 'fresh')
    const current = findLabel(index, { href, key, value }, ctx.pce.orgId)
    const next = asked ?? current.value
    const taken = index.find(current.key, next)
    if (taken !== undefined && taken.href !== current.href) throw labelExists(taken)
    const plan = {
      what: `the label ${quote(`${current.key}=${current.value}`)}`,
      current,
      body: { value: asked, ...source },
      read: (changed: string) => ctx.pce.labels.getByReference(changed),
      warnings:
        asked === undefined
          ? []
          : [...warnOfSentences({ new_value: asked }), ...warnOfLookAlikes(index, current.key, asked, current.href)],
    }
    try {
      const { stored, previous, ...answer } = await updateObject(ctx, plan, dryRun)
      const { value: _before, ...others } = previous ?? {}
      return {
        ...withoutStored({ ...answer, stored, ...(Object.keys(others).length > 0 && { previous: others }) }),
        label: showLabel(stored),
        previous_value: showLabel(current).value,
      }
    } finally {
      if (dryRun !== true) forgetLabels(ctx.pce)
    }
  },
})
