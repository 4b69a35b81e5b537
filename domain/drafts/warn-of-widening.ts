import type { PceClient } from '../../pce-client/index.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { PlannedRule } from './plan-rules.js'
import type { PolicyLookups } from '../inventory/policy-lookups.js'
import { selectConsumers } from './select-consumers.js'
import { osType, isManaged } from '../inventory/workload.js'

/** A rule that lets more through than it reads: where the process cannot be checked, the port alone decides. */
export interface WideningWarning {
  warning: 'process_qualifier_ignored_on_non_windows'
  services: string[]
  non_windows_consumer_count: number
  examples: string[]
  message: string
}

const MAX_EXAMPLES = 5

/**
 * The warning for a rule whose egress services name Windows processes while some of its consumers have no Windows VEN to
 * check them (a Linux host, an unmanaged one, an address of an IP list). Undefined where every consumer has one.
 */
export async function warnOfWidening(
  pce: PceClient,
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rule: Pick<PlannedRule, 'egress' | 'consumers' | 'unscoped'>,
  signal: AbortSignal,
): Promise<WideningWarning | undefined> {
  if (rule.egress.length === 0) return undefined
  const { labelGroups, workloads, excluded } = await selectConsumers(lookups, scopes, rule)
  const found = new Map<string, Workload>()
  if (labelGroups.length > 0) {
    const everything = labelGroups.some((group) => group.length === 0)
    const page = await fetchEvery({ api: pce.workloads, params: everything ? {} : { labels: labelGroups }, signal })
    for (const workload of page.items) found.set(workload.href, workload)
  }
  for (const href of workloads) found.set(href, await pce.workloads.getByReference(href, { signal }))
  const unchecked = [...found.values()].filter(
    (workload) => !hasWindowsAgent(workload) && !(workload.labels ?? []).some((label) => excluded.has(label.href)),
  )
  const addresses = rule.consumers.some((consumer) => consumer.ip_list !== undefined)
  if (unchecked.length === 0 && !addresses) return undefined
  const services = rule.egress.map(({ name }) => name)
  const who = [
    unchecked.length > 0 ? `${unchecked.length} consumers without a Windows VEN` : '',
    addresses ? 'addresses of an IP list' : '',
  ]
  return {
    warning: 'process_qualifier_ignored_on_non_windows',
    services,
    non_windows_consumer_count: unchecked.length,
    examples: unchecked.slice(0, MAX_EXAMPLES).map(({ name, hostname, href }) => hostname ?? name ?? href),
    message: `${who.filter(Boolean).join(' and ')} match this rule by port alone, whatever process connects: ${services.join(', ')} is checked on Windows only.`,
  }
}

function hasWindowsAgent(workload: Workload): boolean {
  return isManaged(workload) && osType(workload) === 'windows'
}
