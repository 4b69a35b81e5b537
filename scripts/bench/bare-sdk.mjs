// A baseline for comparison: a server with one trivial tool in the SDK's own stateless pattern (web-standard transport,
// a new low-level Server for each request, a shared validator). Argument: the tool's result as JSON.
import fastify from 'fastify'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'

const result = JSON.parse(process.argv[2])
const jsonSchemaValidator = new AjvJsonSchemaValidator()
const app = fastify({ logger: false })

app.post('/mcp', async (request, reply) => {
  const server = new Server({ name: 'bare', version: '0' }, { capabilities: { tools: {} }, jsonSchemaValidator })
  server.setRequestHandler(CallToolRequestSchema, () => result)
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: true,
  })
  await server.connect(transport)
  const web = new Request(`http://127.0.0.1${request.url}`, { method: 'POST', headers: request.headers })
  return reply.send(await transport.handleRequest(web, { parsedBody: request.body }))
})
console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
