import type { Tracing } from '../../schemas/tracing.js'
import type { TracingOptions } from './start-tracing.js'

/**
 * Starts tracing. The code for tracing is loaded only now, because most servers do not need it, and over stdio people
 * wait for every start.
 */
export const openTracing = async (options: TracingOptions): Promise<Tracing> =>
  (await import('./start-tracing.js')).startTracing(options)
