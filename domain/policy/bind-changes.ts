import type { TypedPendingChange } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadLabels } from '../inventory/labels.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { mapBounded } from '../text/pace-work.js'
import { digestChanges } from './choose-changes.js'
import { type ReadVersions, readVersions } from './describe-changes.js'
import { digestContents } from './digest-content.js'
import { hrefsIn, NAMED_AT_ONCE, readReferred, type ReferredObject, type ReferredObjects } from './read-referred.js'

const IN_FLIGHT = 4

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/**
 * The result of reading pending changes in order to show them to a person, or to compare them with what a person
 * approved.
 */
export interface BoundChanges {
  /** The digest of the changes, to which an approval is bound. */
  digest: string
  /**
   * The old and the new version of each change that was read, so that the changes can be described without being read
   * again.
   */
  read: ReadonlyMap<TypedPendingChange, ReadVersions>
  /**
   * The objects without a draft, such as labels, to which the changes refer. `unread` counts those that were not read
   * because of a limit; a later edit of one of these goes unnoticed.
   */
  named: Pick<ReferredObjects, 'objects' | 'unread'>
}

/**
 * Reads the first `most` of the given pending changes, which are those shown to a person, and returns a digest of all
 * given changes. The digest covers the time of each edit, both versions of each change that was read, and the names of
 * the labels, workloads and user groups in these versions. Such objects have no draft, so their changes take effect at
 * once (D234). The order of the changes does not matter, unless there are more than `most`.
 */
export async function bindChanges(
  ctx: Context,
  changes: readonly TypedPendingChange[],
  most: number,
): Promise<BoundChanges> {
  const { pce, signal } = ctx
  const shown = changes.slice(0, most)
  const versions = await mapBounded(shown, IN_FLIGHT, (change) => readVersions(pce, change, signal))
  const rows = shown.map((change, at) => {
    const { draft, active, error } = versions[at]!
    return [toDraftHref(change.href), draft, active, error !== undefined] as const
  })
  rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const contents = rows.map(([, draft, active]) => [draft, active])
  const named = await readReferred(ctx, { requests: [], previous: contents }, NAMED_AT_ONCE)
  const labels = await readLabels(ctx, [...contents, named.objects.map(({ content }) => content)])
  return {
    digest: await digestContents([digestChanges(changes), rows, named.digest, labels], signal),
    read: new Map(shown.map((change, at) => [change, versions[at]!])),
    named: { objects: [...labels, ...named.objects], unread: named.unread },
  }
}

/**
 * Returns all labels that the given values refer to, sorted by href. Their keys and values come from the list of all
 * labels.
 */
async function readLabels(ctx: Context, values: unknown): Promise<ReferredObject[]> {
  const hrefs = [...new Set(hrefsIn(values).filter((href) => parseHref(href)?.kind === 'labels'))].sort()
  if (hrefs.length === 0) return []
  // The person who approves the changes is shown label names from the same label list, and so sees exactly the names
  // that the digest covers.
  const known = await loadLabels(ctx.pce, ctx, 'fresh').catch((error: unknown) => {
    if (!isUnread(error) || ctx.signal.aborted) throw error
    return undefined
  })
  return hrefs.map((href) => {
    const label = known?.get(href)
    const content = label === undefined ? null : { key: label.key, value: label.value }
    return { href, kind: 'labels', content, as: 'named' }
  })
}
