import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { PairingProfileInput, PairingProfileOut } from '../../schemas/pairing-shapes.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { planPairingProfile, warnOfProfile } from '../../domain/drafts/plan-pairing-profile.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showPairingProfile } from '../answers/show-pairing-profile.js'
import { defineTool } from '../define.js'

const output = Type.Object({ ...UpdateOutput, ...Type.Partial(PairingProfileOut).properties })

export default defineTool({
  name: 'update-pairing-profile',
  summary: 'Replace fields of a pairing profile, at once, for machines that pair from now on.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  pceRequests: { atMost: 9 },
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      new_name: Type.Optional(NewName('Rename')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...PairingProfileInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Default (Servers)', key_lifespan: 86400 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, description, dry_run: dryRun, ...given } = args
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const found: PairingProfile = await findObject(pce, 'pairing_profiles', { href, name }, signal)
    const body: Record<string, unknown> = { name: newName, description, ...(await planPairingProfile(ctx, given)) }
    requireFields(body, ['new_name', 'description', ...Object.keys(PairingProfileInput)])
    if (newName !== undefined)
      await refuseTakenName(pce, 'pairing_profiles', newName, signal, { href: found.href, name: found.name ?? '' })
    const plan = {
      what: describeObject('pairing_profiles', found),
      current: found,
      body,
      read: (changed: string) => pce.pairingProfiles.getByReference(changed),
      warnings: [...warnOfSentences({ new_name: newName }), ...warnOfProfile(body), ...warnOfKeys(found, body)],
      order: orderOf('pairing_profiles', found.name ?? found.href),
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const { stored, updated_fields: written = [] } = answer
    const { expand, warnings } = await nameLabels(ctx, stored.labels, written.length > 0)
    const shown = { ...withWarnings(warnings, answer.warnings), ...showPairingProfile(stored, expand) }
    return fitAnswer({ ...withoutStored(answer), ...shown }, ctx.limits)
  },
})

/** Warns that existing keys may be affected by the change, and says what is not known about them. */
function warnOfKeys({ last_pairing_key_generated_at: last }: PairingProfile, body: Record<string, unknown>): string[] {
  if (last == null) return []
  const isLimit = body.key_lifespan !== undefined || body.allowed_uses_per_key !== undefined
  return [
    `Its latest key was made on ${last}, so machines may pair with one of its keys at any time.`,
    ...(isLimit ? ['Whether new limits hold for keys that were made before is not documented.'] : []),
  ]
}
