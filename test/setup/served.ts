/** The whole service in per_user mode on a port of its own, with a browser login at a real OpenID provider. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../contract/authenticated-service.js'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import type { Test } from './pretend-provider.js'
import { formFor } from './service.js'

export interface ServedOptions extends IdentityProviderOptions {
  /** A client without a secret. */
  isPublic?: boolean
}

export async function startServed(t: Test, { isPublic = false, ...options }: ServedOptions = {}) {
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
    config: {
      http: { host: '127.0.0.1', port, publicUrl: url, allowedHosts: [], maxInFlight: 256 },
      oauth: provider.oauth(),
      login: provider.allowRedirects([`${url}/setup/callback`], { isPublic }),
      keystore: { path: join(folder, 'keystore.db'), kek: randomBytes(32) },
    },
  })
  await service.app.listen({ host: '127.0.0.1', port })
  return { ...service, provider, url, clock, good: formFor(service.pce) }
}

function freePort(): Promise<number> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
