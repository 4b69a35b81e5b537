import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { createDownload, type Calls, type DownloadOptions } from './create-calls.js'

/** Files of reports (S9, P60). */
export interface ReportOperations {
  /**
   * Downloads the file of a finished report: PDF, CSV or JSON, as its template says. However large: it streams, into memory, or
   * piece by piece into `options.sink`, and then answers how many bytes there were. 404 while the report is not ready.
   */
  downloadReport(reportHref: ReferenceLike, options: DownloadOptions): Promise<{ bytes: number }>
  downloadReport(reportHref: ReferenceLike, options?: RequestOptions): Promise<Uint8Array>
}

export function createReportOperations(calls: Calls): ReportOperations {
  return {
    downloadReport: createDownload(
      calls.http,
      (report: ReferenceLike) => `${calls.href(KINDS.reports, report)}/download`,
    ),
  }
}
