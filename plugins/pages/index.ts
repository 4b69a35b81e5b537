import csrfProtection from '@fastify/csrf-protection'
import formbody from '@fastify/formbody'
import secureSession from '@fastify/secure-session'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Identity } from '../../schemas/caller.js'
import { ToolError, type ErrorCode } from '../../schemas/errors.js'
import approve from './approve/index.js'
import { asksForHtml, checkFormOrigin, CSRF_FIELD, METHODS } from './check-request.js'
import { CONTENT_POLICY } from './layout/style.js'
import {
  deriveCsrfKey,
  deriveSessionKey,
  keepEndedSessions,
  readSession,
  readSessionData,
  SESSION_SECONDS,
} from './login/browser-session.js'
import login from './login/index.js'
import type { Admission, Porter } from './porter.js'
import type { PagesOptions, Visit } from './ports.js'
import {
  announce,
  convertRefusal,
  describeRefusedForm,
  renderRefusalPage,
  unauthorized,
  wrongType,
} from './refusals.js'
import setup from './setup/index.js'

export { deriveSessionKey }
export type { SetupOptions } from './ports.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The visitor of a page; null on other routes, and for visitors who have not logged in. */
    visit: Visit | null
    /** The path, without the base path, of the page to which an error page for this request links. */
    refusedAt: string | null
  }
}

/**
 * The name of the session cookie. With the prefix `__Host-`, browsers accept the cookie only if it is secure, is valid
 * for this host alone, and applies to all paths.
 */
const COOKIE = '__Host-svc-mcp-setup'
const LARGEST_FORM = 16 * 1024

/**
 * Serves the pages for people, and the login of their browsers: `/setup`, where users register their PCE key (S6, S7,
 * D17), and `/approve`, where calls are approved (D153). This plugin must stay encapsulated, because its body parser,
 * cookies and error pages must not apply elsewhere.
 */
export default async function pages(
  app: FastifyInstance,
  options: PagesOptions<FastifyRequest, FastifyReply>,
): Promise<void> {
  const { publicUrl, issuer, home, sessionKey, now = () => Date.now() } = options
  const ended = keepEndedSessions(options.usedTokens)
  const basePath = new URL(publicUrl).pathname.replace(/\/$/, '')
  const canLogIn = options.login !== undefined

  app.decorateRequest('visit', null)
  app.decorateRequest('refusedAt', null)
  app.removeAllContentTypeParsers()
  await app.register(formbody, { bodyLimit: LARGEST_FORM })
  await app.register(secureSession, {
    key: sessionKey,
    cookieName: COOKIE,
    expiry: SESSION_SECONDS,
    cookie: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', maxAge: SESSION_SECONDS },
  })
  await app.register(csrfProtection, {
    sessionPlugin: '@fastify/secure-session',
    csrfOpts: { hmacKey: deriveCsrfKey(sessionKey) },
    getToken: (request) => (request.body as Record<string, string> | undefined)?.[CSRF_FIELD],
    getUserInfo: (request) => ownerOf(visitOf(request).identity),
  })
  app.setErrorHandler(sendRefusal)

  const porter: Porter<FastifyRequest, FastifyReply> = {
    basePath,
    loginPath: canLogIn ? `${basePath}${home}/login` : null,
    now,
    roleOf: options.roleOf,
    admit: (admission) => ({
      page: { onRequest: (request, reply) => admitOrLogIn(admission, request, reply) },
      form: { onRequest: (request, reply) => admitForm(admission, request, reply), preHandler: checkCsrf },
    }),
    visitOf,
    isProgram,
    dataOf,
    csrfTokenFor: (identity, reply) => reply.generateCsrf({ userInfo: ownerOf(identity) }),
    sendPage,
    leadBackTo: (request, page) => void (request.refusedAt = page),
    refuseOtherMethods(allowed) {
      for (const [url, methods] of Object.entries(allowed)) {
        app.route({
          method: METHODS.filter((method) => !methods.includes(method)),
          url,
          onRequest(_request, reply) {
            reply.header('allow', methods.join(', '))
            throw new ToolError('method_not_allowed', `This path only accepts ${methods.join(', ')}.`)
          },
          handler: (_request, reply) => reply,
        })
      }
    },
  }
  const wantsRecent = options.approve?.maxAgeSeconds
  await app.register(login, {
    ...options,
    ...(options.login && { client: options.login }),
    ...(options.setup && { authenticate: options.setup.authenticate }),
    ...(wantsRecent && { approveMaxAge: wantsRecent }),
    ...{ porter, ended, now },
  })
  if (options.setup !== undefined) await app.register(setup, { ...options.setup, porter })
  if (options.approve !== undefined) await app.register(approve, { ...options.approve, publicUrl, porter })

  async function admitOrLogIn(
    admission: Admission<FastifyRequest, FastifyReply>,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    const page = await identify(admission, request, reply)
    if (request.visit !== null) return
    if (!canLogIn || !asksForHtml(request.headers.accept)) throw unknownAt(admission)
    return reply.redirect(`${porter.loginPath}${page === home ? '' : `?to=${page}`}`)
  }

  async function admitForm(
    admission: Admission<FastifyRequest, FastifyReply>,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    await identify(admission, request, reply)
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') throw wrongType()
    checkFormOrigin(request.headers, publicUrl)
    if (request.visit === null) throw asksForHtml(request.headers.accept) ? unauthorized() : unknownAt(admission)
  }

  /**
   * Identifies the visitor and sets `request.visit`. Resolves with the path of the page to redirect to after a login.
   */
  async function identify(
    { authenticate, pageOf }: Admission<FastifyRequest, FastifyReply>,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<string> {
    const page = pageOf(request)
    request.refusedAt = page
    const viaBearer = request.headers.authorization !== undefined
    if (viaBearer && authenticate === undefined) throw noProgram()
    const { person } = dataOf(request)
    const identity = viaBearer
      ? await authenticate!(request, reply)
      : await readSession(person, { issuer, now: now(), ended, isRevoked: options.isRevoked })
    // Requests of unknown senders do not count towards any limit here, because one of them could otherwise keep
    // everyone else from logging in.
    if (identity === null) return page
    const { authenticatedAt } = viaBearer ? {} : person!
    const known = authenticatedAt === undefined ? {} : { authenticatedAt }
    request.visit = { identity, viaBearer, isDispatched: false, ...known }
    await options.limitCaller(request)
    return page
  }

  function checkCsrf(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
    if (isProgram(request)) next()
    else app.csrfProtection(request, reply, next)
  }

  async function sendRefusal(thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const refusal = convertRefusal(thrown, request.id)
    const { error, status, body, isOurFault } = refusal
    if (isOurFault) request.log.error({ err: thrown, error: error.code }, 'request failed')
    else if (error.code.startsWith('login_')) request.log.warn({ error: error.code, ...error.details }, 'login failed')
    else if (request.method === 'POST') request.log.warn({ error: error.code }, 'form refused')
    if (request.method === 'POST' && request.visit?.isDispatched !== true) await audit(request, error.code)
    announce(refusal, reply)
    if (status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', options.challenge())
    if (!asksForHtml(request.headers.accept)) return reply.send(body)
    const back = `${basePath}${request.refusedAt ?? home}`
    return sendPage(reply, renderRefusalPage(error, { requestId: request.id, back, canLogIn }))
  }

  async function audit(request: FastifyRequest, reason: ErrorCode) {
    const identity = request.visit?.identity
    // Refusals of unknown senders are recorded only in the server log, because anyone could otherwise fill the disk of
    // the audit log.
    if (identity === undefined) return
    const route = (request.routeOptions.url ?? home).replace(/\/:id.*$/, '')
    const { id: requestId, clientAddress } = request
    const { mode } = options
    const form = { reason, route, mode, requestId, client: request.headers['user-agent'], clientAddress }
    try {
      await options.audit(describeRefusedForm(form, identity, options.roleOf(identity), now()))
    } catch (err) {
      request.log.error({ err }, 'the audit log cannot be written')
    }
  }
}

const unknownAt = ({ authenticate }: Admission<FastifyRequest, FastifyReply>) =>
  authenticate === undefined ? noProgram() : unauthorized()

/**
 * Creates the error for a request with an Authorization header to a page that requires a browser login. A bearer token
 * is not accepted there: MCP clients have one, so a model could otherwise approve its own calls (D153).
 */
const noProgram = () =>
  new ToolError(
    'forbidden',
    'This page is for a person who has logged in with a browser. An access token does not count here, and neither does any other Authorization header.',
    {},
    { hint: 'Give the person the address of this page.' },
  )

const dataOf = (request: FastifyRequest) => readSessionData(request.session)
const visitOf = ({ visit }: FastifyRequest) => visit!
/**
 * Returns true if the request comes from a program and not from a browser: it has a bearer token, which no web page can
 * make a browser send, and no session cookie.
 */
const isProgram = (request: FastifyRequest) => visitOf(request).viaBearer && request.cookies[COOKIE] === undefined
/** Returns a key of both issuer and subject, because two providers may use the same `sub`. */
const ownerOf = ({ iss, sub }: Identity) => JSON.stringify([iss, sub])

const sendPage = (reply: FastifyReply, page: string) =>
  reply.header('content-security-policy', CONTENT_POLICY).type('text/html; charset=utf-8').send(page)
