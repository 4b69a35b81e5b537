import type { PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { findOthers, nameOthers } from '../inventory/find-others.js'
import { readAuthorsOf } from '../inventory/pending-authors.js'

/**
 * Warns if other people have pending changes to an object that this call will change, because provisioning the object
 * would put their changes into effect too.
 */
export async function warnOfOthers(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  draft: PceObject,
): Promise<string[]> {
  if (draft.update_type == null) return []
  const { list } = await findOthers(pce, [await readAuthorsOf(pce, draft, signal)], signal)
  if (list.length === 0) return []
  return [`It already has pending changes of ${nameOthers(list)}. Provisioning it makes them active, too.`]
}
