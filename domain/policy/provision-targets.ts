import type { TypedPendingChange } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ChangeSubset } from '../../schemas/pce/policy.js'
import { type ChangeSubsetType, CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'

/** Pending changes an error names at most. */
const MAX_LISTED = 50

/**
 * The draft hrefs that stand for what the caller named: active hrefs in their draft form, a rule by its rule set, each once.
 * Throws invalid_argument {invalid} listing every href that cannot be provisioned here.
 */
export function toProvisionable(hrefs: readonly string[], orgId: string): string[] {
  const targets = hrefs.map((href) => ({ href, target: targetOf(href.trim(), orgId) }))
  const invalid = targets.filter(({ target }) => target === null).map(({ href }) => href)
  if (invalid.length > 0) {
    throw new ToolError(
      'invalid_argument',
      `Cannot be provisioned: ${invalid.join(', ')}.`,
      { argument: 'hrefs', invalid },
      { hint: `Give hrefs of ${CHANGE_SUBSET_TYPES.join(', ')} in organisation ${orgId}.` },
    )
  }
  return [...new Set(targets.flatMap(({ target }) => target ?? []))]
}

function targetOf(text: string, orgId: string): string | null {
  const parsed = parseHref(text)
  if (parsed === null || parsed.org !== orgId || (parsed.version !== 'draft' && parsed.version !== 'active'))
    return null
  const draft = toDraftHref(text)
  // Rules are provisioned through their rule set only (P34).
  if (parsed.parent !== undefined) {
    const isRule = parsed.parent.kind === 'rule_sets' && ['sec_rules', 'deny_rules'].includes(parsed.kind)
    return isRule ? toDraftHref(parsed.parent.href) : null
  }
  const known = (CHANGE_SUBSET_TYPES as readonly string[]).includes(parsed.kind)
  return known && (parsed.id !== undefined || parsed.kind === 'firewall_settings') ? draft : null
}

/** The pending changes of exactly these objects. Throws not_pending {not_pending, pending} when one has none. */
export function choosePending(hrefs: readonly string[], pending: readonly TypedPendingChange[]): TypedPendingChange[] {
  const byHref = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const missing = hrefs.filter((href) => !byHref.has(href))
  if (missing.length === 0) return hrefs.flatMap((href) => byHref.get(href) ?? [])
  throw new ToolError('not_pending', `No pending change: ${missing.join(', ')}. Nothing was provisioned.`, {
    not_pending: missing,
    pending: pending.slice(0, MAX_LISTED).map(showPending),
    pending_total: pending.length,
  })
}

/** A pending change in an answer. */
export function showPending({ href, type, name, update_type: updateType }: TypedPendingChange) {
  return {
    href,
    type,
    ...(name !== undefined && { name }),
    ...(updateType !== undefined && { update_type: updateType }),
  }
}

/** Draft references by type, as POST /sec_policy takes them. */
export function toChangeSubset(changes: readonly TypedPendingChange[]): ChangeSubset {
  const subset: Partial<Record<ChangeSubsetType, { href: string }[]>> = {}
  for (const { type, href } of changes) (subset[type] ??= []).push({ href: toDraftHref(href) })
  return subset
}
