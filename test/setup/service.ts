/** The whole service in per_user mode, with a browser login at a provider that obeys the test. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  startService as startAuthenticated,
  GROUP_OF,
  PUBLIC_URL,
  registrationFor,
} from '../contract/authenticated-service.js'
import type { OfferConfig, PerUserConfig } from '../../schemas/config.js'
import { startPretendProvider, type Person, type Test } from './pretend-provider.js'
import { Visitor } from './visitor.js'

export { GROUP_OF, PUBLIC_URL }

export interface ServiceOptions {
  publicUrl?: string
  /** Null for a service without browser login. */
  login?: { clientId: string; clientSecret?: string } | null
  allowInsecureTls?: boolean
  /** MCP_ALLOWED_PCE_HOSTS; that of the simulated PCE unless told. */
  allowedHosts?: readonly string[]
  kek?: Buffer
  /** Of an earlier service, whose state this one has. */
  folder?: string
  keysAreDown?: boolean
  oauth?: Partial<PerUserConfig['oauth']>
  offer?: OfferConfig
}

export async function startService(t: Test, options: ServiceOptions = {}) {
  const provider = await startPretendProvider(t)
  if (options.keysAreDown) provider.faults.keys = (response) => response.writeHead(500).end()
  const { publicUrl = PUBLIC_URL, login = { clientId: 'setup-page', clientSecret: 'client-secret' } } = options
  const clock = { offset: 0, now: () => Date.now() + clock.offset }
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'setup-'))
  if (options.folder === undefined) t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const service = await startAuthenticated(t, {
    folder,
    now: clock.now,
    keysAreDown: options.keysAreDown,
    estate: { workloads: 20, flows: 1 },
    config: {
      http: { host: '127.0.0.1', port: 0, publicUrl, allowedHosts: [], maxInFlight: 256 },
      oauth: { ...provider.oauth, ...options.oauth },
      ...(login && { login }),
      keystore: { path: join(folder, 'keystore.db'), kek: options.kek ?? randomBytes(32) },
      ...(options.allowInsecureTls && {
        userPce: { allowedHosts: ['127.0.0.1'], allowInsecureTls: true, tls: { verify: true } },
      }),
      ...(options.offer && { offer: options.offer }),
      ...(options.allowedHosts && {
        userPce: { allowedHosts: options.allowedHosts, allowInsecureTls: false, tls: { verify: true } },
      }),
    },
  })

  /** Someone who has not logged in. */
  const visitor = (headers?: Record<string, string>) => new Visitor(service.app, new URL(publicUrl).origin, headers)

  /** Someone who has. */
  async function loggedIn(person: Person = {}): Promise<Visitor> {
    const browser = visitor()
    const { headers } = await browser.get('/setup/login')
    const query = provider.comeBack(headers.location as string, person)
    const { statusCode } = await browser.get(`/setup/callback?${query.toString()}`)
    if (statusCode !== 302) throw new Error(`the login failed: ${statusCode}`)
    return browser
  }

  /** What is registered for this person, as their own MCP client is told. */
  const statusOf = async (sub = 'alice') =>
    service.call(await provider.tokenFor({ sub }), 'check-pce-credentials-status')

  /** Refusals that never became a tool call, as the audit log has them. */
  const refusals = () => service.audit.filter(({ route, call_id }) => String(route).startsWith('/setup') && !call_id)

  return { ...service, provider, clock, visitor, loggedIn, statusOf, refusals, good: formFor(service.pce) }
}

/** What the fields of the form take for a simulated PCE. */
export function formFor(pce: Parameters<typeof registrationFor>[0]) {
  const { pce_host, pce_port, pce_org_id, api_key, api_secret } = registrationFor(pce)
  return { pce_host, pce_port: String(pce_port), pce_org_id: String(pce_org_id), api_key, api_secret }
}
