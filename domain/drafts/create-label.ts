import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { forgetLabels, loadLabels, type LabelIndex, type ReadContext } from '../inventory/load-labels.js'

export interface LabelOutput {
  href: string
  key: string
  value: string
}

/** A label as answers show it. */
export function showLabel({ href, key, value }: Label): LabelOutput {
  return { href, key, value }
}

/** The refusal of a label that is there already. */
export function labelExists(label: Label): ToolError {
  const details: ErrorDetails = { href: label.href, existing_label: showLabel(label) }
  return new ToolError('already_exists', `The label ${label.key}=${label.value} exists already.`, details, {
    hint: 'Use the existing label.',
  })
}

/** Labels that differ from the wanted one in case only, said in one sentence; undefined when there are none but `own`. */
export function warnOfCaseVariants(index: LabelIndex, key: string, value: string, own?: string): string | undefined {
  const variants = index.caseVariants(key, value).filter(({ href }) => href !== own)
  if (variants.length === 0) return undefined
  const list = variants.map(({ key, value, href }) => `${key}=${value} (${href})`).join(', ')
  return `${key}=${value} differs in case only from ${list}; policy treats them as different labels.`
}

/** Creates one label. A duplicate that somebody else made after our lookup is already_exists with its href. */
export async function createLabel(pce: PceClient, key: string, value: string, context: ReadContext): Promise<Label> {
  const { label, created } = await ensureLabel(pce, key, value, context)
  if (!created) throw labelExists(label)
  return label
}

/**
 * The label of this key and value, created unless somebody else was faster (two calls at once often want the same new label);
 * `created` tells whose it is. The label cache is dropped whatever happens. A refusal stays what it is if nobody can tell whether
 * the label is there.
 */
export async function ensureLabel(
  pce: PceClient,
  key: string,
  value: string,
  context: ReadContext,
): Promise<{ label: Label; created: boolean }> {
  context.signal.throwIfAborted()
  try {
    return { label: await pce.labels.create({ key, value }), created: true }
  } catch (error) {
    if (error instanceof PceApiError && error.status === 406) {
      const index = await loadLabels(pce, context, 'fresh').catch(() => undefined)
      const existing = index?.find(key, value)
      if (existing !== undefined) return { label: existing, created: false }
    }
    throw error
  } finally {
    forgetLabels(pce)
  }
}
