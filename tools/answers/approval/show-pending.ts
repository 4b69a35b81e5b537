import type { TypedPendingChange } from '../../../pce-client/index.js'
import type { Preview } from '../../../domain/call.js'
import { updateTypeOf, type Dependency } from '../../../domain/policy/choose-changes.js'
import { withoutFalseExclusions } from '../../../domain/policy/diff-fields.js'
import type { ShownField, ShownObject } from '../../../schemas/approvals.js'
import { kindOf } from '../policy-words.js'

type Page = NonNullable<Preview['page']>

/** Maximum number of pending changes that a confirmation page lists as not included in the call. */
const MOST_NOT_INCLUDED = 100

export const nameOf = (name: string | undefined) => (name === undefined || name === '' ? {} : { name })

export function changeOf(change: TypedPendingChange): ShownObject['change'] {
  const type = updateTypeOf(change)
  return type === 'create' || type === 'update' || type === 'delete' ? type : 'unknown'
}

/**
 * Returns additional parts of a confirmation page: the dependencies that the call includes because other objects need
 * them, and the pending changes that the call leaves out. Empty parts are absent.
 */
export function showBeside(
  changes: readonly TypedPendingChange[],
  included: readonly Dependency[],
  rest: readonly TypedPendingChange[],
): Pick<Page, 'dependencies' | 'not_included'> {
  const names = new Map(changes.map(({ href, name }) => [href, name]))
  return {
    ...(included.length > 0 && {
      dependencies: included.map(({ href, type, required_by: requiredBy }) => ({
        kind: kindOf(type),
        ...nameOf(names.get(href)),
        href,
        required_by: requiredBy.map((needing) => names.get(needing) ?? needing),
      })),
    }),
    ...(rest.length > 0 && {
      not_included: {
        total: rest.length,
        objects: rest.slice(0, MOST_NOT_INCLUDED).map((change) => ({
          kind: kindOf(change.type),
          ...nameOf(change.name),
          href: change.href,
          change: changeOf(change),
        })),
      },
    }),
  }
}

/** Returns a field with its values before and after the change. Null values and `exclusion: false` are left out. */
export function showSides(path: string, before: unknown, after: unknown): ShownField {
  const isThere = (value: unknown) => value !== null && value !== undefined
  return {
    path,
    ...(isThere(before) && { before: withoutFalseExclusions(before) }),
    ...(isThere(after) && { after: withoutFalseExclusions(after) }),
  }
}
