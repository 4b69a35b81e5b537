import { PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import { readRulesOfKind } from '../inventory/read-rules.js'
import { quote } from '../text/escape-text.js'
import { readBack } from './change-object.js'
import { orderOf } from './order-of.js'
import type { PlannedRule } from './plan-rules.js'
import { saysTheSame } from './warn-of-repetition.js'

type AnyRule = Rule | DenyRule

/**
 * Time limit for checking whether a failed write took effect. It is short, because the caller has already waited for
 * the write.
 */
const LOOK_MS = 10_000

/**
 * Adds a rule to the draft of a rule set and reads it back. `siblings` are the rule set's rules of the same type (allow
 * or deny) as the caller saw them when it checked the new rule. They are read again before and after the write.
 * Meanwhile, no other call of this process adds a rule to the rule set (D225).
 *
 * @throws {ToolError} `already_exists {reason: changed_meanwhile}` if an equal rule was added after the caller's check,
 * so that two equal concurrent calls add only one rule.
 * @throws {ToolError} `outcome_unknown` if the PCE left open whether the rule was added, with `read_back {state,
 * hrefs?}`. A new rule with the same content is most likely the one that was sent (D71), so repeating the call would
 * add a duplicate (P76).
 */
export function addRule(
  { pce, signal, inOrder }: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  ruleSet: RuleSet,
  planned: PlannedRule,
  siblings: readonly AnyRule[] | string,
): Promise<{ stored: AnyRule; warnings: readonly string[] }> {
  return inOrder(orderOf('rule_sets', ruleSet.name), async (turn) => {
    const before = await readSiblings(pce, ruleSet, planned, signal)
    refuseAddedMeanwhile(ruleSet, planned, { siblings, before, others: turn.others })
    const added = await add({ pce, signal }, ruleSet, planned, before)
    turn.note(added.stored.href)
    return {
      ...added,
      warnings: [...added.warnings, ...(await findSurplus(pce, ruleSet, planned, before, added.stored))],
    }
  })
}

async function add(
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
    // A 2xx status means that the rule was added (D72) and that only the body of the answer was lost.
    if (error instanceof PceError && error.isAccepted && found?.length === 1) return found[0]!
    if (found === null) throw withDetails(error, { read_back: { state: 'unreadable' } }, UNREADABLE)
    if (found.length === 0) throw withDetails(error, { read_back: { state: 'absent' } }, ABSENT)
    throw withDetails(error, { read_back: { state: 'as_sent', hrefs: found.map(({ href }) => href) } }, AS_SENT)
  })
  const { stored, warnings } = await readBack(created, () => api.getByReference(created.href))
  return { stored, warnings: warnings.warnings ?? [] }
}

/**
 * Returns the rules of the rule set that are of the same type as the planned rule, or the reason why they cannot be
 * read.
 */
async function readSiblings(
  pce: PceClient,
  { href }: RuleSet,
  { collection }: PlannedRule,
  signal: AbortSignal,
): Promise<readonly AnyRule[] | string> {
  try {
    const ruleSet = await pce.ruleSets.getByReference(toDraftHref(href), { signal })
    return await readRulesOfKind(pce, ruleSet, collection, signal)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return error.message
  }
}

const isLike = ({ body }: PlannedRule, rule: AnyRule) =>
  rule.update_type !== 'delete' && (rule.enabled ?? true) === body.enabled && saysTheSame(body, rule)

function refuseAddedMeanwhile(
  ruleSet: RuleSet,
  planned: PlannedRule,
  found: { siblings: readonly AnyRule[] | string; before: readonly AnyRule[] | string; others: ReadonlySet<string> },
): void {
  const { siblings, before, others } = found
  if (typeof before === 'string') return
  const known = new Set((typeof siblings === 'string' ? before : siblings).map(({ href }) => href))
  const isNew = ({ href }: AnyRule) => !known.has(href) || others.has(href)
  const twin = before.find((rule) => isNew(rule) && isLike(planned, rule))
  if (twin === undefined) return
  const text = `The rule set ${quote(ruleSet.name)} was given the same rule during this call. Nothing was written.`
  const existing = { href: toDraftHref(twin.href) }
  throw new ToolError('already_exists', text, { reason: 'changed_meanwhile', existing_rule: existing })
}

/** Warns of equal rules that somebody else, such as another replica of this server, added at the same time. */
async function findSurplus(
  pce: PceClient,
  ruleSet: RuleSet,
  planned: PlannedRule,
  before: readonly AnyRule[] | string,
  stored: AnyRule,
): Promise<string[]> {
  if (typeof before === 'string') return [`Whether the same rule was added elsewhere is not known: ${before}`]
  const now = await readSiblings(pce, ruleSet, planned, AbortSignal.timeout(LOOK_MS)).catch(() => 'no answer in time')
  if (typeof now === 'string') return [`Whether the same rule was added elsewhere is not known: ${now}`]
  const known = new Set([...before.map(({ href }) => href), stored.href])
  const twins = now.filter((rule) => !known.has(rule.href) && isLike(planned, rule))
  if (twins.length === 0) return []
  const hrefs = twins.map(({ href }) => toDraftHref(href)).join(', ')
  return [`Somebody else added the same rule at the same time: ${hrefs}. Delete all but one of them and this one.`]
}

const UNREADABLE = 'The rules could not be read back. Check what the rule set has before repeating the call.'
const ABSENT = 'Read back, the rule set has no such rule: nothing was added so far.'
const AS_SENT = 'Read back, the rule set has a new rule that says the same, `hrefs`: the rule was added.'

/**
 * Finds the rules that have the content of the sent rule and did not exist before the write. Returns null if they
 * cannot be determined.
 */
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
