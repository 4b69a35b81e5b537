import { fieldsOf, listOf, readTarget, type Write } from '../scopes/read-write.js'

/** Fields of a workload that affect neither which rules apply to it nor what it enforces. */
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
 * Path segments of requests outside the policy that change nothing for existing workloads. One of them is the action
 * that restores an earlier version into the draft; a support report changes nothing at all.
 */
const AHEAD: ReadonlySet<string> = new Set([
  'labels',
  'label_dimensions',
  'pairing_profiles',
  'restore',
  'support_report_requests',
])

/**
 * Returns true if a request changes immediately what is enforced. That is so for a provisioning, and for a change of
 * workloads, VENs, container workload profiles or bindings of virtual services. It is not so for drafts, and for names
 * and descriptions of workloads. Requests of an unknown type count as immediate.
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
