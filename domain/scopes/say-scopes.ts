import { ToolError } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'

/** Describes a caller's scopes for people, each as `key=value|value, key=value`; `*` stands for everything. */
export function sayScopes({ everything, grants }: CallerScopes): string[] {
  if (everything) return ['*']
  return grants.map(({ labels }) =>
    Object.entries(labels)
      .map(([key, values]) => `${key}=${values.join('|')}`)
      .join(', '),
  )
}

/**
 * Returns the refusal of a write in a form that its caller may see. A caller with limited reading is told neither the
 * name nor the labels of objects outside.
 */
export function hideOutside(refusal: ToolError, scopes: CallerScopes): ToolError {
  if (scopes.readsOnly === undefined || !('object' in refusal.details)) return refusal
  const { rule } = refusal.details as { rule?: string }
  return new ToolError(
    'out_of_scope',
    'This would change something that is not inside of your scopes. Nothing of it was written.',
    { ...(rule !== undefined && { rule }), scopes: sayScopes(scopes) },
  )
}
