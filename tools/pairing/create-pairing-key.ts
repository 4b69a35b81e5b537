import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DRY_RUN_BINDING, DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { PairingProfileOut } from '../../schemas/pairing-shapes.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import type { ToolContext } from '../../domain/call.js'
import { planKey, warnOfProfile } from '../../domain/drafts/plan-pairing-profile.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { mayHaveHappened, withDetails } from '../../domain/inventory/pce-errors.js'
import { digestContents } from '../../domain/policy/digest-content.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { showPairingProfile } from '../answers/show-pairing-profile.js'
import { defineTool } from '../define.js'

const Profile = Type.Pick(PairingProfileOut, [
  'href',
  'name',
  'enforcement_mode',
  'labels',
  'key_lifespan',
  'allowed_uses_per_key',
])

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  pairing_key: Type.Optional(
    Type.String({ description: 'The key: a secret, shown this once. Whoever has it can pair machines' }),
  ),
  expires_at: Type.Optional(Type.String({ description: 'When the key ends, UTC, by the clock of this server' })),
  pairing_profile: Type.Optional(Type.Object(Profile.properties, { description: 'What the machines become' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-pairing-key',
  summary: 'Make a key that pairs machines with the PCE. It is a secret, shown once; its profile says when it expires.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  pceRequests: { atMost: 5 },
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Profile, or name' })),
      name: ByName,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Web servers', dry_run: true },
  async boundTo(args, ctx) {
    return bind(args, ctx, await findProfile(args, ctx))
  },
  async preview(args, ctx) {
    const { message, requests, pairing_profile: profile, warnings = [] } = await show({ ...args, dry_run: true }, ctx)
    return {
      summary: message,
      details: { requests, pairing_profile: profile, ...(warnings.length > 0 && { warnings }) },
      boundTo: await bind(args, ctx, await findProfile(args, ctx)),
    }
  },
  async handler(args, ctx) {
    return show(args, ctx)
  },
})

interface Arguments {
  href?: string
  name?: string
  dry_run?: boolean
}
type Ctx = ToolContext<true>

const findProfile = ({ href, name }: Arguments, { pce, signal }: Ctx): Promise<PairingProfile> =>
  findObject(pce, 'pairing_profiles', { href, name }, signal)

/**
 * Returns the digest to which a confirmation is bound. It covers the profile, because the person who confirms a new key
 * agrees to what the profile does to machines that pair with it.
 */
const bind = async ({ dry_run: dryRun }: Arguments, { signal }: Ctx, profile: PairingProfile): Promise<string> =>
  dryRun === true ? DRY_RUN_BINDING : digestContents([withoutUse(profile)], signal)

/** Removes the fields that change whenever a machine pairs or a key is created. */
function withoutUse(profile: PairingProfile): object {
  return Object.fromEntries(Object.entries(profile).filter(([field]) => !/^(?:last_|total_use_count$)/u.test(field)))
}

async function show(args: Arguments, ctx: Ctx): Promise<Static<typeof output>> {
  const { pce, signal } = ctx
  const found = await findProfile(args, ctx)
  const what = describeObject('pairing_profiles', found)
  const { profile, seconds } = planKey(found)
  const { labels, ...shown } = showPairingProfile(profile, await labelExpander(pce, profile.labels ?? [], ctx))
  const facts = {
    pairing_profile: {
      href: shown.href,
      name: shown.name,
      enforcement_mode: shown.enforcement_mode,
      labels,
      key_lifespan: shown.key_lifespan,
      allowed_uses_per_key: shown.allowed_uses_per_key,
    },
  }
  const notes = warnOfProfile({ enforcement_mode: profile.enforcement_mode })
  const warnings = notes.length > 0 ? { warnings: notes } : {}
  const path = `${found.href}/pairing_key`
  if (args.dry_run === true) {
    const message = `Would make a key of ${what}, which expires after ${seconds} seconds.`
    return { dry_run: true, message, requests: [{ method: 'POST', path, body: {} }], ...facts, ...warnings }
  }
  const digest = await bind(args, ctx, found)
  requireApproved(ctx.approved, digest, 'The profile has changed since the call was confirmed. No key was made.')
  signal.throwIfAborted()
  const key = await pce.generatePairingKey(found.href).catch((error: unknown) => {
    if (!mayHaveHappened(error)) throw error
    const hint = `A key may exist that nobody has. It ends after ${seconds} seconds; delete-pairing-keys ends all keys of the profile at once.`
    throw withDetails(error, { href: found.href, key_lifespan: seconds }, hint)
  })
  return {
    message: `Made a key of ${what}. It is shown this once: hand it over as a secret.`,
    pairing_key: key,
    expires_at: new Date(ctx.now() + seconds * 1000).toISOString(),
    ...facts,
    ...warnings,
  }
}
