import type { PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { findOthers, nameOther } from '../inventory/find-others.js'

interface Draft extends PceObject {
  rules?: PceObject[] | null
  deny_rules?: PceObject[] | null
}

/**
 * Warns if an object that is about to be changed already has pending changes of others, because they are provisioned
 * together with this one. A rule is provisioned with its rule set (P34), so the authors of pending rules count as well.
 */
export async function warnOfOthers(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  draft: PceObject,
): Promise<string[]> {
  if (draft.update_type == null) return []
  const { rules, deny_rules: denyRules } = draft as Draft
  const changed = [...(rules ?? []), ...(denyRules ?? [])].filter((rule) => rule?.update_type != null)
  const others = await findOthers(pce, [draft, ...changed].flatMap(authorsOf), signal)
  if (others.length === 0) return []
  const shown = others.slice(0, MOST_NAMED).map(nameOther)
  const more = others.length - shown.length
  const who = [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return [`It already has pending changes of ${who}. Provisioning it makes them active, too.`]
}

const MOST_NAMED = 5

/** Who changed an object last, and who made it, if it was never provisioned. */
const authorsOf = ({ update_type: type, created_by: first, updated_by: last }: PceObject) =>
  type === 'create' ? [{ updated_by: last }, { updated_by: first }] : [{ updated_by: last }]
