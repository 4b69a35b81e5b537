/** The whole service in per_user mode on a port of its own, with a browser login at a real OpenID provider. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../free-port.js'
import type { OAuthConfig } from '../../schemas/config.js'
import { startService, type ServiceOptions } from '../contract/authenticated-service.js'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import type { Test } from './pretend-provider.js'
import { formFor } from './service.js'

export interface ServedOptions extends IdentityProviderOptions {
  /** A client without a secret. */
  isPublic?: boolean
  rates?: ServiceOptions['rates']
  /** Laid over what the provider wants. */
  oauth?: Partial<OAuthConfig>
  /** The service believes what a request from this machine says of its client. */
  isBehindProxy?: boolean
}

/** What a service behind a proxy on this machine trusts. */
export const LOCAL_PROXY = { networks: [{ address: '127.0.0.1', prefix: 32 }], unix: false }

export async function startServed(
  t: Test,
  { isPublic = false, isBehindProxy = false, rates, oauth, ...options }: ServedOptions = {},
) {
  const provider = await startIdentityProvider(t, options)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'served-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const clock = { offset: 0 }
  const service = await startService(t, {
    folder,
    now: () => Date.now() + clock.offset,
    estate: { workloads: 20, flows: 1 },
    rates,
    config: {
      http: {
        ...{ host: '127.0.0.1', port, publicUrl: url, allowedHosts: [], maxInFlight: 256 },
        ...(isBehindProxy && { trustedProxies: LOCAL_PROXY }),
      },
      oauth: provider.oauth(oauth),
      login: provider.allowRedirects([`${url}/setup/callback`], { isPublic }),
      keystore: { path: join(folder, 'keystore.db'), kek: randomBytes(32) },
    },
  })
  await service.app.listen({ host: '127.0.0.1', port })
  return { ...service, provider, url, clock, good: formFor(service.pce) }
}
