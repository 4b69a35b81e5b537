/** The whole service on a port of its own, per_user unless told, with a browser login at a real OpenID provider. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../free-port.js'
import type { ApprovalConfig, OAuthConfig } from '../../schemas/config.js'
import { startService, type ServiceOptions } from '../contract/authenticated-service.js'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import type { Test } from './pretend-provider.js'
import { formFor } from './service.js'

export interface ServedOptions extends IdentityProviderOptions {
  /** A client without a secret. */
  isPublic?: boolean
  rates?: ServiceOptions['rates']
  /** Laid over a small one. */
  estate?: ServiceOptions['estate']
  /** Laid over what the provider wants. */
  oauth?: Partial<OAuthConfig>
  /** The service believes what a request from this machine says of its client. */
  isBehindProxy?: boolean
  mode?: 'per_user' | 'shared'
  /** Calls that need confirmation wait for a person. */
  approval?: ApprovalConfig
}

/** What a service behind a proxy on this machine trusts. */
export const LOCAL_PROXY = { networks: [{ address: '127.0.0.1', prefix: 32 }], unix: false }

export async function startServed(
  t: Test,
  {
    isPublic = false,
    isBehindProxy = false,
    mode = 'per_user',
    approval,
    rates,
    estate,
    oauth,
    ...options
  }: ServedOptions = {},
) {
  const provider = await startIdentityProvider(t, options)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'served-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const clock = { offset: 0 }
  const home = mode === 'per_user' ? '/setup' : '/approve'
  const service = await startService(t, {
    mode,
    folder,
    now: () => Date.now() + clock.offset,
    estate: { workloads: 20, flows: 1, ...estate },
    rates,
    config: {
      http: {
        ...{ host: '127.0.0.1', port, publicUrl: url, allowedHosts: [], maxInFlight: 256 },
        ...(isBehindProxy && { trustedProxies: LOCAL_PROXY }),
      },
      oauth: provider.oauth(oauth),
      login: provider.allowRedirects([`${url}${home}/callback`], { isPublic }),
      ...(mode === 'per_user' && { keystore: { path: join(folder, 'keystore.db'), kek: randomBytes(32) } }),
      ...(approval && { confirm: { hmacKey: randomBytes(32), ttlSeconds: 120, approval } }),
    },
  })
  await service.app.listen({ host: '127.0.0.1', port })
  return { ...service, provider, url, clock, good: formFor(service.pce) }
}
