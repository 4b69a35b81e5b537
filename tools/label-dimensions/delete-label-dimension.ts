import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { findDimensionUses } from '../../domain/inventory/find-dimension-uses.js'
import { findDimension, isBuiltInDimension } from '../../domain/inventory/find-dimension.js'
import { quote } from '../../domain/text/escape-text.js'
import { defineTool } from '../define.js'

const output = Type.Object({ ...DeleteOutput, key: Type.Optional(Type.String()) })

export default defineTool({
  name: 'delete-label-dimension',
  summary: 'Delete a label dimension that no label, label group or rule uses, at once.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // The call is heavy, because it reads all rules to find those that use the dimension.
  isHeavy: true,
  pceRequests: { atMost: 16, and: 'two for each rule set on releases that list deny rules apart' },
  input: Type.Object(
    { key: Type.String({ minLength: 1, description: 'Key' }), ...DryRunInput },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'retired', dry_run: true },
  async handler({ key, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findDimension(ctx.pce, key, ctx.beforeWriting)
    const what = `the label dimension ${quote(key)}`
    if (isBuiltInDimension(current)) {
      const text = `The label dimension ${quote(key)} is built in, and stays. Nothing was written.`
      throw new ToolError('invalid_argument', text, { argument: 'key', reason: 'built_in', href: current.href })
    }
    const { uses, unread } = await findDimensionUses({ ...ctx, signal: ctx.beforeWriting }, current)
    // It is not documented for which uses the PCE itself refuses the deletion, and a key without its dimension cannot
    // be repaired.
    if (dryRun !== true && uses.length + unread.length > 0) {
      const text =
        uses.length > 0
          ? `${quote(key)} is used by ${uses.join(', ')}. Nothing was written.`
          : `Whether ${quote(key)} is used could not be read in full. Nothing was written.`
      const details = { argument: 'key', reason: 'in_use', used_by: uses, used_by_unread: unread }
      throw new ToolError('invalid_argument', text, details, { hint: 'Delete first what uses it.' })
    }
    const refused = uses.length > 0 ? [`It will not be deleted while it is used by ${uses.join(', ')}.`] : []
    return { ...(await deleteObject(ctx, { what, current, warnings: [...refused, ...unread] }, dryRun)), key }
  },
})
