import type { PceClient } from '../../pce-client/index.js'
import type { Rule, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PlannedChange, PlannedRule } from './plan-rules.js'
import { selectWorkloads } from './select-workloads.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { readKubernetesWorkloads, tellUnread } from '../inventory/kubernetes-workloads.js'
import { readableEnds, readableScopes } from '../inventory/require-rule-shape.js'
import { isManaged, osType } from '../inventory/workloads.js'
import { quote } from '../text/escape-text.js'

/**
 * The warning that a rule permits more than it seems to, because for some consumers only the port is checked and not
 * the process.
 */
export interface WideningWarning {
  warning: 'process_qualifier_ignored_on_non_windows'
  services: string[]
  /**
   * Number of consumers without a Windows VEN. It is absent if some consumers, such as Kubernetes workloads, could not
   * be read.
   */
  non_windows_consumer_count?: number
  examples: string[]
  message: string
}

const MAX_EXAMPLES = 5

/**
 * Returns a warning if a rule's egress services name Windows processes but some consumers have no Windows VEN to check
 * them, such as Linux hosts, Kubernetes workloads, unmanaged workloads or addresses in an IP list. It also warns if
 * some consumers could not be read, so that this is not known. Returns undefined if all consumers have a Windows VEN.
 */
export async function warnOfWidening(
  pce: PceClient,
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rule: Pick<PlannedRule, 'egress' | 'consumers' | 'unscoped'>,
  signal: AbortSignal,
): Promise<WideningWarning | undefined> {
  if (rule.egress.length === 0) return undefined
  const {
    labelGroups,
    workloads,
    excluded,
    unread: unlooked,
  } = await selectWorkloads(lookups, scopes, {
    actors: rule.consumers,
    isBound: !rule.unscoped,
  })
  const found = new Map<string, Workload>()
  let unread: string | null = null
  if (labelGroups.length > 0) {
    const everything = labelGroups.some((group) => group.length === 0)
    const page = await fetchEvery({ api: pce.workloads, params: everything ? {} : { labels: labelGroups }, signal })
    const pods = await readPods({ pce, signal }, labelGroups)
    unread = pods.unread
    for (const workload of [...page.items, ...pods.items]) found.set(workload.href, workload)
  }
  for (const href of workloads) found.set(href, await pce.workloads.getByReference(href, { signal }))
  const unchecked = [...found.values()].filter(
    (workload) => !hasWindowsAgent(workload) && !(workload.labels ?? []).some((label) => excluded.has(label.href)),
  )
  const addresses = rule.consumers.some((consumer) => consumer.ip_list !== undefined)
  if (unchecked.length === 0 && !addresses && unread === null && unlooked === null) return undefined
  const services = rule.egress.map(({ name }) => name)
  const who = [
    unchecked.length > 0 ? `${unchecked.length} consumers without a Windows VEN` : '',
    addresses ? 'addresses of an IP list' : '',
  ].filter(Boolean)
  return {
    warning: 'process_qualifier_ignored_on_non_windows',
    services,
    ...(unread === null && unlooked === null && { non_windows_consumer_count: unchecked.length }),
    examples: unchecked.slice(0, MAX_EXAMPLES).map(({ name, hostname, href }) => hostname ?? name ?? href),
    message: [
      who.length === 0
        ? ''
        : `${who.join(' and ')} match this rule by port alone, whatever process connects: ${services.map(quote).join(', ')} is checked on Windows only.`,
      ...(unlooked === null
        ? []
        : [
            `Which consumers have a Windows VEN was not looked at, because ${unlooked}; ${services.map(quote).join(', ')} is checked on Windows only.`,
          ]),
      ...tellUnread(unread),
    ]
      .filter(Boolean)
      .join(' '),
  }
}

/** Reads the Kubernetes workloads that have all labels of at least one inner list of `labelGroups`. */
function readPods(source: { pce: PceClient; signal: AbortSignal }, labelGroups: readonly (readonly string[])[]) {
  const [only, ...others] = labelGroups
  const labels = others.length === 0 ? (only ?? []) : []
  return readKubernetesWorkloads(source, { labels }, (workload) => {
    const own = new Set((workload.labels ?? []).map(({ href }) => href))
    return labelGroups.some((group) => group.every((href) => own.has(href))) ? workload : undefined
  })
}

function hasWindowsAgent(workload: Workload): boolean {
  return isManaged(workload) && osType(workload) === 'windows'
}

/**
 * Returns the widening warning for an allow rule as it will be after a change. The rule is checked even if the change
 * does not concern its egress services or consumers.
 */
export async function warnOfChange(
  pce: PceClient,
  lookups: PolicyLookups,
  current: Rule,
  scopes: readonly (readonly ScopeEntry[])[],
  { body, consumers, egress }: PlannedChange,
  signal: AbortSignal,
): Promise<WideningWarning | undefined> {
  const kept =
    egress ?? (await Promise.all((current.egress_services ?? []).map(({ href }) => readService(lookups, href))))
  const rule = {
    egress: kept,
    consumers: consumers ?? readableEnds(current).consumers,
    unscoped: (body.unscoped_consumers as boolean | undefined) ?? current.unscoped_consumers === true,
  }
  return warnOfWidening(pce, lookups, readableScopes(scopes), rule, signal)
}

async function readService(lookups: PolicyLookups, href: string): Promise<Service> {
  return (await lookups.byHref('services', href)) as Service
}
