import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { capital } from '../../domain/text/capital.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...DeleteOutput,
  name: Type.Optional(Type.String()),
  total_use_count: Type.Optional(Type.Integer({ description: 'Machines that have paired with it; they stay paired' })),
})

export default defineTool({
  name: 'delete-pairing-profile',
  summary: 'Delete a pairing profile, at once, and with it its keys.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  pceRequests: { atMost: 3 },
  input: Type.Object(
    { href: Type.Optional(Type.String({ description: 'Or name' })), name: ByName, ...DryRunInput },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Retired servers' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current: PairingProfile = await findObject(ctx.pce, 'pairing_profiles', { href, name }, ctx.signal)
    const what = describeObject('pairing_profiles', current)
    if (current.is_default === true) {
      const text = `${capital(what)} is the default one, which a PCE keeps. Nothing was written.`
      throw new ToolError('invalid_argument', text, { reason: 'built_in', href: current.href })
    }
    const { last_pairing_key_generated_at: last, total_use_count: uses } = current
    const warnings =
      last == null ? [] : [`Its latest key was made on ${last}: installations that still use one of its keys fail.`]
    const answer = await deleteObject(ctx, { what, current, warnings }, dryRun)
    return { ...answer, name: current.name ?? '', ...(uses !== undefined && { total_use_count: uses }) }
  },
})
