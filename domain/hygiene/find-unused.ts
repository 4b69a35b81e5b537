import { PceApiError } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { ALL_SERVICES_NAME, ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, IncompleteListError, pickEvery, scanWhole } from '../inventory/fetch-every.js'
import { loadPolicyUsers, type PolicyUsers } from '../inventory/find-uses.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { labelsOf } from './population.js'

/** The types of objects that are checked for use. */
export const USED_KINDS = ['labels', 'label_groups', 'ip_lists', 'services'] as const
export type UsedKind = (typeof USED_KINDS)[number]

/** An object that nothing uses. */
export interface UnusedObject {
  object: Label | LabelGroup | IpList | Service
  /** Names of the label groups that contain the object. These groups are unused themselves. */
  onlyIn: string[]
}

export interface KindUse {
  unused: UnusedObject[]
  total: number
  /** The objects that were not checked, each with the reason. */
  left: { object: UnusedObject['object']; why: 'built in' | 'marked for deletion' }[]
  /** The places that were searched for uses, as phrases. */
  established: string[]
  /** The reason why no object is reported as unused, which is that a place that may contain uses could not be read. */
  notAssessed?: string
}

export interface IdleRules {
  /** Draft rule sets that are disabled or contain no rule. */
  ruleSets: { ruleSet: RuleSet; why: ('empty' | 'disabled')[]; rules: number }[]
  /** Disabled rules in enabled rule sets. */
  rules: { rule: { href: string }; ruleSet: RuleSet }[]
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>

/** All references to objects that were found, as draft hrefs, and the places that could not be read. */
interface Mentions {
  /** Hrefs of objects that are used by something other than a label group. */
  used: Set<string>
  groups: Map<string, { name: string; members: string[] }>
  /** The types of labelled objects that could not be read, each with the reason. */
  unread: Map<string, string>
}

/**
 * For each type of labelled object, the PCE's usage flag. If objects of this type cannot be read, this flag on a label
 * shows whether any of them uses the label.
 */
const FLAG_OF: Record<string, string> = {
  workloads: 'workload',
  'pairing profiles': 'pairing_profile',
  'container profiles': 'container_workload_profile',
}
const POLICY =
  'rule sets, enforcement boundaries, label groups, virtual services and servers, firewall settings (draft and active)'
const USAGE = 'usage flags of the PCE'

/**
 * Finds the objects of the given types that nothing uses. Three things are checked: references in the draft and the
 * active policy; for labels, all objects that have labels; and, if the PCE provides them, its own usage flags
 * (`usage=true`). An object counts as used if any of these shows a use. Throws the errors of the PCE client.
 */
export async function findUnused(
  ctx: Context,
  kinds: ReadonlySet<UsedKind>,
): Promise<{ kinds: Map<UsedKind, KindUse>; idle: IdleRules }> {
  const users = await loadPolicyUsers(ctx.pce, ctx.signal)
  const mentions = await collectMentions(ctx, users, kinds.has('labels'))
  const found = new Map<UsedKind, KindUse>()
  for (const kind of USED_KINDS) if (kinds.has(kind)) found.set(kind, judge(kind, await list(ctx, kind), mentions))
  return { kinds: found, idle: findIdle(users.draft) }
}

async function collectMentions(
  ctx: Context,
  users: Record<'draft' | 'active', PolicyUsers>,
  withLabels: boolean,
): Promise<Mentions> {
  const used = new Set<string>()
  const groups: Mentions['groups'] = new Map()
  for (const { ruleSets, boundaries, others, labelGroups } of [users.draft, users.active]) {
    for (const object of [...ruleSets, ...boundaries, ...others]) collectHrefs(object, used)
    for (const group of labelGroups as LabelGroup[]) {
      const href = toDraftHref(group.href)
      const members = [...(group.labels ?? []), ...(group.sub_groups ?? [])].map((one) => toDraftHref(one.href))
      groups.set(href, {
        name: group.name ?? '',
        members: [...(groups.get(href)?.members ?? []), ...members],
      })
    }
  }
  const unread = withLabels ? await collectBearers(ctx, used) : new Map<string, string>()
  return { used, groups, unread }
}

/**
 * Collects the labels of objects outside the policy, such as workloads, and the labels to which such objects refer,
 * such as pairing profiles.
 */
async function collectBearers({ pce, signal }: Context, used: Set<string>): Promise<Map<string, string>> {
  const unread = new Map<string, string>()
  const scan = (api: 'workloads' | 'kubernetesWorkloads' | 'pairingProfiles' | 'labelMappingRules' | 'permissions') =>
    scanWhole<PceObject>(
      { api: pce[api], params: {}, signal },
      {
        onItems(items) {
          for (const item of items) collectHrefs(withoutOwn(item), used)
        },
      },
    )
  const sources: Record<string, () => Promise<unknown>> = {
    workloads: () => scan('workloads'),
    'Kubernetes workloads': () => scan('kubernetesWorkloads'),
    'pairing profiles': () => scan('pairingProfiles'),
    'container profiles': async () => {
      for (const cluster of await pickEvery({ api: pce.containerClusters, params: {}, signal }, ({ href }) => href)) {
        const { items } = await fetchEvery({ api: pce.containerWorkloadProfiles, parent: cluster, params: {}, signal })
        for (const profile of items) for (const href of labelsOf(profile)) used.add(href)
      }
    },
    'label mapping rules': () => scan('labelMappingRules'),
    'permissions (scopes of roles)': () => scan('permissions'),
    'workload settings': async () => {
      const { items } = await fetchEvery({ api: pce.workloadSettings, params: {}, signal })
      collectHrefs(items, used)
    },
  }
  for (const [name, read] of Object.entries(sources)) {
    try {
      await read()
    } catch (error) {
      if (error instanceof IncompleteListError) {
        unread.set(name, error.message)
        continue
      }
      if (!(error instanceof PceApiError) || error.status === 401 || error.status === 429 || error.status >= 500)
        throw error
      if (error.status !== 404) unread.set(name, error.message)
    }
  }
  return unread
}

const withoutOwn = ({ href: _own, ...rest }: PceObject) => rest

/**
 * Collects all hrefs inside a value as draft hrefs. An object's own href is collected too, which does no harm because
 * objects passed to this function are not of the types that are checked for use.
 */
function collectHrefs(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collectHrefs(item, found)
  else if (typeof value === 'object' && value !== null)
    for (const [field, inner] of Object.entries(value))
      if (field === 'href' && typeof inner === 'string') found.add(toDraftHref(inner))
      else collectHrefs(inner, found)
}

const API = { labels: 'labels', label_groups: 'labelGroups', ip_lists: 'ipLists', services: 'services' } as const
type Listed = (Label | LabelGroup | IpList | Service) & { usage?: Record<string, unknown> }

/** Lists the objects of a type, with usage flags if the PCE has them for this type. */
async function list({ pce, signal }: Context, kind: UsedKind): Promise<Listed[]> {
  const params = kind === 'labels' || kind === 'label_groups' ? { usage: true } : {}
  return (await fetchEvery<Listed>({ api: pce[API[kind]], params, signal })).items
}

function judge(kind: UsedKind, objects: readonly Listed[], { used, groups, unread }: Mentions): KindUse {
  const isLeft = (object: Listed) => isBuiltIn(object) || isGoing(object)
  const looked = objects.filter((object) => !isLeft(object))
  const reached = reach(used, groups)
  const unused = looked.filter((object) => !reached.has(toDraftHref(object.href)) && !isFlagged(object, groups))
  const missing = kind === 'labels' ? missingSources(looked, unread) : []
  const holders = (object: Listed) =>
    [...groups].filter(([, { members }]) => members.includes(toDraftHref(object.href))).map(([, { name }]) => name)
  const hasUsage = looked.length > 0 && looked.every(({ usage }) => usage !== undefined)
  return {
    unused: missing.length > 0 ? [] : unused.map((object) => ({ object, onlyIn: holders(object) })),
    total: objects.length,
    left: objects.filter(isLeft).map((object) => ({
      object,
      why: isBuiltIn(object) ? 'built in' : 'marked for deletion',
    })),
    established: [
      ...(hasUsage && 'usage' in (looked[0] as Listed) ? [USAGE] : []),
      POLICY,
      ...(kind === 'labels'
        ? [
            'workloads, Kubernetes workloads, pairing profiles, container profiles, label mapping rules, scopes of roles, workload settings',
          ]
        : []),
    ],
    ...(missing.length > 0 && { notAssessed: missing.join('; ') }),
  }
}

/** Returns the objects in use, including the members of label groups that are in use. */
function reach(used: ReadonlySet<string>, groups: Mentions['groups']): Set<string> {
  const reached = new Set(used)
  for (let before = -1; before < reached.size;) {
    before = reached.size
    for (const [href, { members }] of groups) if (reached.has(href)) for (const one of members) reached.add(one)
  }
  return reached
}

/**
 * Returns true if the PCE flags the object as used. The flag `label_group` is ignored if the label group was read,
 * because that group may itself be unused.
 */
function isFlagged({ usage, href }: Listed, groups: Mentions['groups']): boolean {
  const isHeld = [...groups.values()].some(({ members }) => members.includes(toDraftHref(href)))
  return Object.entries(usage ?? {}).some(([flag, is]) => is === true && !(flag === 'label_group' && isHeld))
}

/** Returns the places that could not be read and whose use of labels no usage flag shows either. */
function missingSources(objects: readonly Listed[], unread: ReadonlyMap<string, string>): string[] {
  const tells = (flag: string | undefined) =>
    flag !== undefined && objects.every(({ usage }) => typeof usage?.[flag] === 'boolean')
  return [...unread].filter(([name]) => !tells(FLAG_OF[name])).map(([name, why]) => `${name} could not be read: ${why}`)
}

const BUILT_IN: readonly unknown[] = [...ANY_IP_LIST_NAMES, ALL_SERVICES_NAME]
const isBuiltIn = (object: Listed) => 'name' in object && BUILT_IN.includes(object.name)

const isGoing = (object: Listed) =>
  ('update_type' in object && object.update_type === 'delete') || ('deleted' in object && object.deleted === true)

function findIdle({ ruleSets }: PolicyUsers): IdleRules {
  const idle: IdleRules = { ruleSets: [], rules: [] }
  for (const ruleSet of ruleSets) {
    if (ruleSet.update_type === 'delete') continue
    const rules = [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].filter(isStaying)
    const isEmpty = rules.length === 0 && (ruleSet.ip_tables_rules ?? []).filter(isStaying).length === 0
    const why = [...(isEmpty ? ['empty' as const] : []), ...(ruleSet.enabled === false ? ['disabled' as const] : [])]
    if (why.length > 0) idle.ruleSets.push({ ruleSet, why, rules: rules.length })
    if (ruleSet.enabled !== false)
      for (const rule of rules) if (rule.enabled === false) idle.rules.push({ rule, ruleSet })
  }
  return idle
}

const isStaying = ({ update_type: updateType }: { update_type?: string | null }) => updateType !== 'delete'
