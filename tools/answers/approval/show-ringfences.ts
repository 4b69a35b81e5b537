import type { Preview } from '../../../domain/call.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { BatchOutcome } from '../../../domain/ringfence/run-batch.js'
import type { PlannedRule } from '../../../domain/drafts/plan-rules.js'
import type { ShownEffect, ShownField, ShownObject } from '../../../schemas/approvals.js'
import type { Limits } from '../../../schemas/config.js'
import { joinEffects } from '../policy-words.js'
import { listCut } from '../ringfence/list-losses.js'
import { describePlanned } from '../ringfence/describe-rules.js'
import { showRingfence } from '../ringfence/show-ringfence.js'
import { warnOfBatch } from '../ringfence/warn-of-ringfence.js'

/** Maximum number of sources with lost traffic that are named for each application. */
const MOST_CUT = 50

/**
 * Returns what a person sees before ringfences are written into the draft: each rule of each application. Rules that
 * permit more come first.
 */
export function showRingfencesForApproval(
  context: { limits: Limits; orgId: string },
  { results, warnings }: { results: readonly BatchOutcome[]; warnings: readonly string[] },
): NonNullable<Preview['page']> {
  const done = results.flatMap((outcome) => (outcome.status === 'success' ? [outcome.done] : []))
  const objects = results.map((outcome) => showOutcome(context, outcome))
  const effects = objects.flatMap(({ effect }) => effect ?? [])
  return {
    ...(effects.length > 0 && { effect: joinEffects(effects) }),
    warnings: [...warnOfBatch(done), ...warnings],
    objects,
    objects_total: results.length,
  }
}

function showOutcome(context: { limits: Limits; orgId: string }, outcome: BatchOutcome): ShownObject {
  const application = {
    kind: 'application',
    name: `${outcome.app} (${outcome.env})`,
    change: 'unknown' as const,
    fields: [],
  }
  if (outcome.status === 'skipped') return { ...application, note: `It is skipped: ${outcome.reason}.` }
  if (outcome.status === 'error') return { ...application, note: `It would fail: ${String(outcome.error['message'])}` }
  const { prepared } = outcome.done
  const { ruleSet, name } = prepared
  const { warnings } = showRingfence(prepared, null, { detail: 'standard', ...context })
  const parts = [...prepared.rules].sort((a, b) => Number(isDeny(a)) - Number(isDeny(b))).map(showRule)
  return {
    kind: 'rule set',
    name,
    ...(ruleSet !== null && { href: ruleSet.href }),
    change: ruleSet === null ? 'create' : 'update',
    ...(parts.length > 0 && { effect: joinEffects(parts.map(({ effect }) => effect)) }),
    ...(warnings.length > 0 && { warnings }),
    fields: [
      { path: 'application', after: `${outcome.app} (${outcome.env})` },
      { path: 'workloads', after: prepared.workloads.total },
      ...listLosses(prepared),
    ],
    ...(parts.length > 0 && { parts }),
    note: 'It is written into the draft and takes effect when that is provisioned.',
  }
}

const isDeny = ({ collection }: PlannedRule) => collection === 'deny_rules'

function showRule(rule: PlannedRule): ShownObject & { effect: ShownEffect } {
  const { consumers, providers, services } = describePlanned(rule)
  return {
    kind: isDeny(rule) ? 'deny rule' : 'allow rule',
    change: 'create',
    effect: isDeny(rule) ? 'narrowing' : 'widening',
    fields: [
      { path: 'consumers', after: consumers },
      { path: 'providers', after: providers },
      { path: 'services', after: services },
    ],
  }
}

/** Lists observed sources that the ringfence would cut off once it is enforced. */
function listLosses({ plan }: Prepared): ShownField[] {
  const cut = listCut(plan.sources)
  if (cut.length === 0) return []
  const named = cut.slice(0, MOST_CUT).map(({ source, ports, connections, effect }) => ({
    source,
    ports,
    connections,
    ...(effect === 'possibly_cut' && { certain: false }),
  }))
  return [
    { path: 'would_lose_traffic', after: named },
    ...(cut.length > MOST_CUT ? [{ path: 'would_lose_traffic_total', after: cut.length }] : []),
  ]
}
