import { isSameApplication } from './collect-peers.js'
import type { BatchEntry } from './resolve-batch.js'
import type { Shared } from './share-reads.js'

export type OrderedEntry = BatchEntry & { score?: number }

/**
 * Infrastructure first when that is asked for (T16): the higher the score the earlier, applications without traffic last, all else
 * as given. Where the estate cannot be ranked the order stays, and a warning says so.
 */
export async function orderBatch(
  entries: readonly BatchEntry[],
  autoOrder: boolean,
  shared: Pick<Shared, 'ranking'>,
): Promise<{ order: OrderedEntry[]; warnings: string[] }> {
  if (!autoOrder) return { order: [...entries], warnings: [] }
  const ranking = await shared.ranking()
  if (typeof ranking === 'string') return { order: [...entries], warnings: [`Not ordered. ${ranking}`] }
  const scored = entries.map((entry) => {
    const row = ranking.rows.find((one) => isSameApplication(one, entry))
    return { ...entry, score: row?.infrastructure_score ?? 0 }
  })
  return { order: scored.sort((a, b) => b.score - a.score), warnings: [] }
}
