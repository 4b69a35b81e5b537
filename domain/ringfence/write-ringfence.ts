import type { ObjectApi, PceClient } from '../../pce-client/index.js'
import type { Label } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { createNamed } from '../drafts/create-named.js'
import { loadDenyRules } from '../inventory/load-deny-rules.js'
import { mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import type { PlannedRule } from '../drafts/plan-rules.js'
import type { RuleSetBody } from '../drafts/write-rule-set.js'
import { verifyRuleSet, type StoredRuleSet } from '../drafts/verify-rule-set.js'
import { refuseChanged, refuseUncovered } from './find-changes.js'
import { findRingfence } from './find-ringfence.js'
import type { Prepared } from './prepare-ringfence.js'
import { toWireScopes } from '../drafts/resolve-scopes.js'

/**
 * Writes what was planned and reads it back; where nothing is missing, nothing is sent. Throws already_exists where the draft is
 * not what it was when that was planned, and as `writeRingfence`.
 */
export async function writePrepared(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal'>,
  prepared: Prepared,
): Promise<RingfenceWritten> {
  const { pce, signal } = ctx
  const { application, ruleSet: existing, rules } = prepared
  await refuseChanged(ctx, prepared)
  if (existing !== null && rules.length === 0) return { href: existing.href, ruleHrefs: [], stored: null }
  const body = bodyOf(prepared)
  const { href, ruleHrefs } = await writeRingfence(
    pce,
    { application, body, existing, rules, beforeDeny: (set) => refuseUncovered(ctx, prepared, set) },
    signal,
  )
  return { href, ruleHrefs, stored: await verifyRuleSet(pce, href, body, rules, ruleHrefs, signal) }
}

/** What is to be written: the rule set unless it exists, then its rules in this order. */
export interface RingfenceWrite {
  application: readonly Label[]
  body: RuleSetBody
  existing: RuleSet | null
  rules: readonly PlannedRule[]
  /** Throws where the deny rule must not follow what was written before it; given the href of the rule set. */
  beforeDeny: (ruleSet: string) => Promise<void>
}

/**
 * Writes a ringfence into the draft; answers the hrefs of the rule set and of its new rules. A failure stops it and undoes nothing:
 * the rules that let traffic in come first, so what stands by then cuts nobody, and the same call goes on from there. The error has
 * `partial` and `written` once something was written (D3), and `stands`, which is looked up afterwards: everything of this
 * ringfence that is in the draft and was not before the call.
 */
export async function writeRingfence(
  pce: PceClient,
  { application, body, existing, rules, beforeDeny }: RingfenceWrite,
  signal: AbortSignal,
): Promise<{ href: string; ruleHrefs: string[] }> {
  const written: string[] = []
  try {
    const href = existing?.href ?? (await createNamed(pce, 'rule_sets', body, signal)).href
    if (existing === null) written.push(href)
    const ruleHrefs: string[] = []
    for (const rule of rules) {
      // The server is about to end; a client that leaves does not stop a write.
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
      'Nothing that stands cuts traffic before all rules that allow it are there. Call again to complete it: what exists is kept.',
    )
  }
}

/** What is still to be written. Of what stands, somebody else may have written a part: at most one of it is our failed write. */
function countMissing(wanted: number, written: readonly string[], stands: readonly string[] | null, error: unknown) {
  const ours = stands === null ? written.length : written.filter((href) => stands.includes(href)).length
  const isThere = mayHaveHappened(error) && stands !== null && stands.length > ours
  return wanted - ours - Number(isThere)
}

/** Hrefs of the rule set and its rules that did not exist before; null where they cannot be read. */
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
    // Its scope may have been changed meanwhile: what was written stands there all the same.
    const ruleSet = found.ruleSet ?? found.conflicts.find((one) => one.ruleSet.href === href)?.ruleSet
    if (ruleSet === undefined) return []
    const [complete] = await loadDenyRules(pce, [ruleSet], signal)
    if (complete === undefined || complete.error !== undefined) return null
    const known = new Set(hrefsOf(before))
    return hrefsOf(complete.ruleSet).filter((href) => !known.has(href))
  } catch {
    return null
  }
}

const hrefsOf = (ruleSet: RuleSet | null): string[] =>
  ruleSet === null ? [] : [ruleSet, ...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].map(({ href }) => href)

/** The payload of the rule set; that of an existing one is what it must still be. */
export function bodyOf({ application, name, ruleSet }: Prepared): RuleSetBody {
  const [app, env] = application
  const scopes = toWireScopes([application.map((label) => ({ label }))])
  return ruleSet === null
    ? { name, description: `Ringfence for ${app.value} (${env.value})`, scopes }
    : { name, scopes }
}

/** What a real run did. */
export interface RingfenceWritten {
  href: string
  /** Of the new rules, in the order of the plan. */
  ruleHrefs: string[]
  stored: StoredRuleSet | null
}
