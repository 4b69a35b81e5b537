import { request as requestHttp } from 'node:http'
import { Agent, createServer, request as requestHttps } from 'node:https'
import type { AddressInfo } from 'node:net'

/**
 * Starts the registry of a company: it speaks TLS with a certificate of the company's own authority, and answers only
 * requests with the token, with what the registry of this machine has.
 */
export async function startRegistry({ cert, key }: { cert: string; key: string }, upstream: string, token: string) {
  const served = { answered: 0, refused: 0 }
  const agent = new Agent({ keepAlive: true })
  const server = createServer({ cert, key }, (request, response) => {
    if (request.headers.authorization !== `Bearer ${token}`) {
      served.refused++
      response.writeHead(401).end()
      return
    }
    served.answered++
    const target = new URL(`.${request.url ?? '/'}`, upstream)
    const { authorization: _token, host: _host, ...headers } = request.headers
    const options = { method: request.method, headers }
    const onward =
      target.protocol === 'https:' ? requestHttps(target, { ...options, agent }) : requestHttp(target, options)
    onward.on('error', () => response.destroy())
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    served,
    port: (server.address() as AddressInfo).port,
    close() {
      agent.destroy()
      server.closeAllConnections()
      server.close()
    },
  }
}
