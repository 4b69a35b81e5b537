import {
  PceApiError,
  PceError,
  type CollectionOptions,
  type ObjectApi,
  type PceClient,
  type PceResponse,
  type ReferenceLike,
  type RequestOptions,
  type ScanOptions,
  type StreamTrafficOptions,
  type TrafficQuery,
  type TypedPendingChange,
} from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { ToolError } from '../../schemas/errors.js'
import type { FoundRule, PolicyCheck, RuleSearchQuery } from '../../schemas/pce/policy.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { ServiceBinding, VirtualService } from '../../schemas/pce/virtual-service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { refuseReading } from '../../schemas/refuse-reading.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import { IncompleteListError } from '../inventory/fetch-every.js'
import { limitReading } from '../inventory/limited-reading.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { fieldsOf, hrefsIn, readTarget } from './read-write.js'
import { sayScopes } from './say-scopes.js'
import { openSight, type Extent, type Sight } from './sight.js'

type Attribute = keyof PceClient
type Keep<T> = (found: readonly T[], isByText: boolean) => Promise<T[]>

/**
 * The types of objects that everybody may read, either because they belong to no scope or because they describe the PCE
 * itself.
 */
const SHARED: ReadonlySet<string> = new Set<Attribute>([
  'labels',
  'labelGroups',
  'labelDimensions',
  'ipLists',
  'services',
  'pairingProfiles',
  'firewallSettings',
  'workloadSettings',
  'orgSettings',
  'eventSettings',
  'users',
  'securityPrincipals',
  'serviceAccounts',
  'coreServiceTypes',
  'optionalFeatures',
  'vulnerabilityReports',
  'syslogDestinations',
])

/**
 * The operations that need no limit here: they return no objects, or only change something, which is judged elsewhere
 * (D278).
 */
const PASSED: ReadonlySet<string> = new Set<Attribute>([
  'orgId',
  'origin',
  'baseUrl',
  'includeOrg',
  'isUserName',
  'mustConnect',
  'checkConnection',
  'getProductVersion',
  'getNodeAvailable',
  'getSuperclusterLeader',
  'getVenSoftwareReleases',
  'getTrafficFlowDbMetrics',
  'getUserApiKeys',
  'analyzePolicyImpact',
  'post',
  'put',
  'delete',
  'createWorkloadInterface',
  'unpairVens',
  'upgradeVens',
  'provisionPolicyChanges',
  'generatePairingKey',
  'bulkDeletePolicyObjects',
])

/** Paths, relative to the organisation, of objects that everybody may read because they belong to no scope. */
const SHARED_PATHS: ReadonlySet<string> = new Set([
  'health',
  'settings',
  'users',
  'labels',
  'label_groups',
  'label_dimensions',
  'ip_lists',
  'services',
  'pairing_profiles',
  'firewall_settings',
  'service_accounts',
  'auth_security_principals',
  'security_principals',
])

/** Filters that compare names and other texts of an object. */
const BY_TEXT = [
  'name',
  'hostname',
  'description',
  'external_data_set',
  'external_data_reference',
  'distinguished_name',
]
const isByText = ({ params = {} }: RequestOptions = {}) => BY_TEXT.some((name) => params[name] !== undefined)

/**
 * Returns a client for a caller with limited reading. It returns only objects inside of the caller's scopes, answers
 * for all others as if they did not exist, and drops traffic of which neither end is inside. Any operation for which
 * this file defines no limit throws `out_of_scope`, so that a new operation shows nothing by mistake.
 *
 * With `judged`, lists also contain workloads and virtual services outside, but without their names, and all rules that
 * may decide about a flow with an end inside. Otherwise verdicts would be based on a part of the policy and be wrong.
 */
export function limitClient(
  pce: PceClient,
  scopes: CallerScopes,
  extent: Extent,
  signalOf: () => AbortSignal,
): PceClient {
  let opening: Promise<Sight> | undefined
  const sight = () => (opening ??= openSight(pce, scopes, signalOf()))
  const hasLabels: Keep<{ labels?: unknown }> = async (found) => {
    const { holds } = await sight()
    return found.filter(({ labels }) => holds(labels))
  }
  /**
   * Removes objects outside or, where rules are judged, only their names. A search by name always removes them, so that
   * it does not reveal their names.
   */
  const orBare =
    <T extends { labels?: unknown }>(bare: (object: T) => T): Keep<T> =>
    async (found, byText) => {
      const { holds } = await sight()
      const isDropped = extent === 'shown' || byText
      return found.flatMap((one) => (holds(one.labels) ? [one] : isDropped ? [] : [bare(one)]))
    }
  const ruleSets: Keep<RuleSet> = async (found) => (await sight()).ruleSets(found, extent)
  const boundaries: Keep<EnforcementBoundary> = async (found) => (await sight()).rules(found, null, extent)
  const limited: Record<string, unknown> = {
    workloads: limitApi(pce.workloads, orBare(withoutIdentity)),
    virtualServices: limitApi(pce.virtualServices, orBare(withoutName)),
    virtualServers: limitApi(pce.virtualServers, hasLabels as Keep<object>),
    kubernetesWorkloads: limitApi(pce.kubernetesWorkloads, hasLabels as Keep<object>),
    // The nodes of a cluster have no labels and so belong to no scope. They are left out.
    containerClusters: limitApi(pce.containerClusters, (found) =>
      Promise.resolve(found.map((cluster) => ({ ...cluster, nodes: [] }))),
    ),
    events: unreadable(),
    vens: limitApi(pce.vens, async (found) => {
      const { holds } = await sight()
      return found.filter(({ labels, workloads }) =>
        [{ labels }, ...(workloads ?? [])].some((one) => holds(one.labels)),
      )
    }),
    containerWorkloadProfiles: limitApi(pce.containerWorkloadProfiles, async (found) => {
      const { mayHold } = await sight()
      return found.filter(({ labels, assign_labels: assigned }) =>
        mayHold([
          ...hrefsIn(assigned).map((href) => [href]),
          ...(labels ?? []).map((one) =>
            'assignment' in one ? [one.assignment.href] : (one.restriction ?? []).map(({ href }) => href),
          ),
        ]),
      )
    }),
    serviceBindings: limitApi(pce.serviceBindings, (found) => Promise.resolve(found.map(withoutEndNames))),
    ruleSets: limitApi(pce.ruleSets, ruleSets),
    rules: limitInner(pce.rules),
    denyRules: limitInner(pce.denyRules),
    enforcementBoundaries: limitApi(pce.enforcementBoundaries, boundaries),
    getPendingPolicyChanges: async (options?: RequestOptions) =>
      keepPending(await pce.getPendingPolicyChanges(options)),
    getPolicyDependencies: async (...args: Parameters<PceClient['getPolicyDependencies']>) => {
      const found = await pce.getPolicyDependencies(...args)
      return JSON.parse(
        JSON.stringify(found, (name, value: unknown) => (name === 'name' ? undefined : value)),
      ) as unknown
    },
    searchRules: async (query: RuleSearchQuery, version?: PolicyVersionSelector, options?: RequestOptions) =>
      keepFound(await pce.searchRules(query, version, options)),
    checkPolicy: async (version?: PolicyVersionSelector, options?: RequestOptions): Promise<PolicyCheck> => {
      const found = await pce.checkPolicy(version, options)
      return {
        sec_rules: await keepFound(found.sec_rules),
        deny_rules: await keepFound(found.deny_rules),
        override_deny_rules: await keepFound(found.override_deny_rules),
      }
    },
    streamTrafficFlows,
    get,
    getInParts: async (endpoint: string, options: Parameters<PceClient['getInParts']>[1]) => {
      if (!(await mayRead(endpoint))) throw absent(endpoint)
      return pce.getInParts(endpoint, options)
    },
  }

  /**
   * Passes on the flows with an end inside and counts the others. The count is needed to recognise an answer that
   * reached its row limit.
   */
  async function streamTrafficFlows(name: string, query: TrafficQuery, options: StreamTrafficOptions) {
    const { seesFlow } = await sight()
    let hidden = 0
    const outcome = await pce.streamTrafficFlows(name, query, {
      ...options,
      async onFlows(flows: TrafficFlow[]) {
        const seen = flows.filter(seesFlow)
        hidden += flows.length - seen.length
        await options.onFlows(seen)
      },
      ...(options.onProgress && {
        onProgress: ({ phase, status, elapsedMs, flows }) =>
          options.onProgress!({ phase, status, elapsedMs, flows: Math.max(0, flows - hidden) }),
      }),
    })
    return { ...outcome, flows: outcome.flows - hidden, matchesCount: null, hidden }
  }

  async function get(endpoint: string, options?: RequestOptions): Promise<PceResponse> {
    const { kind, id, inner } = readTarget(endpoint, pce.orgId)
    // The commit message of a version may mention objects outside.
    if (kind === 'sec_policy' && inner === undefined)
      return withJson(await pce.get(endpoint, options), (answer) =>
        Array.isArray(answer)
          ? answer.map((version: object) => ({ ...version, commit_message: null }))
          : { ...fieldsOf(answer), commit_message: null },
      )
    if (SHARED_PATHS.has(kind) && inner === undefined) return pce.get(endpoint, options)
    const api = BY_PATH[kind]
    if (api === undefined || id === undefined || inner !== undefined) {
      if (await mayRead(endpoint)) return pce.get(endpoint, options)
      throw notLimited(`GET ${kind}`)
    }
    const object = await (limited[api] as ObjectApi<object>).getByReference(endpoint, options)
    return withJson(await pce.get(endpoint, options), () => object)
  }

  /**
   * Returns true if the caller may read the object at this path, or the object that contains it. Throws if its type is
   * unknown.
   */
  async function mayRead(endpoint: string): Promise<boolean> {
    const { kind, href, inner, rest } = readTarget(endpoint, pce.orgId)
    if (SHARED_PATHS.has(kind)) return true
    const api = BY_PATH[kind]
    if (api === undefined || href === undefined || rest.length > 0 || (inner !== undefined && kind !== 'rule_sets'))
      throw notLimited(`GET ${kind}`)
    if (inner !== undefined)
      return (await keepFound([{ href: `${href}/${inner.kind}/${inner.id ?? ''}`, rule_set: { href } }])).length > 0
    return (limited[api] as ObjectApi<object>).getByReference(href, { signal: signalOf() }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof PceApiError && error.status === 404) return false
        throw error
      },
    )
  }

  /**
   * Keeps the changes of objects that the caller may see in the draft or in the active policy, and of objects without a
   * scope.
   */
  async function keepPending(changes: readonly TypedPendingChange[]): Promise<TypedPendingChange[]> {
    const kept: TypedPendingChange[] = []
    for (const change of changes) {
      const api = POLICY_BY_PATH[readTarget(change.href, pce.orgId).kind]
      if (api === undefined || (await isSeen(api, change.href))) kept.push(change)
    }
    return kept
  }

  /**
   * Returns true if the caller may see the object in the draft or in the active policy. Objects that are used only to
   * judge rules do not count.
   */
  async function isSeen(api: PolicyAttribute, href: string): Promise<boolean> {
    for (const version of [toDraftHref(href), toActiveHref(href)]) {
      try {
        const found: object = await pce[api].getByReference(version, { signal: signalOf() })
        const { holds, ruleSets: keepSets, rules } = await sight()
        const isShown =
          api === 'ruleSets'
            ? (await keepSets([found as RuleSet], 'shown')).length > 0
            : api === 'enforcementBoundaries'
              ? (await rules([found], null, 'shown')).length > 0
              : holds((found as { labels?: unknown }).labels)
        if (isShown) return true
      } catch (error) {
        if (!(error instanceof PceApiError) || error.status !== 404) throw error
      }
    }
    return false
  }

  const ruleSetsByHref = new Map<string, Promise<RuleSet | null>>()
  /** Returns the visible part of a rule set; null if there is none. Each rule set is read only once. */
  function seenRuleSet(href: string): Promise<RuleSet | null> {
    const known = ruleSetsByHref.get(href)
    if (known !== undefined) return known
    const reading = pce.ruleSets.getByReference(href, { signal: signalOf() }).then(
      async (found) => (await ruleSets([found], false))[0] ?? null,
      (error: unknown) => {
        if (error instanceof PceApiError && error.status === 404) return null
        throw error
      },
    )
    ruleSetsByHref.set(href, reading)
    return reading
  }

  /** Keeps the visible ones of the rules that an operation of the PCE returned, with or without their rule sets. */
  async function keepFound<T extends Pick<FoundRule, 'href'>>(rules: readonly T[]): Promise<T[]> {
    const kept: T[] = []
    for (const rule of rules) {
      const { href = '' } = rule
      const owner = /^(.*\/rule_sets\/[^/]+)\/[a-z_]+\/[^/]+$/.exec(href)?.[1]
      const ruleSet = owner === undefined ? null : await seenRuleSet(owner)
      if (ruleSet === null) continue
      const rows = ruleSet.scopes.length === 0 ? [[]] : ruleSet.scopes
      const isWhole = 'providers' in rule || 'consumers' in rule || 'actors' in rule
      const own = [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? []), ...(ruleSet.ip_tables_rules ?? [])]
      if (isWhole) kept.push(...(await (await sight()).rules([rule], rows, extent)))
      else if (ruleSet.deny_rules === undefined || own.some((one) => one.href === href)) kept.push(rule)
    }
    return kept
  }

  /** Limits an API of rules. A rule is visible if its rule set is visible and one of its ends may be inside. */
  function limitInner<T extends { href: string }>(api: ObjectApi<T>): ObjectApi<T> {
    return limitApi(api, (found) => keepFound(found))
  }

  const proxy = new Proxy(pce, {
    get(target, name) {
      if (typeof name === 'symbol' || name === 'then' || name === 'toJSON') return Reflect.get(target, name) as unknown
      if (Object.hasOwn(limited, name)) return limited[name]
      if (SHARED.has(name) || PASSED.has(name)) return Reflect.get(target, name) as unknown
      throw notLimited(name)
    },
  })
  // Only verdicts need this mark, because a mere list of objects inside is correct whatever the caller asks.
  if (extent === 'judged')
    limitReading(proxy, {
      holds: async (labels) => (await sight()).holds(labels.map((href) => ({ href }))),
      scopes: sayScopes(scopes),
    })
  return proxy

  function notLimited(what: string): ToolError {
    return refuseReading(
      `This needs ${what}, which cannot be limited to your scopes, and you read only inside of them.`,
      sayScopes(scopes),
    )
  }
}

/**
 * Returns an API whose every reading fails. It replaces the API of events, which may be about any object. Judgements
 * that need events then report that they could not be read.
 */
const unreadable = (): object =>
  new Proxy(
    {},
    {
      get: (_target, name) =>
        typeof name === 'symbol' || name === 'then'
          ? undefined
          : () =>
              Promise.reject(
                new PceError('unsupported', 'events are not shown to a caller who reads only inside of scopes'),
              ),
    },
  )

/** The client's APIs for policy objects with a scope, by the path segment of the type. */
type PolicyAttribute = 'ruleSets' | 'virtualServices' | 'virtualServers' | 'enforcementBoundaries'
const POLICY_BY_PATH: Readonly<Record<string, PolicyAttribute>> = {
  rule_sets: 'ruleSets',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
  enforcement_boundaries: 'enforcementBoundaries',
}
/** The client's APIs for all objects with a scope, by the path segment of the type. */
const BY_PATH: Readonly<Record<string, PolicyAttribute | 'workloads' | 'vens'>> = {
  ...POLICY_BY_PATH,
  workloads: 'workloads',
  vens: 'vens',
}

/** The error that the PCE would return for an object that does not exist. */
const absent = (path: string) =>
  new PceApiError(`GET ${path}: the PCE answered 404 not_found_error`, { status: 404, method: 'GET', path })

/**
 * Returns an API whose results and totals contain only the objects that `keep` keeps. Lists are always read whole,
 * because the PCE cannot tell how many of their objects are inside.
 */
function limitApi<T extends object>(api: ObjectApi<T>, keep: Keep<T>): ObjectApi<T> {
  async function list(
    version: PolicyVersionSelector | undefined,
    parent: ReferenceLike | null | undefined,
    options: CollectionOptions = {},
  ): Promise<T[]> {
    const { max_results: most, ...params } = options.params ?? {}
    let kept: T[] = []
    const read = await api.scan(version, parent, {
      ...options,
      params,
      isHeld: true,
      onBegin: () => (kept = []),
      async onItems(items) {
        for (const item of await keep(items, isByText(options))) kept.push(item)
      },
    })
    if (!read.isWhole) throw new IncompleteListError({ ...read, items: kept.length, matchCount: null })
    return typeof most === 'number' ? kept.slice(0, most) : kept
  }
  const own: Partial<ObjectApi<T>> = {
    async getByReference(reference, options) {
      const found = await api.getByReference(reference, options)
      const [kept] = await keep([found], false)
      if (kept === undefined) throw absent(typeof reference === 'string' ? reference : String(reference.href))
      return kept
    },
    async getByName(name, version, options) {
      const found = await api.getByName(name, version, options)
      return found === null ? null : ((await keep([found], true))[0] ?? null)
    },
    get: list,
    getAll: list,
    getAsync: list,
    async getPage(version, parent, options) {
      const all = await list(version, parent, { ...options, params: { ...options?.params, max_results: undefined } })
      const most = options?.params?.max_results
      return { items: typeof most === 'number' ? all.slice(0, most) : all, totalCount: all.length }
    },
    async scan(version, parent, { most = Infinity, onBegin, onItems, ...options }: ScanOptions<T>) {
      let passed = 0
      let seen = 0
      const read = await api.scan(version, parent, {
        ...options,
        onBegin() {
          passed = 0
          seen = 0
          onBegin?.()
        },
        async onItems(items) {
          const kept = await keep(items, isByText(options))
          seen += kept.length
          const fresh = kept.slice(0, Math.max(0, most - passed))
          passed += fresh.length
          if (fresh.length > 0) await onItems(fresh)
        },
      })
      const count = read.isWhole ? seen : null
      return { items: passed, isWhole: read.isWhole && seen <= most, totalCount: count, matchCount: count }
    },
  }
  return new Proxy(api, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return own[name as keyof typeof own]
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/**
 * Returns only the fields of a workload that are needed to judge rules, without its names and without the software that
 * it runs.
 */
const withoutIdentity = (workload: Workload): Workload => ({
  href: workload.href,
  name: null,
  hostname: null,
  managed: workload.managed,
  deleted: workload.deleted,
  public_ip: workload.public_ip,
  interfaces: workload.interfaces,
  ignored_interface_names: workload.ignored_interface_names,
  labels: workload.labels,
  online: workload.online,
  enforcement_mode: workload.enforcement_mode,
  visibility_level: workload.visibility_level,
  selectively_enforced_services: workload.selectively_enforced_services,
  containers_inherit_host_policy: workload.containers_inherit_host_policy,
  blocked_connection_action: workload.blocked_connection_action,
  firewall_coexistence: workload.firewall_coexistence,
  os_id: workload.os_id,
  ...(workload.ven && { ven: { href: workload.ven.href, status: workload.ven.status } }),
})

const withoutName = (service: VirtualService): VirtualService => ({
  ...service,
  name: 'outside of your scopes',
  description: null,
  external_data_set: null,
  external_data_reference: null,
})

const withoutEndNames = (binding: ServiceBinding): ServiceBinding => ({
  ...binding,
  bound_service: { href: binding.bound_service.href },
  ...(binding.workload && { workload: { href: binding.workload.href } }),
})

const withJson = (answer: PceResponse, change: (value: unknown) => unknown): PceResponse => ({
  ...answer,
  text: '',
  json: <T>() => change(answer.json()) as T,
})
