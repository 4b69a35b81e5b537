import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import { warnOfCoveredBy } from '../../../domain/hygiene/warn-of-covered.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { named } from './warn-of-ringfence.js'

/**
 * Adds warnings to a prepared ringfence about new rules that may be unnecessary, because existing draft rules already
 * decide about all their connections. No requests are sent, because the policy has already been read.
 */
export async function noteCovered(prepared: Prepared, signal: AbortSignal): Promise<Prepared> {
  const { draft, plan, rules, application } = prepared
  const apart = draft.ruleSets.filter((set) => set.deny_rules === undefined).length
  const unread =
    apart > 0 && rules.some(({ type }) => type !== 'allow')
      ? [`The deny rules of ${countOf(apart, 'rule set')} were not compared with the new one.`]
      : []
  const policy = { ...draft, contents: { ...draft, labelsOf: () => undefined }, unread }
  const scopes = [application.map(({ href }) => ({ label: { href } }))]
  const { byRule, general } = await warnOfCoveredBy(policy, { scopes, rules }, signal)
  const found = plan.newRules.flatMap(({ remote, need }, at) => {
    const whom =
      remote !== undefined ? `for ${quote(`${remote.app} (${remote.env})`)}` : need === undefined ? '' : 'inside'
    const what = `the ${need === undefined ? 'deny' : 'allow'} rule ${whom}`.trim()
    return (byRule[at] ?? []).map((text) => `${what}: ${text.replace(/\.$/u, '')}`)
  })
  const covered = [...(found.length > 0 ? [`Rules that others may make needless: ${named(found)}.`] : []), ...general]
  return { ...prepared, covered }
}
