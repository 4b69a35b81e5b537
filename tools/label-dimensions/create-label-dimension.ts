import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { NewLabelKey, NewName } from '../../schemas/new-name.js'
import type { LabelDimension } from '../../schemas/pce/label.js'
import { DifferencesOut } from '../../schemas/update-output.js'
import { readBack } from '../../domain/drafts/change-object.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { readDimensions } from '../../domain/inventory/find-dimension.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import { quote } from '../../domain/text/escape-text.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  href: Type.Optional(Type.String()),
  key: Type.Optional(Type.String()),
  display_name: Type.Optional(Type.String({ description: 'What the console calls it' })),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-label-dimension',
  summary: 'Create a label dimension, at once: a key that labels can have, beside role, app, env and loc.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 4 },
  input: Type.Object(
    {
      key: NewLabelKey('New key, never changed later'),
      display_name: NewName('Shown in the console'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'bu', display_name: 'Business unit' },
  async handler({ key, display_name: displayName, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    refuseHidden({ key, display_name: displayName })
    const refuseTaken = async () => refuseTakenKey(await readDimensions(pce, signal), key, displayName)
    const all = await refuseTaken()
    const body = { key, display_name: displayName }
    const notes = [...warnOfSentences({ key, display_name: displayName }), ...warnOfLookAlikes(all, key)]
    if (dryRun === true) {
      const request = { method: 'POST', path: `/orgs/${pce.orgId}/label_dimensions`, body }
      const message = `Would create the label dimension ${quote(key)}.`
      return { dry_run: true, message, requests: [request], ...(notes.length > 0 && { warnings: notes }) }
    }
    const created = await ctx.inOrder(`label_dimensions ${key}`, async (turn) => {
      if (turn.others.size > 0) await refuseTaken()
      signal.throwIfAborted()
      const made = await pce.labelDimensions.create(body).catch(async (error: unknown) => {
        if (!(error instanceof PceError) || !error.isAccepted) throw error
        // If the PCE accepted the request and only its answer cannot be read, the dimension exists (D72). If it cannot
        // be found, the first error is thrown, which says that it may exist.
        const now = await readDimensions(pce, signal).catch(() => [])
        const found = now.find((one) => one.key === key)
        if (found === undefined) throw error
        return found
      })
      turn.note(made.href)
      return made
    })
    const { stored, warnings: unread } = await readBack(created, () => pce.labelDimensions.getByReference(created.href))
    const warnings = [...notes, ...(unread.warnings ?? [])]
    return {
      message: `Created the label dimension ${quote(key)}. Labels can have this key from now on.`,
      href: stored.href,
      key: stored.key,
      display_name: stored.display_name,
      ...listDifferences(findDifferences(body, stored)),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

function refuseTakenKey(all: readonly LabelDimension[], key: string, displayName: string): readonly LabelDimension[] {
  const taken = all.find((one) => one.key === key || one.display_name === displayName)
  if (taken === undefined) return all
  const what = taken.key === key ? `key ${quote(key)}` : `display name ${quote(displayName)}`
  const details = { existing_dimension: { href: taken.href, key: taken.key, display_name: taken.display_name } }
  throw new ToolError('already_exists', `The ${what} already belongs to another label dimension.`, details)
}

/** Warns of existing keys that differ from the new one only in case, because people would confuse them. */
function warnOfLookAlikes(all: readonly LabelDimension[], key: string): string[] {
  const alike = all.filter((one) => one.key.toLowerCase() === key.toLowerCase())
  return alike.map((one) => `${quote(key)} differs only in case from the key ${quote(one.key)}.`)
}
