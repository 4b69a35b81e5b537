import type { PceClient } from '../../pce-client/index.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { loadLabels, type ReadContext } from './load-labels.js'

/**
 * A function that gives label references their key and value. Some reads name labels by href alone (P14); the label list is read
 * only when one of `references` does. A label that is unknown even there stays a bare href.
 */
export async function labelExpander(
  pce: PceClient,
  references: readonly LabelRef[],
  context: ReadContext,
): Promise<(reference: LabelRef) => LabelRef> {
  const complete = ({ key, value }: LabelRef) => key !== undefined && value !== undefined
  const bare = references.filter((reference) => !complete(reference))
  let index = bare.length === 0 ? null : await loadLabels(pce, context)
  // A label that was made since the list was read.
  if (bare.some(({ href }) => index?.get(href) === undefined)) index = await loadLabels(pce, context, 'fresh')
  return (reference) => {
    const known = complete(reference) ? reference : (index?.get(reference.href) ?? reference)
    return { href: known.href, key: known.key, value: known.value }
  }
}
