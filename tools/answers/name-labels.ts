import type { LabelRef } from '../../schemas/pce/label.js'
import type { ToolContext } from '../../domain/call.js'
import { labelExpander } from '../../domain/inventory/labels.js'

/**
 * What an answer needs to show labels: `expand` adds key and value to a label, and `warnings` say if these could not be
 * read.
 */
interface NamedLabels {
  expand: (label: LabelRef) => LabelRef
  warnings: string[]
}

/**
 * Works like `labelExpander`, for the answer of a call that may have written. If it has, a failure to read the labels
 * becomes a warning, and labels are shown by href alone, because an error would suggest that nothing was written.
 *
 * @throws the errors of the PCE client, if nothing was written.
 */
export async function nameLabels(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  labels: readonly LabelRef[] | null | undefined,
  isWritten: boolean,
): Promise<NamedLabels> {
  try {
    return { expand: await labelExpander(ctx.pce, labels ?? [], ctx), warnings: [] }
  } catch (error) {
    if (!isWritten) throw error
    const text = 'It was written; its labels are shown as hrefs, because their names could not be read.'
    return { expand: (label) => label, warnings: [text] }
  }
}
