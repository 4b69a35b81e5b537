import type { FastifyInstance } from 'fastify'
import type { HealthCheck, HealthStatus } from '../../schemas/http.js'
import type { Meter } from '../../schemas/metrics.js'
import { createReadiness } from './check-readiness.js'

export interface HealthOptions {
  /** Returns true when the process is stopping. */
  isDraining: () => boolean
  /**
   * The checks that must pass before this process receives calls. They do not include a check that the PCE can be
   * reached (D8).
   */
  checks: readonly HealthCheck[]
  /**
   * Returns the problem with the PCE key that everybody uses, or null if there is none. Such a problem does not make
   * the process unready, because all other replicas have the same problem.
   */
  findKeyProblem?: () => string | null
  /** The meter that publishes the readiness. It shares the results of the checks with `/readyz`. */
  meter?: Pick<Meter, 'readinessFrom'>
}

/**
 * Serves `/healthz`, which says that the process is alive, and `/readyz`, which says whether the process accepts new
 * work. If it does not, `/readyz` names the check that failed; the reason is in the log. A refused PCE key is reported
 * beside `ready`. Neither route requires authorization (S18).
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
  app.get('/healthz', { logLevel: 'warn' }, () => ({ status: 'ok' }))
  app.get('/readyz', { logLevel: 'warn' }, async (_request, reply): Promise<HealthStatus> => {
    if (isDraining()) {
      reply.code(503)
      return { status: 'draining' }
    }
    const failed = await findFailure()
    if (failed !== null) {
      reply.code(503)
      return { status: 'unavailable', check: failed.name }
    }
    const pce = findKeyProblem?.() ?? null
    return { status: 'ready', ...(pce !== null && { pce }) }
  })
  done()
}
