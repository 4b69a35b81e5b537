import { PceError } from '../../pce-client/index.js'
import { EFFECT_MEANINGS, NO_EFFECT } from '../../schemas/policy-changes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ToolContext } from '../call.js'
import { loadJudgedUsers } from '../inventory/find-uses.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Judgement } from '../policy/judge-change.js'
import { judgeObject, rulesAbout } from '../policy/judge-object.js'
import { loadContents } from '../policy/load-contents.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { workInTurns } from '../text/pace-work.js'

/**
 * Determines how an edit of an IP list, a service or a label group affects the permitted traffic, based on the active
 * and draft rules that use the object. If the PCE does not send these rules, the effect is undecided.
 *
 * @param type the path segment that stands for the object's type in hrefs, such as `ip_lists`.
 * @param fields the fields that the edit replaces.
 */
export async function judgeEdit(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>,
  type: string,
  current: PceObject,
  fields: object,
): Promise<Judgement> {
  const { pce, signal } = ctx
  const href = toDraftHref(current.href)
  const versions = { draft: { ...current, ...fields }, active: current }
  try {
    const users = await loadJudgedUsers(pce, signal)
    const rules = await workInTurns(rulesAbout(href, users), signal)
    const contents = await loadContents(pce, rules, new Map([[href, versions]]), ctx)
    return await workInTurns(judgeObject(type, versions, contents, users), signal)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { effect_note: NO_EFFECT.unreadUses }
  }
}

/**
 * Returns a warning that describes the effect of an edit and says how many rules use the object. `noun` is the word for
 * the object, such as `list`.
 */
export function warnOfEffect({ effect, effect_note: note, used_by: used }: Judgement, noun: string): string[] {
  if (effect === 'neutral') return []
  if (used === undefined) return note === undefined ? [] : [note]
  const places = used.in.map((holder) => quote(holder)).join(', ')
  const who = `${countOf(used.rules, 'rule')} ${used.rules === 1 ? 'uses' : 'use'} the ${noun}${places === '' ? '' : ` (in ${places})`}`
  return [
    effect === undefined ? `${who}: ${note ?? ''}` : `${who}: once provisioned, the edit ${EFFECT_MEANINGS[effect]}.`,
  ]
}

/**
 * Returns true if the edit certainly permits no less than before, so that no observed traffic can be cut. Reading the
 * traffic would only reveal doubts that exist with and without the edit.
 */
export const cutsNothing = ({ effect, assumes = [] }: Judgement): boolean =>
  (effect === 'widening' || effect === 'neutral') && assumes.length === 0
