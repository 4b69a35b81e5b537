import type { LabelOutput } from '../../domain/inventory/labels.js'
import { writeLabel } from '../../schemas/label-reference.js'
import { trimBlanks } from '../../domain/text/escape-text.js'

/** True if `key=value` would be read back as this label (T3). */
export const isWritable = ({ key, value }: { key: string; value: string }): boolean =>
  /^[^=:/\s]+$/.test(key) && value === trimBlanks(value)

/** Writes a label in the form that callers use, `key=value`, or as an object if that form would not identify it. */
export const shortLabel = (label: LabelOutput): string | LabelOutput => (isWritable(label) ? writeLabel(label) : label)
