import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { findPolicyUsers, warnOfBuiltIn, warnOfRefusal } from '../../domain/inventory/find-uses.js'

const output = Type.Object({ ...DeleteOutput, name: Type.Optional(Type.String()) })

export default defineTool({
  name: 'delete-service',
  summary: 'Delete a service that no rule uses.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'retired api' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findObject(ctx.pce, 'services', { href, name }, ctx.signal)
    const plan = {
      what: describeObject('services', current),
      current,
      warnings: dryRun === true ? await warnOfRefusal(ctx.pce, current, ctx.signal) : warnOfBuiltIn(current),
      explainRefusal: () => findPolicyUsers(ctx.pce, current, ctx.signal),
    }
    return { ...(await deleteObject(ctx, plan, dryRun)), name: current.name }
  },
})
