import http from 'node:http'
import net from 'node:net'
import type { Test } from 'tap'
import { listen } from '../../support.js'

/** A real forward proxy: passes absolute-form requests on, opens tunnels for CONNECT, and remembers the first lines. */
export async function startForwardProxy(t: Test) {
  const lines: string[] = []
  const proxy = http.createServer((request, response) => {
    lines.push(`${request.method} ${request.url}`)
    const onward = http.request(request.url!, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  const tunnels = new Set<net.Socket>()
  proxy.on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    lines.push(`CONNECT ${request.url}`)
    const [host, port] = request.url!.split(':')
    const onward = net.connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    for (const end of [socket, onward]) {
      tunnels.add(end)
      end.on('error', () => {
        socket.destroy()
        onward.destroy()
      })
    }
  })
  t.teardown(() => tunnels.forEach((socket) => socket.destroy()))
  const port = await listen(t, proxy)
  return { url: `http://127.0.0.1:${port}`, lines }
}
