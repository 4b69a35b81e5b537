/** What the wrong configurations are tried against: PCEs, a web server, an identity provider's keys, certificates. All on loopback. */
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPceSimulator } from '../../../pce-simulator/index.js'
import { freePort } from '../../free-port.js'
import { forgeKey } from '../../identity/forge.js'
import { startKeyServer } from '../../identity/key-server.js'
import { makePki } from '../../pce-client/contract/transport/make-pki.js'

/** Whoever tears the stage down. */
export type Closing = Parameters<typeof makePki>[0]

/** What cases write for what differs from run to run: the same word stands in the page. */
export const WORDS = {
  $PCE: 'the port of a PCE that speaks http',
  $TLS_PCE: 'the port of a PCE that speaks https, as `localhost`, with a certificate from a private CA',
  $WEB: 'the port of a web server that is no PCE',
  $NOBODY: 'a port at which nothing listens',
  $KEYS: "the port of the identity provider's keys",
  $API_KEY: 'a key that the PCEs accept',
  $API_SECRET: 'its secret',
  $KEK: '32 random bytes in base64',
  $HMAC_KEY: '32 others',
} as const

export interface Stage {
  /** What each word stands for. */
  values: Readonly<Record<keyof typeof WORDS, string>>
  /** Text of a PEM file: `ca`, `other` (another CA), `server`, `client` with its `client.key`, `sealed.key` (it has a passphrase). */
  pem: (name: string) => string
}

export async function setStage(t: Closing): Promise<Stage> {
  const pki = makePki(t)
  const seal = ['-v2', 'aes-256-cbc', '-passout', 'pass:x', '-out', pki.path('sealed.key')]
  execFileSync('openssl', ['pkcs8', '-topk8', '-in', pki.path('client.key'), ...seal], { stdio: 'ignore' })
  const estate = { seed: 1, workloads: 20, flows: 10 }
  const plain = await createPceSimulator(estate)
  const tls = await createPceSimulator({
    ...estate,
    tls: { cert: pki.read('server.pem'), key: pki.read('server.key') },
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
      $KEK: Buffer.alloc(32, 7).toString('base64'),
      $HMAC_KEY: Buffer.alloc(32, 9).toString('base64'),
    },
    pem: (name) => pki.read(name.includes('.') ? name : `${name}.pem`),
  }
}
