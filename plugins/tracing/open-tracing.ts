import type { Tracing } from '../../schemas/tracing.js'
import type { TracingOptions } from './start-tracing.js'

/**
 * Starts tracing. The code for tracing is loaded only here, because most servers do not need it, and over stdio a
 * person waits for every start.
 */
export const openTracing = async (options: TracingOptions): Promise<Tracing> =>
  (await import('./start-tracing.js')).startTracing(options)
