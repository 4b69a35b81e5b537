import type { PceObject, Reference } from './reference.js'

/** The object types of a change subset: what can be provisioned, spelled as the path segment of their hrefs. */
export const CHANGE_SUBSET_TYPES = [
  'label_groups',
  'services',
  'rule_sets',
  'ip_lists',
  'virtual_services',
  'firewall_settings',
  'secure_connect_gateways',
  'virtual_servers',
  'enforcement_boundaries',
] as const
export type ChangeSubsetType = (typeof CHANGE_SUBSET_TYPES)[number]

/** Draft hrefs by type; other keys are refused by the PCE. */
export type ChangeSubset = Partial<Record<ChangeSubsetType, Reference[]>>

export interface PendingChange {
  href: string
  name?: string
  update_type?: 'create' | 'update' | 'delete'
  updated_at?: string
  updated_by?: Reference
  caps?: string[]
}

/** `GET /sec_policy/pending`: an object of buckets. firewall_settings may be one object instead of a list. */
export type PendingChanges = Partial<Record<ChangeSubsetType, PendingChange[] | PendingChange>>

export interface PolicyVersion extends PceObject {
  version: number
  /** May be null or 0 at first: the PCE computes it after the answer. */
  workloads_affected?: number | null
  commit_message?: string | null
  object_counts?: Record<string, number>
}

export interface PolicyDependency {
  dependency: Partial<Record<ChangeSubsetType, Reference>>
  required_by: Partial<Record<ChangeSubsetType, Reference[]>>
}

export interface PolicyImpact {
  num_sets: number
  num_virtual_servers?: number
  num_managed_workloads: number
  num_container_workloads?: number
  num_unmanaged_workloads: number
  all_workloads_optimization?: boolean
}
