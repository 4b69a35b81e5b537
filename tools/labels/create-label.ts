import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { LabelOut } from '../../schemas/label-reference.js'
import { NewLabelKey, NewName } from '../../schemas/new-name.js'
import { defineTool } from '../define.js'
import { createLabel, labelExists, warnOfLookAlikes } from '../../domain/drafts/create-labels.js'
import { loadLabels, showLabel } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { quote } from '../../domain/text/escape-text.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  label: Type.Optional(LabelOut),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'Labels that look the same' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-label',
  summary: 'Create a label (key and value), at once.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      key: NewLabelKey('Existing key, e.g. app'),
      value: NewName('New value'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'app', value: 'ordering' },
  async handler({ key, value, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    refuseHidden({ key, value })
    const index = await loadLabels(ctx.pce, ctx, 'fresh')
    const existing = index.find(key, value)
    if (existing !== undefined) throw labelExists(existing)
    const notes = [...warnOfSentences({ key, value }), ...warnOfLookAlikes(index, key, value)]
    const warnings = notes.length > 0 ? { warnings: notes } : {}
    if (dryRun === true) {
      const request = { method: 'POST', path: `/orgs/${ctx.pce.orgId}/labels`, body: { key, value } }
      return {
        dry_run: true,
        message: `Would create the label ${quote(`${key}=${value}`)}.`,
        requests: [request],
        ...warnings,
      }
    }
    const label = await createLabel(ctx.pce, key, value, ctx)
    return { message: `Created the label ${quote(`${key}=${value}`)}.`, label: showLabel(label), ...warnings }
  },
})
