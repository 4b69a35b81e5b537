import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import type { Label } from '../../schemas/pce/label.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { findLabel } from '../../domain/inventory/find-labels.js'
import { forgetLabels, loadLabels, showLabel } from '../../domain/inventory/labels.js'
import { quote } from '../../domain/text/escape-text.js'

const output = Type.Object({
  ...DeleteOutput,
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
})

export default defineTool({
  name: 'delete-label',
  summary: 'Delete a label that nothing uses, at once.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      key: Type.String({ minLength: 1, description: 'Key' }),
      value: Type.String({ minLength: 1, description: 'Value' }),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'app', value: 'retired-app' },
  async handler({ key, value, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = findLabel(await loadLabels(ctx.pce, ctx, 'fresh'), { key, value }, ctx.pce.orgId)
    const uses = await listUses(ctx, current, dryRun === true)
    const plan = {
      what: `the label ${quote(`${key}=${value}`)}`,
      current,
      explainRefusal: async () => {
        const used = await listUses(ctx, current, true)
        const hint = 'First remove the label from everything in used_by. Policy counts in draft and active.'
        return { details: { used_by: used }, ...(used.length > 0 && { hint }) }
      },
      warnings: uses.length === 0 ? [] : [`The PCE will refuse it while it is used by: ${uses.join(', ')}.`],
    }
    try {
      return { ...(await deleteObject(ctx, plan, dryRun)), ...withoutHref(showLabel(current)) }
    } finally {
      if (dryRun !== true) forgetLabels(ctx.pce)
    }
  },
})

/**
 * Returns the kinds of objects that use the label, according to the PCE. If `ask` is false, the PCE is not asked, and
 * the result is empty.
 */
async function listUses({ pce, signal }: ToolContext<true>, { href }: Label, ask: boolean): Promise<string[]> {
  if (!ask) return []
  const { usage } = await pce.labels.getByReference(href, { params: { usage: true }, signal })
  return Object.entries(usage ?? {}).flatMap(([kind, used]) => (used === true ? [kind] : []))
}

function withoutHref({ key, value }: { key: string; value: string }) {
  return { key, value }
}
