import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Call } from '../http/route.js'
import { expandGroup } from '../kinds/expand-group.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { resolveSubset } from '../policy-versions/change-subset.js'
import { Refusal } from '../refusal.js'
import type { World } from '../world.js'
import { principalOfAccount, principalOfUser } from './principals.js'
import { permissionsOf } from './permission.js'

/** Returns true if a role permits a write. Every role may read everything (P72). */
type Right = (write: Write) => boolean

interface Write {
  call: Call
  /**
   * The type of the event that the write causes, in two parts: for `rule_set.update`, they are `rule_set` and `update`.
   */
  noun: string
  verb: string
  /** Returns true if all the given labels and label groups are within the scope of the permission. */
  isWithin: (labels: ReadonlySet<string>) => boolean
}

/** The objects of user management, named as in event types. Only an owner may write them. */
const USER_MANAGEMENT = new Set([
  'access_restriction',
  'api_key',
  'auth_security_principal',
  'authentication_settings',
  'ldap_config',
  'password_policy',
  'permission',
  'saml_config',
  'service_account',
  'user',
])
const RULE_SETS = new Set(['rule_set', 'sec_rule', 'deny_rule'])
const WORKLOADS = new Set([
  'workload',
  'workloads',
  'workload_interface',
  'pairing_profile',
  'ven',
  'vens',
  'support_report_request',
])
/** The types of objects that a global object provisioner must not provision. Objects of all other types are global. */
const SCOPED_TYPES = new Set(['rule_sets', 'virtual_services', 'virtual_servers'])

const RIGHTS: Readonly<Record<string, Right>> = {
  owner: () => true,
  admin: ({ noun }) => !USER_MANAGEMENT.has(noun),
  global_object_provisioner: (write) =>
    isProvisioning(write) && pendingOf(write).every(({ type }) => !SCOPED_TYPES.has(type)),
  ruleset_manager: changesOwnRuleSets,
  limited_ruleset_manager: (write) => changesOwnRuleSets(write) && !looksOutside(write.call.body),
  ruleset_provisioner: (write) =>
    isProvisioning(write) &&
    pendingOf(write).every(({ type, draft }) => type === 'rule_sets' && coversScopes(write, draft.scopes)),
  workload_manager: changesOwnWorkloads,
}

/**
 * Refuses a write with 403 if no permission of the caller allows it (P30, P72). `event` is the event that the write
 * causes; a request without an event only reads, whatever its HTTP method.
 */
export function requireRight(call: Call, event: string): void {
  const { world, path } = call
  const [noun, verb] = event.split('.') as [string, string]
  // Callers may always manage their own session, keys and jobs.
  if (noun === 'job' || path.startsWith(`${world.user.href}/`)) return
  const permissions = permissionsOf(world, principalOf(world))
  const isAllowed = permissions.some(({ role, scope }) => {
    const name = (role as Reference).href.replace(/^.*\//, '')
    return RIGHTS[name]?.({ call, noun, verb, isWithin: (labels) => covers(world, scope, labels) }) ?? false
  })
  if (!isAllowed) throw new Refusal(403, [{ token: 'forbidden_error', message: 'Forbidden' }])
}

function principalOf(world: World): string | undefined {
  const { href } = world.user
  const user = world.store('users').get(href)
  return user ? principalOfUser(world, user)?.href : principalOfAccount(world, href)
}

/**
 * Returns true if the labels satisfy every entry of the scope. If an entry is a label, the labels must contain it; if
 * it is a label group, they must contain the group itself or one of its labels.
 */
function covers(world: World, scope: unknown, labels: ReadonlySet<string>): boolean {
  const lookup = (href: string) => world.policy.get('label_groups', href)?.draft
  return (scope as { label?: Reference; label_group?: Reference }[]).every(({ label, label_group: group }) => {
    if (label) return labels.has(label.href)
    const draft = group!.href.replace('/sec_policy/active/', '/sec_policy/draft/')
    return labels.has(draft) || expandGroup(draft, lookup).some((href) => labels.has(href))
  })
}

const isProvisioning = ({ noun, verb }: Write) => noun === 'sec_policy' && verb === 'create'

function pendingOf({ call: { world, body } }: Write) {
  return resolveSubset(world, (body as { change_subset?: Parameters<typeof resolveSubset>[1] }).change_subset)
}

/**
 * Returns true if every scope of a rule set is within the scope of the permission. A rule set without scopes needs a
 * permission that is not limited.
 */
function coversScopes({ isWithin }: Write, scopes: unknown): boolean {
  const all = Array.isArray(scopes) && scopes.length > 0 ? (scopes as unknown[]) : [[]]
  return all.every((scope) => isWithin(collectHrefs(scope)))
}

function changesOwnRuleSets(write: Write): boolean {
  const { world, path, body } = write.call
  if (!RULE_SETS.has(write.noun)) return false
  const stored = /^.*\/rule_sets\/[^/]+/.exec(path)?.[0]
  const entry = stored === undefined ? undefined : world.policy.get('rule_sets', stored)
  if (entry && !coversScopes(write, entry.draft.scopes)) return false
  const { scopes } = (body ?? {}) as { scopes?: unknown }
  return write.noun !== 'rule_set' || (entry && scopes === undefined) || coversScopes(write, scopes)
}

/**
 * Returns true if the body of a rule reaches beyond the scope of its rule set: it allows consumers outside the scope,
 * refers to an IP list or a label group, or contains custom iptables rules.
 */
function looksOutside(body: unknown): boolean {
  const text = JSON.stringify(body ?? null)
  return /"unscoped_consumers":true|"ip_list":|"label_group":|"iptables|"ip_tables_rules":\[\{/.test(text)
}

/**
 * Returns true if both the current and the new labels of the workloads are within the scope of the permission.
 * Workloads that do not exist are ignored, because the handler of the request reports them.
 */
function changesOwnWorkloads({ call: { world, path, body }, noun, isWithin }: Write): boolean {
  if (!WORKLOADS.has(noun)) return false
  const ofWorkload = (href: string) =>
    world.workloads.get(href.replace('/vens/', '/workloads/').replace(/\/interfaces.*$/, ''))
  const items = itemsOf(body)
  const stored = [path, ...items.map(({ href }) => href ?? '')].flatMap((href): PceObject[] => {
    const found = ofWorkload(href) ?? world.pairingProfiles.get(href.replace(/\/pairing_keys?$/, ''))
    return found ? [found] : []
  })
  const labelled = [
    ...stored,
    ...items.filter(({ labels, href }) => labels !== undefined || (href === undefined && stored.length === 0)),
  ]
  return labelled.every(({ labels }) => isWithin(collectHrefs(labels ?? [])))
}

/**
 * Lists the objects that the body of a request writes: the body itself, the items of a bulk call, or the workloads or
 * VENs that an action lists.
 */
function itemsOf(body: unknown): { href?: string; labels?: unknown }[] {
  const { workloads, vens, ven } = (body ?? {}) as { workloads?: unknown; vens?: unknown; ven?: unknown }
  const listed = Array.isArray(body) ? body : (workloads ?? vens ?? [ven ?? body])
  return (listed as unknown[]).flatMap((item) => (typeof item === 'object' && item !== null ? [item] : []))
}
