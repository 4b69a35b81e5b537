// A PCE on which nothing is pending, in a separate process. It answers every request with an empty body.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume()
  response.setHeader('content-type', 'application/json').end('{}')
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
