import csrfProtection from '@fastify/csrf-protection'
import formbody from '@fastify/formbody'
import secureSession from '@fastify/secure-session'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Identity } from '../../schemas/caller.js'
import { ToolError, type ErrorCode } from '../../schemas/errors.js'
import { allowedMethods, asksForHtml, asksForJson, checkFormOrigin, METHODS } from './check-request.js'
import { boundExchanges, createBrowserLogin } from './login/browser-login.js'
import { CONTENT_POLICY } from './layout/style.js'
import {
  convertRefusal,
  describeError,
  describeRefusedForm,
  type Refusal,
  renderRefusalPage,
  unauthorized,
  wrongType,
} from './refusals.js'
import {
  deriveCsrfKey,
  deriveSessionKey,
  readSession,
  readSessionData,
  keepEndedSessions,
  rememberTriedLogins,
  SESSION_SECONDS,
} from './login/browser-session.js'
import { CSRF_FIELD, fillInPort, type FormValues, keepValues, REGISTER_TOOL, STATUS_TOOL } from './setup/form-fields.js'
import { type Form, FORMS, type FormOutcome } from './setup/forms.js'
import { renderLoggedOutPage } from './layout/page-layout.js'
import { beginLogin, completeLogin, endLogin } from './login/log-in.js'
import type { LoginOptions, SetupOptions, ToolAnswer, Visitor } from './ports.js'
import { renderSetupPage } from './setup/setup-page.js'

export { deriveSessionKey }

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is at the page. `isDispatched`: their form has become a tool call, which has audit entries of its own. */
    setupVisit: { identity: Identity; viaBearer: boolean; isDispatched: boolean } | null
  }
}

/** Browsers keep a cookie of this prefix only as secure, for this host alone, and for all of it. */
const COOKIE = '__Host-svc-mcp-setup'
const LARGEST_FORM = 16 * 1024

/**
 * `/setup`: a browser form for the caller's own PCE credentials (S6, S7, D17). Everything it changes it changes through tool calls.
 * Must stay encapsulated: body parser, cookies and error pages apply to this plugin only.
 */
export default async function setup(
  app: FastifyInstance,
  options: SetupOptions<FastifyRequest, FastifyReply>,
): Promise<void> {
  const { publicUrl, issuer, sessionKey, now = () => Date.now() } = options
  const ended = keepEndedSessions(options.usedTokens)
  const basePath = new URL(publicUrl).pathname.replace(/\/$/, '')
  const canLogIn = options.login !== undefined

  app.decorateRequest('setupVisit', null)
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

  app.get('/setup', { onRequest: admitOrLogIn }, (request, reply) =>
    showSetup(request, reply, { notice: dataOf(request).takeNotice(), errors: null }, null),
  )
  for (const form of FORMS) {
    const handler = (request: FastifyRequest, reply: FastifyReply) => submit(form, request, reply)
    app.post(form.path, { onRequest: admitForm, preHandler: checkCsrf }, handler)
  }
  app.post('/setup/logout', { onRequest: admitForm, preHandler: checkCsrf }, async (request, reply) => {
    const data = dataOf(request)
    await endLogin(data, ended)
    data.end()
    return asksForJson(request.headers.accept) ? { status: 'ok' } : reply.redirect(`${basePath}/setup/logout`, 303)
  })
  app.get('/setup/logout', (_request, reply) => sendPage(reply, renderLoggedOutPage(basePath, canLogIn)))
  if (options.login !== undefined) addLoginRoutes(options.login)
  for (const [path, methods] of Object.entries(allowedMethods(canLogIn))) {
    app.route({
      method: METHODS.filter((method) => !methods.includes(method)),
      url: path,
      onRequest(_request, reply) {
        reply.header('allow', methods.join(', '))
        throw new ToolError('method_not_allowed', `This path only accepts ${methods.join(', ')}.`)
      },
      handler: (_request, reply) => reply,
    })
  }

  async function admitOrLogIn(request: FastifyRequest, reply: FastifyReply) {
    await identify(request, reply)
    if (request.setupVisit !== null) return
    if (!canLogIn || !asksForHtml(request.headers.accept)) throw unauthorized()
    return reply.redirect(`${basePath}/setup/login`)
  }

  async function admitForm(request: FastifyRequest, reply: FastifyReply) {
    await identify(request, reply)
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') throw wrongType()
    checkFormOrigin(request.headers, publicUrl)
    if (request.setupVisit === null) throw unauthorized()
  }

  async function identify(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const viaBearer = request.headers.authorization !== undefined
    const identity = viaBearer
      ? await options.authenticate(request, reply)
      : await readSession(dataOf(request).person, { issuer, now: now(), ended })
    // Requests from unknown senders cost only this process: if they counted, one sender could keep everyone else from logging in.
    if (identity === null) return
    request.setupVisit = { identity, viaBearer, isDispatched: false }
    await options.limitCaller(request)
  }

  function checkCsrf(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
    if (isProgram(request)) next()
    else app.csrfProtection(request, reply, next)
  }

  async function submit(form: Form, request: FastifyRequest, reply: FastifyReply) {
    const { accept } = request.headers
    const visit = visitOf(request)
    const fields = (request.body as Record<string, unknown> | null | undefined) ?? {}
    const args = fillInPort(form.readArguments(fields), options.offeredPces)
    if (form.isLimited) await options.limitPceTries?.(request)
    visit.isDispatched = true
    const answer = await visitorOf(request).call(form.tool, args)
    if (answer.ok ? asksForJson(accept) : !asksForHtml(accept)) return sendJson(answer, request, reply)
    const outcome = form.describe(answer, args)
    if (outcome.staysHere && !answer.ok) {
      const entered = form.tool === REGISTER_TOOL ? keepValues(fields) : null
      const refusal = describeError(answer.error, request.id)
      // What to correct is in the form: the gateway and its proxies did nothing wrong, whatever the PCE said.
      const shown = outcome.canInsist === true ? { ...refusal, status: 400 } : refusal
      return showSetup(request, announce(shown, reply), outcome, entered)
    }
    if (!isProgram(request)) dataOf(request).leaveNotice(outcome.notice)
    return reply.redirect(`${basePath}/setup`, 303)
  }

  async function showSetup(
    request: FastifyRequest,
    reply: FastifyReply,
    outcome: Pick<FormOutcome, 'notice' | 'errors' | 'canInsist'>,
    entered: FormValues | null,
  ): Promise<FastifyReply> {
    const visitor = visitorOf(request)
    const page = renderSetupPage({
      ...outcome,
      visitor,
      entered,
      status: await visitor.call(STATUS_TOOL, {}),
      now: now(),
      offeredPces: options.offeredPces,
      csrfToken: reply.generateCsrf({ userInfo: ownerOf(visitor.identity) }),
      basePath,
      allowInsecureTls: options.allowInsecureTls,
      canLogOut: !visitOf(request).viaBearer,
    })
    return sendPage(reply, page)
  }

  function visitorOf(request: FastifyRequest): Visitor {
    const { identity } = visitOf(request)
    const call: Visitor['call'] = (name, args) => options.callTool(name, args, identity, request)
    return { identity, role: options.roleOf(identity), call }
  }

  function addLoginRoutes(client: LoginOptions) {
    const login = createBrowserLogin({ ...client, issuer, publicUrl, fetch: options.fetch ?? fetch, now })
    const { groupsOfRole, limitCaller, usedTokens, checkState } = options
    const [tried, runExchange] = [rememberTriedLogins(now), boundExchanges()]
    const ports = { login, groupsOfRole, ended, usedTokens, tried, checkState, runExchange, now }
    app.get('/setup/login', { onRequest: limitCaller }, async (request, reply) => {
      const again = (request.query as { again?: unknown }).again === '1'
      return reply.redirect(await beginLogin(dataOf(request), again, ports))
    })
    app.get('/setup/callback', { onRequest: limitCaller }, async (request, reply) => {
      const query = request.url.slice(`${request.routeOptions.url}?`.length)
      const verify = (token: string) => options.verifyToken(token, request)
      const { iss, sub } = await completeLogin(dataOf(request), { query, client: request.clientNetwork }, verify, ports)
      request.log.info({ iss, sub }, 'logged in at /setup')
      return reply.redirect(`${basePath}/setup`)
    })
  }

  async function sendRefusal(thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const refusal = convertRefusal(thrown, request.id)
    const { error, status, body, isOurFault } = refusal
    if (isOurFault) request.log.error({ err: thrown, error: error.code }, 'request failed')
    else if (error.code.startsWith('login_')) request.log.warn({ error: error.code, ...error.details }, 'login failed')
    else if (request.method === 'POST') request.log.warn({ error: error.code }, 'form refused')
    if (request.method === 'POST' && request.setupVisit?.isDispatched !== true) await audit(request, error.code)
    announce(refusal, reply)
    if (status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', options.challenge())
    if (!asksForHtml(request.headers.accept)) return reply.send(body)
    return sendPage(reply, renderRefusalPage(error, { requestId: request.id, basePath, canLogIn }))
  }

  async function audit(request: FastifyRequest, reason: ErrorCode) {
    const identity = request.setupVisit?.identity
    // Refusals of unknown senders go to the server log only: auditing each would let anyone fill the audit log's disk.
    if (identity === undefined) return
    const route = request.routeOptions.url ?? '/setup'
    const { id: requestId, clientAddress } = request
    const form = { reason, route, requestId, client: request.headers['user-agent'], clientAddress }
    try {
      await options.audit(describeRefusedForm(form, identity, options.roleOf(identity), now()))
    } catch (err) {
      request.log.error({ err }, 'the audit log cannot be written')
    }
  }
}

const dataOf = (request: FastifyRequest) => readSessionData(request.session)
const visitOf = ({ setupVisit }: FastifyRequest) => setupVisit!
/** No page can make a browser send a bearer token; but a request that brings our cookie too is treated as a browser's. */
const isProgram = (request: FastifyRequest) => visitOf(request).viaBearer && request.cookies[COOKIE] === undefined
/** Two providers may use the same `sub`. */
const ownerOf = ({ iss, sub }: Identity) => JSON.stringify([iss, sub])

function sendJson(answer: ToolAnswer, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (answer.ok) return reply.send(answer.value)
  const refusal = describeError(answer.error, request.id)
  return announce(refusal, reply).send(refusal.body)
}

function announce({ status, retryAfter }: Refusal, reply: FastifyReply): FastifyReply {
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.code(status)
}

const sendPage = (reply: FastifyReply, page: string) =>
  reply.header('content-security-policy', CONTENT_POLICY).type('text/html; charset=utf-8').send(page)
