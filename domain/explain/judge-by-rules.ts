import { isMode, type EndMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import { workInTurns } from '../text/pace-work.js'
import { judgeMembers } from './judge-members.js'
import { createPairJudge } from './judge-pair.js'
import type { JudgedFlow } from './prepare-flow.js'
import { listIpTables } from './read-versions.js'

/** The enforcement modes in which the verdict always depends on rules alone. `none` stands for a missing VEN. */
const BY_RULES: readonly EndMode[] = ['none', 'visibility_only', 'full']

/**
 * Evaluates a flow again by its allow and deny rules alone. A connection that passes only because of an enforcement
 * mode counts as potentially blocked, and iptables rules are ignored. The result shows which rules full enforcement
 * would require.
 */
export async function judgeByRules(flow: JudgedFlow, signal: AbortSignal): Promise<JudgedFlow> {
  const { versions, service, sources, destinations } = flow
  const ends = [...sources.members, ...destinations.members]
  if (ends.every(({ mode }) => BY_RULES.includes(mode)) && listIpTables(versions, ends).length === 0) return flow
  const how = { needsRules: true, ignoresIpTables: true }
  const active = createPairJudge(versions.active, service, how)
  const draft = versions.draft === versions.active ? active : createPairJudge(versions.draft, service, how)
  const judges = { active, draft }
  const judged = await workInTurns(judgeMembers(judges, sources.members, destinations.members), signal)
  return { ...flow, judges, verdict: { ...judged, isPartial: flow.verdict.isPartial } }
}

/**
 * Lists the enforcement modes that let a flow pass today although no rule certainly allows it. The list is empty if
 * rules let the flow pass, or if it does not certainly pass.
 */
export function modesThatLetPass({ verdict }: JudgedFlow): EnforcementMode[] {
  const modes = verdict.outcomes.flatMap(({ active }) =>
    [active.source, active.destination].flatMap(({ mode, byRules, possible }) =>
      byRules !== 'yes' && isMode(mode) && !possible.includes('blocked') ? [mode] : [],
    ),
  )
  const passes = verdict.outcomes.every(({ active }) => !active.possible.includes('blocked'))
  return passes ? [...new Set(modes)] : []
}

/** Returns true if neither end has a VEN, so that rules have no effect on the flow. */
export const hasNoVen = ({ sources, destinations }: JudgedFlow): boolean =>
  [...sources.members, ...destinations.members].every(({ mode }) => mode === 'none')
