import type { LabelOutput } from '../../domain/inventory/labels.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { writeLabel } from '../../schemas/label-reference.js'
import { trimBlanks } from '../../domain/text/escape-text.js'

/**
 * Returns true if the string `key=value` would be read back as this label (T3). It would not if it began with `!`,
 * which marks an excluded label.
 */
export const isWritable = ({ key, value }: { key: string; value: string }): boolean =>
  /^(?!!)[^=:/\s]+$/.test(key) && value === trimBlanks(value)

/** Formats a label in the form that callers use, `key=value`, or as an object if that form would not identify it. */
export const shortLabel = (label: LabelOutput): string | LabelOutput => (isWritable(label) ? writeLabel(label) : label)

/**
 * Shows a label as `key=value` or, at detail `full`, as an object. If its key and value are not known, because it was
 * deleted or the caller may not see it, the label is shown by href.
 */
export function showLabelOf({ href, key, value }: LabelRef, detail?: 'standard' | 'full'): string | LabelOutput {
  if (key == null || value == null) return href
  return detail === 'full' ? { href, key, value } : shortLabel({ href, key, value })
}
