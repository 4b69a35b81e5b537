import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { Http } from '../transport.js'
import { JsonArraySplitter } from '../split-json-array.js'
import type { TrafficRun } from './traffic-run.js'

/**
 * Downloads the rows of a finished query and hands them over in batches. A download that broke off starts again at its first
 * byte; the result is a stored file, so the rows that were handed over already are passed by.
 *
 * @param deliver gets a batch and the number of rows handed over with it.
 * @throws {PceError} as every call; `invalid_response` for a result that is damaged or incomplete.
 */
export async function downloadFlows(
  http: Http,
  endpoint: string,
  run: TrafficRun,
  deliver: (flows: TrafficFlow[], total: number) => Promise<void>,
): Promise<{ flows: number; unparseable: number }> {
  let splitter = new JsonArraySplitter()
  let taken = 0
  let position = 0
  let flows = 0
  await http.stream(
    endpoint,
    { ...run.request, streamed: true },
    {
      begin: () => {
        splitter = new JsonArraySplitter()
        position = 0
      },
      take: async (chunk) => {
        for (const batch of splitter.push(chunk)) {
          const fresh = batch.slice(Math.max(taken - position, 0))
          position += batch.length
          taken = Math.max(taken, position)
          const rows = fresh.filter(isFlow)
          flows += rows.length
          if (rows.length > 0) await deliver(rows, flows)
        }
      },
    },
  )
  splitter.end()
  return { flows, unparseable: taken - flows }
}

/** Source, destination and service are what makes a row usable; the rest may be missing. */
function isFlow(row: unknown): row is TrafficFlow {
  if (typeof row !== 'object' || row === null) return false
  const { src, dst, service } = row as Record<string, unknown>
  return [src, dst, service].every((part) => typeof part === 'object' && part !== null)
}
