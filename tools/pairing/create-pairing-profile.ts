import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { PairingProfileInput, PairingProfileOut } from '../../schemas/pairing-shapes.js'
import { CreateOutput } from '../../schemas/update-output.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { createObject } from '../../domain/drafts/create-object.js'
import { planPairingProfile, USUAL_LIFESPAN, warnOfProfile } from '../../domain/drafts/plan-pairing-profile.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showPairingProfile } from '../answers/show-pairing-profile.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...CreateOutput,
  ...Type.Partial(PairingProfileOut).properties,
})

export default defineTool({
  name: 'create-pairing-profile',
  summary: 'Create a pairing profile, at once: enabled, visibility_only, keys of a day, unless said otherwise.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 6 },
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...PairingProfileInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Web servers', labels: ['role=web', 'env=prod'], key_lifespan: 3600, allowed_uses_per_key: 10 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { name, description, dry_run: dryRun, ...given } = args
    refuseHidden({ name })
    const planned = await planPairingProfile(ctx, given)
    const body = {
      name,
      ...(description !== undefined && { description }),
      // The PCE's defaults are not documented, so they are set explicitly: nothing is enforced, and keys expire.
      enabled: true,
      enforcement_mode: 'visibility_only',
      key_lifespan: USUAL_LIFESPAN,
      ...planned,
    }
    const plan = {
      kind: 'pairing_profiles' as const,
      body,
      read: (href: string) => ctx.pce.pairingProfiles.getByReference(href),
      next: 'It has no key yet.',
      warnings: [...warnOfSentences({ name }), ...warnOfProfile(body)],
    }
    const { stored, ...answer } = await createObject(ctx, plan, dryRun)
    if (stored === undefined) return fitAnswer(answer, ctx.limits)
    const { expand, warnings } = await nameLabels(ctx, stored.labels, true)
    const shown = { ...answer, ...withWarnings(warnings, answer.warnings), ...showPairingProfile(stored, expand) }
    return fitAnswer(shown, ctx.limits)
  },
})
