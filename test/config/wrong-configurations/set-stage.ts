/** The surroundings in which wrong configurations are tried. */
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createPceSimulator } from '../../../pce-simulator/index.js'
import { freePort } from '../../free-port.js'
import { forgeKey } from '../../identity/forge.js'
import { startKeyServer } from '../../identity/key-server.js'
import { makePki } from '../../pce-client/contract/transport/make-pki.js'

export interface Stage {
  /** What the words of the cases stand for: ports, keys and secrets that differ from run to run. */
  values: Readonly<Record<string, string>>
  /** Text of a PEM file: `ca`, `other` (another CA), `server`, `client` with its `client.key`, `sealed.key` (it has a passphrase). */
  pem: (name: string) => string
}

const KEYS = {
  $KEK: Buffer.alloc(32, 7).toString('base64'),
  $HMAC_KEY: Buffer.alloc(32, 9).toString('base64'),
}

/** Certificates alone, and ports at which nothing listens: enough for settings that are only read. */
export function setEmptyStage(t: Test): Stage {
  const ports = ['$PCE', '$TLS_PCE', '$WEB', '$NOBODY', '$KEYS'].map((word, at) => [word, String(15_001 + at)])
  return {
    values: { ...Object.fromEntries(ports), $API_KEY: 'api_1', $API_SECRET: 'secret', ...KEYS },
    pem: readPem(t),
  }
}

function readPem(t: Test): Stage['pem'] {
  const pki = makePki(t)
  const seal = ['-v2', 'aes-256-cbc', '-passout', 'pass:x', '-out', pki.path('sealed.key')]
  execFileSync('openssl', ['pkcs8', '-topk8', '-in', pki.path('client.key'), ...seal], { stdio: 'ignore' })
  return (name) => pki.read(name.includes('.') ? name : `${name}.pem`)
}

/** PCEs, a web server and an identity provider's keys that answer, all on loopback. */
export async function setStage(t: Test): Promise<Stage> {
  const pem = readPem(t)
  const estate = { seed: 1, workloads: 20, flows: 10 }
  const plain = await createPceSimulator(estate)
  const tls = await createPceSimulator({
    ...estate,
    tls: { cert: pem('server'), key: pem('server.key') },
  })
  const web = createServer((_request, response) => void response.writeHead(404).end('<h1>Not Found</h1>'))
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    web.closeAllConnections()
    web.close()
    await Promise.all([plain.close(), tls.close()])
  })
  const keys = await startKeyServer(t, forgeKey('ES256'))
  return {
    values: {
      $PCE: new URL(await plain.listen()).port,
      $TLS_PCE: new URL(await tls.listen()).port,
      $WEB: String((web.address() as AddressInfo).port),
      $NOBODY: String(await freePort()),
      $KEYS: new URL(keys.url).port,
      $API_KEY: plain.credentials.key,
      $API_SECRET: plain.credentials.secret,
      ...KEYS,
    },
    pem,
  }
}
