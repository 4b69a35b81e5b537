import type { ActionError, FirewallRestore } from '../../schemas/pce/ven.js'
import type { ImportResult, WorkloadInterface } from '../../schemas/pce/workload.js'
import type { Reference } from '../../schemas/pce/reference.js'
import type { RiskDetails } from '../../schemas/pce/risk.js'
import { actInChunks } from '../bulk.js'
import { PceError } from '../errors.js'
import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { segment, errorsOf, importedBy, madeBy, type Calls } from './create-calls.js'

/** Maximum number of workloads in one request (P48, P49). */
const MOST_UNPAIRED = 1000

/** Operations on workloads in addition to the generic ones (S9, P13). */
export interface WorkloadOperations {
  /** Lists the network interfaces of a workload. */
  getWorkloadInterfaces(workloadHref: ReferenceLike, options?: RequestOptions): Promise<WorkloadInterface[]>
  /** Adds a network interface to an unmanaged workload. */
  createWorkloadInterface(
    workloadHref: ReferenceLike,
    networkInterface: { name: string; link_state: string; [field: string]: unknown },
    options?: RequestOptions,
  ): Promise<WorkloadInterface>
  /** Removes a network interface from an unmanaged workload. */
  deleteWorkloadInterface(workloadHref: ReferenceLike, ifaceName: string, options?: RequestOptions): Promise<void>
  /** Explains what puts a workload at risk. */
  getWorkloadRiskDetails(workloadHref: ReferenceLike, options?: RequestOptions): Promise<RiskDetails>
  /**
   * Unpairs the VENs of workloads; `unpairVens` is the newer operation for this. Returns the errors, or an empty list
   * if there are none. A list of more than 1,000 workloads is split into several requests; the PCE allows 10 a minute.
   * If a later request fails, the error's `completed` lists the workloads of the earlier requests.
   *
   * @throws {PceError} `invalid_href` for anything that is not a workload of this organisation, `invalid_argument` for
   *   an empty list.
   */
  unpairWorkloads(
    workloadHrefs: readonly ReferenceLike[],
    firewallRestore?: FirewallRestore,
    options?: RequestOptions,
  ): Promise<ActionError[]>
  /**
   * Imports workloads from objects whose fields are the columns of the PCE's CSV file, and returns a result for each
   * row. `options.params` may have `create_labels`, `delete_token` and `dry_run`.
   *
   * @throws {PceError} `invalid_argument` for an empty list, and for fields that are not a string, number or boolean.
   */
  bulkImportWorkloads(data: readonly object[], options?: RequestOptions): Promise<ImportResult[]>
}

export function createWorkloadOperations(calls: Calls): WorkloadOperations {
  const pathOf = (reference: ReferenceLike) => calls.href(KINDS.workloads, reference)
  return {
    async getWorkloadInterfaces(workloadHref, options) {
      return calls.list<WorkloadInterface>(`${pathOf(workloadHref)}/interfaces`, options)
    },
    async createWorkloadInterface(workloadHref, networkInterface, options) {
      const answer = await calls.post(`${pathOf(workloadHref)}/interfaces`, networkInterface, options)
      return madeBy<WorkloadInterface>(answer, 'the interface', 'name')
    },
    async deleteWorkloadInterface(workloadHref, ifaceName, options) {
      await calls.delete(`${pathOf(workloadHref)}/interfaces/${segment('iface_name', ifaceName)}`, options)
    },
    async getWorkloadRiskDetails(workloadHref, options) {
      return calls.get<RiskDetails>(`${pathOf(workloadHref)}/risk_details`, options)
    },
    async unpairWorkloads(workloadHrefs, firewallRestore = 'default', options) {
      const path = `${calls.org}/workloads/unpair`
      return actInChunks(
        'unpair',
        calls.hrefs(KINDS.workloads, workloadHrefs),
        MOST_UNPAIRED,
        async (workloads: Reference[]) => {
          // The PCE calls this field `ip_table_restore` in workloads/unpair, but `firewall_restore` in vens/unpair
          // (P44).
          const body = { workloads, ip_table_restore: firewallRestore }
          return errorsOf(await calls.put(path, body, options), 'workloads/unpair')
        },
      )
    },
    async bulkImportWorkloads(data, options = {}) {
      if (data.length === 0) throw new PceError('invalid_argument', 'bulk_import: name at least one workload')
      const headers = { 'content-type': 'text/csv', ...options.headers }
      const file = { ...options, headers, text: formatCsv(data) }
      return importedBy(await calls.put(`${calls.org}/workloads/bulk_import`, {}, file), 'the import')
    },
  }
}

/**
 * Formats objects as CSV (RFC 4180): a header line with every field that occurs in any of them, in order of first
 * appearance, then a line for each object. Missing and null fields are left empty. The function exists because none of
 * this package's dependencies writes CSV.
 *
 * @throws {PceError} `invalid_argument` for a value that is not a string, number or boolean, and if no object has a
 *   field.
 */
function formatCsv(rows: readonly object[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  if (columns.length === 0)
    throw new PceError('invalid_argument', 'nothing to write as CSV: the objects have no fields')
  const lines = rows.map((row) => columns.map((column) => textOf(column, (row as Record<string, unknown>)[column])))
  return [columns, ...lines].map((cells) => `${lineOf(cells)}\r\n`).join('')
}

function textOf(column: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new PceError(
    'invalid_argument',
    `${JSON.stringify(column)} is not a string, number or boolean, which is all that CSV can hold`,
  )
}

function lineOf(cells: readonly string[]): string {
  const line = cells.map((text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')
  // A row whose only cell is empty would be a blank line, which would not be read as a row.
  return line === '' ? '""' : line
}
