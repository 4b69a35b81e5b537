import type { RuleSet } from '../../../schemas/pce/rule-set.js'
import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'

/** Describes scopes in one line: `app=payments env=prod or app=crm`, `everything`. */
export function nameScopes(scopes: RuleSet['scopes'], names: ReferenceNames): string {
  return scopes.length === 0 ? 'no scope' : scopes.map((scope) => nameScope(scope, names)).join(' or ')
}

/** Describes one scope, which is a list of labels that must all match. */
export function nameScope(scope: RuleSet['scopes'][number], names: ReferenceNames): string {
  if (scope.length === 0) return 'everything'
  return scope
    .map(({ label, label_group: group, exclusion }) => {
      const { href = '' } = label ?? group ?? {}
      const { key, value, name } = { ...names(href), ...label, ...group } as {
        key?: string
        value?: string
        name?: string
      }
      const text = value !== undefined ? `${key}=${value}` : (name ?? href)
      return exclusion === true ? `not ${text}` : text
    })
    .join(' ')
}
