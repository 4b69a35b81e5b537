import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { asksForHtml, asksForJson, POST, READ } from '../check-request.js'
import type { Porter } from '../porter.js'
import type { SetupOptions, ToolAnswer, Visitor } from '../ports.js'
import { announce, describeError } from '../refusals.js'
import { fillInPort, type FormValues, keepValues, REGISTER_TOOL, STATUS_TOOL } from './form-fields.js'
import { type Form, FORMS, type FormOutcome } from './forms.js'
import { renderSetupPage } from './setup-page.js'

/**
 * Serves `/setup`, a browser form for the caller's own PCE credentials (S6, S7, D17). All changes are made by tool
 * calls.
 */
export default function setup(
  app: FastifyInstance,
  options: SetupOptions<FastifyRequest, FastifyReply> & { porter: Porter<FastifyRequest, FastifyReply> },
  done: () => void,
): void {
  const { porter, authenticate, offeredPces, allowInsecureTls } = options
  const { basePath, dataOf, visitOf, isProgram } = porter
  const { page, form: admitForm } = porter.admit({ authenticate, pageOf: () => '/setup' })

  app.get('/setup', page, (request, reply) =>
    showSetup(request, reply, { notice: dataOf(request).takeNotice(), errors: null }, null),
  )
  for (const form of FORMS) app.post(form.path, admitForm, (request, reply) => submit(form, request, reply))
  porter.refuseOtherMethods({ '/setup': [...READ, 'POST'], '/setup/remove': POST, '/setup/test': POST })
  done()

  async function submit(form: Form, request: FastifyRequest, reply: FastifyReply) {
    const { accept } = request.headers
    const visit = visitOf(request)
    const fields = (request.body as Record<string, unknown> | null | undefined) ?? {}
    const args = fillInPort(form.readArguments(fields), offeredPces)
    if (form.isLimited) await options.limitPceTries?.(request)
    visit.isDispatched = true
    const answer = await visitorOf(request).call(form.tool, args)
    if (answer.ok ? asksForJson(accept) : !asksForHtml(accept)) return sendJson(answer, request, reply)
    const outcome = form.describe(answer, args)
    if (outcome.staysHere && !answer.ok) {
      const entered = form.tool === REGISTER_TOOL ? keepValues(fields) : null
      const refusal = describeError(answer.error, request.id)
      // The PCE did not accept the new key, and the person must correct the form, so the status is 400. The status of
      // the error itself would look like a fault of this server or of a proxy.
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
    const rendered = renderSetupPage({
      ...outcome,
      visitor,
      entered,
      status: await visitor.call(STATUS_TOOL, {}),
      now: porter.now(),
      offeredPces,
      csrfToken: porter.csrfTokenFor(visitor.identity, reply),
      basePath,
      allowInsecureTls,
      canLogOut: !visitOf(request).viaBearer,
    })
    return porter.sendPage(reply, rendered)
  }

  function visitorOf(request: FastifyRequest): Visitor {
    const { identity } = visitOf(request)
    const call: Visitor['call'] = (name, args) => options.callTool(name, args, identity, request)
    return { identity, role: porter.roleOf(identity), call }
  }
}

function sendJson(answer: ToolAnswer, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (answer.ok) return reply.send(answer.value)
  const refusal = describeError(answer.error, request.id)
  return announce(refusal, reply).send(refusal.body)
}
