/** The room of the pages by itself, with a desk of the test and a provider that obeys it. */
import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import clientAddress from '../../plugins/client-address/index.js'
import errors from '../../plugins/errors/index.js'
import pages, { deriveSessionKey } from '../../plugins/pages/index.js'
import requestId, { requestIdOf } from '../../plugins/request-id/index.js'
import securityHeaders from '../../plugins/security-headers/index.js'
import type { Identity, Role } from '../../schemas/caller.js'
import { GROUP_OF, type Line } from '../contract/authenticated-service.js'
import { startPretendProvider, type Person, type Test } from '../setup/pretend-provider.js'
import { Visitor } from '../setup/visitor.js'
import { openTestDesk } from './test-desk.js'

export interface PagesOptions {
  mode?: 'per_user' | 'shared'
  maxAgeSeconds?: number
  publicUrl?: string
}

export async function startPages(t: Test, options: PagesOptions = {}) {
  const { mode = 'shared', maxAgeSeconds = 0, publicUrl = 'https://mcp.example.test' } = options
  const provider = await startPretendProvider(t)
  const clock = { offset: 0, now: () => Date.now() + clock.offset }
  const desk = openTestDesk(provider.issuer, clock.now)
  const roleOf = ({ groups }: Identity): Role | null =>
    (['admin', 'operator', 'reader'] as const).find((role) => groups.includes(GROUP_OF[role])) ?? null
  desk.roleOf = roleOf
  const audit: Line[] = []
  const log: Line[] = []
  const used = new Set<string>()
  const charged: string[] = []
  const logger: FastifyBaseLogger = pino(
    { level: 'trace' },
    { write: (line: string) => void log.push(JSON.parse(line)) },
  )
  const app: FastifyInstance = fastify({ loggerInstance: logger, genReqId: requestIdOf })
  t.teardown(() => app.close())
  await app.register(requestId)
  await app.register(clientAddress, {})
  await app.register(securityHeaders, { isPublicHttps: publicUrl.startsWith('https:') })
  await app.register(errors)
  await app.register(pages, {
    mode,
    publicUrl,
    home: mode === 'shared' ? '/approve' : '/setup',
    issuer: provider.issuer,
    sessionKey: deriveSessionKey(Buffer.alloc(32, 5)),
    login: {
      clientId: 'setup-page',
      clientSecret: 'client-secret',
      scope: 'svc-mcp.use',
      audience: provider.oauth.audience,
    },
    groupsOfRole: { reader: [GROUP_OF.reader], operator: [GROUP_OF.operator], admin: [GROUP_OF.admin] },
    roleOf,
    audit: async (entry) => void audit.push({ ...entry }),
    usedTokens: {
      claim: async (id) => !used.has(id) && used.add(id) !== undefined,
      isUsed: async (id) => used.has(id),
    },
    checkState: async () => {},
    verifyToken: async (token) => {
      const [, claims = ''] = token.split('.')
      const { iss, sub, groups } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      return { iss, sub, groups, hasGroupsOverage: false }
    },
    challenge: () => 'Bearer',
    limitCaller: async ({ visit }) => void charged.push(visit?.identity.sub ?? 'stranger'),
    now: clock.now,
    approve: { desk, maxAgeSeconds },
  })

  const visitor = (headers?: Record<string, string>) => new Visitor(app, new URL(publicUrl).origin, headers)

  /** Someone who has logged in on their way to this page. */
  async function loggedIn(person: Person = {}, at = '/approve'): Promise<Visitor> {
    const browser = visitor()
    const home = mode === 'shared' ? '/approve' : '/setup'
    const { headers } = await browser.get(`${home}/login?to=${at}`)
    const query = provider.comeBack(headers.location as string, { groups: [GROUP_OF.admin], ...person })
    const { statusCode } = await browser.get(`${home}/callback?${query.toString()}`)
    if (statusCode !== 302) throw new Error(`the login failed: ${statusCode}`)
    return browser
  }
  return { app, desk, provider, clock, audit, log, charged, visitor, loggedIn }
}
