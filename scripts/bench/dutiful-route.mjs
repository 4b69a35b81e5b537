// A route that does everything that the server must do for every call, but without MCP: it looks up an access token,
// sets the server's headers, writes two audit entries and two log lines, and sends the same answer. Whatever else a
// call costs is overhead. Arguments: the result as JSON, and the folder of both logs.
import { createHash, randomUUID } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers'
import fastify, { LogController } from 'fastify'
import { pino } from 'pino'

const { structuredContent } = JSON.parse(process.argv[2])
const folder = process.argv[3]
const auditFile = fs.openSync(join(folder, 'route-audit.log'), 'a')
const logFile = fs.openSync(join(folder, 'route.log'), 'a')
const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

// The lines of one turn of the event loop are written together, as in the server's logger.
let lines = ''
const flush = () => {
  fs.writeSync(logFile, lines)
  lines = ''
}
const sink = {
  write(line) {
    if (lines === '') setImmediate(flush)
    lines += line
  },
}
const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, sink)
const app = fastify({
  loggerInstance: log,
  logController: new LogController({ disableRequestLogging: true }),
  genReqId: () => randomUUID(),
})
app.addHook('onResponse', ({ log, method, url }, { statusCode, elapsedTime }, done) => {
  log.info({ method, url, status: statusCode, ms: elapsedTime, sub: 'caller', client: '127.0.0.1' }, 'request')
  done()
})

const callers = new Map()
function findCaller({ authorization }) {
  const hash = createHash('sha256').update(authorization).digest('base64')
  const sub = callers.get(hash) ?? `caller-${callers.size}`
  callers.set(hash, sub)
  return sub
}

function audit(phase, decision, outcome, sub, requestId, callId) {
  const entry = {
    ts: new Date().toISOString(),
    phase,
    decision,
    outcome,
    tool: 'get-server-changelog',
    role: 'reader',
    iss: 'https://idp.example.com',
    sub,
    request_id: requestId,
    call_id: callId,
    mode: 'shared',
    transport: 'http',
    route: '/mcp',
    client_address: '127.0.0.1',
  }
  fs.writeSync(auditFile, `${JSON.stringify(entry)}\n`)
}

app.post('/mcp', (request, reply) => {
  const { id, body, headers } = request
  const sub = findCaller(headers)
  const callId = randomUUID()
  audit('decision', 'allowed', undefined, sub, id, callId)
  const text = JSON.stringify(structuredContent)
  const content = JSON.stringify([{ type: 'text', text }])
  const answer = `{"jsonrpc":"2.0","id":${body.id},"result":{"content":${content},"structuredContent":${text}}}`
  audit('outcome', undefined, 'success', sub, id, callId)
  log.info({ request_id: id, sub, tool: 'get-server-changelog', outcome: 'success', ms: 0.1 }, 'tool call')
  void reply.headers({ 'x-request-id': id, ...HEADERS }).send(answer)
})
console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
