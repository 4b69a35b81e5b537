import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { type ChangeSubsetType, CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { Refusal, invalidUri } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'

const List = Type.Optional(Type.Array(Href))
export const ChangeSubset = Type.Object(
  Object.fromEntries(CHANGE_SUBSET_TYPES.map((type) => [type, List])) as Record<ChangeSubsetType, typeof List>,
  CLOSED,
)

const SUBSET = Type.Object({ change_subset: Type.Optional(ChangeSubset) }, CLOSED)
export const PROVISION = new Shape(
  'sec_policy_post',
  Type.Object({ update_description: Type.Optional(Type.String()), change_subset: Type.Optional(ChangeSubset) }, CLOSED),
)
export const REVERT = new Shape('sec_policy_delete_put', SUBSET)
export const IMPACT = new Shape('sec_policy_impact_post', SUBSET)
export const DEPENDENCIES = new Shape(
  'sec_policy_dependencies_post',
  Type.Object(
    { operation: Type.Union([Type.Literal('commit'), Type.Literal('revert')]), change_subset: ChangeSubset },
    CLOSED,
  ),
)
const BARE_LIST = new Shape('sec_policy_change_subset', Type.Array(Href))

/**
 * Reads a request body that contains a change subset. One client sends a bare list of hrefs instead, which is converted
 * to a change subset (P13). Throws 406 invalid_uri for an href whose type cannot be in a change subset.
 */
export function readSubset<T extends TSchema>(shape: Shape<T>, body: unknown, operation?: string): Static<T> {
  if (!Array.isArray(body)) return shape.read(body)
  const change_subset: Record<string, { href: string }[]> = {}
  for (const { href } of BARE_LIST.read(body)) {
    const type = /\/sec_policy\/draft\/(\w+)(?:\/[^/]+)?$/.exec(href)?.[1]
    if (!CHANGE_SUBSET_TYPES.some((known) => known === type)) throw invalidUri(href)
    ;(change_subset[type!] ??= []).push({ href })
  }
  return shape.read({ change_subset, ...(operation === undefined ? {} : { operation }) })
}

/**
 * Finds the pending entries that a change subset names by draft hrefs, or all pending entries if there is no subset.
 * Throws 406: invalid_uri if an href is not a draft object of its type, input_validation_error if the object has no
 * pending change.
 */
export function resolveSubset(world: World, subset: Static<typeof ChangeSubset> | undefined): Entry[] {
  if (subset === undefined) return world.policy.pending()
  const entries = CHANGE_SUBSET_TYPES.flatMap((type) =>
    (subset[type] ?? []).map(({ href }) => {
      const entry = world.policy.get(type, href)
      if (!entry) throw invalidUri(href)
      if (entry.updateType === null) throw nothingPending(`${href} has no pending change`)
      return entry
    }),
  )
  return [...new Set(entries)]
}

export function nothingPending(message: string): Refusal {
  return new Refusal(UNCERTAIN.nothingPendingStatus, [{ token: 'input_validation_error', message }])
}
