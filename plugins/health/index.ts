import type { FastifyInstance } from 'fastify'
import { Liveness, Readiness } from '../../schemas/http/health.js'

export interface HealthOptions {
  /** True once the process has been told to stop. */
  isDraining: () => boolean
}

/**
 * `/healthz` says that the process lives, `/readyz` whether it takes new work. A PCE that does not answer changes neither
 * (design decision 8): taking the server out of rotation would not bring the PCE back. Never asks for authorization.
 */
export default function health(app: FastifyInstance, { isDraining }: HealthOptions, done: () => void): void {
  app.get('/healthz', { logLevel: 'warn', schema: { response: { 200: Liveness } } }, () => ({ status: 'ok' as const }))
  app.get(
    '/readyz',
    { logLevel: 'warn', schema: { response: { 200: Readiness, 503: Readiness } } },
    (_request, reply) => {
      return isDraining() ? reply.code(503).send({ status: 'draining' }) : reply.send({ status: 'ready' })
    },
  )
  done()
}
