import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { findPolicyUsers, warnOfRefusal } from '../../domain/inventory/find-uses.js'

const output = Type.Object({ ...DeleteOutput, name: Type.Optional(Type.String()) })

export default defineTool({
  name: 'delete-label-group',
  summary: 'Delete a label group that no rule, scope or other group uses.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 14, and: 'two for each rule set on releases that list deny rules apart' },
  input: Type.Object(
    { href: Type.Optional(Type.String({ description: 'Or name' })), name: ByName, ...DryRunInput },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Retired environments' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findObject(ctx.pce, 'label_groups', { href, name }, ctx.signal)
    const plan = {
      what: describeObject('label_groups', current),
      current,
      warnings: dryRun === true ? await warnOfRefusal(ctx.pce, current, ctx.signal) : [],
      explainRefusal: () => findPolicyUsers(ctx.pce, current, ctx.signal),
    }
    return { ...(await deleteObject(ctx, plan, dryRun)), name: current.name }
  },
})
