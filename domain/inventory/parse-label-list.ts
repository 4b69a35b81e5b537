import { ToolError } from '../../schemas/errors.js'
import { isLabelReference, type LabelReference } from './resolve-labels.js'

/**
 * The `labels` filter in the shapes callers send it: one reference, a list of them, or a list as JSON text (the older
 * form). Throws invalid_argument for JSON that is no flat list of references.
 */
export function parseLabelList(labels: string | readonly LabelReference[] | undefined): LabelReference[] {
  if (labels === undefined) return []
  if (typeof labels !== 'string') return [...labels]
  if (!labels.trimStart().startsWith('[')) return [labels]
  const list = parseJson(labels)
  if (Array.isArray(list) && list.every(isLabelReference)) return list
  throw new ToolError('invalid_argument', 'labels is neither a label reference nor a JSON list of them.', {
    argument: 'labels',
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
