// The baseline for a start over HTTP: a Fastify server with the plugins of ours and /readyz, and nothing else.
import helmet from '@fastify/helmet'
import fastify from 'fastify'
import pino from 'pino'

const app = fastify({ loggerInstance: pino(pino.destination(2)) })
await app.register(helmet)
app.get('/readyz', () => ({ status: 'ok' }))
await app.listen({ port: 0, host: '127.0.0.1' })
