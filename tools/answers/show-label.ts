import type { LabelOutput } from '../../domain/inventory/labels.js'
import { writeLabel } from '../../schemas/label-reference.js'
import { trimBlanks } from '../../domain/text/escape-text.js'

/** Whether `key=value` would be read as this label again (T3). */
export const isWritable = ({ key, value }: { key: string; value: string }): boolean =>
  /^[^=:/\s]+$/.test(key) && value === trimBlanks(value)

/** A label as callers write it, `key=value`; whole where that would not name it. */
export const shortLabel = (label: LabelOutput): string | LabelOutput => (isWritable(label) ? writeLabel(label) : label)
