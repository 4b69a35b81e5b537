import type { FastifyInstance } from 'fastify'
import { type FaultControl, FAULT_KINDS, type Fault } from './inject-faults.js'
import type { RecordedRequest } from './record-requests.js'

/** A fault in JSON. A `path` that begins with `re:` is a regular expression (`"re:/async_queries/[^/]+$"`). */
type WireFault = Omit<Fault, 'path'> & { path: string }

/**
 * Adds the routes that control a simulator in another process: `GET|DELETE /_sim/requests` and `GET|POST|DELETE
 * /_sim/faults`. A POST adds one fault or a list of faults. These routes are outside `/api`, need no credentials and
 * are never affected by faults.
 */
export function addControlRoutes(app: FastifyInstance, faults: FaultControl, requests: RecordedRequest[]): void {
  app.get('/_sim/requests', () => requests)
  app.delete('/_sim/requests', (_request, reply) => {
    requests.length = 0
    return reply.code(204).send()
  })
  app.get('/_sim/faults', () => faults.pending().map((fault) => ({ ...fault, path: String(fault.path) })))
  app.delete('/_sim/faults', (_request, reply) => {
    faults.clear()
    return reply.code(204).send()
  })
  app.post('/_sim/faults', (request, reply) => {
    const given = (Array.isArray(request.body) ? request.body : [request.body]) as WireFault[]
    const bad = given.find((fault) => !isFault(fault))
    if (bad !== undefined || given.length === 0) {
      return reply.code(400).send({ error: `a fault is {kind: ${FAULT_KINDS.join(' | ')}, path, times, …}` })
    }
    faults.add(...given.map((fault) => ({ ...fault, path: readPath(fault.path) })))
    return reply.code(204).send()
  })
}

function isFault(value: unknown): boolean {
  const fault = value as Partial<WireFault> | null
  return (
    typeof fault === 'object' &&
    fault !== null &&
    FAULT_KINDS.some((kind) => kind === fault.kind) &&
    typeof fault.path === 'string' &&
    Number.isInteger(fault.times)
  )
}

function readPath(path: string): string | RegExp {
  return path.startsWith('re:') ? new RegExp(path.slice(3)) : path
}
