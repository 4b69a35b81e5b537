import type { FastifyInstance } from 'fastify'
import { Liveness, HealthStatus } from '../../schemas/http.js'
import type { Meter } from '../../schemas/metrics.js'
import { createReadiness, type HealthCheck } from './check-readiness.js'

export interface HealthOptions {
  /** True once the process is stopping. */
  isDraining: () => boolean
  /** What must work before this process is given calls. A PCE that does not answer is not among it (D8). */
  checks: readonly HealthCheck[]
  /** What is wrong with the PCE key that everybody uses; it makes no process unready, since another one would fare no better. */
  findKeyProblem?: () => string | null
  /** Asks for the checks as `/readyz` does, and shares its answers. */
  meter?: Pick<Meter, 'readinessFrom'>
}

/**
 * `/healthz` says that the process lives, `/readyz` whether it takes new work, and by its name the check that failed; why is in the
 * log. A PCE key that is refused is told beside `ready`. Never asks for authorization (S18).
 */
export default function health(
  app: FastifyInstance,
  { isDraining, checks, findKeyProblem, meter }: HealthOptions,
  done: () => void,
): void {
  const findFailure = createReadiness(checks, {
    changed: (failed) =>
      failed === null
        ? app.log.info('ready again')
        : app.log.error({ check: failed.name, err: failed.error }, 'not ready'),
  })
  meter?.readinessFrom(
    checks.map(({ name }) => name),
    async () => (await findFailure())?.name ?? null,
  )
  app.get('/healthz', { logLevel: 'warn', schema: { response: { 200: Liveness } } }, () => ({ status: 'ok' as const }))
  app.get(
    '/readyz',
    { logLevel: 'warn', schema: { response: { 200: HealthStatus, 503: HealthStatus } } },
    async (_request, reply) => {
      if (isDraining()) return reply.code(503).send({ status: 'draining' })
      const failed = await findFailure()
      if (failed !== null) return reply.code(503).send({ status: 'unavailable', check: failed.name })
      const pce = findKeyProblem?.() ?? null
      return { status: 'ready', ...(pce !== null && { pce }) }
    },
  )
  done()
}
