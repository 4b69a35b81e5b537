import type { PceObject } from '../../schemas/pce/reference.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { describeChanges } from '../kinds/describe-changes.js'
import { invalidUri } from '../refusal.js'
import { orgPath, updateStamp, type World } from '../world.js'
import { BORN_RELEASE } from './ven-release.js'

/**
 * The fields that are stored for a VEN itself. All other fields, including name and status, are derived from its
 * workload.
 */
export interface VenState extends PceObject {
  description?: string | null
  target_pce_fqdn?: string | null
  golden_image?: boolean
  upgrade?: { release: string; expiresAt: number }
  /** The time at which the VEN's recovery ends, in milliseconds since the epoch. */
  recoveryUntil?: number
}

interface OwnVen {
  href: string
  name?: string | null
  status?: string
  ven_type?: string
}

interface Agent {
  active_pce_fqdn?: string | null
  target_pce_fqdn?: string | null
  secure_connect?: unknown
  config?: Json
  status?: Json
}

/** Lists the managed workloads. Each has exactly one VEN, so this is also the list of VENs. */
export function pairedWorkloads(world: World): PceObject[] {
  return world.workloads.all().filter((workload) => workload.deleted !== true && ownVen(workload) !== undefined)
}

/** Finds the workload of a VEN that is still paired. The VEN and its workload have the same uuid (P24). */
export function findPaired(world: World, venHref: string): PceObject | undefined {
  const workload = world.workloads.get(venHref.replace('/vens/', '/workloads/'))
  return workload && workload.deleted !== true && ownVen(workload)?.href === venHref ? workload : undefined
}

export function ownVen(workload: PceObject): OwnVen | undefined {
  return (workload.managed === true && (workload.ven as OwnVen | null)) || undefined
}

export function agentOf(workload: PceObject): Agent {
  return workload.agent ?? {}
}

export function venState(world: World, workload: PceObject): VenState | undefined {
  return world.store('vens').get(ownVen(workload)!.href)
}

/**
 * Checks that the hrefs are hrefs of VENs in this organisation, whether or not these VENs exist. Throws 406
 * invalid_uri.
 */
export function requireVenHrefs(world: World, references: readonly { href: string }[]): string[] {
  const prefix = orgPath(world, '/vens/')
  return references.map(({ href }) => {
    if (!href.startsWith(prefix) || !/^[\w-]+$/.test(href.slice(prefix.length))) throw invalidUri(href)
    return href
  })
}

export function versionOf(workload: PceObject): string {
  return (agentOf(workload).status?.agent_version as string | undefined) ?? BORN_RELEASE
}

export function heartbeatOf(workload: PceObject): string | null {
  return (agentOf(workload).status?.last_heartbeat_on as string | undefined) ?? null
}

/** Returns the upgrade that was requested for a VEN, unless the request has expired. */
export function pendingUpgrade(world: World, workload: PceObject): VenState['upgrade'] {
  const upgrade = venState(world, workload)?.upgrade
  return upgrade && upgrade.expiresAt > world.clock() ? upgrade : undefined
}

export function inRecovery(world: World, workload: PceObject): boolean {
  return (venState(world, workload)?.recoveryUntil ?? 0) > world.clock()
}

/** Changes the stored fields of the VEN itself. */
export function changeVen(world: World, workload: PceObject, fields: Partial<VenState>): Change {
  const { href, name } = ownVen(workload)!
  const current = venState(world, workload) ?? { href }
  world.store('vens').set({ ...current, ...fields, ...updateStamp(world) })
  const resource = { ven: { href, name: name ?? null, hostname: workload.hostname } }
  return { resource, type: 'update', changes: describeChanges(current, fields) }
}
