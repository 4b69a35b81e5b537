import type { TypedPendingChange } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { mapBounded } from '../text/pace-work.js'
import { digestChanges } from './choose-changes.js'
import { type ReadVersions, readVersions } from './describe-changes.js'
import { digestContents } from './digest-content.js'
import { NAMED_AT_ONCE, readReferred } from './read-referred.js'

const IN_FLIGHT = 4

/** Pending changes as they were read for a person, or for a comparison with what they have approved. */
export interface BoundChanges {
  /** The digest that an approval is bound to. */
  digest: string
  /** Both versions of the changes whose content counts, for describing them without another reading. */
  read: ReadonlyMap<TypedPendingChange, ReadVersions>
}

/**
 * Reads the first `most` of these pending changes, which are the ones that a person is shown, and returns a digest of
 * them all: when each was edited, of those that were read the content of both versions, and the names of labels and
 * workloads in them, which have no draft and change at once (D234). The order of the changes does not matter, unless
 * there are more than `most`.
 */
export async function bindChanges(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  changes: readonly TypedPendingChange[],
  most: number,
): Promise<BoundChanges> {
  const shown = changes.slice(0, most)
  const versions = await mapBounded(shown, IN_FLIGHT, (change) => readVersions(pce, change, signal))
  const rows = shown.map((change, at) => {
    const { draft, active, error } = versions[at]!
    return [toDraftHref(change.href), draft, active, error !== undefined] as const
  })
  rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const contents = rows.map(([, draft, active]) => [draft, active])
  const named = await readReferred({ pce, signal }, { requests: [], previous: contents }, NAMED_AT_ONCE)
  return {
    digest: await digestContents([digestChanges(changes), rows, named.digest], signal),
    read: new Map(shown.map((change, at) => [change, versions[at]!])),
  }
}
