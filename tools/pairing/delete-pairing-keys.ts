import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { defineTool } from '../define.js'

const output = Type.Object({ ...DeleteOutput, name: Type.Optional(Type.String()) })

export default defineTool({
  name: 'delete-pairing-keys',
  summary: 'End all keys of a pairing profile, at once. Paired machines stay paired.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: true,
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  pceRequests: { atMost: 3 },
  input: Type.Object(
    { href: Type.Optional(Type.String({ description: 'Profile, or name' })), name: ByName, ...DryRunInput },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Web servers' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const found: PairingProfile = await findObject(pce, 'pairing_profiles', { href, name }, signal)
    const what = describeObject('pairing_profiles', found)
    const path = `${found.href}/pairing_keys`
    const last = found.last_pairing_key_generated_at
    const warnings =
      last == null
        ? ['The PCE knows of no key of it.']
        : [`Its latest key was made on ${last}: installations that still use one of its keys fail.`]
    const shown = { href: found.href, name: found.name ?? '', warnings }
    if (dryRun === true)
      return {
        dry_run: true,
        message: `Would end all keys of ${what}.`,
        requests: [{ method: 'DELETE', path, body: null }],
        ...shown,
      }
    signal.throwIfAborted()
    await pce.delete(path, { includeOrg: false })
    return { message: `Ended all keys of ${what}. New ones can be made.`, ...shown }
  },
})
