import type { PceClient } from '../../pce-client/index.js'
import { isUnread } from '../inventory/fetch-every.js'
import type { Version } from '../inventory/find-object.js'
import type { LabelIndex } from '../inventory/labels.js'
import { loadSnapshot, withDenyRules, type PolicySnapshot } from './load-snapshot.js'

/**
 * Reads one version of the policy with its deny rules. Returns null if the PCE does not answer properly. Rejects if the
 * call is cancelled.
 */
export async function readWholePolicy(
  source: { pce: PceClient; signal: AbortSignal },
  version: Version,
  labels: LabelIndex,
): Promise<PolicySnapshot | null> {
  try {
    return await withDenyRules(source, await loadSnapshot(source, version, labels))
  } catch (error) {
    if (!isUnread(error) || source.signal.aborted) throw error
    return null
  }
}
