import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { ensureLabel, showLabel, type LabelOutput } from './create-label.js'
import type { LabelPlan } from './plan-workload-labels.js'
import type { Written } from './write-with-rollback.js'

/**
 * Creates the labels of a plan that do not exist and returns all of them in the plan's order. What was created here, and not by
 * another call that wanted the same, is noted in `written` and `created` at once: a failure of the next one must know of it.
 */
export async function writePlannedLabels(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  plan: LabelPlan,
  written: Written,
  created: LabelOutput[],
): Promise<Label[]> {
  const labels: Label[] = []
  for (const entry of plan.entries) {
    if ('existing' in entry) {
      labels.push(entry.existing)
      continue
    }
    const { label, created: isOurs } = await ensureLabel(ctx.pce, entry.missing.key, entry.missing.value, ctx)
    labels.push(label)
    if (!isOurs) continue
    written.hrefs.push(label.href)
    created.push(showLabel(label))
  }
  return labels
}
