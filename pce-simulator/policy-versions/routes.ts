import { type Answer, type Call, type Route, readRoute } from '../http/route.js'
import type { Json } from '../model.js'
import { readMaxResults } from '../kinds/answer-collection.js'
import { referencesOf } from '../kinds/find-usage.js'
import { notFound } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { checkPolicy, listAllowing } from './check-policy.js'
import { DEPENDENCIES, IMPACT, readSubset, resolveSubset } from './change-subset.js'
import { findAffected } from './find-affected.js'
import { describeNeeds, findCommitNeeds, findRevertNeeds } from './find-dependencies.js'
import { restore } from './restore.js'
import { searchRules } from './search-rules.js'
import { describeModified, discardPending, nameOf, provision, revert } from './provision.js'

const BASE = '/orgs/:org/sec_policy'

export const policyVersionRoutes: Route[] = [
  {
    path: BASE,
    verbs: { GET: { handle: listVersions }, POST: { handle: provision, event: 'sec_policy.create' } },
  },
  {
    path: `${BASE}/pending`,
    verbs: { GET: { handle: listPending }, DELETE: { handle: discardPending, event: 'sec_policy_pending.delete' } },
  },
  { path: `${BASE}/delete`, verbs: { PUT: { handle: revert, event: 'sec_policy_pending.delete' } } },
  { path: `${BASE}/impact`, verbs: { POST: { handle: describeImpact } } },
  readRoute(`${BASE}/:pversion`, (call) => ({ status: 200, json: versionAt(call).version })),
  { path: `${BASE}/:pversion/restore`, verbs: { POST: { handle: restore, event: 'sec_policy.restore' } } },
  readRoute(`${BASE}/:pversion/policy_check`, checkPolicy),
  readRoute(`${BASE}/:pversion/allow`, listAllowing),
  { path: `${BASE}/:pversion/rule_search`, verbs: { POST: { handle: searchRules } } },
  { path: `${BASE}/:pversion/dependencies`, verbs: { POST: { handle: listDependencies } } },
  readRoute(`${BASE}/:pversion/modified_objects`, (call) => {
    const { world, params } = call
    const isDraft = params.pversion === 'draft'
    const json = isDraft ? world.policy.pending().map((entry) => describeModified(entry)) : versionAt(call).modified
    return { status: 200, json }
  }),
]

/** Lists the policy versions, newest first. */
function listVersions(call: Call): Answer {
  const versions = call.world.versions.map(({ version }) => version).toReversed()
  return {
    status: 200,
    json: versions.slice(0, readMaxResults(call.query) ?? 500),
    headers: { 'x-total-count': String(versions.length) },
  }
}

/** Finds a policy version by its number. `active` is the latest one, and `draft` is not a version. */
function versionAt({ world, params }: Call): World['versions'][number] {
  const wanted = params.pversion
  const found =
    wanted === 'active'
      ? world.versions.at(-1)
      : world.versions.find(({ version }) => String(version.version) === wanted)
  if (!found) throw notFound()
  return found
}

/**
 * Lists pending changes by type, leaving out types without changes. `max_results` applies to each type separately
 * (P27).
 */
function listPending({ world, query }: Call): Answer {
  const limit = readMaxResults(query) ?? Infinity
  const buckets: Record<string, Json[]> = {}
  for (const entry of world.policy.pending()) {
    const bucket = (buckets[entry.type] ??= [])
    if (bucket.length < limit) bucket.push(describePending(world, entry))
  }
  return { status: 200, json: Object.fromEntries(Object.entries(buckets).filter(([, items]) => items.length > 0)) }
}

function describePending(world: World, { type, draft, updateType }: Entry): Json {
  const used = type === 'rule_sets' ? referencesOf(draft) : new Set<string>()
  const related = (kind: 'ip_lists' | 'services') =>
    world.policy.entries(kind).flatMap((entry) => (used.has(entry.draft.href) ? [{ href: entry.draft.href }] : []))
  return {
    href: draft.href,
    name: nameOf(draft.name),
    update_type: updateType,
    updated_at: draft.updated_at,
    updated_by: draft.updated_by,
    ...(type === 'rule_sets' ? { related_ip_lists: related('ip_lists'), related_services: related('services') } : {}),
    caps: ['write', 'provision'],
  }
}

function listDependencies({ world, body }: Call): Answer {
  const { operation, change_subset } = readSubset(DEPENDENCIES, body, UNCERTAIN.bareHrefListOperation)
  const entries = resolveSubset(world, change_subset)
  const needs = operation === 'commit' ? findCommitNeeds(world, entries) : findRevertNeeds(world, entries)
  return { status: 200, json: describeNeeds(needs) }
}

function describeImpact({ world, body }: Call): Answer {
  const entries = resolveSubset(world, readSubset(IMPACT, body).change_subset)
  const { ruleSets, workloads, virtualServers, containerWorkloads } = findAffected(world, entries)
  const managed = workloads.filter((workload) => workload.managed === true).length
  return {
    status: 200,
    json: {
      num_sets: ruleSets.size,
      num_virtual_servers: virtualServers.size,
      num_managed_workloads: managed,
      num_container_workloads: containerWorkloads.length,
      num_unmanaged_workloads: workloads.length - managed,
      all_workloads_optimization: false,
    },
  }
}
