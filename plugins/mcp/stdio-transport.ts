import type { Readable, Writable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage, JSONRPCNotification } from '@modelcontextprotocol/sdk/types.js'
import {
  AnswerCollector,
  BATCH_VERSION,
  type Message,
  prepareRequest,
  type ProtocolVersion,
  readEnvelope,
  rpcError,
  RpcProblem,
} from './read-envelope.js'

const LINE_END = Buffer.from('\n')

/**
 * MCP over stdio: one JSON-RPC message or batch a line. Replaces the SDK's transport, which drops a bad line without an
 * answer (its sender waits for ever), fails at a line of 10 MiB and knows no batches; the envelope rules are those of HTTP.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** What both sides speak; until initialize has said so, the version that HTTP assumes as well. */
  version: ProtocolVersion = BATCH_VERSION

  readonly #batches = new Set<AnswerCollector>()

  constructor(
    private readonly input: Readable,
    private readonly output: Writable,
  ) {}

  start(): Promise<void> {
    const cut = splitLines((line) => this.#read(line))
    this.input.on('data', cut)
    // The last line may lack its end.
    this.input.on('end', () => cut(LINE_END))
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    const id = 'id' in message && !('method' in message) ? message.id : undefined
    const batch = id === undefined ? undefined : [...this.#batches].find((candidate) => candidate.waitsFor(id))
    if (id === undefined || batch === undefined) {
      this.#write(JSON.stringify(message))
    } else {
      batch.add(id, message)
      this.#finish(batch)
    }
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.input.pause()
    this.onclose?.()
    return Promise.resolve()
  }

  #read(line: Buffer | null): void {
    try {
      if (line === null) throw new RpcProblem(-32600, 'Invalid Request: the line is too long')
      const { batch, messages } = readEnvelope(line, this.version)
      if (batch) this.#openBatch(messages)
      for (const message of messages) this.#deliver(message)
    } catch (error) {
      if (!(error instanceof RpcProblem)) throw error
      this.#write(JSON.stringify(rpcError(error.id, error.code, error.message)))
    }
  }

  #deliver(message: Message): void {
    if (message.kind === 'request') {
      const prepared = prepareRequest(message.request)
      if ('answer' in prepared) void this.send(prepared.answer as JSONRPCMessage)
      else this.onmessage?.(prepared.request)
    } else if (message.kind === 'notification') {
      this.onmessage?.({
        jsonrpc: '2.0',
        method: message.method,
        ...(message.params !== undefined && { params: message.params }),
      } as JSONRPCNotification)
      if (message.method === 'notifications/cancelled') this.#dropFromBatch(message.params)
    }
  }

  #openBatch(messages: Message[]): void {
    const ids = messages.flatMap((message) => (message.kind === 'request' ? [message.id] : []))
    if (ids.length > 0) this.#batches.add(new AnswerCollector(ids, true))
  }

  /** The SDK's Server does not answer what was cancelled, so the batch must not wait for it. */
  #dropFromBatch(params: unknown): void {
    const id = (params as { requestId?: string | number } | undefined)?.requestId
    if (id === undefined) return
    for (const batch of this.#batches) {
      if (!batch.waitsFor(id)) continue
      batch.drop(id)
      this.#finish(batch)
    }
  }

  #finish(batch: AnswerCollector): void {
    if (!batch.isComplete) return
    this.#batches.delete(batch)
    const text = batch.text()
    if (text !== '') this.#write(text)
  }

  #write(json: string): void {
    if (this.output.writable) this.output.write(`${json}\n`)
  }
}

const LINE_FEED = 0x0a
const LONGEST_LINE = 4 * 1024 * 1024

/**
 * Cuts a byte stream into lines without their ends (LF or CRLF), blank ones left out. A line of more than 4 MiB is given as null
 * once, and its bytes are not kept. Cutting bytes instead of text keeps characters whole that arrive in two chunks.
 */
function splitLines(onLine: (line: Buffer | null) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let length = 0
  const add = (part: Buffer) => {
    length += part.length
    if (length <= LONGEST_LINE) parts.push(part)
    else parts = []
  }
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end))
      const line = length > LONGEST_LINE ? null : Buffer.concat(parts)
      parts = []
      length = 0
      start = end + 1
      if (line === null || !isBlank(line)) onLine(line)
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
}

/** JSON.parse takes the CR of a CRLF for white space, so only a line of nothing else is special. */
const isBlank = (line: Buffer) => line.length === 0 || (line.length === 1 && line[0] === 0x0d)
