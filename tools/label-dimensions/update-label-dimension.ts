import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { NewName } from '../../schemas/new-name.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { findDimension, readDimensions } from '../../domain/inventory/find-dimension.js'
import { quote } from '../../domain/text/escape-text.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...UpdateOutput,
  href: Type.Optional(Type.String()),
  key: Type.Optional(Type.String()),
  display_name: Type.Optional(Type.String({ description: 'What the console calls it' })),
})

export default defineTool({
  name: 'update-label-dimension',
  summary: 'Change the display name of a label dimension, at once. Its key never changes.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 5 },
  input: Type.Object(
    {
      key: Type.String({ minLength: 1, description: 'Key' }),
      display_name: NewName('Shown in the console'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'loc', display_name: 'Site' },
  async handler({ key, display_name: displayName, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    refuseHidden({ display_name: displayName })
    const current = await findDimension(pce, key, signal)
    const others = (await readDimensions(pce, signal)).filter(({ href }) => href !== current.href)
    const taken = others.find((one) => one.display_name === displayName)
    if (taken !== undefined) {
      const text = `The display name ${quote(displayName)} already belongs to the label dimension ${quote(taken.key)}.`
      const details = { existing_dimension: { href: taken.href, key: taken.key } }
      throw new ToolError('already_exists', text, details)
    }
    const plan = {
      what: `the label dimension ${quote(key)}`,
      current,
      body: { display_name: displayName },
      read: (changed: string) => pce.labelDimensions.getByReference(changed),
      warnings: warnOfSentences({ display_name: displayName }),
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const { href, display_name: now } = answer.stored
    return { ...withoutStored(answer), href, key, display_name: now }
  },
})
