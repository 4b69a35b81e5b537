import { Type, type Static } from '@sinclair/typebox'
import { CHANGE_SUBSET_TYPES, type ChangeSubsetType } from '../../../schemas/pce/policy.js'
import { invalidInput, invalidUri } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

const List = Type.Optional(Type.Array(Href))
export const ChangeSubset = Type.Object(
  Object.fromEntries(CHANGE_SUBSET_TYPES.map((type) => [type, List])) as Record<ChangeSubsetType, typeof List>,
  CLOSED,
)

export const PROVISION = new Shape(
  'sec_policy_post',
  Type.Object({ update_description: Type.Optional(Type.String()), change_subset: Type.Optional(ChangeSubset) }, CLOSED),
)
export const REVERT = new Shape(
  'sec_policy_delete_put',
  Type.Object({ change_subset: Type.Optional(ChangeSubset) }, CLOSED),
)
export const IMPACT = new Shape(
  'sec_policy_impact_post',
  Type.Object({ change_subset: Type.Optional(ChangeSubset) }, CLOSED),
)
export const DEPENDENCIES = new Shape(
  'sec_policy_dependencies_post',
  Type.Object(
    { operation: Type.Union([Type.Literal('commit'), Type.Literal('revert')]), change_subset: ChangeSubset },
    CLOSED,
  ),
)

/**
 * The pending entries that a change subset names by their draft hrefs; all of them when there is none. Throws 406: invalid_uri
 * for an href that is no draft object of its type, input_validation_error for one without a pending change.
 */
export function resolveSubset(world: World, subset: Static<typeof ChangeSubset> | undefined): Entry[] {
  if (subset === undefined) return world.policy.pending()
  const entries = CHANGE_SUBSET_TYPES.flatMap((type) =>
    (subset[type] ?? []).map(({ href }) => {
      const entry = world.policy.get(type, href)
      if (!entry) throw invalidUri(href)
      if (entry.updateType === null) throw invalidInput(`${href} has no pending change`)
      return entry
    }),
  )
  return [...new Set(entries)]
}
