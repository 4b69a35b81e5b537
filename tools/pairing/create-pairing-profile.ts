import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { PairingProfileInput, PairingProfileOut } from '../../schemas/pairing-shapes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { CreateOutput } from '../../schemas/update-output.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { createObject } from '../../domain/drafts/create-object.js'
import {
  planPairingProfile,
  USUAL_LIFESPAN,
  warnOfProfile,
  warnOfUses,
} from '../../domain/drafts/plan-pairing-profile.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showLabelOf } from '../answers/show-label.js'
import { showPairingProfile } from '../answers/show-pairing-profile.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...CreateOutput,
  ...Type.Partial(PairingProfileOut).properties,
  left_to_pce: Type.Optional(
    Type.Array(Type.String(), { description: 'Dry run: settings that are not sent, so that the PCE chooses them' }),
  ),
})

/** The settings of a profile that decide what machines may do with it, and that the request may leave out. */
const SETTINGS = [
  'enforcement_mode_lock',
  'allowed_uses_per_key',
  'visibility_level',
  'visibility_level_lock',
  'role_label_lock',
  'app_label_lock',
  'env_label_lock',
  'loc_label_lock',
]

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
      warnings: [...warnOfSentences({ name }), ...warnOfProfile(body), ...warnOfUses(planned)],
    }
    const { stored, ...answer } = await createObject(ctx, plan, dryRun)
    if (stored === undefined) {
      const { labels = [] } = planned as { labels?: LabelRef[] }
      const { expand, warnings: unread } = await nameLabels(ctx, labels, false)
      const preview = {
        ...(body as Partial<PairingProfileOut>),
        labels: labels.map((label) => showLabelOf(expand(label))),
        left_to_pce: SETTINGS.filter((setting) => !Object.hasOwn(body, setting)),
      }
      return fitAnswer({ ...answer, ...withWarnings(unread, answer.warnings), ...preview }, ctx.limits)
    }
    const { expand, warnings } = await nameLabels(ctx, stored.labels, true)
    const shown = { ...answer, ...withWarnings(warnings, answer.warnings), ...showPairingProfile(stored, expand) }
    return fitAnswer(shown, ctx.limits)
  },
})
