import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import helmet from '@fastify/helmet'
import { fastify, type FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'

export interface SecurityHeadersOptions {
  /** True if browsers reach this server over https, so that HSTS may be sent. */
  isPublicHttps: boolean
  /** The settings of a server without routes of its own, on which the headers are computed. */
  probe?: FastifyServerOptions
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The security headers, for answers that are sent without any hook. */
    securityHeaders: OutgoingHttpHeaders
  }
}

/**
 * Sets the security headers of every answer. Pages of this server must not be framed, sniffed, loaded by other sites,
 * or named in a Referer header, and nothing may be cached unless its route permits it.
 */
export default fp<SecurityHeadersOptions>(
  async (app, options) => {
    const headers = { ...(await headersOf(options)), 'cache-control': 'no-store' }
    app.decorate('securityHeaders', headers)
    app.addHook('onRequest', (_request, reply, next) => {
      reply.headers(headers)
      next()
    })
  },
  { name: 'security-headers' },
)

/**
 * Computes the headers once, with helmet on a separate instance. They are the same for every answer, and computing them
 * for each answer would cost a fifth of the throughput.
 */
async function headersOf({ isPublicHttps, probe: settings }: SecurityHeadersOptions): Promise<OutgoingHttpHeaders> {
  const probe = fastify(settings)
  await probe.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"], baseUri: ["'none'"], formAction: ["'self'"] },
    },
    frameguard: { action: 'deny' },
    referrerPolicy: { policy: 'no-referrer' },
    strictTransportSecurity: isPublicHttps,
  })
  const answered = new Promise<OutgoingHttpHeaders>((resolve) => {
    probe.get('/', (_request, reply) => {
      resolve({ ...reply.raw.getHeaders() })
      return ''
    })
  })
  await probe.ready()
  // Fastify's own `inject` would load a library just to make this one request without a socket.
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/' })
  probe.routing(request, new ServerResponse(request))
  const headers = await answered
  await probe.close()
  return headers
}
