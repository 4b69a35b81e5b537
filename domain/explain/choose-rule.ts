import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { isKubernetes } from '../inventory/kubernetes-workloads.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { TCP, UDP, portName } from '../inventory/protocols.js'
import { compileIpList, readRange } from '../policy/addresses.js'
import { isInForce, type PolicySnapshot } from '../policy/load-snapshot.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import type { AskedService } from './judge-pair.js'
import type { HeldRule } from './place-rules.js'
import { ambiguousAddress, nameOf, type AskedEnd } from './resolve-end.js'

/**
 * One side of a suggested rule: the workloads with all the given labels, all workloads in the scope, one workload, or
 * an IP list.
 */
export type SuggestedEnd =
  | { kind: 'labels'; labels: readonly Label[] }
  | { kind: 'ams' }
  | { kind: 'workload'; href: string; name: string }
  /** `isNew` is true if the IP list does not exist yet. */
  | { kind: 'ip_list'; href: string; name: string; list: IpList; isNew: boolean }

/**
 * The service of a suggested rule: an existing service object, or a bare port, or, if neither is possible, a new
 * service object.
 */
export type SuggestedService =
  | { kind: 'service'; href: string; name: string; isShared: boolean }
  | { kind: 'port'; port: number; proto: number }
  | { kind: 'new_service'; name: string; proto: number }

/**
 * A suggested rule for a flow, and its rule set. It is the narrowest rule that stays valid if the address of a host
 * changes.
 */
export interface SuggestedRule {
  /**
   * The app and env labels that form the scope of the rule set. They are those of the destination or, if the
   * destination is not a workload, of the source. Empty if there are none.
   */
  scope: readonly Label[]
  /** The existing rule set for the rule; null if a new one with this scope is needed. */
  ruleSet: RuleSet | null
  /** Number of other rule sets that have exactly this scope. */
  others: number
  /** An unused name for a new rule set. */
  name: string
  consumers: SuggestedEnd
  providers: SuggestedEnd
  service: SuggestedService
  unscoped: boolean
  /** The same rule in the form that is used for matching rules against traffic. */
  held: HeldRule
}

/** The keys of the labels that identify an application. Scopes consist of labels with these keys. */
const SCOPE_KEYS = ['app', 'env']
/**
 * Maximum number of addresses in an existing IP list that may be suggested for one address. A larger list is too broad.
 */
const MOST_ADDRESSES = { ipv4: 2n ** 16n, ipv6: 2n ** 64n }
/** Stands for the href of an IP list that does not exist yet. */
const NEW_LIST = '/orgs/0/sec_policy/draft/ip_lists/new'

/**
 * Chooses the narrowest rule for a flow. Labels are preferred to addresses, and a service object for exactly the flow's
 * port is preferred to a bare port. The rule belongs to the destination's application or, if the destination is not a
 * workload, to that of the source. An existing rule set whose scope is exactly this application is preferred to a new
 * one.
 *
 * @throws {ToolError} ambiguous_name if several workloads have the address of a source or destination; invalid_argument
 * if the source or destination is a Kubernetes workload without labels, because rules name Kubernetes workloads by
 * labels alone (P106).
 */
export async function chooseRule(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  draft: PolicySnapshot,
  index: LabelIndex,
  ends: { source: AskedEnd; destination: AskedEnd },
  service: AskedService,
): Promise<SuggestedRule> {
  for (const end of [ends.source, ends.destination])
    if (end.kind === 'address' && end.bearers.length > 1) throw ambiguousAddress(end.address, end.bearers)
  const every = { policyVersion: 'draft' as const, params: {}, signal }
  const needsLists = [ends.source, ends.destination].some((end) => end.kind === 'address' && end.workload === null)
  const [services, lists] = await Promise.all([
    fetchEvery({ api: pce.services, ...every }),
    needsLists ? fetchEvery({ api: pce.ipLists, ...every }) : { items: [] },
  ])
  const from = describeEnd(ends.source, index, draft, lists.items)
  const to = describeEnd(ends.destination, index, draft, lists.items)
  const owner = to.kind === 'ip_list' ? from : to
  const scope = owner.kind === 'labels' ? owner.labels.filter(({ key }) => SCOPE_KEYS.includes(key)) : []
  const isInScope = (end: SuggestedEnd) =>
    end.kind === 'labels' && scope.every(({ href }) => end.labels.some((label) => label.href === href))
  const within = (end: SuggestedEnd): SuggestedEnd => {
    if (end.kind !== 'labels' || !isInScope(end)) return end
    const rest = end.labels.filter(({ href }) => !scope.some((label) => label.href === href))
    return rest.length > 0 ? { kind: 'labels', labels: rest } : { kind: 'ams' }
  }
  const unscoped = scope.length > 0 && !isInScope(from)
  const [ruleSet = null, ...others] = scope.length === 0 ? [] : findRuleSets(draft.ruleSets, scope)
  const [consumers, providers] = [within(from), within(to)]
  const chosen = chooseService(services.items, service)
  const scopes = ruleSet?.scopes ?? [scope.map((label): ScopeEntry => ({ label }))]
  const rule = {
    consumers: toActors(consumers),
    providers: toActors(providers),
    ingress_services: [{ port: service.port ?? -1, proto: service.proto }],
    unscoped_consumers: unscoped,
  }
  const held: HeldRule = {
    kind: 'allow',
    href: '',
    source: {
      href: '',
      enabled: true,
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
      ...rule,
    },
    rule,
    scopes,
    ruleSet,
    off: null,
  }
  const taken = new Set(draft.ruleSets.map(({ name }) => name))
  const title = scope.length > 0 ? scope.map(({ value }) => value).join(' | ') : `access to ${ends.destination.name}`
  return {
    scope,
    ruleSet,
    others: others.length,
    name: untaken(title, taken),
    consumers,
    providers,
    service: chosen,
    unscoped,
    held,
  }
}

/**
 * Returns the draft policy together with the IP lists of the suggested rule. The draft may lack them, because no rule
 * uses them yet or because they do not exist yet.
 */
export function withListsOf(draft: PolicySnapshot, { consumers, providers }: SuggestedRule): PolicySnapshot {
  const lists = [consumers, providers].flatMap((end) => (end.kind === 'ip_list' ? [end] : []))
  const tests = new Map(lists.map(({ href, list }) => [href, compileIpList(list)]))
  return { ...draft, covers: (href, end) => (tests.get(href) ?? ((one) => draft.covers(href, one)))(end) }
}

function describeEnd(end: AskedEnd, index: LabelIndex, draft: PolicySnapshot, lists: readonly IpList[]): SuggestedEnd {
  if (end.kind === 'labels') return { kind: 'labels', labels: end.labels }
  if (end.kind === 'ip_list') return { kind: 'ip_list', ...namedList(end.list), list: end.list, isNew: false }
  if (end.kind === 'address' && end.workload === null) return chooseList(end.address, draft, lists)
  const workload = end.workload
  if (workload === null) return { kind: 'ams' }
  const labels = (workload.labels ?? []).flatMap(({ href }) => index.get(href) ?? [])
  if (labels.length > 0) return { kind: 'labels', labels: [...labels].sort(byKey) }
  if (isKubernetes(workload)) throw unlabelledPod(workload)
  return { kind: 'workload', href: workload.href, name: nameOf(workload) }
}

function unlabelledPod(workload: Workload): ToolError {
  const text = `The Kubernetes workload ${quote(nameOf(workload))} has no labels, and rules name Kubernetes workloads by labels alone.`
  const hint = 'Its labels come from the profile of its namespace: set them with update-container-workload-profile.'
  return new ToolError('invalid_argument', text, { href: workload.href }, { hint })
}

const byKey = (a: Label, b: Label) => compareTexts(a.key, b.key)
const namedList = ({ href, name }: IpList) => ({ href: toDraftHref(href), name })

/**
 * Chooses the smallest IP list that contains an address. If there is none, or if even the smallest is too broad,
 * suggests a new list with only this address.
 */
function chooseList(address: string, draft: PolicySnapshot, lists: readonly IpList[]): SuggestedEnd {
  const fitting = lists
    .filter((list) => list.update_type !== 'delete' && (list.fqdns ?? []).length === 0 && !draft.isAnyList(list.href))
    .filter((list) => compileIpList(list)({ ip: address, fqdn: null }) === 'yes')
    .map((list) => ({ list, ...sizeOf(list) }))
    .filter(({ ipv4, ipv6 }) => ipv4 <= MOST_ADDRESSES.ipv4 && ipv6 <= MOST_ADDRESSES.ipv6)
    .sort((a, b) => Number(a.ipv6 - b.ipv6) || Number(a.ipv4 - b.ipv4) || compareTexts(a.list.name, b.list.name))
  const [smallest] = fitting
  if (smallest !== undefined) return { kind: 'ip_list', ...namedList(smallest.list), list: smallest.list, isNew: false }
  const name = untaken(address, new Set(lists.map((list) => list.name)))
  const list = { href: NEW_LIST, name, ip_ranges: [{ from_ip: address }] }
  return { kind: 'ip_list', href: NEW_LIST, name, list, isNew: true }
}

/** Counts the addresses in the ranges of a list. Exclusions are not subtracted, so the result is an upper bound. */
function sizeOf({ ip_ranges: ranges }: IpList) {
  const sizes = { ipv4: 0n, ipv6: 0n }
  for (const range of (ranges ?? []).map(readRange))
    if (range !== null && !range.exclusion) sizes[range.family] += range.to - range.from + 1n
  return sizes
}

function untaken(title: string, taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? title : `${title} (${n})`
    if (!taken.has(name)) return name
  }
}

/** Finds the enabled rule sets that have a single scope with exactly these labels, sorted by name. */
function findRuleSets(ruleSets: readonly RuleSet[], scope: readonly Label[]): RuleSet[] {
  const wanted = scope.map(({ href }) => href).sort()
  return ruleSets
    .filter((ruleSet) => {
      const [only, ...more] = ruleSet.scopes
      if (!isInForce(ruleSet) || only === undefined || more.length > 0) return false
      const hrefs = only.map(({ label, exclusion }) => (exclusion === true ? '' : (label?.href ?? '')))
      return JSON.stringify(hrefs.sort()) === JSON.stringify(wanted)
    })
    .sort((a, b) => compareTexts(a.name, b.name))
}

/**
 * Chooses a service object that covers exactly the requested port. If there is none, chooses the bare port, or a new
 * service if a rule cannot contain the port directly.
 */
function chooseService(services: readonly Service[], { port, proto }: AskedService): SuggestedService {
  const isAbsent = (value: number | null | undefined) => value === undefined || value === null || value < 0
  const exact = services
    .filter(({ service_ports: ports, windows_services: windows, update_type: pending }) => {
      const [only, ...more] = ports ?? []
      if (only === undefined || more.length > 0 || (windows ?? []).length > 0 || pending === 'delete') return false
      const isPort =
        port === null ? isAbsent(only.port) : only.port === port && (isAbsent(only.to_port) || only.to_port === port)
      return only.proto === proto && isPort && isAbsent(only.icmp_type) && isAbsent(only.icmp_code)
    })
    .sort((a, b) => compareTexts(a.name, b.name))
  const [first] = exact
  if (first !== undefined) {
    const isShared = services.filter(({ name }) => name === first.name).length > 1
    return { kind: 'service', href: toDraftHref(first.href), name: first.name, isShared }
  }
  if (port !== null && (proto === TCP || proto === UDP)) return { kind: 'port', port, proto }
  return {
    kind: 'new_service',
    name: untaken(portName({ port, proto }), new Set(services.map(({ name }) => name))),
    proto,
  }
}

function toActors(end: SuggestedEnd): Actor[] {
  switch (end.kind) {
    case 'ams':
      return [{ actors: 'ams' }]
    case 'labels':
      return end.labels.map((label) => ({ label: { href: label.href, key: label.key, value: label.value } }))
    case 'workload':
      return [{ workload: { href: end.href } }]
    case 'ip_list':
      return [{ ip_list: { href: end.href } }]
  }
}
