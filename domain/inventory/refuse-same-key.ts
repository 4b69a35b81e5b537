import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'

/** Throws invalid_argument when two different labels have one key: the PCE takes one per key (P16). */
export function refuseSameKey(labels: readonly Label[], argument: string): void {
  const byKey = new Map<string, Label>()
  for (const label of labels) {
    const same = byKey.get(label.key)
    if (same !== undefined && same.href !== label.href) {
      const text = `One label per key; ${label.key} was given "${same.value}" and "${label.value}".`
      throw new ToolError('invalid_argument', text, { argument, key: label.key })
    }
    byKey.set(label.key, label)
  }
}
