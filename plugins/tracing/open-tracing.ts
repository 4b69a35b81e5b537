import type { Tracing } from '../../schemas/tracing.js'
import type { TracingOptions } from './start-tracing.js'

/** Loads what makes spans only now: most servers have no use for it, and over stdio people wait for every start. */
export const openTracing = async (options: TracingOptions): Promise<Tracing> =>
  (await import('./start-tracing.js')).startTracing(options)
