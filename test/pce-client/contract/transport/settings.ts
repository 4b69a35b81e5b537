import https from 'node:https'
import type { TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { createPceClient } from '../../../../pce-client/index.js'
import { partial } from '../../../partial.js'
import { clientOf, listen, SECRET, startServer, USER } from '../../support.js'
import { failureOf, startContractPce, type ContractPce } from '../start-contract-pce.js'
import { makePki } from './make-pki.js'
import { proveTransport } from './prove-transport.js'
import { startForwardProxy } from './start-forward-proxy.js'

const basic = (user: string, secret: string) => `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`

/** Credentials, proxies, the time-out and TLS (S9), each by its effect on a real connection. */
export async function settingOperations(t: Test, pce: ContractPce): Promise<void> {
  const pki = makePki(t)
  const tls = { cert: pki.read('server.pem'), key: pki.read('server.key') }
  const secure = await startContractPce(t, { tls, workloads: 60 })
  const securePort = Number(new URL(secure.simulator.url).port)
  const secureClient = () => {
    const client = createPceClient({ url: 'https://localhost', port: securePort, retryCount: 0 })
    client.setCredentials(secure.simulator.credentials.key, secure.simulator.credentials.secret)
    t.teardown(() => client.close())
    return client
  }

  await proveTransport(t, 'set_credentials', async (t) => {
    // The simulator keeps no Authorization; a scripted PCE shows it.
    const server = await startServer(t, () => ({ body: [] }))
    const scripted = clientOf(server)
    await scripted.get('labels')
    t.equal(server.seen[0]?.headers.authorization, basic(USER, SECRET), 'Basic, as UTF-8')
    scripted.setCredentials('user_7', 'tökén')
    await scripted.get('labels')
    t.equal(server.seen[1]?.headers.authorization, basic('user_7', 'tökén'), 'another one at once')

    const client = pce.connect()
    t.ok(await client.checkConnection(), 'the PCE takes its own')
    client.setCredentials(pce.simulator.credentials.key, 'wrong')
    pce.simulator.clearRequests()
    const facts = { status: 401, method: 'GET', path: '/orgs/1/labels' }
    await pce.refused(t, () => client.get('labels'), facts, 'and no other')
  })

  await proveTransport(t, 'set_proxies', async (t) => {
    const proxy = await startForwardProxy(t)
    const client = pce.connect()
    client.setProxies(proxy.url)
    await client.get('labels')
    const { url } = pce.simulator
    t.strictSame(proxy.lines, [`GET ${url}/api/v2/orgs/1/labels`], 'http goes through the http proxy')
    client.setProxies(null, proxy.url)
    await client.get('labels')
    t.equal(proxy.lines.length, 1, 'and not through the https proxy')
    client.setProxies()
    await client.get('labels')
    t.equal(proxy.lines.length, 1, 'without arguments there is none')
    pce.simulator.clearRequests()

    const through = secureClient()
    through.setTlsSettings(pki.path('ca.pem'))
    through.setProxies(null, proxy.url)
    t.equal((await through.get('labels')).status, 200)
    t.equal(proxy.lines[1], `CONNECT localhost:${securePort}`, 'https goes through a tunnel')
    t.equal(secure.simulator.requests.length, 1, 'to the PCE')
    through.setProxies(null, 'http://127.0.0.1:1')
    partial(t, await failureOf(() => through.get('labels')), { code: 'unreachable' }, 'a proxy that is not there')
    secure.simulator.clearRequests()
  })

  await proveTransport(t, 'set_timeout', async (t) => {
    const path = '/orgs/1/labels'
    const client = pce.connect({ retryCount: 0 })
    client.setTimeout(1)
    pce.simulator.faults.add({ kind: 'hang', path, times: 2 })
    const before = performance.now()
    const end = new AbortController()
    const patient = failureOf(() => pce.connect({ retryCount: 0 }).get('labels', { signal: end.signal }))
    const error = await failureOf(() => client.get('labels'))
    const seconds = (performance.now() - before) / 1000
    partial(t, error, { name: 'PceError', code: 'unreachable', reason: 'ETIMEDOUT' }, 'a PCE that says nothing')
    t.ok(seconds >= 0.9, `is given up after a second (${seconds.toFixed(1)})`)
    t.equal(await Promise.race([patient, 'waits']), 'waits', 'by this client alone')
    end.abort()
    partial(t, await patient, { code: 'aborted' })
    t.equal((await client.get('labels')).status, 200, 'one that answers is not')
    for (const bad of [0, -1, 1.5, NaN]) {
      t.throws(() => client.setTimeout(bad), { name: 'PceIntegerError' }, `${bad} is no time-out`)
    }
    pce.simulator.clearRequests()
  })

  await proveTransport(t, 'set_tls_settings', async (t) => {
    const client = secureClient()
    partial(
      t,
      await failureOf(() => client.get('labels')),
      { code: 'unreachable', message: /TLS/ },
      'an unknown authority',
    )
    t.equal(secure.simulator.requests.length, 0, 'before anything is sent')
    client.setTlsSettings(pki.path('ca.pem'))
    t.equal((await client.get('labels')).status, 200, 'a CA bundle makes it known')
    client.setTlsSettings(pki.path('other.pem'))
    partial(t, await failureOf(() => client.get('labels')), { code: 'unreachable' }, 'another one does not')
    client.setTlsSettings(false)
    t.equal((await client.get('labels')).status, 200, 'verify false')
    client.setTlsSettings(true)
    partial(t, await failureOf(() => client.get('labels')), { code: 'unreachable' }, 'verify true is the default')
    await proveClientCertificate(t, pki)
  })
}

/** A PCE that wants a certificate of its clients; the simulator does not. */
async function proveClientCertificate(t: Test, pki: ReturnType<typeof makePki>): Promise<void> {
  const subjects: string[] = []
  const server = https.createServer(
    { cert: pki.read('server.pem'), key: pki.read('server.key'), ca: pki.read('ca.pem'), requestCert: true },
    (request, response) => {
      subjects.push(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN))
      response.setHeader('content-type', 'application/json').end('[]')
    },
  )
  const port = await listen(t, server)
  const client = createPceClient({ url: 'https://localhost', port, retryCount: 0 })
  client.setTlsSettings(pki.path('ca.pem'), pki.path('client-both.pem'))
  await client.get('labels')
  client.setTlsSettings(pki.path('ca.pem'), [pki.path('client.pem'), pki.path('client.key')])
  await client.get('labels')
  client.close()
  t.strictSame(subjects, ['contract client', 'contract client'], 'a certificate of one file, or of a pair')
}
