import { Type, type Static } from '@sinclair/typebox'
import { ByNameOrHost } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { isManaged } from '../../domain/inventory/workloads.js'
import { capital } from '../../domain/text/capital.js'

const output = Type.Object({
  ...DeleteOutput,
  name: Type.Optional(Type.String()),
  managed: Type.Optional(Type.Boolean()),
})

export default defineTool({
  name: 'delete-workload',
  summary: 'Delete an unmanaged workload, at once.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByNameOrHost,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'legacy-db-01' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findObject(ctx.pce, 'workloads', { href, name }, ctx.signal)
    const what = describeObject('workloads', current)
    if (isManaged(current)) {
      const details = { argument: href === undefined ? 'name' : 'href', href: current.href, managed: true }
      const hint = 'Unpair the VEN first: in the PCE, or on the host itself.'
      throw new ToolError('invalid_argument', `${capital(what)} has a VEN and cannot be deleted.`, details, { hint })
    }
    const answer = await deleteObject(ctx, { what, current }, dryRun)
    return { ...answer, name: current.name ?? current.hostname ?? '', managed: false }
  },
})
