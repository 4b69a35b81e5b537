import type { LabelOutput } from '../../domain/inventory/labels.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { writeLabel } from '../../schemas/label-reference.js'
import { trimBlanks } from '../../domain/text/escape-text.js'

/** Returns true if the text `key=value` would be read back as this label (T3). At the beginning, `!` excludes a label. */
export const isWritable = ({ key, value }: { key: string; value: string }): boolean =>
  /^(?!!)[^=:/\s]+$/.test(key) && value === trimBlanks(value)

/** Formats a label in the form that callers use, `key=value`, or as an object if that form would not identify it. */
export const shortLabel = (label: LabelOutput): string | LabelOutput => (isWritable(label) ? writeLabel(label) : label)

/**
 * Shows a label of an object as `key=value` or, in full detail, as an object. A label is shown as its href if its key
 * and value are not known, because it was deleted or the caller may not see it.
 */
export function showLabelOf({ href, key, value }: LabelRef, detail?: 'standard' | 'full'): string | LabelOutput {
  if (key == null || value == null) return href
  return detail === 'full' ? { href, key, value } : shortLabel({ href, key, value })
}
