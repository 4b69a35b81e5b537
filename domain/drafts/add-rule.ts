import { PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import { readRulesOfKind } from '../inventory/read-rules.js'
import { readBack } from './change-object.js'
import type { PlannedRule } from './plan-rules.js'
import { saysTheSame } from './warn-of-repetition.js'

type AnyRule = Rule | DenyRule

/**
 * Time limit for checking whether a failed write took effect. It is short, because the caller already waited for the
 * write.
 */
const LOOK_MS = 10_000

/**
 * Adds a rule to the draft of a rule set and reads it back. `siblings` are the rules of the same kind that existed
 * before.
 *
 * @throws {ToolError} `outcome_unknown` if the PCE left open whether the rule was added, with `read_back {state,
 *   hrefs?}`. New rules with the same content are most likely the one that was sent (D71); repeating the call would
 *   then add a duplicate (P76).
 */
export async function addRule(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  ruleSet: RuleSet,
  planned: PlannedRule,
  siblings: readonly AnyRule[] | string,
): Promise<{ stored: AnyRule; warnings: readonly string[] }> {
  const parent = toDraftHref(ruleSet.href)
  const api = (planned.collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<AnyRule>
  signal.throwIfAborted()
  const created = await api.create(planned.body, parent).catch(async (error: unknown) => {
    if (!mayHaveHappened(error)) throw error
    const found = await findNew(pce, parent, planned, siblings)
    // A 2xx status means that the rule was added (D72); only the body of the answer was lost.
    if (error instanceof PceError && error.isAccepted && found?.length === 1) return found[0]!
    if (found === null) throw withDetails(error, { read_back: { state: 'unreadable' } }, UNREADABLE)
    if (found.length === 0) throw withDetails(error, { read_back: { state: 'absent' } }, ABSENT)
    throw withDetails(error, { read_back: { state: 'as_sent', hrefs: found.map(({ href }) => href) } }, AS_SENT)
  })
  const { stored, warnings } = await readBack(created, () => api.getByReference(created.href))
  return { stored, warnings: warnings.warnings ?? [] }
}

const UNREADABLE = 'The rules could not be read back. Check what the rule set has before repeating the call.'
const ABSENT = 'Read back, the rule set has no such rule: nothing was added so far.'
const AS_SENT = 'Read back, the rule set has a new rule that says the same, `hrefs`: the rule was added.'

/** Finds new rules with the content that was sent; returns null if this cannot be determined. */
async function findNew(
  pce: PceClient,
  parent: string,
  { collection, body }: PlannedRule,
  siblings: readonly AnyRule[] | string,
): Promise<readonly AnyRule[] | null> {
  if (typeof siblings === 'string') return null
  const known = new Set(siblings.map(({ href }) => href))
  const signal = AbortSignal.timeout(LOOK_MS)
  try {
    const ruleSet = await pce.ruleSets.getByReference(parent, { signal })
    const now = await readRulesOfKind(pce, ruleSet, collection, signal)
    if (typeof now === 'string') return null
    return now.filter((rule) => !known.has(rule.href) && rule.enabled === body.enabled && saysTheSame(body, rule))
  } catch {
    return null
  }
}
