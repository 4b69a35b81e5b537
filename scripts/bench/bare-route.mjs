// The lower bound for a call: a Fastify route that sends the same tool result without MCP. Argument: the result as
// JSON.
import fastify from 'fastify'

const result = JSON.parse(process.argv[2])
const app = fastify({ logger: false })
app.post('/mcp', (request) => ({ jsonrpc: '2.0', id: request.body.id, result }))
console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
