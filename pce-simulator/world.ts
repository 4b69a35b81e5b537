import type { PolicyVersion } from '../schemas/pce/policy.js'
import type { ChangeSubsetType } from '../schemas/pce/words.js'
import type { PceObject } from '../schemas/pce/reference.js'
import type { Json, Conversation } from './model.js'
import type { PceSimulatorOptions, RoleKey } from './options.js'
import type { TrafficRows } from './policy/run-traffic-query.js'
import type { Progress } from './status/progress.js'
import type { EventLog } from './store/event-log.js'
import type { Ids } from './store/ids.js'
import type { PlainStore } from './store/plain-store.js'
import type { PolicyStore, Snapshot } from './store/policy-store.js'
import type { TrafficQuery } from './traffic/traffic-query.js'

export const PCE_FQDN = 'pce.example.com'

/** A policy version that a provisioning has created, with its changes. */
export interface ProvisionedVersion {
  version: PolicyVersion
  modified: { update_type: string; object_type: ChangeSubsetType; href: string; name: string; updated_at: string }[]
  snapshot: Snapshot
}

/** An asynchronous job that reads a collection. Its rows are determined when it starts (P10). */
export interface Job {
  href: string
  description: string
  requestedAt: string
  terminatedAt: string | null
  progress: Progress
  resultHref: string
  rows: Iterable<unknown>
}

/** The whole state of a PCE. Handlers read and modify it, and keep no other state. */
export interface World {
  options: Required<
    Pick<
      PceSimulatorOptions,
      | 'pollsUntilDone'
      | 'retryAfter'
      | 'totalCount'
      | 'nodeAvailable'
      | 'trafficRows'
      | 'addUpBeforeCutting'
      | 'reality'
    >
  > &
    Pick<PceSimulatorOptions, 'tls' | 'rateLimit' | 'supercluster'>
  orgId: number
  credentials: { key: string; secret: string }
  /** The API keys of the additional users in the options. */
  keys: RoleKey[]
  /** The user name and password with which the first user logs in. */
  login: { username: string; password: string }
  /** The caller of the current request: a user, or a service account (by its name). */
  user: { href: string; username: string }
  ids: Ids
  /** The current time in milliseconds since the epoch. */
  clock(): number
  /** The current time as RFC 3339 in UTC with milliseconds. */
  now(): string
  labels: PlainStore
  workloads: PlainStore
  labelDimensions: PlainStore
  pairingProfiles: PlainStore
  /** Finds the store of a kind without versions, by the last segment of its path. */
  store(segment: string): PlainStore
  /**
   * The fields of the kinds that consist of a single object, by the kind's `noun`. The map has no entry for a kind
   * before its first write.
   */
  singles: Map<string, Json>
  policy: PolicyStore
  /** The policy versions, oldest first. There is always at least one. */
  versions: ProvisionedVersion[]
  events: EventLog
  jobs: Map<string, Job>
  queries: Map<string, TrafficQuery>
  /**
   * The latest computed rows of a query. They are kept because a download usually follows the poll that completed the
   * query.
   */
  lastResult: { run: TrafficQuery; withDraft: boolean; result: TrafficRows } | null
  conversations: Iterable<Conversation>
}

/** Returns the `created_…` and `updated_…` fields of a new object. */
export function birthStamp(world: World): Pick<PceObject, 'created_at' | 'updated_at' | 'created_by' | 'updated_by'> {
  const now = world.now()
  const by = { href: world.user.href }
  return { created_at: now, updated_at: now, created_by: by, updated_by: by }
}

export function updateStamp(world: World): Pick<PceObject, 'updated_at' | 'updated_by'> {
  return { updated_at: world.now(), updated_by: { href: world.user.href } }
}

export function orgPath(world: World, path: string): string {
  return `/orgs/${world.orgId}${path}`
}

export function draftPath(world: World, path: string): string {
  return `/orgs/${world.orgId}/sec_policy/draft${path}`
}
