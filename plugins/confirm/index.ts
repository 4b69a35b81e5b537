import type { FastifyError, FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Caller, Owner } from '../../schemas/caller.js'
import type { ConfirmingContext } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { ConfirmResponse } from '../../schemas/http.js'
import type { Offer } from '../../schemas/offer.js'
import type { ToolFacts } from '../../tools/listed-tool.js'
import { describeCall } from './confirmed-call.js'
import { codeOf, describeMint, type MintFacts, readRequest, requireConfirmed, ROUTE } from './read-request.js'
import type { Tokens } from './tokens.js'

export interface ConfirmOptions {
  /** The functions that issue confirm tokens; undefined if people approve calls on a page, which needs no tokens. */
  tokens?: Tokens
  tools: readonly ToolFacts[]
  /** Returns the caller context of a request, or null if the context has not been determined yet. */
  contextOf: (request: FastifyRequest) => (ConfirmingContext & { caller: Caller; client?: string; offer: Offer }) | null
  /**
   * Applies the gates that come before the confirmation gate, and throws if one of them refuses, so that no token is
   * issued for a call that could not run. It is called only if the caller context is known.
   */
  checkCall: (tool: ToolFacts, request: FastifyRequest) => void
  /** Returns the sender of a request, or null if the access token has not been checked yet. */
  ownerOf: (request: FastifyRequest) => Owner | null
  /**
   * Writes an audit entry. Resolves when the entry is written. Rejects if it cannot be written; then no token is
   * issued.
   */
  audit: (entry: AuditEntry) => Promise<void>
  /** Returns milliseconds since the epoch. */
  now: () => number
}

const LARGEST_BODY = 4096
const BY_PAGE = 'Here a person approves calls on a page; no confirm token is issued.'
const UNAUDITED = 'The audit log cannot be written, so no confirm token is issued.'
const OTHER_METHODS: HTTPMethods[] = ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * Serves `POST /confirm`, which issues a confirm token for one call of one tool (S7). For every request of a known
 * caller there is one audit entry, whether the token is granted or refused, except for the refusals that `AuditRoute`
 * leaves out. If the entry of a grant could not be synced to the disk, a second entry revokes the grant. Errors have
 * the plain format of the `errors` plugin.
 */
export default function confirm(app: FastifyInstance, options: ConfirmOptions, done: () => void): void {
  const { tokens, now } = options
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const asked = new WeakMap<FastifyRequest, Pick<MintFacts, 'tool' | 'paramsHash'>>()
  // The requests whose audit entry has already been passed to the log, even if the log could not write it.
  const entered = new WeakSet<FastifyRequest>()

  app.setErrorHandler(async (thrown: FastifyError, request) => {
    const isKnown = options.contextOf(request) !== null || options.ownerOf(request) !== null
    if (isKnown && request.method === 'POST' && !entered.has(request)) await noteRefusal(thrown, request)
    // The error handler of the surrounding plugin sends the answer.
    throw thrown
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: LARGEST_BODY },
    (_request, body, parsed) => parsed(null, body),
  )

  app.post(
    ROUTE,
    {
      bodyLimit: LARGEST_BODY,
      onRequest(request, reply, next) {
        reply.header('cache-control', 'no-store')
        const encoding = request.headers['content-encoding']
        if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
          throw new ToolError('unsupported_media_type', 'The body must be application/json, not compressed.')
        }
        next()
      },
    },
    async (request): Promise<ConfirmResponse> => {
      const body = readRequest(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))
      asked.set(request, { tool: body.tool, paramsHash: body.params_hash })
      const context = options.contextOf(request)
      if (context === null) throw new ToolError('internal', 'The request has no context.')
      const isOffered = context.offer.callable.has(body.tool)
      const tool = requireConfirmed(isOffered ? tools.get(body.tool) : undefined)
      options.checkCall(tool, request)
      if (tokens === undefined) throw new ToolError('approval_required', BY_PAGE, { params_hash: body.params_hash })
      const call = describeCall(tool, context, body.params_hash)
      const { token, jti, expiresIn } = await tokens.mint(call, body.challenge)
      await noteGrant({ ...factsOf(request), jti }, request)
      return { confirm_token: token, expires_in: expiresIn }
    },
  )

  app.route({
    method: OTHER_METHODS,
    url: ROUTE,
    onRequest(_request, reply) {
      reply.header('allow', 'POST')
      throw new ToolError('method_not_allowed', 'This endpoint only accepts POST.')
    },
    handler: (_request, reply) => reply,
  })

  function factsOf(request: FastifyRequest): MintFacts {
    const context = options.contextOf(request)
    return {
      requestId: request.id,
      caller: context?.caller ?? { ...options.ownerOf(request) },
      client: context?.client,
      clientAddress: request.clientAddress ?? undefined,
      ...asked.get(request),
    }
  }

  async function noteGrant(facts: MintFacts, request: FastifyRequest): Promise<void> {
    entered.add(request)
    try {
      await options.audit(describeMint(facts, null, now()))
    } catch (cause) {
      takeBack(facts, request)
      throw new ToolError('audit_unavailable', UNAUDITED, {}, { cause })
    }
    request.log.info({ sub: facts.caller.sub, tool: facts.tool, confirm_jti: facts.jti }, 'confirm token minted')
  }

  /**
   * Writes a second audit entry, which says that the token was not issued after all. It is needed because the first
   * entry may be in the log although it could not be written safely.
   */
  function takeBack(facts: MintFacts, request: FastifyRequest): void {
    // Nothing waits for the second entry: it follows the first one in the log, and reaches the disk together with it or
    // not at all.
    options.audit(describeMint(facts, 'audit_unavailable', now())).catch((err: unknown) => {
      request.log.error({ err }, 'the audit log cannot be written')
    })
  }

  async function noteRefusal(thrown: unknown, request: FastifyRequest): Promise<void> {
    const facts = factsOf(request)
    const error = codeOf(thrown)
    request.log.info({ sub: facts.caller.sub, tool: facts.tool, error }, 'confirm token refused')
    try {
      await options.audit(describeMint(facts, error, now()))
    } catch (err) {
      request.log.error({ err }, 'the audit log cannot be written')
    }
  }

  done()
}
