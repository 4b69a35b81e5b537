import { MAX_TRAFFIC_ROWS, type ChangeSubsetType } from '../schemas/pce/words.js'
import type { VersionedObject } from '../schemas/pce/reference.js'
import { addUser } from './access/add-user.js'
import { seedAccess } from './access/index.js'
import { BIRTH, allServices, anyIpList, birthOf } from './built-in-objects.js'
import { defaultFirewallSettings } from './kinds/firewall-settings.js'
import { seedInventory } from './inventory/index.js'
import { seedGenericKinds } from './kinds/generic-kinds.js'
import { kindOf } from './kinds/index.js'
import { BUILT_IN_DIMENSIONS } from './kinds/label-dimension.js'
import { DEFAULT_PROFILE } from './kinds/pairing-profile.js'
import { ALLOW_RULES, DENY_RULES, bareReferences, type RuleKind } from './kinds/rule-kind.js'
import type { Estate } from './model.js'
import { DEFAULT_REALITY, REALITIES, type PceSimulatorOptions } from './options.js'
import { addVersion } from './policy-versions/provision.js'
import { EventLog } from './store/event-log.js'
import { Ids } from './store/ids.js'
import { PlainStore } from './store/plain-store.js'
import { PolicyStore } from './store/policy-store.js'
import { PCE_FQDN, orgPath, type World } from './world.js'

/**
 * Creates the state of a PCE immediately after its last provisioning: the objects of the estate, and those that every
 * PCE has from the start.
 */
export function createWorld(estate: Estate, options: PceSimulatorOptions): World {
  const { seed = 1, orgId = 1, pollsUntilDone = 3, retryAfter = 1, totalCount = 'matched', now = Date.now } = options
  const { nodeAvailable = true, supercluster, tls, rateLimit } = options
  const { trafficRows = MAX_TRAFFIC_ROWS, addUpBeforeCutting = false, reality = DEFAULT_REALITY } = options
  if (!REALITIES.includes(reality)) throw new Error(`reality must be one of ${REALITIES.join(', ')}, not "${reality}"`)
  const ids = new Ids(seed)
  const { href, username } = estate.users[0] ?? { href: '/users/1', username: 'admin@example.com' }
  const user = { href, username }
  const stores = new Map<string, PlainStore>()
  const store = (segment: string) => {
    const known = stores.get(segment) ?? new PlainStore()
    stores.set(segment, known)
    return known
  }
  const isoNow = () => new Date(now()).toISOString()
  const world: World = {
    options: {
      pollsUntilDone,
      retryAfter,
      totalCount,
      nodeAvailable,
      supercluster,
      tls,
      rateLimit,
      trafficRows,
      addUpBeforeCutting,
      reality,
    },
    orgId,
    credentials: {
      key: options.key ?? `api_${ids.hex('api-key', 16)}`,
      secret: options.secret ?? ids.hex('api-secret', 64),
    },
    keys: [],
    login: { username, password: options.password ?? ids.hex('password', 32) },
    user,
    ids,
    clock: now,
    now: isoNow,
    labels: store('labels'),
    workloads: store('workloads'),
    labelDimensions: store('label_dimensions'),
    pairingProfiles: store('pairing_profiles'),
    store,
    singles: new Map(),
    policy: new PolicyStore(),
    versions: [],
    events: new EventLog(
      { orgId, pceFqdn: PCE_FQDN, user: () => world.user, ids, now: isoNow, reality },
      estate.events,
    ),
    jobs: new Map(),
    queries: new Map(),
    lastResult: null,
    conversations: estate.conversations,
  }
  loadInventory(world, estate)
  loadPolicy(world, estate)
  seedAccess(world, estate.users)
  seedInventory(world, estate)
  seedGenericKinds(world)
  world.keys = (options.users ?? []).map((given) => addUser(world, given))
  const lastChange = world.policy.entries('rule_sets').reduce((last, { draft }) => maxOf(last, draft.updated_at), BIRTH)
  addVersion(world, 'Initial policy', 0, [], lastChange)
  return world
}

function loadInventory(world: World, estate: Estate): void {
  const stamp = birthOf(world)
  for (const label of estate.labels) {
    world.labels.set(label)
    reserve(world, 'labels', label.href)
  }
  for (const workload of estate.workloads) {
    const labels = (workload.labels ?? []).map(({ href }) => ({ href }))
    world.workloads.set({ deleted: false, ...workload, labels })
  }
  const builtIn = new Set(BUILT_IN_DIMENSIONS.map(({ key }) => key))
  const further = new Set(estate.labels.map(({ key }) => key).filter((key) => !builtIn.has(key)))
  for (const dimension of [...BUILT_IN_DIMENSIONS, ...[...further].map((key) => ({ key, display_name: key }))]) {
    world.labelDimensions.set({
      href: orgPath(world, `/label_dimensions/${world.ids.uuid('label_dimensions')}`),
      display_info: {},
      external_data_set: null,
      external_data_reference: null,
      ...dimension,
      deleted: false,
      deleted_at: null,
      ...stamp,
    })
  }
  const profile = world.ids.int('pairing_profiles')
  world.pairingProfiles.set({ href: orgPath(world, `/pairing_profiles/${profile}`), ...DEFAULT_PROFILE, ...stamp })
}

function loadPolicy(world: World, estate: Estate): void {
  const load = (type: ChangeSubsetType, object: VersionedObject) => {
    world.policy.load(type, kindOf(type).settle?.(object) ?? object)
    reserve(world, type, object.href)
  }
  for (const list of [...missing(estate.ipLists, anyIpList(world)), ...estate.ipLists]) load('ip_lists', list)
  for (const service of [...missing(estate.services, allServices(world)), ...estate.services]) load('services', service)
  for (const ruleSet of estate.ruleSets) {
    const { rules, deny_rules, ...rest } = ruleSet
    // A PCE returns every field of a rule, so the fields that are missing in the estate get their default values.
    const fill = (kind: RuleKind) => (rule: VersionedObject) => {
      const { href, ...fields } = rule
      return { href, ...kind.defaults, ...bareReferences(fields) }
    }
    load('rule_sets', {
      ip_tables_rules: [],
      ...rest,
      ...bareReferences({ scopes: ruleSet.scopes }),
      rules: (rules ?? []).map(fill(ALLOW_RULES)),
      deny_rules: (deny_rules ?? []).map(fill(DENY_RULES)),
    })
    for (const rule of rules ?? []) reserve(world, 'sec_rules', rule.href)
    for (const rule of deny_rules ?? []) reserve(world, 'deny_rules', rule.href)
  }
  load('firewall_settings', defaultFirewallSettings(world, birthOf(world)))
}

/** Reserves the integer id of an object in the estate, so that new objects get higher ids. */
function reserve(world: World, kind: string, href: string): void {
  const id = Number(href.slice(href.lastIndexOf('/') + 1))
  if (Number.isInteger(id)) world.ids.reserve(kind, id)
}

/**
 * Returns a list that contains only the built-in object `builtIn`, or an empty list if `objects` already contains an
 * object with its name. Only hand-made estates may lack built-in objects.
 */
function missing(objects: readonly { name: string }[], builtIn: VersionedObject): VersionedObject[] {
  return objects.some(({ name }) => name === builtIn.name) ? [] : [builtIn]
}

function maxOf(one: string, other: string | undefined): string {
  return other !== undefined && other > one ? other : one
}
