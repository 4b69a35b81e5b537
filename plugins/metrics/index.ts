import type { FastifyInstance } from 'fastify'
import type { Exposition, MeterFacts } from './create-meter.js'

/** Creates the meter. The code of the meter is loaded only if metrics are wanted. */
export const openMeter = async (facts: MeterFacts): Promise<Exposition> =>
  (await import('./create-meter.js')).createMeter(facts)

/** Serves `GET /metrics` without a token, on a separate listener. */
export default function metrics(
  app: FastifyInstance,
  { render, contentType }: Pick<Exposition, 'render' | 'contentType'>,
  done: () => void,
): void {
  app.get('/metrics', { logLevel: 'warn' }, async (_request, reply) =>
    reply
      .header('content-type', contentType)
      .header('cache-control', 'no-store')
      .send(await render()),
  )
  done()
}
