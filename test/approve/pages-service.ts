/** The room of the pages by itself, over a real desk, with a provider that obeys the test or a real one. */
import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import clientAddress from '../../plugins/client-address/index.js'
import errors from '../../plugins/errors/index.js'
import pages, { deriveSessionKey } from '../../plugins/pages/index.js'
import requestId, { requestIdOf } from '../../plugins/request-id/index.js'
import securityHeaders from '../../plugins/security-headers/index.js'
import type { Identity, Role } from '../../schemas/caller.js'
import { GROUP_OF, type Line } from '../contract/authenticated-service.js'
import { freePort } from '../free-port.js'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import { startPretendProvider, type Person, type Test } from '../setup/pretend-provider.js'
import { Visitor } from '../setup/visitor.js'
import type { PersonMethod } from '../../schemas/config.js'
import { openDesk } from './desk.js'

export interface PagesOptions {
  mode?: 'per_user' | 'shared'
  maxAgeSeconds?: number
  publicUrl?: string
  method?: PersonMethod
}

/** Where people log in. */
interface Login {
  issuer: string
  client: { clientId: string; clientSecret?: string; scope: string; audience: string }
}

async function openPages(
  t: Test,
  { mode = 'shared', maxAgeSeconds = 0, publicUrl = '', method }: PagesOptions,
  login: Login,
) {
  const home = mode === 'shared' ? '/approve' : '/setup'
  const clock = { offset: 0, now: () => Date.now() + clock.offset }
  const roleOf = ({ groups }: Identity): Role | null =>
    (['admin', 'operator', 'reader'] as const).find((role) => groups.includes(GROUP_OF[role])) ?? null
  const audit: Line[] = []
  const { desk, ...requests } = openDesk(t, { issuer: login.issuer, ...(method && { method }), clock, roleOf, audit })
  const log: Line[] = []
  const used = new Set<string>()
  const charged: string[] = []
  const logger: FastifyBaseLogger = pino(
    { level: 'trace' },
    { write: (line: string) => void log.push(JSON.parse(line)) },
  )
  const app: FastifyInstance = fastify({ loggerInstance: logger, genReqId: requestIdOf })
  t.teardown(() => (app.server.closeAllConnections(), app.close()))
  await app.register(requestId)
  await app.register(clientAddress, {})
  await app.register(securityHeaders, { isPublicHttps: publicUrl.startsWith('https:') })
  await app.register(errors)
  await app.register(pages, {
    mode,
    publicUrl,
    home,
    issuer: login.issuer,
    sessionKey: deriveSessionKey(Buffer.alloc(32, 5), publicUrl),
    login: login.client,
    groupsOfRole: { reader: [GROUP_OF.reader], operator: [GROUP_OF.operator], admin: [GROUP_OF.admin] },
    roleOf,
    audit: async (entry) => void audit.push({ ...entry }),
    usedTokens: {
      claim: async (id) => !used.has(id) && used.add(id) !== undefined,
      isUsed: async (id) => used.has(id),
    },
    checkState: async () => {},
    // The tokens come from the provider itself here; that they are checked is a matter of test/auth.
    verifyToken: async (token) => {
      const [, claims = ''] = token.split('.')
      const { iss, sub, groups = [] } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      return { iss, sub, groups, hasGroupsOverage: false }
    },
    challenge: () => 'Bearer',
    limitCaller: async ({ visit }) => void charged.push(visit?.identity.sub ?? 'stranger'),
    now: clock.now,
    approve: { desk, maxAgeSeconds },
  })
  return { app, clock, audit, log, charged, home, desk, ...requests }
}

/** Over inject, with a provider that obeys the test. */
export async function startPages(t: Test, options: PagesOptions = {}) {
  const { publicUrl = 'https://mcp.example.test' } = options
  const provider = await startPretendProvider(t)
  const { audience } = provider.oauth
  const client = { clientId: 'setup-page', clientSecret: 'client-secret', scope: 'svc-mcp.use', audience }
  const service = await openPages(t, { ...options, publicUrl }, { issuer: provider.issuer, client })
  const { app, home } = service

  const visitor = (headers?: Record<string, string>) => new Visitor(app, new URL(publicUrl).origin, headers)

  /** Someone who has logged in on their way to this page. */
  async function loggedIn(person: Person = {}, at = '/approve'): Promise<Visitor> {
    const browser = visitor()
    const { headers } = await browser.get(`${home}/login?to=${at}`)
    const query = provider.comeBack(headers.location as string, { groups: [GROUP_OF.admin], ...person })
    const { statusCode } = await browser.get(`${home}/callback?${query.toString()}`)
    if (statusCode !== 302) throw new Error(`the login failed: ${statusCode}`)
    return browser
  }
  return { ...service, provider, visitor, loggedIn }
}

/** On a port, with a real provider. */
export async function servePages(
  t: Test,
  { people, ...options }: PagesOptions & Pick<IdentityProviderOptions, 'people'> = {},
) {
  const provider = await startIdentityProvider(t, { people })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const home = options.mode === 'per_user' ? '/setup' : '/approve'
  const { audience, requiredScope: scope } = provider.oauth()
  const client = { ...provider.allowRedirects([`${url}${home}/callback`]), scope, audience }
  const service = await openPages(t, { ...options, publicUrl: url }, { issuer: provider.issuer, client })
  await service.app.listen({ host: '127.0.0.1', port })
  return { ...service, provider, url }
}
