import { ToolError } from '../../schemas/errors.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { loadDenyRules } from '../inventory/load-deny-rules.js'
import { readExisting } from './compare-existing.js'
import { findRingfence } from './find-ringfence.js'
import type { Prepared } from './prepare-ringfence.js'

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>

/**
 * Before the first write: throws already_exists {reason: changed_meanwhile, changed} unless the draft is what the plan was made
 * for. The traffic queries take minutes, and the rules of a ringfence let in whatever the scope holds by then.
 */
export async function refuseChanged(ctx: Context, prepared: Prepared): Promise<void> {
  const { ruleSet: planned } = prepared
  const { ruleSet, changed } = await readAgain(ctx, prepared, planned?.href ?? null)
  if (planned !== null && ruleSet !== null) changed.push(...compareRules(planned, ruleSet))
  if (changed.length > 0) {
    const text = `was changed by somebody else during the call: ${changed.join('; ')}. Nothing was written. Call again.`
    throw changedError(prepared, changed, text)
  }
}

/**
 * Before the deny rule, which is the last write: throws the same error unless the scope is as it was and every allow rule of the
 * plan, standing or new, is there and in force. `href` is that of the rule set.
 */
export async function refuseUncovered(ctx: Context, prepared: Prepared, href: string): Promise<void> {
  const { ruleSet, changed } = await readAgain(ctx, prepared, href)
  if (ruleSet !== null) {
    const existing = readExisting(ruleSet, prepared.known)
    const { newRules, standingRules } = prepared.plan
    for (const { need, remote } of [...standingRules, ...newRules]) {
      if (need === undefined || existing.covering(need) !== undefined) continue
      const whom = remote === undefined ? 'inside the application' : `for ${remote.app} (${remote.env})`
      changed.push(`the allow rule ${whom} is not in force`)
    }
  }
  if (changed.length > 0) {
    const text = `is not what it must be before it denies: ${changed.join('; ')}. The deny rule was not written. Call again.`
    throw changedError(prepared, changed, text)
  }
}

/** The rule set as it is now; null where it is not what it was, and then `changed` says why. `href` null: there was none. */
async function readAgain(
  { pce, signal }: Context,
  { application, name }: Prepared,
  href: string | null,
): Promise<{ ruleSet: RuleSet | null; changed: string[] }> {
  const { ruleSet, conflicts } = await findRingfence(pce, application, 'draft', signal, name)
  const none = (why: string) => ({ ruleSet: null, changed: [why] })
  if (href === null) {
    const taken = ruleSet !== null || conflicts.length > 0
    return taken ? none('a rule set of this name was created') : { ruleSet: null, changed: [] }
  }
  if (ruleSet?.href !== href) {
    const why = conflicts.find((one) => one.ruleSet.href === href)?.why
    if (why === undefined) return none('the rule set was deleted or renamed')
    return none(why === 'other_scope' ? 'its scope is another' : 'its deletion is pending')
  }
  if (!ruleSet.enabled) return none('the rule set was disabled')
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined)
    throw new ToolError('pce_error', `The deny rules of ${name} could not be read again.`)
  return { ruleSet: complete.ruleSet, changed: [] }
}

function changedError({ name, ruleSet }: Prepared, changed: readonly string[], text: string): ToolError {
  return new ToolError('already_exists', `The rule set ${name} ${text}`, {
    reason: 'changed_meanwhile',
    changed: [...changed],
    ...(ruleSet !== null && { existing_ruleset: { href: ruleSet.href, name } }),
  })
}

function compareRules(before: RuleSet, now: RuleSet): string[] {
  const [old, fresh] = [rulesOf(before), rulesOf(now)]
  return [
    ...[...old].flatMap(([href, rule]) => {
      const same = fresh.get(href)
      return same === undefined ? [`${href} was deleted`] : same === rule ? [] : [`${href} was changed`]
    }),
    ...[...fresh.keys()].flatMap((href) => (old.has(href) ? [] : [`${href} was added`])),
  ]
}

/** What of a rule says nothing about whom it concerns. Of `update_type` only a pending deletion does. */
const BESIDE = /^(created|updated|deleted)_(at|by)$|^update_(type|label)$|^description$|^external_data/

/** Each rule by its href, as one text that changes when the rule does. */
function rulesOf({ rules, deny_rules: denyRules }: RuleSet): Map<string, string> {
  return new Map(
    [...(rules ?? []), ...(denyRules ?? [])].map((rule: Rule | DenyRule) => {
      const telling = Object.entries(rule).filter(([field]) => field !== 'href' && !BESIDE.test(field))
      const isGoing = rule.update_type === 'delete'
      return [rule.href, JSON.stringify(canonical({ ...Object.fromEntries(telling), isGoing }))]
    }),
  )
}

/** Without order, without what is absent, and of a reference the href alone. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => JSON.stringify(canonical(item))).sort()
  if (typeof value !== 'object' || value === null) return value
  if ('href' in value) return value.href
  return Object.entries(value)
    .filter(([, inner]) => inner !== null && inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([field, inner]) => [field, canonical(inner)])
}
