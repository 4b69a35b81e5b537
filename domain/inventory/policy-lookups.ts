import type { PceClient } from '../../pce-client/index.js'
import { findByHref, findByName, type NamedKind, type NamedObject, type Version } from './find-object.js'
import type { LabelIndex } from './load-labels.js'

/** Exact lookups of one call, each object asked for once. Nothing here writes. */
export interface PolicyLookups {
  readonly labels: LabelIndex
  /** Exact name (for workloads name, else host name). Throws not_found with near names, or ambiguous_name with candidates. */
  byName(kind: NamedKind, name: string): Promise<NamedObject>
  /** The object an href names, in this lookup's policy version. Throws not_found, or invalid_href for another organisation's. */
  byHref(kind: NamedKind, href: string): Promise<NamedObject>
}

/** `version`: draft for what rules will say, active for what traffic is compared with. */
export function createPolicyLookups(
  pce: PceClient,
  labels: LabelIndex,
  version: Version,
  signal: AbortSignal,
): PolicyLookups {
  const asked = new Map<string, Promise<NamedObject>>()
  const once = (id: string, ask: () => Promise<NamedObject>) => {
    const known = asked.get(id) ?? ask()
    asked.set(id, known)
    return known
  }
  return {
    labels,
    byName: (kind, name) => once(`${kind}:${name}`, () => findByName(pce, kind, name, version, signal)),
    byHref: (kind, href) => once(href, () => findByHref(pce, kind, href, version, signal)),
  }
}
