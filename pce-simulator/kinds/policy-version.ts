import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Call } from '../http/route.js'
import { Refusal, notAcceptable, notFound } from '../refusal.js'
import type { UpdateType } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'

/** A versioned object, as it is in one version of the policy. */
export interface Version {
  body: VersionedObject
  updateType: UpdateType | null
}

/**
 * Lists the objects of a type in one policy version: `draft`, `active` or the number of a past version. Throws 404 for
 * an unknown version.
 */
export function bodiesAt(world: World, type: ChangeSubsetType, pversion: string): Version[] {
  const entries = world.policy.entries(type)
  if (pversion === 'draft') return entries.map(({ draft, updateType }) => ({ body: draft, updateType }))
  if (pversion === 'active') {
    return entries.flatMap(({ active }) => (active === null ? [] : [{ body: active, updateType: null }]))
  }
  const past = world.versions.find(({ version }) => String(version.version) === pversion)
  if (!past) throw notFound()
  return [...(past.snapshot.get(type)?.values() ?? [])].map((body) => ({ body, updateType: null }))
}

/** Refuses a write to any version except the draft (P4). */
export function requireDraftPath(call: Call): void {
  if (call.params.pversion !== 'draft') throw new Refusal(UNCERTAIN.activeWriteStatus, UNCERTAIN.methodNotAllowedBody)
}

/** Returns the path of the request with `draft` in place of its policy version, because the store uses draft hrefs. */
export function draftHref(call: Call): string {
  return call.path.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/')
}

/** Replaces the policy version in every href in `value`, including those of rules and references (P4). */
export function inVersion(value: unknown, pversion: string): unknown {
  if (Array.isArray(value)) return value.map((item) => inVersion(item, pversion))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key !== 'href' || typeof inner !== 'string') return [key, inVersion(inner, pversion)]
      return [key, inner.replace('/sec_policy/draft/', `/sec_policy/${pversion}/`)]
    }),
  )
}

/** Requires that no other object in the draft has this name. Objects whose deletion is pending count too (P4). */
export function requireFreeName(
  world: World,
  type: ChangeSubsetType,
  name: string,
  own: string | null,
  [token, message]: readonly [string, string] = [UNCERTAIN.duplicateName.token, UNCERTAIN.duplicateName.message],
): void {
  const taken = world.policy.entries(type).some(({ draft }) => draft.name === name && draft.href !== own)
  if (taken) throw notAcceptable(token, message)
}
