import type { ToolContext } from '../call.js'
import { comparePolicies, describeDifference } from '../history/compare-policies.js'
import type { WholePolicy } from '../history/load-policy.js'
import { type FilesDifference, type ObjectDifference, policyAfter } from './compare-files.js'

/** What a change would do to permitted traffic, in the words of the tool `compare-draft-active`. */
export interface Effect {
  effect: string
  risks: readonly string[]
}

/**
 * Determines what each difference would do to permitted traffic: its effect, or why there is none, and the risks to
 * review.
 *
 * @param removed the objects without a file that would be deleted; all others without a file count as unchanged.
 */
export async function judgeFiles(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  difference: Pick<FilesDifference, 'differences'>,
  policy: WholePolicy,
  removed: readonly ObjectDifference[],
): Promise<ReadonlyMap<ObjectDifference, Effect>> {
  const compared = await comparePolicies(policy, policyAfter(difference, policy, new Set(removed)), ctx.signal)
  const judged = await describeDifference(ctx, compared, compared.objects)
  const byHref = new Map(judged.map((one) => [one.href, one]))
  return new Map(
    difference.differences.flatMap((one) => {
      const found = byHref.get(one.before?.href ?? one.object!.wire.href)
      if (found === undefined) return []
      const { effect, effect_note: note, diff_error: error, risks = [] } = found
      return [[one, { effect: effect ?? note ?? error ?? 'Undecided.', risks }] as const]
    }),
  )
}
