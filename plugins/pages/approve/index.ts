import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AskedApproval } from '../../../schemas/approvals.js'
import { ToolError } from '../../../schemas/errors.js'
import { isApprovalId, POST, READ } from '../check-request.js'
import type { Notice } from '../layout/page-layout.js'
import type { Porter } from '../porter.js'
import type { ApproveOptions } from '../ports.js'
import { renderApprovalPage } from './approval-page.js'
import { noticeOfDecision, readDecision, wantsLogin } from './decide.js'
import { renderLivePage } from './live-page.js'
import { noticeOfRevocation, readBack, readPlace, writePlace } from './revoke.js'
import { renderWaitingPage } from './waiting-page.js'

interface Options extends ApproveOptions {
  publicUrl: string
  porter: Porter<FastifyRequest, FastifyReply>
}

interface Shown {
  notice?: Notice
  entered?: { note: string; error: string }
}

/**
 * Serves `/approve` and `/approve/{id}`, the pages on which a person sees what a call would do, and approves or denies
 * it (D153 to D156). The pages never query a PCE. They show something only to people who have logged in with this
 * browser.
 */
export default function approve(app: FastifyInstance, options: Options, done: () => void): void {
  const { desk, maxAgeSeconds, publicUrl, porter } = options
  const { basePath, visitOf } = porter
  const { page, form } = porter.admit({
    pageOf: pathOf,
  })

  app.get('/approve', page, async (request, reply) => {
    const { identity } = visitOf(request)
    const { total, approvals } = await desk.waitingFor(identity)
    const rows = approvals.map((approval) => ({
      approval,
      part: desk.partOf(approval.request, identity),
      mayRevoke: desk.mayRevoke(approval, identity),
    }))
    const notice = porter.dataOf(request).takeNotice()
    const waiting = { ...readerOf(request, reply), method: desk.method, total, approvals: rows, notice }
    return porter.sendPage(reply, renderWaitingPage(waiting))
  })

  app.get('/approve/all', page, async (request, reply) => {
    porter.leadBackTo(request, '/approve')
    const place = readPlace((request.query as Record<string, unknown>).after)
    const list = await desk.live(visitOf(request).identity, place)
    const after = place === null ? '' : writePlace(place)
    const notice = porter.dataOf(request).takeNotice()
    return porter.sendPage(reply, renderLivePage({ ...readerOf(request, reply), list, after, notice }))
  })

  app.post('/approve/:id/revoke', form, async (request, reply) => {
    const { request: asked } = await find(request)
    const back = readBack(request.body)
    const { identity } = visitOf(request)
    const { won, approval } = await desk.revoke(asked.id, identity, originOf(request))
    const notice = noticeOfRevocation(won, approval)
    if (approval.state !== 'revoked') return show(request, reply.code(409), approval, { notice })
    if (back !== null) porter.dataOf(request).leaveNotice(notice)
    return reply.redirect(`${basePath}${back ?? `/approve/${asked.id}`}`, 303)
  })

  app.get('/approve/:id', page, async (request, reply) => show(request, reply, await find(request)))

  app.post('/approve/:id', form, async (request, reply) => {
    const approval = await find(request)
    const { identity, authenticatedAt } = visitOf(request)
    const read = readDecision(request.body)
    if ('error' in read) return show(request, reply.code(400), approval, { entered: read })
    if (approval.state === 'pending' && wantsLogin(authenticatedAt, maxAgeSeconds, porter.now()))
      return show(request, reply.code(403), approval, { notice: LOG_IN_FIRST })
    const { won, approval: now } = await decide(request, identity, read)
    const notice = noticeOfDecision(won, read.verdict, now)
    if (notice !== null) return show(request, reply.code(now.state === 'expired' ? 410 : 409), now, { notice })
    return reply.redirect(`${basePath}/approve/${now.request.id}`, 303)
  })
  porter.refuseOtherMethods({
    '/approve': READ,
    '/approve/all': READ,
    '/approve/:id': [...READ, 'POST'],
    '/approve/:id/revoke': POST,
  })
  done()

  /**
   * Finds the approval request whose id is in the path. Rejects with the same ToolError if there is no such approval
   * request and if this person may not see it.
   */
  async function find(request: FastifyRequest): Promise<AskedApproval> {
    const id = idOf(request)
    const approval = isApprovalId(id) ? await desk.find(id) : null
    if (approval !== null && desk.partOf(approval.request, visitOf(request).identity) !== 'nobody') return approval
    throw notThere(request)
  }

  function notThere(request: FastifyRequest): ToolError {
    porter.leadBackTo(request, '/approve')
    return new ToolError(
      'not_found',
      'There is no such request, it is no longer kept, or it is not for you.',
      {},
      { hint: 'If somebody sent you the address, compare it, and whether you are logged in as the right person.' },
    )
  }

  async function decide(
    request: FastifyRequest,
    identity: ReturnType<typeof visitOf>['identity'],
    { verdict, note }: { verdict: 'approved' | 'denied'; note?: string },
  ) {
    const id = idOf(request)
    try {
      return await desk.decide(id, { verdict, by: identity, ...(note !== undefined && { note }) }, originOf(request))
    } catch (thrown) {
      if (!(thrown instanceof ToolError)) throw thrown
      if (thrown.code === 'not_found') throw notThere(request)
      if (thrown.code !== 'approval_expired') throw thrown
      return { won: false, approval: await find(request) }
    }
  }

  async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    approval: AskedApproval,
    { notice, entered }: Shown = {},
  ): Promise<FastifyReply> {
    const { identity, authenticatedAt } = visitOf(request)
    const part = desk.partOf(approval.request, identity)
    if (part === 'nobody') throw notThere(request)
    if (request.method !== 'HEAD') await desk.noteShown(approval.request, identity, originOf(request))
    const { id } = approval.request
    const again = wantsLogin(authenticatedAt, maxAgeSeconds, porter.now())
    const rendered = renderApprovalPage({
      ...readerOf(request, reply),
      approval,
      part,
      method: desk.method,
      mayRevoke: desk.mayRevoke(approval, identity),
      address: `${publicUrl}/approve/${id}`,
      loginAgainPath: again ? `${porter.loginPath}?again=1&to=/approve/${id}` : null,
      notice: notice ?? null,
      entered: entered ?? null,
    })
    return porter.sendPage(reply, rendered)
  }

  function readerOf(request: FastifyRequest, reply: FastifyReply) {
    const { identity } = visitOf(request)
    return {
      identity,
      role: porter.roleOf(identity),
      csrfToken: porter.csrfTokenFor(identity, reply),
      basePath,
      logoutPath: porter.loginPath!.replace(/login$/, 'logout'),
      ownPath: pathOf(request),
      now: porter.now(),
    }
  }
}

const LOG_IN_FIRST: Notice = {
  kind: 'warning',
  title: 'Nothing was decided yet',
  text: 'Log in again first, at the end of this page. Your note was not kept.',
}

/**
 * Returns the path of the requested page, without the base path. For a malformed id, it is the path of the list of
 * approval requests.
 */
function pathOf(request: FastifyRequest): string {
  if (request.routeOptions.url === '/approve/all') return '/approve/all'
  const id = idOf(request)
  return isApprovalId(id) ? `/approve/${id}` : '/approve'
}

const idOf = ({ params }: FastifyRequest) => (params as { id?: string }).id ?? ''

function originOf({ id: requestId, headers, clientAddress }: FastifyRequest) {
  const client = headers['user-agent']
  return {
    requestId,
    ...(client !== undefined && { client }),
    ...(clientAddress !== null && { clientAddress }),
  }
}
