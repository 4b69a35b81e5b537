import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { listen } from '../support.js'

/** An answer of the PCE, its body unpacked. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** One way for a request to go wrong between the client and the PCE. */
export interface Fault {
  name: string
  /** Whether the PCE handles the request before it goes wrong. */
  handled: boolean
  /** Sends what the client gets; `answer` is the PCE's own where it handled the request. */
  strike(response: ServerResponse, answer: Answer): void
  /** The client is told that nothing was done, so that what was done all the same is the PCE's own lie. */
  deniesHandling?: boolean
  /** It waits for the client's time limit. */
  stalls?: boolean
  /** A body that is no answer to the request, though nothing is wrong on the way. */
  misshapes?: boolean
  /** The answer is whole although its headers are wrong, so the call must succeed. */
  usable?: boolean
}

/** An answer to an operation that the simulator does not know. */
export interface Answered {
  status: number
  json?: unknown
}

/** Which requests of a call a fault strikes. */
export interface Strike {
  fault: Fault
  /** The first of them, from 0. */
  from: number
  /** That one alone, or all from there on. */
  once: boolean
  /** The paths of the requests that count; all if absent. */
  on?: RegExp
}

/** A write that the PCE has carried out. */
export interface HandledWrite {
  /** Method and path, without its query. */
  line: string
  body: string
}

export interface Gateway {
  port: number
  /** From now on, counting requests and writes from zero. `answered`: what the PCE answers, in place of the one behind the gateway. */
  begin(strike: Strike | null, answered?: Answered): void
  /** The number of requests that the fault could have met. */
  requests(): number
  struck(): number
  handledWrites(): HandledWrite[]
}

/** Stands between the client and a PCE, hands requests on, and goes wrong where it is told to. */
export async function startGateway(t: Test, pcePort: number): Promise<Gateway> {
  let strike: Strike | null = null
  let answered: Answered | undefined
  let seen = 0
  let struck = 0
  let writes: HandledWrite[] = []
  const agent = new http.Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    const at = strike?.on?.test(request.url!) === false ? -1 : seen++
    const isStruck = strike !== null && at >= strike.from && (!strike.once || at === strike.from)
    const fault = isStruck ? strike!.fault : null
    if (fault !== null) struck++
    if (fault?.handled === false) return fault.strike(response, { status: 0, headers: {}, body: Buffer.alloc(0) })
    const own = writes
    const answer = answered === undefined ? await forward(request, body, pcePort, agent) : answerOf(answered)
    if (request.method !== 'GET' && answer.status < 300)
      own.push({ line: `${request.method} ${request.url!.split('?', 1)[0]}`, body: body.toString() })
    if (fault !== null) return fault.strike(response, answer)
    response.writeHead(answer.status, answer.headers).end(answer.body)
  }
  // A connection that is kept alive would hide that the next request was never sent.
  const server = http.createServer({ keepAlive: false }, (request, response) => {
    handle(request, response).catch((error: unknown) => {
      t.fail(`the gateway failed: ${String(error)}`)
      response.destroy()
    })
  })
  const port = await listen(t, server)
  return {
    port,
    begin(next, given) {
      strike = next
      answered = given
      seen = struck = 0
      writes = []
    },
    requests: () => seen,
    struck: () => struck,
    handledWrites: () => writes,
  }
}

function answerOf({ status, json }: Answered): Answer {
  if (json === undefined) return { status, headers: {}, body: Buffer.alloc(0) }
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(json)) }
}

const HOP_HEADERS = new Set([
  'connection',
  'transfer-encoding',
  'content-length',
  'content-encoding',
  'keep-alive',
  'date',
])

async function forward(request: IncomingMessage, body: Buffer, port: number, agent: http.Agent): Promise<Answer> {
  const { method, url: path, headers } = request
  const { connection: _hop, ...own } = headers
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    http.request({ port, host: '127.0.0.1', method, path, headers: own, agent }, resolve).on('error', reject).end(body),
  )
  const packed = await buffer(answer)
  const unpacked = answer.headers['content-encoding'] === 'gzip' ? gunzipSync(packed) : packed
  const kept = Object.entries(answer.headers).filter(([name]) => !HOP_HEADERS.has(name))
  return { status: answer.statusCode!, headers: Object.fromEntries(kept) as Record<string, string>, body: unpacked }
}
