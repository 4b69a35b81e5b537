import { PceApiError, type ObjectApi } from '../../pce-client/index.js'
import type { DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { deleteObject, updateObject } from '../drafts/change-object.js'
import { reasonOf, withDetails } from '../inventory/pce-errors.js'
import { readExpiry } from '../policy/read-expiry.js'
import { countOf } from '../text/describe-numbers.js'
import type { ExpiredRule, Retirement } from './find-expired.js'

/**
 * What happened to a rule. `kept`: somebody has given it another end, deleted it or marked it for deletion meanwhile,
 * so nothing was written. `differs`: the PCE accepted the change but then shows something else.
 */
export type RetiredOutcome = 'disabled' | 'deleted' | 'kept' | 'differs'

export interface Retired {
  href: string
  outcome: RetiredOutcome
  /** Why the rule was kept, or what was read back. */
  note?: string
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'beforeWriting' | 'inOrder' | 'now' | 'progress'>

/**
 * Retires rules one by one. Each is read again directly before it is written, and is left alone if it is no longer
 * expired.
 * @returns what happened to each rule, and the warnings of the writes.
 * @throws the error of the write that failed. If others succeeded, it has `partial`, `written [{href}]`, `failed` and
 * `not_attempted`. Repeating the call completes the work, because retired rules are not found again.
 */
export async function retireRules(
  ctx: Context,
  chosen: readonly ExpiredRule[],
  action: Retirement,
): Promise<{ retired: Retired[]; warnings: string[] }> {
  const retired: Retired[] = []
  const warnings = new Set<string>()
  for (const [at, one] of chosen.entries()) {
    try {
      if (at === 0) ctx.beforeWriting.throwIfAborted()
      const { warnings: said, ...outcome } = await retire(ctx, one, action)
      retired.push(outcome)
      for (const text of said) warnings.add(text)
    } catch (error) {
      const written = retired.filter(({ outcome }) => outcome !== 'kept').map(({ href }) => ({ href }))
      if (written.length === 0) throw error
      const left = chosen.slice(at + 1).map(({ href }) => href)
      const facts = { partial: true, written, failed: one.href, not_attempted: left, reason: reasonOf(error) }
      throw withDetails(error, facts, 'The same call completes it: what was retired is not taken again.')
    }
    const progress = at + 1
    ctx.progress({ progress, total: chosen.length, message: `${progress} of ${countOf(chosen.length, 'rule')}` })
  }
  return { retired, warnings: [...warnings] }
}

async function retire(
  ctx: Context,
  { href, collection, ruleSet }: ExpiredRule,
  action: Retirement,
): Promise<Retired & { warnings: readonly string[] }> {
  const { pce, signal } = ctx
  const api = (collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<Rule | DenyRule>
  const read = (of: string) => api.getByReference(of, { signal })
  const current = await read(href).catch(orGone)
  const why = current === null ? 'It was deleted meanwhile.' : whyKept(current, ctx.now())
  if (current === null || why !== null) return { href, outcome: 'kept', note: why ?? '', warnings: [] }
  const what = `the rule ${href}`
  if (action === 'delete') {
    const { warnings = [] } = await deleteObject(ctx, { what, current, holder: ruleSet }, false)
    // The deletion has already been written, so the call does not fail if the rule cannot be read back.
    const stored = await read(href)
      .catch(orGone)
      .catch(() => undefined)
    if (stored === undefined) return { href, outcome: 'deleted', note: UNREAD, warnings }
    const isGone = stored === null || stored.update_type === 'delete'
    return { href, outcome: isGone ? 'deleted' : 'differs', ...(!isGone && { note: STILL_THERE }), warnings }
  }
  const plan = { what, current, holder: ruleSet, body: { enabled: false }, read }
  const { warnings = [], differences } = await updateObject(ctx, plan, false)
  const outcome = differences === undefined ? 'disabled' : 'differs'
  return { href, outcome, ...(outcome === 'differs' && { note: STILL_ENABLED }), warnings }
}

const UNREAD = 'It could not be read back.'
const STILL_THERE = 'Read back, it still exists, and its deletion is not pending.'
const STILL_ENABLED = 'Read back, it is still enabled.'

function orGone(error: unknown): null {
  if (error instanceof PceApiError && error.isGone) return null
  throw error
}

function whyKept({ description, update_type: updateType }: Rule | DenyRule, now: number): string | null {
  if (updateType === 'delete') return 'Its deletion was marked meanwhile.'
  const end = readExpiry(description)
  if (end.kind === 'ends' && end.over <= now) return null
  return end.kind === 'ends' ? `It was given another end meanwhile: ${end.date}.` : 'Its end was changed meanwhile.'
}
