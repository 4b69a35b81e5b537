import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { EnforcementBoundary } from '../../schemas/pce/enforcement-boundary.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { loadDenyRules, type WithDenyRules } from '../inventory/load-deny-rules.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Answer } from '../policy/answers.js'
import { coverAddress } from '../policy/cover-addresses.js'
import { mayMatch } from './find-address-rules.js'
import { matchRules, type PlacedRule, type RuleFacts, type SourceMatch } from '../policy/match-rule.js'
import type { DraftPolicy } from './read-policy.js'
import type { Kind, OtherAnswers } from './reach.js'

/** The policy around a ringfence. */
export interface OtherRules {
  judge(source: FlowEnd, port: number | null, proto: number | null): OtherAnswers
  /** Names of rule sets and boundaries with changes that are not provisioned; they may be, with the ringfence or without. */
  pending: string[]
  /** Names of rule sets whose deny rules could not be read. */
  unread: string[]
}

type Pending = Pick<RuleSet, 'update_type'>
type Enabled = Pending & { enabled?: boolean | null }

/**
 * Reads the rules of all rule sets whose scope may hold the application, with their deny rules, and the enforcement boundaries:
 * in draft, and where anything is pending as they are in force. Throws what the PCE client throws, but for deny rules that
 * cannot be read: what these may concern is "maybe".
 */
export async function readOthers(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  { ruleSets, known }: DraftPolicy,
  application: readonly Label[],
  own: RuleSet | null,
): Promise<OtherRules> {
  const isOurs = ({ scopes, href }: RuleSet) =>
    toDraftHref(href) !== own?.href && scopes.some((scope) => mayMatch(scope, application, known.keyOf))
  const read = (sets: readonly RuleSet[]) => loadDenyRules(pce, sets.filter(isOurs), signal)
  const [draft, boundaries] = await Promise.all([read(ruleSets), readBoundaries(pce, 'draft', signal)])
  const changed = draft.filter(({ ruleSet }) => isPending(ruleSet) || rulesOf(ruleSet).some(isPending))
  const changedBoundaries = boundaries.filter(isPending)
  // A scope that is being changed may have held the application.
  const hidden = ruleSets.filter((set) => isPending(set) && !isOurs(set) && toDraftHref(set.href) !== own?.href)
  const isSame = changed.length + changedBoundaries.length + hidden.length === 0
  const [active, activeBoundaries] = isSame
    ? [draft, boundaries]
    : await Promise.all([
        fetchEvery({ api: pce.ruleSets, policyVersion: 'active', params: {}, signal }).then(({ items }) => read(items)),
        readBoundaries(pce, 'active', signal),
      ])
  const facts: RuleFacts = {
    labelOf: known.labelOf,
    findService: known.findService,
    covers: await readLists(pce, signal, [draft, active, boundaries, activeBoundaries, own]),
  }
  const match = (sets: readonly WithDenyRules[], bounds: readonly EnforcementBoundary[]) => {
    const of = (rules: readonly PlacedRule[]) => matchRules(rules, application, facts)
    const inForce = sets.filter(({ ruleSet }) => isInForce(ruleSet))
    const placed = (kind: Kind) => inForce.flatMap(({ ruleSet }) => placedRules(ruleSet, kind))
    const walls = bounds
      .filter(isInForce)
      .map((rule): PlacedRule => ({ scopes: [[]], rule: { ...rule, unscoped_consumers: true } }))
    return {
      allow: of(placed('allow')),
      deny: of([...placed('deny'), ...walls]),
      override: of(placed('override')),
      isUnread: inForce.some(({ error }) => error !== undefined),
    }
  }
  const mine = match(own === null ? [] : [{ ruleSet: own }], [])
  const versions = { active: match(active, activeBoundaries), draft: match(draft, boundaries) }
  return {
    judge(source, port, proto) {
      const ask = (test: SourceMatch, isUnread: boolean) => {
        const answer = test(source, port, proto)
        return isUnread && answer === 'no' ? 'maybe' : answer
      }
      const of = (kind: Kind) => ({
        own: ask(mine[kind], false),
        active: ask(versions.active[kind], kind !== 'allow' && versions.active.isUnread),
        draft: ask(versions.draft[kind], kind !== 'allow' && versions.draft.isUnread),
      })
      return { allow: of('allow'), deny: of('deny'), override: of('override') }
    },
    pending: [...new Set([...changed.map(({ ruleSet }) => ruleSet), ...hidden, ...changedBoundaries])].map(
      ({ name }) => name,
    ),
    unread: [...draft, ...active].flatMap(({ ruleSet, error }) => (error === undefined ? [] : [ruleSet.name])),
  }
}

const isPending = ({ update_type: updateType }: Pending) => updateType !== null && updateType !== undefined
const isInForce = ({ enabled, update_type: updateType }: Enabled) => enabled !== false && updateType !== 'delete'

const rulesOf = ({ rules, deny_rules: denies }: RuleSet) => [...(rules ?? []), ...(denies ?? [])]

function placedRules({ scopes, rules, deny_rules: denies }: RuleSet, kind: Kind): PlacedRule[] {
  const wanted =
    kind === 'allow'
      ? (rules ?? [])
      : (denies ?? []).filter(({ override }) => (override === true) === (kind === 'override'))
  return wanted.filter(isInForce).map((rule) => ({ scopes, rule: rule }))
}

/** None where the PCE does not know them. */
async function readBoundaries(pce: PceClient, policyVersion: 'draft' | 'active', signal: AbortSignal) {
  try {
    const api = pce.enforcementBoundaries
    return (await fetchEvery({ api, policyVersion, params: {}, signal })).items
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) return []
    throw error
  }
}

/** The lists that rules name, if they name any. A list that cannot be read may cover anything. */
async function readLists(pce: PceClient, signal: AbortSignal, rules: unknown): Promise<RuleFacts['covers']> {
  if (!JSON.stringify(rules).includes('/ip_lists/')) return () => 'maybe'
  const items = await fetchEvery({ api: pce.ipLists, params: {}, signal }).then(
    (page) => page.items,
    (error: unknown) => {
      if (!(error instanceof PceError) || signal.aborted) throw error
      return []
    },
  )
  const lists = new Map(items.map((list) => [toDraftHref(list.href), list]))
  const answers = new Map<string, Answer>()
  return (href, { ip }) => {
    const key = `${toDraftHref(href)} ${ip}`
    const list = lists.get(toDraftHref(href))
    const answer = answers.get(key) ?? (list === undefined ? 'maybe' : coverAddress(list, ip))
    answers.set(key, answer)
    return answer
  }
}
