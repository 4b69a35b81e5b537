import { PceError } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import type { LabelIndex } from '../inventory/labels.js'
import { knownKeys } from './select-workloads.js'

/**
 * Returns the label keys that may be columns of a table. A key without any label is found only in the PCE's list of
 * label dimensions. This list is read if the header has a column that is neither in `own` nor a known key.
 *
 * @throws the errors of the PCE client if the call is cancelled. In any other case, dimensions that cannot be read are
 * left out.
 */
export async function labelColumnsOf(
  csv: string,
  own: readonly string[],
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  index: LabelIndex,
): Promise<string[]> {
  const keys = knownKeys(index)
  const header = csv.slice(0, csv.search(/\r?\n|$/)).split(/[,;\t]/)
  const isKnown = header.every((cell) => [...keys, ...own].includes(cell.trim()))
  if (isKnown) return keys
  try {
    const dimensions = await pce.labelDimensions.getAll('draft', null, { signal })
    return [...new Set([...keys, ...dimensions.filter(({ deleted }) => deleted !== true).map(({ key }) => key)])]
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return keys
  }
}
