import type { Answer, Call } from '../http/route.js'
import { kindOf } from '../kinds/index.js'
import { endBindings } from '../kinds/service-binding.js'
import { invalidInput } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import { orgPath, type ProvisionedVersion, type World } from '../world.js'
import { PROVISION, REVERT, nothingPending, readSubset, resolveSubset } from './change-subset.js'
import { findAffected } from './find-affected.js'
import { findCommitNeeds, findRevertNeeds } from './find-dependencies.js'

/** Handles POST /sec_policy: makes the chosen drafts, or all drafts, the next active version (P27, P35). */
export function provision(call: Call): Answer {
  const { world } = call
  const { update_description = '', change_subset } = PROVISION.read(call.body)
  const entries = resolveSubset(world, change_subset)
  if (entries.length === 0) throw nothingPending('There are no pending changes to provision')
  refuseOpenSubset([...findCommitNeeds(world, entries).keys()], 'provisioned')
  const affected = findAffected(world, entries).workloads.filter(({ managed }) => managed === true).length
  const modified = entries.map((entry) => describeModified(entry))
  for (const entry of entries) {
    if (entry.type === 'virtual_services' && entry.updateType === 'delete' && UNCERTAIN.bindingsEndWithTheirService) {
      endBindings(world, entry.draft.href)
    }
    world.policy.provision(entry, (draft) => kindOf(entry.type).settle?.(draft) ?? draft)
  }
  const version = addVersion(world, update_description, affected, modified)
  const { href, commit_message } = version
  return {
    status: 201,
    json: version,
    changes: [{ resource: { sec_policy: { href, commit_message, modified_objects: modified } }, type: 'create' }],
  }
}

/**
 * Handles PUT /sec_policy/delete, which, despite its name, reverts the chosen drafts, or all drafts, to the active
 * policy (P36).
 */
export function revert(call: Call): Answer {
  const { world } = call
  const { change_subset } = readSubset(REVERT, call.body)
  const entries = resolveSubset(world, change_subset)
  refuseOpenSubset([...findRevertNeeds(world, entries).keys()], 'reverted')
  return discard(world, entries)
}

/** Handles DELETE /sec_policy/pending, which reverts every pending change. */
export function discardPending({ world }: Call): Answer {
  return discard(world, world.policy.pending())
}

/** Records the current active policy as a new version with the next number. */
export function addVersion(
  world: World,
  message: string,
  workloadsAffected: number,
  modified: ProvisionedVersion['modified'],
  createdAt = world.now(),
): ProvisionedVersion['version'] {
  const number = (world.versions.at(-1)?.version.version ?? 0) + 1
  const snapshot = world.policy.snapshot()
  const version = {
    href: orgPath(world, `/sec_policy/${number}`),
    version: number,
    workloads_affected: workloadsAffected,
    commit_message: message,
    object_counts: Object.fromEntries([...snapshot].map(([type, bodies]) => [type, bodies.size])),
    created_at: createdAt,
    created_by: { href: world.user.href },
  }
  world.versions.push({ version, modified, snapshot })
  return version
}

export function describeModified({ type, draft, updateType }: Entry): ProvisionedVersion['modified'][number] {
  return {
    update_type: updateType!,
    object_type: type,
    href: draft.href,
    name: nameOf(draft.name),
    updated_at: draft.updated_at ?? '',
    ...(draft.updated_by ? { updated_by: draft.updated_by } : {}),
  }
}

/** Returns the name that an object has in lists of changes. Only firewall settings have no name of their own. */
export function nameOf(name: unknown): string {
  return typeof name === 'string' ? name : UNCERTAIN.firewallSettingsName
}

function discard(world: World, entries: readonly Entry[]): Answer {
  const changes = entries.map(({ type, draft }) => ({
    resource: { [kindOf(type).noun]: { href: draft.href, name: nameOf(draft.name) } },
    type: 'delete' as const,
  }))
  for (const entry of entries) world.policy.revert(entry)
  return { status: 204, changes }
}

function refuseOpenSubset(missing: readonly Entry[], done: string): void {
  if (missing.length === 0) return
  const hrefs = missing.map(({ draft }) => draft.href).join(', ')
  throw invalidInput(`The change subset is incomplete: ${hrefs} must be ${done} too`)
}
