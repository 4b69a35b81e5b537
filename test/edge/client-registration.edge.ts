/**
 * The two ways in which a client that nobody has registered gets a client ID from a provider: it registers itself (RFC 7591), or its ID is
 * the address of a document that describes it. Each by a client of the SDK and by the bridge `mcp-remote`, up to a tool's answer. The
 * server has a path, so both name it with the same `resource`.
 */
import { createServer as createProxy, request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { partial } from '../partial.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { createWorld, GROUP_OF } from './support/authenticated-world.js'
import { makeCertificate } from './support/make-certificate.js'
import { connectAs, createPerson, REDIRECT } from './support/oauth-client.js'
import { connectBridge, redirectOf } from './support/start-mcp-remote.js'
import { trustingFetch } from './support/trusting-fetch.js'

/** The site of the makers of clients, with a document that describes each by its name, and those that were read. */
async function publishClients(t: Test, redirectUris: Readonly<Record<string, string>>) {
  const certificate = makeCertificate(t)
  const reads: string[] = []
  const server = createServer(certificate, (request, response) => {
    const name = request.url!.slice('/clients/'.length)
    reads.push(name)
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        client_id: idOf(name),
        client_name: name,
        application_type: 'native',
        redirect_uris: [redirectUris[name]],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => (server.closeAllConnections(), server.close()))
  const { port } = server.address() as AddressInfo
  const idOf = (name: string) => `https://localhost:${port}/clients/${name}`
  return { idOf, reads, fetch: trustingFetch(certificate.cert) }
}

/** A proxy that strips the server's path, as deploy/proxy/nginx.conf does. */
async function startProxy(t: Test, port: number, { path, to }: { path: string; to: number }) {
  const proxy = createProxy((incoming, outgoing) => {
    if (!incoming.url!.startsWith(path)) return void outgoing.writeHead(404).end()
    const { method, headers } = incoming
    const passed = request(
      { host: '127.0.0.1', port: to, path: incoming.url!.slice(path.length), method, headers },
      (answer) => answer.pipe(outgoing.writeHead(answer.statusCode!, answer.headers)),
    )
    incoming.pipe(passed.on('error', () => outgoing.destroy()))
  })
  await new Promise<void>((resolve) => proxy.listen(port, '127.0.0.1', resolve))
  t.teardown(() => (proxy.closeAllConnections(), proxy.close()))
}

/** The client has the tools, and the server knows who calls. */
async function checkCall(t: Test, client: Client, audited: () => Record<string, unknown> | undefined) {
  t.equal((await client.listTools()).tools.length, DEFAULT_NAMES.length)
  await client.callTool({ name: 'check-pce-credentials-status', arguments: {} })
  partial(t, audited(), { tool: 'check-pce-credentials-status', sub: 'alice', role: 'operator' })
}

t.test('a client that nobody has registered', async (t) => {
  const [port, ownPort, callbackPort] = [await freePort(), await freePort(), await freePort()]
  const base = `http://127.0.0.1:${port}/policy`
  await startProxy(t, port, { path: '/policy', to: ownPort })
  const site = await publishClients(t, { sdk: REDIRECT, 'mcp-remote': redirectOf(callbackPort) })
  const idp = await startIdentityProvider(t, {
    people: { alice: { groups: [GROUP_OF.operator] } },
    fetchDocument: site.fetch,
  })
  const world = await createWorld(t, { publicUrl: base, idp })
  await world.serve({ args: ['--port', String(ownPort)], env: { MCP_AUDIT_LOG_PATH: world.auditPath } })
  const audited = () => world.auditEntries().findLast(({ phase }) => phase === 'decision')
  const logIn = async (url: string) => {
    const browser = new Browser()
    return idp.logIn(browser, await browser.open(url), 'alice')
  }
  const connect = {
    sdk: async (t: Test, clientMetadataUrl?: string) => {
      const person = createPerson(idp, 'alice', { ...(clientMetadataUrl !== undefined && { clientMetadataUrl }) })
      const { client } = await connectAs(`${base}/mcp`, person)
      t.teardown(() => client.close())
      return { client, id: person.logins[0]!.searchParams.get('client_id') }
    },
    'mcp-remote': async (t: Test, clientMetadataUrl?: string) => {
      let id: string | null = null
      const client = await connectBridge(t, `${base}/mcp`, {
        port: callbackPort,
        args: clientMetadataUrl === undefined ? [] : ['--client-metadata-url', clientMetadataUrl],
        logIn: (url) => {
          id = new URL(url).searchParams.get('client_id')
          return logIn(url)
        },
      })
      return { client, id }
    },
  }

  for (const [name, connectClient] of Object.entries(connect)) {
    await t.test(`registers itself: ${name}`, async (t) => {
      const before = idp.seen.registrations
      const { client, id } = await connectClient(t)
      t.equal(idp.seen.registrations, before + 1)
      t.match(id, /^[\w-]{20,}$/, 'the provider made its ID')
      await checkCall(t, client, audited)
    })

    await t.test(`is the address of its document: ${name}`, async (t) => {
      const before = idp.seen.registrations
      const { client, id } = await connectClient(t, site.idOf(name))
      t.equal(id, site.idOf(name))
      t.same(site.reads.splice(0), [name], 'which the provider has read')
      t.equal(idp.seen.registrations, before, 'nobody was registered')
      await checkCall(t, client, audited)
    })
  }
})
