import { loadReferenceNames, type ReferenceNames } from './reference-names.js'
import type { ReadContext } from './load-labels.js'
import type { PceClient } from '../../pce-client/index.js'

/**
 * The names of what a written object points at, or none: the write is done by now, and failing for want of a name would say
 * that it is not.
 */
export async function namesOrHrefs(pce: PceClient, objects: unknown, context: ReadContext): Promise<ReferenceNames> {
  try {
    return await loadReferenceNames(pce, objects, context)
  } catch {
    return () => ({})
  }
}
