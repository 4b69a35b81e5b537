import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { RingfenceWritten } from '../../../domain/ringfence/write-ringfence.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'

/** Returns one or two sentences that say what was, or would be, written. */
export function describeOutcome(
  { name, ruleSet, rules, deny, denyWithheld }: Prepared,
  written: RingfenceWritten | null,
): string {
  const count = countOf(rules.length, 'rule')
  if (ruleSet !== null && rules.length === 0) {
    const all = denyWithheld ? 'all its allow rules' : 'all its rules'
    return `The rule set ${quote(name)} already has ${all}; nothing to write.`
  }
  const made = `made for ${deny === null ? 'full' : 'selective'} enforcement`
  const what =
    ruleSet === null ? `the rule set ${quote(name)} with ${count}` : `${count} to the rule set ${quote(name)}`
  if (written === null) return `Would ${ruleSet === null ? 'create' : 'add'} ${what} in draft, ${made}.`
  return `${ruleSet === null ? 'Created' : 'Added'} ${what} in draft, ${made}. It takes effect when provisioned.`
}

/**
 * Returns the numbers of source applications by what policy decides about them today, and a sentence with these
 * numbers.
 */
export function describeCoverage({ plan, options }: Prepared) {
  const { remotes } = plan
  const letIn = remotes.filter(({ rule }) => rule !== 'excluded')
  const already = letIn.filter(({ coverage }) => coverage === 'already_allowed').length
  const [newly, excluded] = [letIn.length - already, remotes.length - letIn.length]
  const byDefault = remotes.filter((remote) => remote.allowedByDefaultPossible).length
  const skipped = options.skip_allowed === true ? ', and get no rule' : ''
  return {
    already_allowed: already,
    newly_allowed: newly,
    ...(excluded > 0 && { excluded }),
    total_remote_apps: remotes.length,
    allowed_by_default_possible: byDefault,
    description: `${countOf(remotes.length, 'remote application')} seen as source: rules allow all flows of ${already} today${skipped}; ${newly} would be newly allowed${excluded > 0 ? `; ${excluded} left out by exclude_sources or environments` : ''}.`,
  }
}

/** Returns the names of the traffic queries that reached the row limit, and a sentence about the consequences. */
export function describeTruncation(reads: Record<string, { truncated: boolean; parts: number | null }>): {
  discovery_truncated: string[]
  discovery_warning?: string
} {
  const truncated = Object.entries(reads).flatMap(([name, read]) => (read.truncated ? [name] : []))
  const isDivided = Object.values(reads).every(({ parts }) => parts !== null)
  const advice = isDivided ? 'Shorten lookback_days.' : 'Give complete: true, or shorten lookback_days.'
  const text = `The row limit was reached (${truncated.join(', ')}): sources that were not read get no rule and are not listed. ${advice}`
  return { discovery_truncated: truncated, ...(truncated.length > 0 && { discovery_warning: text }) }
}
