import { PceError } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import { loadLabels, type LabelIndex } from '../inventory/load-labels.js'
import { rankEstate, type EstateRanking } from './rank-estate.js'
import { readDraftPolicy, type DraftPolicy } from './read-policy.js'

/** What the ringfences of one call share, each read when first asked for. */
export interface Shared {
  /** At most 60 s old when asked for. */
  labels(): Promise<LabelIndex>
  lookbackDays: number
  /** Read again with each new label list. */
  policy(): Promise<DraftPolicy>
  /** A sentence in its place where the estate could not be ranked: that is advice, and no reason to fail. */
  ranking(): Promise<EstateRanking | string>
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** Everything that ringfences of one call have in common. */
export function shareReads(ctx: Context, lookbackDays: number): Shared {
  let policy: { labels: LabelIndex; read: Promise<DraftPolicy> } | undefined
  let ranking: Promise<EstateRanking | string> | undefined
  const window = lookbackWindow(ctx.now(), lookbackDays)
  const labels = () => loadLabels(ctx.pce, ctx)
  return {
    labels,
    lookbackDays,
    async policy() {
      const index = await labels()
      if (policy?.labels !== index) policy = { labels: index, read: readDraftPolicy(ctx, index) }
      return policy.read.catch((error: unknown) => {
        // The next application asks again.
        policy = undefined
        throw error
      })
    },
    ranking: () =>
      (ranking ??= labels()
        .then((index) => rankEstate(ctx, index, window))
        .catch((error: unknown) => {
          if (!(error instanceof PceError) || ctx.signal.aborted) throw error
          return `The estate could not be ranked, so infrastructure services among the sources are not known: ${error.message}`
        })),
  }
}
