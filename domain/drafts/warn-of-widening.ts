import type { PceClient } from '../../pce-client/index.js'
import type { Rule, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PlannedChange, PlannedRule } from './plan-rules.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { NamedObject, PolicyLookups } from '../inventory/find-object.js'
import { readKubernetesWorkloads, tellUnread } from '../inventory/kubernetes-workloads.js'
import { isManaged, osType } from '../inventory/workloads.js'

/**
 * The warning about a rule that permits more than its text suggests, because only the port counts where the process
 * cannot be checked.
 */
export interface WideningWarning {
  warning: 'process_qualifier_ignored_on_non_windows'
  services: string[]
  /** Absent if Kubernetes workloads could not be read, because they may be consumers too. */
  non_windows_consumer_count?: number
  examples: string[]
  message: string
}

const MAX_EXAMPLES = 5

/**
 * Returns a warning if a rule's egress services name Windows processes but some consumers have no Windows VEN to check
 * them, such as Linux hosts, Kubernetes workloads, unmanaged workloads or addresses in an IP list. It also warns if
 * this is not known because Kubernetes workloads could not be read. Returns undefined if all consumers have a Windows
 * VEN.
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
  if (unchecked.length === 0 && !addresses && unread === null) return undefined
  const services = rule.egress.map(({ name }) => name)
  const who = [
    unchecked.length > 0 ? `${unchecked.length} consumers without a Windows VEN` : '',
    addresses ? 'addresses of an IP list' : '',
  ].filter(Boolean)
  return {
    warning: 'process_qualifier_ignored_on_non_windows',
    services,
    ...(unread === null && { non_windows_consumer_count: unchecked.length }),
    examples: unchecked.slice(0, MAX_EXAMPLES).map(({ name, hostname, href }) => hostname ?? name ?? href),
    message: [
      who.length === 0
        ? ''
        : `${who.join(' and ')} match this rule by port alone, whatever process connects: ${services.join(', ')} is checked on Windows only.`,
      ...tellUnread(unread),
    ]
      .filter(Boolean)
      .join(' '),
  }
}

/** Reads the Kubernetes workloads that at least one of these lists of labels selects. */
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

/** A set of workloads in the form of the PCE's `labels` filter. */
interface ConsumerSelection {
  /**
   * Entries of an inner list are ANDed, inner lists are ORed. `[[]]` selects every workload, `[]` selects none by
   * label.
   */
  labelGroups: string[][]
  workloads: string[]
  /** Hrefs of labels whose workloads are excluded. */
  excluded: Set<string>
}

type Selector = Pick<ScopeEntry, 'label' | 'label_group' | 'exclusion'>
/** Label hrefs by key: labels with the same key are alternatives, different keys are ANDed. */
type Conditions = Map<string, Set<string>>

/**
 * Determines which workloads a rule's consumers stand for. Labels with the same key are alternatives, different keys
 * are ANDed; an intra-scope rule is further limited by each scope of its rule set.
 */
async function selectConsumers(
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rule: Pick<PlannedRule, 'consumers' | 'unscoped'>,
): Promise<ConsumerSelection> {
  const selectors = rule.consumers.filter(({ label, label_group: group }) => label !== undefined || group !== undefined)
  const everyone = rule.consumers.some(({ actors }) => actors === 'ams')
  const own = everyone ? [] : selectors.filter(({ exclusion }) => exclusion !== true)
  const excluded = selectors.filter(({ exclusion }) => exclusion === true)
  const bounds: (readonly ScopeEntry[])[] = rule.unscoped ? [[]] : [...scopes]
  // With several scopes, an exclusion applies only within its own scope. It is then ignored here, which at worst causes
  // a needless warning.
  if (bounds.length === 1) excluded.push(...(bounds[0] ?? []).filter(({ exclusion }) => exclusion === true))

  const labelGroups: string[][] = []
  if (everyone || own.length > 0) {
    const ownConditions = await toConditions(lookups, own)
    for (const bound of bounds) {
      const scope = await toConditions(
        lookups,
        bound.filter(({ exclusion }) => exclusion !== true),
      )
      labelGroups.push(...multiplyOut(intersect(scope, ownConditions)))
    }
  }
  const excludedLabels = await toConditions(lookups, excluded)
  return {
    labelGroups,
    workloads: rule.consumers.flatMap(({ workload }) => workload?.href ?? []),
    excluded: new Set([...excludedLabels.values()].flatMap((hrefs) => [...hrefs])),
  }
}

async function toConditions(lookups: PolicyLookups, selectors: readonly Selector[]): Promise<Conditions> {
  const conditions: Conditions = new Map()
  for (const { label, label_group: group } of selectors) {
    const hrefs =
      label !== undefined ? [label.href] : await expandGroup(lookups, (group as { href: string }).href, new Set())
    for (const href of hrefs) {
      const key = lookups.labels.get(href)?.key ?? ''
      conditions.set(key, (conditions.get(key) ?? new Set()).add(href))
    }
  }
  return conditions
}

/** Returns the labels of a group and its sub-groups. `seen` stops the recursion if a group contains itself. */
async function expandGroup(lookups: PolicyLookups, href: string, seen: Set<string>): Promise<string[]> {
  if (seen.has(href)) return []
  seen.add(href)
  const group = (await lookups.byHref('label_groups', href)) as NamedObject & {
    labels?: { href: string }[] | null
    sub_groups?: { href: string }[] | null
  }
  const inner = []
  for (const sub of group.sub_groups ?? []) inner.push(...(await expandGroup(lookups, sub.href, seen)))
  return [...(group.labels ?? []).map((label) => label.href), ...inner]
}

/** Combines two conditions. A key that both have keeps only the labels that they share, possibly none. */
function intersect(a: Conditions, b: Conditions): Conditions {
  const both: Conditions = new Map(a)
  for (const [key, hrefs] of b) {
    const other = a.get(key)
    both.set(key, other === undefined ? hrefs : new Set([...hrefs].filter((href) => other.has(href))))
  }
  return both
}

function multiplyOut(conditions: Conditions): string[][] {
  return [...conditions.values()].reduce<string[][]>(
    (groups, hrefs) => groups.flatMap((group) => [...hrefs].map((href) => [...group, href])),
    [[]],
  )
}

/**
 * Returns the widening warning for an allow rule after a change. The resulting rule is judged even if the change does
 * not touch its egress services or consumers.
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
    consumers: consumers ?? current.consumers,
    unscoped: (body.unscoped_consumers as boolean | undefined) ?? current.unscoped_consumers === true,
  }
  return warnOfWidening(pce, lookups, scopes, rule, signal)
}

async function readService(lookups: PolicyLookups, href: string): Promise<Service> {
  return (await lookups.byHref('services', href)) as Service
}
