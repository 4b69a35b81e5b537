import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Call } from '../http/route.js'
import { expandGroup } from '../kinds/expand-group.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { resolveSubset } from '../policy-versions/change-subset.js'
import { Refusal } from '../refusal.js'
import type { World } from '../world.js'
import { principalOfAccount, principalOfUser } from './principals.js'
import { permissionsOf } from './permission.js'

/** What a role adds to reading, which every role may (P72): whether a write is one of its own. */
type Right = (write: Write) => boolean

interface Write {
  call: Call
  /** Of the event it leaves: `rule_set` and `update`. */
  noun: string
  verb: string
  /** Whether all of these labels and groups lie within the permission's scope. */
  isWithin: (labels: ReadonlySet<string>) => boolean
}

/** Who may come in, and with which rights. */
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
const WORKLOADS = new Set(['workload', 'workloads', 'workload_interface', 'pairing_profile', 'ven', 'vens'])
/** What a ruleset provisioner deals with. All other pending objects are global. */
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
 * Refuses a write that no permission of the caller allows: 403 (P30, P72). `event` is that of the write; what leaves none only
 * reads, whatever its verb.
 */
export function requireRight(call: Call, event: string): void {
  const { world, path } = call
  const [noun, verb] = event.split('.') as [string, string]
  // A caller's own session, keys and jobs are nobody else's business.
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

/** Each part of the scope is one of the labels, or a group that is named or has one of them. */
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

/** Every scope of a rule set lies within the permission's; one without scopes is only for who may write anywhere. */
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

/** A rule that reaches beyond its scope: sources of any scope, IP lists, label groups. */
function looksOutside(body: unknown): boolean {
  const text = JSON.stringify(body ?? null)
  return /"unscoped_consumers":true|"ip_list":|"label_group":|"iptables|"ip_tables_rules":\[\{/.test(text)
}

/** What is written now, and what it becomes. An object that does not exist is left to the write itself. */
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

/** The objects of a body: itself, the items of a bulk call, or those that an action lists. */
function itemsOf(body: unknown): { href?: string; labels?: unknown }[] {
  const { workloads, vens } = (body ?? {}) as { workloads?: unknown; vens?: unknown }
  const listed = Array.isArray(body) ? body : (workloads ?? vens ?? [body])
  return (listed as unknown[]).flatMap((item) => (typeof item === 'object' && item !== null ? [item] : []))
}
