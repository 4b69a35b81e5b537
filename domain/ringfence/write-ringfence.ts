import type { ObjectApi, PceClient } from '../../pce-client/index.js'
import type { Label } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { orderOf } from '../drafts/order-of.js'
import { createNamed } from '../drafts/create-named.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import type { PlannedRule } from '../drafts/plan-rules.js'
import { verifyRuleSet, type RuleSetBody, type StoredRuleSet } from '../drafts/write-rule-set.js'
import { findRingfence, readExisting, type RingfenceFound } from './find-existing.js'
import type { Prepared } from './prepare-ringfence.js'
import { toWireScopes } from '../drafts/resolve-actors.js'
import { ToolError } from '../../schemas/errors.js'
import { quote } from '../text/escape-text.js'

/**
 * Writes a planned ringfence and reads it back. While it runs, no other call of this process writes to the same rule
 * set. If the ringfence is already complete, nothing is sent. Throws already_exists if the rule set has changed in the
 * draft since the plan was made, and the errors of `writeRingfence`.
 */
export function writePrepared(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  prepared: Prepared,
): Promise<RingfenceWritten> {
  return ctx.inOrder(orderOf('rule_sets', prepared.name), async (turn) => {
    const written = await writeInTurn(ctx, prepared)
    for (const href of [written.href, ...written.ruleHrefs]) turn.note(href)
    return written
  })
}

async function writeInTurn(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  prepared: Prepared,
): Promise<RingfenceWritten> {
  const { pce, signal } = ctx
  const { application, ruleSet: existing, rules } = prepared
  await refuseChanged(ctx, prepared)
  if (existing !== null && rules.length === 0) return { href: existing.href, ruleHrefs: [], stored: null }
  const body = bodyOf(prepared)
  const { href, ruleHrefs } = await writeRingfence(ctx, {
    application,
    body,
    existing,
    rules,
    beforeDeny: (set) => refuseUncovered(ctx, prepared, set),
  })
  return { href, ruleHrefs, stored: await verifyRuleSet(pce, href, body, rules, ruleHrefs, signal) }
}

/** The objects to write: the rule set, unless it exists, and then its rules in this order. */
export interface RingfenceWrite {
  application: readonly Label[]
  body: RuleSetBody
  existing: RuleSet | null
  rules: readonly PlannedRule[]
  /**
   * Called before the deny rule is written, with the href of the rule set. Throws unless every allow rule is in place.
   */
  beforeDeny: (ruleSet: string) => Promise<void>
}

/**
 * Writes a ringfence into the draft and returns the hrefs of the rule set and its new rules. A failure stops the
 * writing without undoing anything: allow rules come first, so an incomplete ringfence cuts no traffic, and repeating
 * the call continues from there. If something was written, the error contains `partial` and `written` (D3). It also
 * contains `stands`, determined after the failure: all objects of this ringfence that are in the draft now but were not
 * before the call.
 */
export async function writeRingfence(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  { application, body, existing, rules, beforeDeny }: RingfenceWrite,
): Promise<{ href: string; ruleHrefs: string[] }> {
  const { pce, signal } = ctx
  const written: string[] = []
  try {
    const href = existing?.href ?? (await createNamed(ctx, 'rule_sets', body)).href
    if (existing === null) written.push(href)
    const ruleHrefs: string[] = []
    for (const rule of rules) {
      // The signal aborts when the server is about to stop. A client that disconnects does not stop the writing.
      signal.throwIfAborted()
      if (rule.collection === 'deny_rules') await beforeDeny(href)
      const api = (rule.collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<PceObject>
      const created = await api.create(rule.body, href)
      written.push(created.href)
      ruleHrefs.push(created.href)
    }
    return { href, ruleHrefs }
  } catch (error) {
    if (written.length === 0 && !mayHaveHappened(error)) throw error
    const stands = await findNew(pce, application, body.name, existing, existing?.href ?? written[0])
    throw withDetails(
      error,
      {
        ...(written.length > 0 && { partial: true, written: written.map((href) => ({ href })) }),
        ...(stands !== null && { stands: stands.map((href) => ({ href })) }),
        not_written: countMissing(rules.length + (existing === null ? 1 : 0), written, stands, error),
      },
      'What exists cuts no traffic: the deny rule comes last. Call again to complete it; what exists is kept.',
    )
  }
}

/**
 * Counts the objects that are not written yet. `stands` may include objects of somebody else. Therefore, of the objects
 * that are in `stands` but not in `written`, at most one counts as written by this call's failed request.
 */
function countMissing(wanted: number, written: readonly string[], stands: readonly string[] | null, error: unknown) {
  const ours = stands === null ? written.length : written.filter((href) => stands.includes(href)).length
  const isThere = mayHaveHappened(error) && stands !== null && stands.length > ours
  return wanted - ours - Number(isThere)
}

/**
 * Returns the hrefs of the rule set and rules that did not exist before. Returns null if they cannot be read, or if
 * several rule sets may be the written one. `href` is the href of the rule set, if it is known.
 */
async function findNew(
  pce: PceClient,
  application: readonly Label[],
  name: string,
  before: RuleSet | null,
  href: string | undefined,
): Promise<string[] | null> {
  const { signal } = new AbortController()
  try {
    const found = await findRingfence(pce, application, 'draft', signal, name)
    const alike = alikeIn(found)
    if (href === undefined && alike.length > 1) return null
    // The rule set is included even if its scope has changed meanwhile, because the written rules are still in it.
    const named = [...alike, ...found.conflicts.map((one) => one.ruleSet)]
    const ruleSet = href === undefined ? alike[0] : named.find((one) => one.href === href)
    if (ruleSet === undefined) return []
    const [complete] = await loadDenyRules(pce, [ruleSet], signal)
    if (complete === undefined || complete.error !== undefined) return null
    const known = new Set(hrefsOf(before))
    return hrefsOf(complete.ruleSet).filter((href) => !known.has(href))
  } catch {
    return null
  }
}

/**
 * Lists all rule sets with the name and scope of the ringfence. Further rule sets may have been created since the plan
 * was made.
 */
const alikeIn = ({ ruleSet, others }: RingfenceFound): RuleSet[] => (ruleSet === null ? [] : [ruleSet, ...others])

const hrefsOf = (ruleSet: RuleSet | null): string[] =>
  ruleSet === null ? [] : [ruleSet, ...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].map(({ href }) => href)

/**
 * Returns the body of the request that creates the rule set. If the rule set exists, it must still have these values.
 */
export function bodyOf({ application, name, ruleSet }: Prepared): RuleSetBody {
  const [app, env] = application
  const scopes = toWireScopes([application.map((label) => ({ label }))])
  return ruleSet === null
    ? { name, description: `Ringfence for ${app.value} (${env.value})`, scopes }
    : { name, scopes }
}

/** The result of writing a ringfence in a call that is not a dry run. */
export interface RingfenceWritten {
  href: string
  /** Hrefs of the new rules, in the order of the plan. */
  ruleHrefs: string[]
  stored: StoredRuleSet | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>

/**
 * Checks before the first write that the rule set in the draft is unchanged. Throws already_exists {reason:
 * changed_meanwhile, changed} if it has changed since the plan was made, which is possible because the traffic queries
 * take minutes. Workloads are not checked: a ringfence applies to whichever workloads are in its scope when it is
 * written.
 */
async function refuseChanged(ctx: Context, prepared: Prepared): Promise<void> {
  const { ruleSet: planned } = prepared
  const { ruleSet, alike, changed } = await readAgain(ctx, prepared, planned?.href ?? null)
  if (ruleSet !== null && alike > 1) changed.push('another rule set of this name and scope was created')
  if (planned !== null && ruleSet !== null) changed.push(...compareRules(planned, ruleSet))
  if (changed.length > 0) {
    const text = `was changed by somebody else during the call: ${changed.join('; ')}. Nothing was written. Call again.`
    throw changedError(prepared, changed, text)
  }
}

/**
 * Checks, before the deny rule is written last, that the rule set's scope is unchanged and that every planned allow
 * rule, existing or new, is present and enabled. Otherwise throws already_exists in the same form as `refuseChanged`.
 * `href` is the href of the rule set.
 */
async function refuseUncovered(ctx: Context, prepared: Prepared, href: string): Promise<void> {
  const { ruleSet, changed } = await readAgain(ctx, prepared, href)
  if (ruleSet !== null) {
    const existing = readExisting(ruleSet, prepared.draft)
    const { newRules, standingRules } = prepared.plan
    for (const { need, remote } of [...standingRules, ...newRules]) {
      if (need === undefined || existing.covering(need) !== undefined) continue
      const whom = remote === undefined ? 'inside the application' : `for ${quote(`${remote.app} (${remote.env})`)}`
      changed.push(`the allow rule ${whom} is not in force`)
    }
  }
  if (changed.length > 0) {
    const text = `is not ready for its deny rule: ${changed.join('; ')}. The deny rule was not written. Call again.`
    throw changedError(prepared, changed, text)
  }
}

/**
 * Returns the current rule set, and how many rule sets have the same name and scope. If the rule set has changed, it is
 * null, and `changed` describes the change. If `href` is null, no rule set existed when the plan was made.
 */
async function readAgain(
  { pce, signal }: Context,
  { application, name }: Prepared,
  href: string | null,
): Promise<{ ruleSet: RuleSet | null; alike: number; changed: string[] }> {
  const found = await findRingfence(pce, application, 'draft', signal, name)
  const { conflicts } = found
  const all = alikeIn(found)
  const alike = all.length
  const none = (why: string) => ({ ruleSet: null, alike, changed: [why] })
  if (href === null) {
    const taken = alike > 0 || conflicts.length > 0
    return taken ? none('a rule set of this name was created') : { ruleSet: null, alike, changed: [] }
  }
  const ruleSet = all.find((one) => one.href === href)
  if (ruleSet === undefined) {
    const why = conflicts.find((one) => one.ruleSet.href === href)?.why
    if (why === undefined) return none('the rule set was deleted or renamed')
    return none(why === 'other_scope' ? 'its scope is different' : 'its deletion is pending')
  }
  if (ruleSet.enabled === false) return none('the rule set was disabled')
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined)
    throw new ToolError('pce_error', `The deny rules of ${quote(name)} could not be read again.`)
  return { ruleSet: complete.ruleSet, alike, changed: [] }
}

function changedError({ name, ruleSet }: Prepared, changed: readonly string[], text: string): ToolError {
  return new ToolError('already_exists', `The rule set ${quote(name)} ${text}`, {
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

/**
 * Matches the names of fields that do not affect the traffic to which a rule applies. `update_type` matters only for a
 * pending deletion, which is handled elsewhere.
 */
const BESIDE = /^(created|updated|deleted)_(at|by)$|^update_(type|label)$|^description$|^external_data/

/** Maps the href of each rule to a string that changes whenever the rule changes. */
function rulesOf({ rules, deny_rules: denyRules }: RuleSet): Map<string, string> {
  return new Map(
    [...(rules ?? []), ...(denyRules ?? [])].map((rule: Rule | DenyRule) => {
      const telling = Object.entries(rule).filter(([field]) => field !== 'href' && !BESIDE.test(field))
      const isGoing = rule.update_type === 'delete'
      return [rule.href, JSON.stringify(canonical({ ...Object.fromEntries(telling), isGoing }))]
    }),
  )
}

/**
 * Converts a value so that values with equal meaning become equal: the order of list items and fields is ignored, empty
 * fields are left out, and each reference is reduced to its href.
 */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => JSON.stringify(canonical(item))).sort()
  if (typeof value !== 'object' || value === null) return value
  if ('href' in value) return value.href
  return Object.entries(value)
    .filter(([, inner]) => inner !== null && inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([field, inner]) => [field, canonical(inner)])
}
