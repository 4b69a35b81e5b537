import { matchRules } from '../policy/match-rules.js'
import type { Steps } from '../text/pace-work.js'
import type { Member } from './find-members.js'
import type { AskedService, PairJudge } from './judge-pair.js'
import { speaks } from './judge-members.js'
import type { HeldRule } from './place-rules.js'

/** The reasons why an allow rule does not match a connection. Any one of them is enough. */
export const NEAR_MISSES = {
  rule_disabled: 'the rule is disabled',
  ruleset_disabled: 'its rule set is disabled',
  service: 'it is for other services',
  scope: 'the source is outside its scope, and it is not for consumers beyond the scope',
} as const
export type NearMiss = keyof typeof NEAR_MISSES

export interface MissedRule {
  held: HeldRule
  why: NearMiss
}

const EVERY_SERVICE = [{ port: -1, proto: -1 }]

/**
 * Finds the allow rules that would permit a connection if it were not for a single reason, at most `most` rules for
 * each reason.
 */
export function* findNearMisses(
  judge: PairJudge,
  source: Member,
  destination: Member,
  { port, proto }: AskedService,
  most: number,
): Steps<MissedRule[]> {
  const found = judge
    .off(source, destination)
    .flatMap((rule): MissedRule[] =>
      rule.held.kind === 'allow' && rule.held.off !== null && speaks(rule) === 'yes'
        ? [{ held: rule.held, why: rule.held.off }]
        : [],
    )
    .slice(0, most)
  const missed: Record<'service' | 'scope', MissedRule[]> = { service: [], scope: [] }
  for (const held of judge.rules) {
    if (held.kind !== 'allow' || held.off !== null) continue
    const wouldMatch = (change: Partial<HeldRule['rule']>) => {
      const match = matchRules([{ ...held, rule: { ...held.rule, ...change } }], destination, judge.objects)
      return speaks({
        atSource: match.atSource(source, port, proto),
        atDestination: match.atDestination(source, port, proto),
      })
    }
    if (wouldMatch({}) === 'no') {
      const why =
        wouldMatch({ ingress_services: EVERY_SERVICE }) === 'yes'
          ? 'service'
          : wouldMatch({ unscoped_consumers: true }) === 'yes'
            ? 'scope'
            : null
      if (why !== null && missed[why].length < most) missed[why].push({ held, why })
    }
    yield
  }
  return [...found, ...missed.service, ...missed.scope]
}
