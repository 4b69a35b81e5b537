import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { LabelIndex } from './load-labels.js'
import { nearNames } from '../text/near-names.js'
import { parseHref } from './parse-href.js'

/** Keys an error names at most. */
const MAX_KEYS = 50

/** How a caller says which label is meant: by href, or by key and value. */
export interface LabelIdentity {
  href?: string
  key?: string
  value?: string
}

/**
 * The label that a caller names, exact and case-sensitive, or none. Throws missing_identifier, conflicting_identifiers,
 * invalid_href for what is no label of this organisation, not_found with near values.
 */
export function findLabel(index: LabelIndex, { href, key, value }: LabelIdentity, orgId: string): Label {
  if (href !== undefined && (key !== undefined || value !== undefined)) {
    throw new ToolError('conflicting_identifiers', 'Give href, or key and value, not both.', {
      arguments: ['href', 'key', 'value'],
    })
  }
  if (href !== undefined) return findByHref(index, href.trim(), orgId)
  if (key === undefined || value === undefined) {
    throw new ToolError('missing_identifier', 'Say which label: give href, or key and value.', {
      arguments: ['href', 'key', 'value'],
    })
  }
  const label = index.find(key, value)
  if (label !== undefined) return label
  const near = index.values(key).length > 0 ? nearNames(value, index.values(key)) : []
  const keys = near.length === 0 ? { keys: index.keys().slice(0, MAX_KEYS) } : {}
  throw new ToolError('not_found', `No label is exactly ${key}=${value}.`, { key, value, near_names: near, ...keys })
}

function findByHref(index: LabelIndex, href: string, orgId: string): Label {
  const parsed = parseHref(href)
  if (parsed?.kind !== 'labels' || parsed.org !== orgId || parsed.id === undefined) {
    throw new ToolError('invalid_href', `"${href}" is not the href of a label in organisation ${orgId}.`, { href })
  }
  const label = index.get(href)
  if (label === undefined) throw new ToolError('not_found', `No label has the href ${href}.`, { href })
  return label
}
