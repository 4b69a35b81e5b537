// A PCE over https, in a separate process. It has 20 labels, and answers every other request with an empty object.
// Arguments: the paths of its certificate and its key.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

const [, , cert, key] = process.argv
const labels = JSON.stringify(
  Array.from({ length: 20 }, (_, index) => ({ href: `/orgs/1/labels/${index}`, key: 'env', value: `env-${index}` })),
)

const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
  request.resume()
  response.setHeader('content-type', 'application/json')
  if (/\/orgs\/1\/labels\b/.test(request.url)) response.setHeader('x-total-count', '20').end(labels)
  else response.end('{}')
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
