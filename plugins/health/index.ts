import type { FastifyInstance } from 'fastify'
import { Liveness, HealthStatus } from '../../schemas/http.js'
import { createReadiness, type HealthCheck } from './check-readiness.js'

export interface HealthOptions {
  /** True once the process is stopping. */
  isDraining: () => boolean
  /** What must work before this process is given calls. A PCE that does not answer is not among it (D8). */
  checks: readonly HealthCheck[]
}

/**
 * `/healthz` says that the process lives, `/readyz` whether it takes new work, and by its name the check that failed; why is in the
 * log. Never asks for authorization (S18).
 */
export default function health(app: FastifyInstance, { isDraining, checks }: HealthOptions, done: () => void): void {
  const findFailure = createReadiness(checks, {
    changed: (failed) =>
      failed === null
        ? app.log.info('ready again')
        : app.log.error({ check: failed.name, err: failed.error }, 'not ready'),
  })
  app.get('/healthz', { logLevel: 'warn', schema: { response: { 200: Liveness } } }, () => ({ status: 'ok' as const }))
  app.get(
    '/readyz',
    { logLevel: 'warn', schema: { response: { 200: HealthStatus, 503: HealthStatus } } },
    async (_request, reply) => {
      if (isDraining()) return reply.code(503).send({ status: 'draining' })
      const failed = await findFailure()
      return failed === null ? { status: 'ready' } : reply.code(503).send({ status: 'unavailable', check: failed.name })
    },
  )
  done()
}
