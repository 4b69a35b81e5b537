import { showAssumed } from '../../../schemas/assumes.js'
import type { Preview } from '../../../domain/call.js'
import { OBSTACLES, type ChosenWorkload } from '../../../domain/enforcement/choose-workloads.js'
import { planRequests } from '../../../domain/enforcement/set-modes.js'
import { changeOfMode, type ChangeEffect } from '../../../domain/enforcement/judge-enforcement.js'
import type { ShownEffect, ShownField, ShownObject } from '../../../schemas/approvals.js'
import {
  describeEffect,
  describeTrafficChange,
  noteEnforcement,
  noteReading,
  warnOfEnforcement,
  type Enforcement,
} from '../enforcement/describe-enforcement.js'
import { joinEffects } from '../policy-words.js'

/**
 * Maximum number of traffic changes (each is one peer and port) that are shown for each effect, such as opened or cut.
 */
const MOST_TRAFFIC = 100

const EFFECTS = { stricter: 'narrowing', looser: 'widening', same_traffic: 'neutral', not_known: 'undecided' } as const

/**
 * Returns what a person sees before enforcement modes are set: each workload with its old and new mode, and the traffic
 * that is cut or opened.
 */
export function showModeChangesForApproval(enforcement: Enforcement): NonNullable<Preview['page']> {
  const { chosen, to, traffic } = enforcement
  const changing = planRequests(chosen, to).flat()
  const workloads = changing.map((workload) => showWorkload(workload, enforcement))
  const objects = [...(typeof traffic === 'string' ? [] : showTraffic(enforcement)), ...workloads]
  return {
    ...(workloads.length > 0 && { effect: joinEffects(workloads.flatMap(({ effect }) => effect ?? [])) }),
    warnings: [...new Set([describeEffect(enforcement), ...warnOfEnforcement(enforcement)])].filter(
      (text) => text !== '',
    ),
    objects,
    objects_total: objects.length,
    workloads_affected: changing.length,
    facts: {
      enforcement_mode: to,
      notes: [...noteEnforcement(enforcement), ...noteReading(enforcement)],
      ...(typeof traffic !== 'string' && showAssumed(traffic.assumes)),
    },
  }
}

function showWorkload(workload: ChosenWorkload, { to, traffic }: Enforcement): ShownObject {
  const { href, name, mode, obstacle } = workload
  const change = changeOfMode(workload, to)
  const effect: ShownEffect = change === 'already' || change === 'none' ? 'neutral' : EFFECTS[change]
  const counts = typeof traffic === 'string' ? undefined : traffic.byWorkload.get(href)
  const fields = Object.entries(counts ?? {}).flatMap(([kind, connections]): ShownField[] =>
    connections > 0 ? [{ path: `connections.${kind}`, after: connections }] : [],
  )
  return {
    kind: 'workload',
    name,
    href,
    change: 'update',
    effect,
    ...(obstacle !== null && { warnings: [sentenceOf(OBSTACLES[obstacle])] }),
    fields: [{ path: 'enforcement_mode', before: mode ?? 'unknown', after: to }, ...fields],
  }
}

const sentenceOf = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const TITLES: Readonly<Record<ChangeEffect, readonly [name: string, effect: ShownEffect]>> = {
  opened: ['Blocked now, and would pass', 'widening'],
  possibly_opened: ['Blocked now, and might pass', 'widening'],
  cut: ['Passes now, and would be cut', 'narrowing'],
  possibly_cut: ['Passes now, and might be cut', 'narrowing'],
}

/**
 * Returns the observed traffic that would change, as one object to show for each effect, such as opened or cut. Opened
 * traffic comes first.
 */
export function showTraffic({ traffic }: Pick<Enforcement, 'traffic'>): ShownObject[] {
  if (typeof traffic === 'string') return []
  return (Object.entries(TITLES) as [ChangeEffect, (typeof TITLES)[ChangeEffect]][]).flatMap(
    ([kind, [name, effect]]) => {
      const found = traffic.changes.filter((change) => change.effect === kind)
      if (found.length === 0) return []
      const rest = found.length - MOST_TRAFFIC
      return [
        {
          kind: 'observed traffic',
          name,
          change: 'unknown' as const,
          effect,
          fields: [
            { path: 'peers', after: found.slice(0, MOST_TRAFFIC).map((one) => describeTrafficChange(one, one.peer)) },
          ],
          ...(rest > 0 && { note: `The busiest ${MOST_TRAFFIC} are shown; there are ${rest} more.` }),
        },
      ]
    },
  )
}
