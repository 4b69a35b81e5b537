import { fieldsOf, listOf, readTarget, type Write } from '../scopes/read-write.js'

/** Fields of a workload that change neither whom rules name by it nor what it enforces. */
const TELLING: ReadonlySet<string> = new Set([
  'href',
  'name',
  'description',
  'external_data_set',
  'external_data_reference',
  'service_principal_name',
  'data_center',
  'data_center_zone',
  'service_provider',
  'os_id',
  'os_detail',
])
/** The path segments of actions that discard drafts. */
const DISCARDING: ReadonlySet<string> = new Set(['delete', 'pending'])
/**
 * Types of objects outside of the policy that change nothing for the workloads that exist, and the action that makes a
 * draft of an earlier version; a support report changes nothing at all.
 */
const AHEAD: ReadonlySet<string> = new Set([
  'labels',
  'label_dimensions',
  'pairing_profiles',
  'restore',
  'support_report_requests',
])

/**
 * Returns true if the request changes what is enforced as soon as the PCE has it: a provisioning, or a change of
 * workloads, VENs, bindings of virtual services or container workload profiles. Drafts do not, and neither do names and
 * descriptions of workloads. Every request that is not known counts as one that does.
 */
export function takesEffect({ method, path, body }: Write, orgId: string): boolean {
  if (/(?:^|\/)sec_policy\/draft(?:\/|$)/.test(path)) return false
  const { kind, id, inner, rest } = readTarget(path, orgId)
  if (rest.length > 0) return true
  if (kind === 'sec_policy') return id === undefined || !DISCARDING.has(id)
  if (AHEAD.has(kind)) return false
  const isUpdate = kind === 'workloads' && method === 'PUT' && inner === undefined
  if (!isUpdate || id === undefined || id === 'unpair' || id === 'bulk_create' || id === 'bulk_delete') return true
  const rows = id === 'bulk_update' ? listOf(body) : [body]
  return rows.some((row) => Object.keys(fieldsOf(row)).some((field) => !TELLING.has(field)))
}
