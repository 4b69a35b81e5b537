import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { asksForJson, READ, readOwnPage } from '../check-request.js'
import { renderLoggedOutPage } from '../layout/page-layout.js'
import type { Admission, Porter } from '../porter.js'
import type { HomePage, LoginOptions, LoginPorts } from '../ports.js'
import { boundExchanges, createBrowserLogin } from './browser-login.js'
import { type EndedSessions, rememberTriedLogins } from './browser-session.js'
import { beginLogin, completeLogin, endLogin, findBackTo } from './log-in.js'

interface Options extends LoginPorts<FastifyRequest>, Pick<Admission<FastifyRequest, FastifyReply>, 'authenticate'> {
  publicUrl: string
  home: HomePage
  client?: LoginOptions
  ended: EndedSessions
  now: () => number
  /**
   * The maximum age, in seconds, of a login with which a person may decide at /approve; absent if there is no limit.
   */
  approveMaxAge?: number
  porter: Porter<FastifyRequest, FastifyReply>
}

/**
 * Adds the routes for logging a browser in and out. Their paths begin with the path of the server's home page, such as
 * `/setup/login`.
 */
export default function login(app: FastifyInstance, options: Options, done: () => void): void {
  const { home, client, porter, ended, authenticate } = options
  const { basePath, dataOf, sendPage } = porter
  const { form } = porter.admit({ ...(authenticate && { authenticate }), pageOf: () => home })

  app.post(`${home}/logout`, form, async (request, reply) => {
    const data = dataOf(request)
    await endLogin(data, ended)
    data.end()
    if (asksForJson(request.headers.accept)) return { status: 'ok' }
    const page = readOwnPage((request.body as Record<string, unknown> | undefined)?.to)
    return reply.redirect(`${basePath}${home}/logout${page === undefined ? '' : `?to=${page}`}`, 303)
  })
  app.get(`${home}/logout`, (request, reply) =>
    sendPage(reply, renderLoggedOutPage(porter.loginPath, readOwnPage((request.query as Record<string, unknown>).to))),
  )
  porter.refuseOtherMethods({ [`${home}/logout`]: [...READ, 'POST'] })
  if (client !== undefined) openLogin(app, client, options)
  done()
}

/** Adds the route that starts logins, and the route to which the provider sends the browser back. */
function openLogin(app: FastifyInstance, client: LoginOptions, options: Options): void {
  const { home, porter, ended, limitCaller, approveMaxAge } = options
  const { basePath, dataOf } = porter

  const { issuer, publicUrl, now, fetch: send = fetch, groupsOfRole, usedTokens, checkState } = options
  const browserLogin = createBrowserLogin({ ...client, issuer, publicUrl, home, fetch: send, now })
  const [tried, runExchange] = [rememberTriedLogins(now), boundExchanges()]
  const ports = { login: browserLogin, groupsOfRole, ended, usedTokens, tried, checkState, runExchange, now }

  app.get(`${home}/login`, { onRequest: limitCaller }, async (request, reply) => {
    const { again, to } = request.query as Record<string, unknown>
    const backTo = readOwnPage(to)
    request.refusedAt = backTo ?? home
    const wantsRecent = (backTo ?? home).startsWith('/approve') && approveMaxAge !== undefined
    const wish = {
      isAnew: again === '1',
      ...(backTo !== undefined && { backTo }),
      ...(wantsRecent && { maxAgeSeconds: approveMaxAge }),
    }
    return reply.redirect(await beginLogin(dataOf(request), wish, ports))
  })
  app.get(`${home}/callback`, { onRequest: limitCaller }, async (request, reply) => {
    const query = request.url.slice(`${request.routeOptions.url}?`.length)
    const data = dataOf(request)
    const backTo = findBackTo(data, query) ?? home
    request.refusedAt = backTo
    const verify = (token: string) => options.verifyToken(token, request)
    const { iss, sub } = await completeLogin(data, { query, client: request.clientNetwork }, verify, ports)
    request.log.info({ iss, sub }, `logged in at ${home}`)
    return reply.redirect(`${basePath}${backTo}`)
  })
  porter.refuseOtherMethods({ [`${home}/login`]: READ, [`${home}/callback`]: READ })
}
