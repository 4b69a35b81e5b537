import { fastify, type FastifyBaseLogger, type FastifyInstance, type InjectOptions } from 'fastify'
import { pino } from 'pino'
import auth, { accessTokens, authMetadata } from '../../plugins/auth/index.js'
import clientAddress from '../../plugins/client-address/index.js'
import errors, { refuseUnreadable } from '../../plugins/errors/index.js'
import rateLimits from '../../plugins/rate-limits/index.js'
import requestId, { requestIdOf, RequestLog } from '../../plugins/request-id/index.js'
import securityHeaders from '../../plugins/security-headers/index.js'
import type { OAuthConfig } from '../../schemas/config.js'

export const PUBLIC_URL = 'https://mcp.example.test'
export const METADATA_URL = `${PUBLIC_URL}/.well-known/oauth-protected-resource`

interface Test {
  teardown(fn: () => unknown): void
}

export interface AuthAppOptions {
  publicUrl?: string
  /** Refused tokens per minute and address; no limit unless told. */
  refused?: number
  clock?: Clock
  /** Adds routes outside of the guarded scope. */
  open?: (app: FastifyInstance) => void
}

/** A clock that stands until it is moved, and runs what is due on its way. */
export class Clock {
  #now = Math.floor(Date.now() / 1000) * 1000
  #timers = new Set<{ at: number; fn: () => void }>()
  #planned = () => {}
  readonly now = () => this.#now

  readonly schedule = (fn: () => void, ms: number) => {
    const timer = { at: this.#now + ms, fn }
    this.#timers.add(timer)
    this.#planned()
    return () => void this.#timers.delete(timer)
  }

  /** Resolves as soon as something is planned. */
  async untilPlanned() {
    if (this.#timers.size === 0) await new Promise<void>((resolve) => (this.#planned = resolve))
  }

  /** How many things are planned. */
  get planned() {
    return this.#timers.size
  }

  /** Moves on by so many seconds (back, too), without running anything: as a process that was asleep. */
  leap(seconds: number) {
    this.#now += seconds * 1000
  }

  /** Moves on and runs what has become due. */
  pass(seconds: number) {
    const end = this.#now + seconds * 1000
    for (;;) {
      const next = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (next === undefined) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.fn()
    }
    this.#now = end
  }
}

/** The real doors around a route that tells whom it has let in; `log` has every line down to trace. */
export async function authApp(t: Test, oauth: OAuthConfig, options: AuthAppOptions = {}) {
  const log: Record<string, unknown>[] = []
  const text: string[] = []
  const write = (line: string) => {
    text.push(line)
    log.push(JSON.parse(line) as Record<string, unknown>)
  }
  const publicUrl = options.publicUrl ?? PUBLIC_URL
  const handled = { count: 0 }
  const { clock } = options
  const app: FastifyInstance = fastify({
    loggerInstance: pino({ level: 'trace' }, { write }) as FastifyBaseLogger,
    logController: new RequestLog(),
    genReqId: requestIdOf,
    clientErrorHandler(error, socket) {
      refuseUnreadable(socket, error.code, requestIdOf(), app.securityHeaders)
    },
  })
  await app.register(requestId)
  await app.register(clientAddress, {})
  await app.register(securityHeaders, { isPublicHttps: true })
  await app.register(errors)
  await app.register(rateLimits)
  await app.register(accessTokens, {
    oauth,
    publicUrl,
    refusedTokensPerAddress: options.refused ?? 0,
    ...(clock && { now: clock.now, schedule: clock.schedule }),
  })
  await app.register(authMetadata, { oauth, publicUrl, name: 'Policy engine' })
  await app.register(async (secured) => {
    await secured.register(auth)
    secured.post('/secured', (request) => {
      handled.count++
      const { issuedAt: _changing, ...identity } = request.identity!
      return identity
    })
  })
  options.open?.(app)
  t.teardown(() => app.close())
  await app.ready()

  /** One request with this Authorization header. */
  const send = (authorization?: string, more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/secured',
      payload: { any: 1 },
      ...more,
      headers: { ...(authorization !== undefined && { authorization }), ...more.headers },
    })
  return {
    app,
    log,
    /** The whole log as it was written. */
    written: () => text.join(''),
    /** How often the route behind the guard has run. */
    handled,
    send,
    bearer: (token: string, more?: InjectOptions) => send(`Bearer ${token}`, more),
    /** The reasons that have been logged, with the request ids they were logged under. */
    refusals: () =>
      log.flatMap(({ msg, request_id: id }) =>
        String(msg).startsWith('InvalidTokenError: ') ? [{ reason: String(msg).slice(19), id }] : [],
      ),
  }
}

export interface Challenge {
  scheme: string
  /** In the order they came in. */
  parameters: [name: string, value: string][]
}

/** Reads a WWW-Authenticate value by the grammar of RFC 9110, 11.6.1 and 5.6; throws where it does not fit. */
export function parseChallenge(value: string): Challenge {
  const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y
  let at = 0
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at
    const match = pattern.exec(value)
    if (match === null) throw new Error(`${value}: nothing fits at ${at}`)
    at = pattern.lastIndex
    return match[0]
  }
  const scheme = take(token)
  take(/ +/y)
  const parameters: [string, string][] = []
  for (;;) {
    const name = take(token)
    take(/[ \t]*=[ \t]*/y)
    const raw = take(/"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"|[!#$%&'*+.^_`|~0-9A-Za-z-]+/y)
    parameters.push([name, raw.startsWith('"') ? raw.slice(1, -1).replace(/\\(.)/g, '$1') : raw])
    if (at === value.length) return { scheme, parameters }
    take(/[ \t]*,[ \t]*/y)
  }
}
